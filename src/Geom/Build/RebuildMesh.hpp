/// @file RebuildMesh.hpp
/// @brief The same mesh with its cells on other ranks.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Index/Redistribute.hpp"

#include <span>

namespace DNDS::Geom {

/// A mesh, and the movement of the rows of cells to it from its predecessor.
struct RebuiltMesh {
    UnstructuredMesh mesh;
    Redistribute cells;
};

/// Builds the mesh that `buildMesh` would make of the same file for the parts `targets`, [own cells] ranks, from
/// `before`, without finding faces and neighbours again. Collective; O(own cells before and after, ghosts) memory. Of
/// the options, uses ghosts and the order of cells. Throws on all ranks ArgumentError for invalid targets; StateError
/// for a mesh that was moved from.
RebuiltMesh rebuildMesh(const UnstructuredMesh &before, std::span<const int> targets, const MeshOptions &options);

} // namespace DNDS::Geom
