/// @file PeerFailure.hpp
/// @brief What transports do about peers that fail: remember the first failure, and look whether peers are alive.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/NodeArena.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace DNDS {

/// The first failure of a peer, which is thrown when everything else is complete.
class PeerFailure {
  public:
    /// "rank `peer` `what`", unless a peer has failed before.
    void note(int peer, std::string_view what) {
        if (text_.empty())
            text_ = fmt::format("rank {} {}", peer, what);
    }
    void clear() noexcept { text_.clear(); }
    /// Throws PeerError where a peer has failed, and forgets it.
    void throwIfAny() {
        if (!text_.empty()) [[unlikely]]
            throw PeerError(std::exchange(text_, {}));
    }

  private:
    std::string text_;
};

/// Throws PeerError where the process of rank `peer`, which is `nodeRank` on the node, has ended while this rank waited
/// for it to do `what`, or where it takes longer than `patience` seconds (0: as long as it lives). Local; a system
/// call.
inline void checkPeer(const NodeArena &arena, int peer, int nodeRank, std::string_view what, double secondsWaited,
                      double patience) {
    DNDS_CHECK(arena.alive(nodeRank), PeerError, "the process of rank {} has ended while this rank waited for it to {}",
               peer, what);
    DNDS_CHECK(patience <= 0.0 || secondsWaited < patience, PeerError,
               "waited {:.0f} s for rank {} to {} (DNDS_WAIT_TIMEOUT): is it in another exchange, or stuck?",
               secondsWaited, peer, what);
}

} // namespace DNDS
