/// @file DualGraph.hpp
/// @brief Which cells share a face: the dual graph of a distributed mesh.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Geom/Source/DistributedGraph.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// The cell on the other side of each face: [own cells x faces of the type] global cell numbers, InvalidIndex where a
/// face belongs to one cell only (the mesh's boundary). Collective.
///
/// `cellNodes` is [own cells x nodes of the type], global node numbers in the order of the CGNS standard; rank r's
/// cells are numbered after those of the ranks before it, and ranks may have none. Two faces are the same when they
/// have the same nodes, in any order. Faces that collapse to fewer corners than a face of that dimension needs (an edge
/// of a degenerate hexahedron, say) have no neighbour. Orientation is not checked.
///
/// Every face goes to a rank chosen by a hash of its nodes, where the two cells meet: O(faces) memory and time, two
/// sparse exchanges. Errors, the same on all ranks: ArgumentError for a list that is not a whole number of cells
/// or a type without fixed faces, IndexError for a negative node, DataError for a face of more than two cells.
std::vector<index> faceNeighbours(CommunicatorView comm, std::span<const index> cellNodes, ElementType type);

/// Makes a graph of such a list of neighbours: ascending, each neighbour once, the cell itself left out. Local.
DistributedGraph graphOfNeighbours(std::span<const index> neighbours, int neighboursPerCell, index firstCell);

/// The graph whose vertices are cells and whose edges are shared faces. Collective. As `faceNeighbours` in all
/// respects.
DistributedGraph dualGraph(CommunicatorView comm, std::span<const index> cellNodes, ElementType type);

} // namespace DNDS::Geom
