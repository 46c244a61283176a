/// @file Recovery.hpp
/// @brief Handling of a failure on one rank: stop all ranks of the communicator, and continue together.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <exception>
#include <string_view>

namespace DNDS {

/// Stops all ranks of `comm`: they throw RevokedError, which names this rank and `why`, in their present wait or
/// their next call. DNDS does so itself when one of its running calls throws; a program does it for its own errors
/// that only one rank sees. Does nothing after an earlier failure, or on a single rank. Local, does not
/// wait. Throws StateError if no object of DNDS uses `comm`.
void revoke(CommunicatorView comm, std::string_view why);
/// The same for an exception, which must not be null.
void revoke(CommunicatorView comm, const std::exception_ptr &why);

/// Whether a rank of `comm` has failed, as far as this one knows. Local; a probe of MPI if there are several nodes.
bool isRevoked(CommunicatorView comm);

/// Makes `comm` and all its users usable again. See CommunicatorContext::recover. Collective; three meetings of all
/// ranks, and one duplicate a communicator of channels. Throws on all ranks: MemoryError, after which it may be called
/// again; on this rank: PeerError if another one has ended, or does not come within DNDS_WAIT_TIMEOUT, after which
/// the job has to end.
///
///     try {
///         step(dt);
///     } catch (const std::exception &) {       // on the rank that failed; on all others RevokedError
///         DNDS::revoke(comm, std::current_exception());
///         DNDS::recover(comm);
///         restoreOwnedRows();
///         dt /= 2;
///     }
void recover(CommunicatorView comm);

} // namespace DNDS
