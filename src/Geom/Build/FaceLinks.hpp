/// @file FaceLinks.hpp
/// @brief Finds which cells share a face, for cells of any types spread over ranks.
#pragma once

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/DistributedGraph.hpp"

namespace DNDS::Geom {

/// Links each face of each cell to the cell on its other side: fills `cells.links`. Collective.
///
/// Faces are the same when they have the same distinct corners. Those without a partner on this rank meet at a rank
/// chosen by a hash of their corners: O(own faces) memory and time, and messages for the unmatched ones only. A key is
/// 64 bits of hash and the least corner; that two faces of one node (a few dozen) share a hash happens once in 10^17
/// faces. Throws as `throwNonManifold` where three cells share a face.
void linkFaces(CommunicatorView comm, CellRecords &cells, const std::string &origin);

/// Throws DataError on all ranks that names, of all faces that three cells or more share, the one whose cells come
/// first in the file: the same message on any number of ranks. For meshes that are known to have such a face.
/// Collective; O(own faces) memory.
[[noreturn]] void throwNonManifold(CommunicatorView comm, const CellRecords &cells, const std::string &origin);

/// The graph whose vertices are cells and whose edges are shared faces: ascending neighbours, each once, periodic ones
/// included, the cell itself left out. Local.
DistributedGraph dualGraph(const CellRecords &cells, index firstCell);

} // namespace DNDS::Geom
