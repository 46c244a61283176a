/// @file MovedCells.hpp
/// @brief The cells of a mesh on their way to other ranks.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Index/Redistribute.hpp"

#include <span>

namespace DNDS::Geom {

/// The own cells of a mesh on other ranks.
struct MovedCells {
    CellRecords cells; ///< sorted by key, then by file number; marked, and linked but for periodic boundaries
    Redistribute rows; ///< how rows of cells get there, in the order of `cells`
};

/// Sends own cell c to rank `targets[c]`: [own cells] `targets` and `keys`. Only cells that change ranks are sent;
/// links are those of the mesh. Collective. Cells of meshes without ghosts have no links.
MovedCells moveCells(const UnstructuredMesh &mesh, std::span<const int> targets, std::span<const index> keys);

} // namespace DNDS::Geom
