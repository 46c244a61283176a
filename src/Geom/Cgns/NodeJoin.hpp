/// @file NodeJoin.hpp
/// @brief Nodes of several zones: coordinates, joining, and final numbers.
#pragma once

#include "DNDS/Geom/Cgns/Boundary.hpp"

#include <array>
#include <vector>

namespace DNDS::Geom::Cgns {

/// The nodes of all zones, an even share on each rank, and their numbers after joining.
/// Shares stay those of the file until the end: `numbers` translates, and only the lists of the finished mesh are
/// renumbered.
struct NodeBlock {
    index total = 0;                              ///< in the file
    Range own;                                    ///< as the file numbers them, zone after zone
    std::vector<std::array<real, 3>> coordinates; ///< [own]
    bool joined = false;                          ///< whether any nodes were merged, the same on all ranks
    std::vector<index> numbers;                   ///< [own]: the number after joining, if `joined`
};

/// Reads this rank's share of the coordinates. Collective. Throws DataError on all ranks, also for non-finite
/// coordinates.
/// O(own nodes + zones) time. Ranks read at the same time; the only message is the final agreement.
NodeBlock readNodes(CommunicatorView comm, const Model &model, TreeSource &source);

/// Finds nodes to merge and numbers the remaining ones. Collective. Adds to `warnings`.
///
/// Faces are joined corner by corner, each with the nearest of the other face. All nodes of a chain of pairs become the
/// node with the lowest number: labels propagate until none changes, as many rounds as chains are long.
/// Cost: two queries for the rows of joined faces and one for coordinates; one exchange of seven words a node and
/// bin for coincident nodes; an exchange and a reduction for each round of labels; a query for numbers. O(own nodes
/// + own pairs) memory. The result does not depend on the number of ranks: nodes of a bin are visited in ascending
/// order, minima of coordinates have the same bits in any order, and survivors keep the order of the file.
void joinNodes(CommunicatorContext &context, const Model &model, const Elements &elements, const JoinPairs &pairs,
               const CgnsOptions &options, NodeBlock &nodes, std::vector<std::string> &warnings);

/// Translates numbers of the file to the numbers after joining; only if `joined`. Collective.
/// One query for the distinct nodes: O(nodes log nodes) time.
void renumberNodes(CommunicatorContext &context, const NodeBlock &block, std::span<index> nodes);

} // namespace DNDS::Geom::Cgns
