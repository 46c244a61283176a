/// @file RebuildMesh.hpp
/// @brief The same mesh with its cells on other ranks.
#pragma once

#include "DNDS/Geom/Build/MeshOptions.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Index/Redistribute.hpp"

#include <span>

namespace DNDS::Geom {

/// A mesh, and how rows of cells get to it from the one before.
struct RebuiltMesh {
    UnstructuredMesh mesh;
    Redistribute cells;
};

/// The mesh that `buildMesh` makes of the same file if it is given the parts `targets`, [own cells] ranks: from
/// `before`, whose faces and neighbours need not be found again. Collective; O(own cells before and after, ghosts)
/// memory. Of the options, ghosts and order of cells count. Throws on all ranks ArgumentError for other targets;
/// StateError for a mesh that was moved from.
RebuiltMesh rebuildMesh(const UnstructuredMesh &before, std::span<const int> targets, const MeshOptions &options);

} // namespace DNDS::Geom
