/// @file PeriodicNodes.hpp
/// @brief Cells around nodes, those on the other side of periodic boundaries among them.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <vector>

namespace DNDS::Geom {

/// [nodes] the local cells around each node's place, in the order of the file: those of `mesh.nodeCells`, and those
/// that have another node in the same place, because an image stands there. Local. O(entries of nodeCells + sort of
/// cells).
///
/// Equal to `nodeCells` away from periodic boundaries. At an edge where two directions are periodic it has the cells of
/// all four sides. Complete for the nodes of own cells if ghosts are by nodes, as `nodeCells` is for other nodes; the
/// image of each cell (`mesh.cells.images`) says where its vectors point. Nodes of different rows that are in one place
/// have equal rows.
LocalAdjacency nodeCellsAcrossPeriodic(const UnstructuredMesh &mesh);

/// [cells] all local cells in the order of the file, copies of a cell by the image in which they stand: the order in
/// which sums over cells do not depend on who owns them. Local. O(sort of cells).
std::vector<LocalIndex> cellsInFileOrder(const UnstructuredMesh &mesh);

} // namespace DNDS::Geom
