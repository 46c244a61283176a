/// @file PendingBarrier.hpp
/// @brief A barrier that is started, and polled while this rank serves others.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <memory>

namespace DNDS {

/// A barrier over all ranks of a communicator. All ranks start theirs in the same order. Local. Destroyed before the
/// others have come, it is kept until they have.
class PendingBarrier {
  public:
    explicit PendingBarrier(CommunicatorContext &context);
    PendingBarrier(const PendingBarrier &) = delete;
    PendingBarrier &operator=(const PendingBarrier &) = delete;
    ~PendingBarrier();

    /// Whether all ranks have started it.
    bool reached();

  private:
    CommunicatorContext &context_;
    std::shared_ptr<MPI_Request> request_;
};

} // namespace DNDS
