/// @file CommunicatorLife.hpp
/// @brief Whether a communicator owned by other code still exists.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <atomic>
#include <memory>

namespace DNDS {

/// MPI crashes when asked about a freed communicator, and may reuse its handle for another one. So this
/// attaches a flag to the communicator as an attribute, which MPI deletes with it. Copies share the flag.
class CommunicatorLife {
  public:
    /// Local; looks up an attribute. Outside MPI's lifetime communicators count as freed.
    explicit CommunicatorLife(CommunicatorView comm);
    // A moved-from array keeps its communicator, so moves are copies.
    CommunicatorLife(const CommunicatorLife &) noexcept = default;
    CommunicatorLife &operator=(const CommunicatorLife &) noexcept = default;

    /// Whether MPI_Comm_free was called for it. Local, O(1).
    bool ended() const noexcept { return ended_->load(std::memory_order_relaxed); }

  private:
    /// Shared with the communicator's attribute, whose deletion sets it, and with copies; never null.
    std::shared_ptr<const std::atomic<bool>> ended_;
};

} // namespace DNDS
