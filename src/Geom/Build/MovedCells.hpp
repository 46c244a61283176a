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
    MigratedCells cells; ///< sorted along the curve, as by buildMesh; marked; linked except across periodic boundaries
    Redistribute rows;   ///< movement of the rows of cells, in the order of `cells`
};

/// Sends own cell c to rank `targets[c]`: [own cells] `targets`. Only cells that change ranks are sent; links are taken
/// from the mesh. Collective. Cells of meshes without ghosts have no links.
MovedCells moveCells(const UnstructuredMesh &mesh, std::span<const int> targets);

} // namespace DNDS::Geom
