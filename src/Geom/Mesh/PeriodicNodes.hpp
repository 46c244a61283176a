/// @file PeriodicNodes.hpp
/// @brief Cells around nodes, including those across periodic boundaries.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <vector>

namespace DNDS::Geom {

/// [nodes] the local cells around each node's position, in file order: the row of `mesh.nodeCells`, and the cells with
/// another node at the same position because of a periodic image. Local. O(entries of nodeCells + sort of cells).
///
/// Equal to `nodeCells` away from periodic boundaries. At an edge where two directions are periodic it has the cells of
/// all four sides. Complete for the nodes of own cells if ghosts are by nodes, as `nodeCells` is for other nodes; the
/// image of each cell (`mesh.cells.images`) gives the orientation of its vectors. Coinciding nodes have equal rows.
LocalAdjacency nodeCellsAcrossPeriodic(const UnstructuredMesh &mesh);

/// [nodes] the least of the nodes that coincide with each because of periodic images, or the node itself.
/// Local. O(entries of faceNodes).
std::vector<LocalIndex> nodePlaces(const UnstructuredMesh &mesh);

/// [cells] all local cells in file order, copies of a cell ordered by image: in this order, sums over cells do not
/// depend on their owners. Local. O(sort of cells).
std::vector<LocalIndex> cellsInFileOrder(const UnstructuredMesh &mesh);

/// [cells] the local cells that share an entity of a kind with each, itself included, across periodic boundaries, too:
/// nodes, faces, or edges, which must have been made. Complete for cells within the mesh's layers but the last. Local.
/// O(entries).
LocalAdjacency neighboursThrough(const UnstructuredMesh &mesh, MeshEntityKind kind);

} // namespace DNDS::Geom
