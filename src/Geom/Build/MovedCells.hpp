/// @file MovedCells.hpp
/// @brief The cells of a mesh on their way to other ranks.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <span>
#include <utility>

namespace DNDS::Geom {

/// Sends own cell c to rank `targets[c]`: [own cells] `targets`. Returns the own cells afterwards, sorted along the
/// curve as by buildMesh, marked, and linked except across periodic boundaries; and the movement of the rows of cells,
/// in their order. Only cells that change ranks are sent; links are taken from the mesh. Collective. Cells of meshes
/// without ghosts have no links.
std::pair<MigratedCells, Redistribute> moveCells(const UnstructuredMesh &mesh, std::span<const int> targets);

} // namespace DNDS::Geom
