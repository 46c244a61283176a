/// @file NodeJoin.hpp
/// @brief Nodes of several zones: their coordinates, which of them are one, and their numbers after that.
#pragma once

#include "DNDS/Geom/Cgns/Boundary.hpp"

#include <array>
#include <vector>

namespace DNDS::Geom::Cgns {

/// The nodes of all zones, each rank its even share, and the numbers they have once some of them have become one.
struct NodeBlock {
    index total = 0;                              ///< in the file
    Range own;                                    ///< as the file numbers them, zone after zone
    std::vector<std::array<real, 3>> coordinates; ///< [own]
    bool joined = false;                          ///< whether any nodes became one, the same on all ranks
    std::vector<index> numbers;                   ///< [own]: the number after joining, where any were joined
};

/// Reads this rank's share of the coordinates. Collective. Throws DataError on all ranks, also for coordinates that are
/// not finite.
NodeBlock readNodes(CommunicatorView comm, const Model &model, NodeSource &source);

/// Finds which nodes are one and numbers those that are left. Collective. Warnings are added to `warnings`.
///
/// Faces are joined corner by corner, each with the nearest of the other face. The nodes of a chain of pairs all become
/// the one with the lowest number: labels are passed on until none changes, as often as chains are long.
void joinNodes(CommunicatorContext &context, const Model &model, const Elements &elements, const JoinPairs &pairs,
               const CgnsOptions &options, NodeBlock &nodes, std::vector<std::string> &warnings);

/// Translates numbers of the file into those after joining; only where `joined`. Collective.
void renumberNodes(CommunicatorContext &context, const NodeBlock &block, std::span<index> nodes);

} // namespace DNDS::Geom::Cgns
