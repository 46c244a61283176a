/// @file RefusedMessages.hpp
/// @brief What a transport of messages does in epochs in which its rank cannot take part.
#pragma once

#include "DNDS/Mpi/RequestSet.hpp"
#include "DNDS/Transport/Transport.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace DNDS {

/// Tells peers that no rows come, by an empty message, and takes what they send without storing it.
///
/// Messages of one channel match in the order in which receives are posted, so each refused epoch has receives of its
/// own, into memory that nobody reads; the next epoch may start while they are under way. Ranks refuse where there is
/// no memory left, so what one refusal needs is reserved before: as many bytes as messages bring, whose pages the
/// system hands out only when rows arrive where they are many.
class RefusedMessages {
  public:
    /// For messages of `bytes[k]` bytes from `plan.incoming[k]`. Local. Throws std::bad_alloc.
    RefusedMessages(const TransportPlan &plan, std::vector<std::size_t> bytes);

    /// Refuses one epoch. Local: does not wait for peers, but for one case: where messages of an epoch refused before
    /// are still under way and there is no memory for further ones, it waits for the former.
    void refuse();
    /// The first half of it: tells the peers that no rows come in this epoch, whose receives are posted already. Local.
    void tellPeers() const;
    /// Whether a message of `count` elements of `type` was expected, and a refusal came. Local.
    static bool isRefusal(const MPI_Status &status, int count, MPI_Datatype type);
    /// Whether the messages of all refused epochs have arrived; those that have not need their memory. Local, O(peers)
    /// after a refusal and O(1) otherwise; lets MPI make progress.
    bool complete();

  private:
    struct Epoch {
        std::unique_ptr<std::byte[]> unread; ///< outlives the receives, which are cancelled first
        RequestSet receives{RequestSet::Kind::Receive};
    };
    Epoch makeEpoch() const;
    void awaitSpare();

    Channel channel_;
    std::vector<int> readers_;                          ///< ranks that expect rows
    std::vector<std::pair<int, std::size_t>> messages_; ///< sender and bytes of each message to come
    std::optional<Epoch> spare_;                        ///< for the next refusal
    std::vector<Epoch> underWay_;                       ///< has room for one more
};

} // namespace DNDS
