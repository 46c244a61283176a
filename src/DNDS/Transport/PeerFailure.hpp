/// @file PeerFailure.hpp
/// @brief What transports do about peers that fail: remember the first failure, look whether peers are alive, give up.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/RequestSet.hpp"
#include "DNDS/Mpi/Whereabouts.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace DNDS {

/// The first failure of a peer, which is thrown when everything else is complete.
class PeerFailure {
  public:
    /// "rank `peer` `what`", and `why` where there is one, unless a peer has failed before. Does not fail where there
    /// is no memory: then the error only names the peer.
    void note(int peer, std::string_view what, std::string_view why = {}) noexcept {
        if (failed_)
            return;
        failed_ = true;
        peer_ = peer;
        try {
            text_ = fmt::format("rank {} {}{}{}", peer, what, why.empty() ? "" : ": ", why);
        } catch (...) {
            text_.clear();
        }
    }
    /// The peer refused this epoch.
    void noteRefused(int peer) noexcept {
        note(peer, "could not send its rows: see that rank's own error. The rows from it are not up to date");
    }
    /// The peer destroyed its exchange in this epoch.
    void noteClosed(int peer) noexcept {
        note(peer, "destroyed its exchange before sending its rows. The rows from it are not up to date");
    }
    void clear() noexcept {
        failed_ = false;
        text_.clear();
    }
    /// Throws PeerError where a peer has failed, and forgets it.
    void throwIfAny() {
        if (!std::exchange(failed_, false)) [[likely]]
            return;
        const std::string text = std::exchange(text_, {});
        throw PeerError(text.empty()
                            ? fmt::format("the exchange with rank {} failed, and there was no memory to say how", peer_)
                            : text);
    }

  private:
    bool failed_ = false;
    int peer_ = 0;
    std::string text_;
};

/// What an exception says, without type, rank and place.
inline std::string_view reasonOf(const std::exception &error) noexcept {
    const auto *ours = dynamic_cast<const Error *>(&error);
    return ours != nullptr ? std::string_view(ours->message()) : error.what();
}

/// Throws PeerError where the process of rank `peer` has ended (not `alive`) while this rank waited for it to do
/// `what`, or where that takes longer than `patience` seconds (0: as long as it lives); with what the ranks in `arena`,
/// if there is one, are doing. Local.
inline void checkPeer(bool alive, int peer, std::string_view what, double secondsWaited, double patience,
                      NodeArena *arena) {
    DNDS_CHECK(alive, PeerError, "the process of rank {} has ended while this rank waited for it to {}{}", peer, what,
               rollCall(arena));
    DNDS_CHECK(
        patience <= 0.0 || secondsWaited < patience, PeerError,
        "waited {:.3g} s for rank {} to {} (DNDS_WAIT_TIMEOUT): is it in another exchange, did it destroy this one "
        "before starting it, or is it stuck?{}",
        secondsWaited, peer, what, rollCall(arena));
}

/// Calls `transport.progress()` until everything is complete; looks after the peers where it takes long. The class is
/// known, so that a final one is polled without a virtual call.
template <class AnyTransport>
void waitUntilComplete(AnyTransport &transport, Backoff backoff) {
    while (!transport.progress()) {
        backoff.pause();
        if (backoff.longWait())
            transport.checkPeers(backoff.seconds());
    }
}

/// What a transport of messages knows about its peers: whether their processes are alive, as far as they are on this
/// node, and how long to wait for them.
class PeerWatch {
  public:
    /// Local.
    PeerWatch(const TransportPlan &plan, const TransportSetup &setup)
        : arena_(setup.context.node().arena), crowded_(setup.context.node().crowded), patience_(setup.patience) {
        const NodeTopology &node = setup.context.node();
        const auto add = [&](int peer) {
            if (arena_ && node.sameNode(peer))
                nodeRanks_[peer] = node.nodeRank(peer);
        };
        for (const Outgoing &outgoing : plan.outgoing)
            add(outgoing.peer);
        for (const Incoming &incoming : plan.incoming)
            add(incoming.peer);
    }

    /// Whether a rank that waits should make room for others.
    bool crowded() const noexcept { return crowded_; }
    NodeArena *arena() const noexcept { return arena_.get(); }
    /// As `checkPeer`, for those of `requests` that are not complete; request k is with `peers[k].peer`. Local; costs a
    /// system call a peer.
    template <class Peers>
    void check(const RequestSet &requests, const Peers &peers, std::string_view what, double secondsWaited) const {
        for (std::size_t k = 0; k < peers.size(); ++k) {
            if (requests.complete(k))
                continue;
            const auto onNode = nodeRanks_.find(peers[k].peer);
            const bool alive = onNode == nodeRanks_.end() || arena_->alive(onNode->second);
            checkPeer(alive, peers[k].peer, what, secondsWaited, patience_, arena_.get());
        }
    }

  private:
    std::shared_ptr<NodeArena> arena_;
    std::map<int, int> nodeRanks_; ///< of the peers on this node
    bool crowded_;
    double patience_;
};

} // namespace DNDS
