/// @file FaceLinks.hpp
/// @brief Finds which cells share a face, for cells of any types distributed over ranks.
#pragma once

#include "DNDS/Geom/Partition/GraphPartition.hpp"
#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Index/Mappings.hpp"

namespace DNDS::Geom {

/// Links each face of each cell to the cell across it: fills `cells.links`. Collective.
///
/// Faces are equal if they have the same distinct corners. Faces without a partner on this rank are compared on the
/// rank whose block of the file has their least node: O(own faces) memory and time, and messages only for unmatched
/// faces. A key is 64 bits of hash and the least corner; two faces of one node (a few dozen) share a hash once in 10^17
/// faces. Throws as `throwNonManifold` if three cells share a face.
void linkFaces(const GlobalMapping &nodeBlocks, CellRecords &cells, const std::string &origin);

/// Throws DataError on all ranks with the first face in file order that three or more cells share: the same message on
/// any number of ranks. For meshes known to have such a face. Collective; O(own faces) memory.
[[noreturn]] void throwNonManifold(CommunicatorView comm, const CellRecords &cells, const std::string &origin);

/// The graph whose vertices are cells and whose edges are shared faces, periodic ones included: ascending neighbours
/// without duplicates or self-loops. Local.
DistributedGraph dualGraph(const CellRecords &cells, index firstCell);

} // namespace DNDS::Geom
