/// @file NodeTopology.hpp
/// @brief The ranks that share this rank's node, and the memory they share.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace DNDS {

class NodeArena;

/// A place in a rank's arena, as numbers that are the same for all ranks of the node.
struct ArenaLocation {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;
};

/// The view that a communicator's ranks have of their node.
struct NodeTopology {
    std::vector<int> members;         ///< the ranks of the communicator on this node, by node rank: ascending
    std::shared_ptr<NodeArena> arena; ///< null if memory cannot be shared
    /// For reports: the reason why `arena` is null.
    std::string whyNoArena;
    bool crowded = false; ///< more ranks than processors: a waiting rank should yield

    /// The rank on this node of a rank of the communicator; -1 for ranks of other nodes. O(log members).
    int nodeRank(int rank) const {
        const auto at = std::lower_bound(members.begin(), members.end(), rank);
        return at != members.end() && *at == rank ? static_cast<int>(at - members.begin()) : -1;
    }
    bool sameNode(int rank) const { return nodeRank(rank) >= 0; }

    /// Discovers the node. Collective over `comm`. `ranksPerNode` as in Communicator::splitNode.
    static NodeTopology discover(CommunicatorView comm, int ranksPerNode);
};

/// This rank's number among the ranks of its machine, independent of the order of ranks and of virtual
/// nodes (DNDS_RANKS_PER_NODE). It decides which of the machine's devices is its own (`Device::useDevice`). Collective.
int rankOnMachine(CommunicatorView comm);

} // namespace DNDS
