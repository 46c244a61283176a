/// @file RebuildMesh.hpp
/// @brief The same mesh with its cells on other ranks.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <span>
#include <utility>

namespace DNDS::Geom {

/// Builds the mesh that `buildMesh` would make of the same file for the parts `targets`, [own cells] ranks, from
/// `before`, without finding faces and neighbours again. Returns also the movement of the rows of cells to it.
/// Collective; O(own cells before and after, ghosts) memory. Of the options, uses ghosts and the order of cells. Throws
/// on all ranks ArgumentError for invalid targets; StateError for a mesh that was moved from.
std::pair<UnstructuredMesh, Redistribute> rebuildMesh(const UnstructuredMesh &before, std::span<const int> targets,
                                                      const MeshOptions &options);

} // namespace DNDS::Geom
