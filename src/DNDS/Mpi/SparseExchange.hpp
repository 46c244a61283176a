/// @file SparseExchange.hpp
/// @brief Lists for a few ranks each, when receivers do not know their senders.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <exception>
#include <span>
#include <vector>

namespace DNDS {

/// Lists of numbers to or from some ranks: list `k` belongs to `ranks[k]` and is `values[starts[k]..starts[k + 1])`.
/// Ranks ascend strictly; `starts` has one entry more than `ranks` and begins with 0.
struct RankLists {
    std::vector<int> ranks;
    std::vector<index> starts{0};
    std::vector<index> values;

    /// Number of lists.
    std::size_t size() const noexcept { return ranks.size(); }
    /// The list of `ranks[k]`.
    std::span<const index> list(std::size_t k) const {
        return std::span<const index>(values).subspan(static_cast<std::size_t>(starts[k]),
                                                      static_cast<std::size_t>(starts[k + 1] - starts[k]));
    }
    /// Appends the list of the next higher rank.
    void append(int rank, std::span<const index> list);
};

/// Method by which receivers learn their senders.
enum class PeerDiscovery : unsigned char {
    Auto,     ///< all-to-all up to 32 ranks, consensus above
    AllToAll, ///< every rank tells every other its count: fewest steps when ranks are few
    Consensus ///< synchronous sends and a non-blocking barrier: messages in proportion to peers, not ranks
};

/// Delivers each outgoing list to its rank and returns the lists that other ranks sent here. Collective.
///
/// Lists to oneself are allowed and copied; empty lists are not sent. Consensus is the NBX algorithm (Hoefler, Siebert,
/// Lumsdaine: Scalable communication protocols for dynamic sparse data exchange, PPoPP 2010), with its own tag a call.
/// Cost: O(peers + values) messages and memory, and O(log ranks) or O(ranks) steps for discovery.
///
/// `failure` is the exception of this rank's preparation of its lists, if any: then all ranks throw it as
/// `CommunicatorView::agree` does, and nothing is delivered. The same where a rank has no memory to receive: counts
/// go first, and lists only when all ranks have confirmed, by one reduction, that they have room.
RankLists sparseExchange(CommunicatorContext &context, const RankLists &outgoing,
                         PeerDiscovery discovery = PeerDiscovery::Auto, const std::exception_ptr &failure = nullptr);

} // namespace DNDS
