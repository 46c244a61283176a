/// @file RequestSet.hpp
/// @brief Owns persistent MPI requests.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace DNDS {

/// Persistent requests that are started and completed together.
///
/// Destroying an active set cancels its receives, after which their buffers may go; the buffers of sends must be kept
/// until MPI has read them, which `CommunicatorContext::park` does.
class RequestSet {
  public:
    enum class Kind : unsigned char { Send, Receive };

    /// No requests yet; `add` makes room for one of this kind.
    explicit RequestSet(Kind kind) noexcept : kind_(kind) {}
    RequestSet(const RequestSet &) = delete;
    RequestSet &operator=(const RequestSet &) = delete;
    ~RequestSet() { clear(); }

    /// The number of requests. Local.
    std::size_t size() const noexcept { return requests_.size(); }
    /// A place for MPI_Send_init or MPI_Recv_init to write the next request to.
    MPI_Request *add();

    /// Starts all requests. Local.
    void startAll();
    /// Starts one request of several that are started one by one. Local.
    void start(std::size_t which);
    /// Whether all are complete. Local; lets MPI make progress. Throws MpiError, with the text of the first receive
    /// that failed.
    bool testAll();
    /// Whether one request is complete or was not started. Local.
    bool complete(std::size_t which) const;
    /// Cancels receives that are active, and lets sends continue; whether none is active any more, so that MPI needs no
    /// buffer. Local, does not wait.
    bool settle() noexcept;
    /// Frees all requests.
    void clear() noexcept;

  private:
    Kind kind_;
    /// Some request was started, and `testAll` has not found all complete since.
    bool active_ = false;
    bool cancelled_ = false; ///< since the last start
    /// Persistent: inactive, not null, between starts.
    std::vector<MPI_Request> requests_;
    std::vector<MPI_Status> statuses_; ///< the receives'
};

} // namespace DNDS
