/// @file PendingBarrier.hpp
/// @brief A barrier that is started, and polled while this rank serves others.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

namespace DNDS {

/// A barrier over all ranks of a communicator, by messages on a channel that carries nothing else: O(log ranks). All
/// ranks start those of a channel in the same order. Local. A rank that destroys it before it is reached may be missed
/// by others for ever, and the channel is of no use then; nothing else on the communicator is touched, as it would be
/// with a barrier of MPI.
class PendingBarrier {
  public:
    PendingBarrier(const CommunicatorView &comm, const Channel &channel);

    /// Whether all ranks have started it.
    bool reached();

  private:
    void tell() const;

    CommunicatorView comm_;
    Channel channel_;
    int distance_ = 1; ///< of the ranks that are told and heard next: doubled in each round
};

} // namespace DNDS
