/// @file CellNodes.hpp
/// @brief The nodes of a cell of a mesh in the form of readers.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// Appends the nodes of a cell as `ElementBlock` lists them, renumbered by `numbers` [nodes of the mesh]. Local.
void appendCellNodes(const UnstructuredMesh &mesh, index cell, std::span<const index> numbers,
                     std::vector<index> &result);

} // namespace DNDS::Geom
