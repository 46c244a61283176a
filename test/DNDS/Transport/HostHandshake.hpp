/// @file HostHandshake.hpp
/// @brief What ranks tell each other before rows move over a transport without tags and empty messages.
#pragma once

#include "DNDS/Mpi/RequestSet.hpp"
#include "DNDS/Transport/PeerFailure.hpp"
#include "DNDS/Transport/RefusedMessages.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace DNDS {

class HostHandshake;

/// The order in which this rank starts the exchanges of one transport whose messages have no tags. One a transport and
/// communicator, as an attachment of the context that `TransportDescriptor::prepare` makes. Local; one thread at a
/// time.
class StartOrder {
  private:
    friend class HostHandshake;
    std::map<int, std::uint64_t> numbers_;   ///< epochs started or refused so far, by peer
    std::deque<const HostHandshake *> open_; ///< epochs that have not moved their rows
};

/// One small MPI message each way with each peer in each epoch, over the exchange's own channel: "I take part, this is
/// my epoch number n with you", or an empty one, "I do not". See `Transport` for what tag-less transports need it for.
///
///     start:     pack();
///                handshake.start();
///     progress:  if (handshake.mayMove()) {
///                    for (const int peer : peers)
///                        if (handshake.takesPart(peer))
///                            move(peer);
///                    handshake.moved();
///                }
///     wait:      progress until all has moved, then handshake.throwIfAny();
///     refuse:    handshake.refuse();
///
/// A rank that has started moves its rows in `progress` even when the exchange is destroyed meanwhile: peers that were
/// told wait for them.
class HostHandshake {
  public:
    /// For the peers of `plan`. Local. Throws std::bad_alloc.
    HostHandshake(const TransportPlan &plan, const TransportSetup &setup, std::shared_ptr<StartOrder> order);
    HostHandshake(const HostHandshake &) = delete;
    HostHandshake &operator=(const HostHandshake &) = delete;
    ~HostHandshake() { moved(); }

    /// This rank takes part in the next epoch; it is open until `moved`. Local; throws std::bad_alloc, and nothing has
    /// begun then.
    void start();
    /// This rank leaves out the next epoch. Local, as `RefusedMessages::refuse`.
    void refuse();
    /// Whether rows may move now: all peers have answered, and all epochs that this rank started before have moved.
    /// False when they have. Local; does not wait.
    bool mayMove();
    /// Whether rows go to and come from `peer` in this epoch: it takes part, and did not start another exchange
    /// instead.
    bool takesPart(int peer) const { return answers_.at(peer); }
    /// The rows of this epoch move now, or none do: the next one may.
    void moved() noexcept;
    /// Whether the rows of this epoch have been moved, and no message of it or of refused epochs is under way. Local.
    bool complete();
    /// Throws PeerError where a peer did not take part, StateError where one had started another exchange.
    void throwIfAny();
    /// As `Transport::checkPeers`.
    void checkPeers(double secondsWaited) const;

  private:
    TransportPlan peers_; ///< with all peers of the exchange on both sides, and no rows
    std::shared_ptr<StartOrder> order_;
    std::vector<std::uint64_t> mine_;
    std::vector<std::uint64_t> theirs_;
    std::vector<MPI_Status> statuses_;
    std::map<int, bool> answers_;
    RequestSet receives_{RequestSet::Kind::Receive};
    RequestSet sends_{RequestSet::Kind::Send};
    RefusedMessages refused_;
    PeerWatch watch_;
    double patience_;
    PeerFailure failure_;
    int outOfOrder_ = -1;  ///< a peer that had started another exchange
    bool open_ = false;    ///< started, and the rows have not moved
    bool answered_ = true; ///< since the last start
    bool told_ = true;     ///< likewise
};

} // namespace DNDS
