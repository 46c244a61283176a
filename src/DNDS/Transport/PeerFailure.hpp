/// @file PeerFailure.hpp
/// @brief What transports do about peers that fail: remember the first failure, look whether peers are alive, give up.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/Whereabouts.hpp"

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace DNDS {

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

} // namespace DNDS
