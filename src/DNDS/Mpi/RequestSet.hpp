/// @file RequestSet.hpp
/// @brief Owns persistent MPI requests.
#pragma once

#include "DNDS/Mpi/Check.hpp"

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

namespace DNDS {

/// Persistent requests that are started and completed together. Move-only.
///
/// Destroying an active set cancels its receives, after which their buffers may go; the buffers of sends must be kept
/// until MPI has read them, which `CommunicatorContext::park` does.
class RequestSet {
  public:
    enum class Kind : unsigned char { Send, Receive };

    /// No requests yet; `add` makes room for one of this kind.
    explicit RequestSet(Kind kind) noexcept : kind_(kind) {}
    RequestSet(RequestSet &&other) noexcept : kind_(other.kind_), active_(other.active_) {
        requests_.swap(other.requests_);
        other.active_ = false;
    }
    RequestSet &operator=(RequestSet &&other) noexcept;
    RequestSet(const RequestSet &) = delete;
    RequestSet &operator=(const RequestSet &) = delete;
    ~RequestSet() { clear(); }

    /// The number of requests. Local.
    std::size_t size() const noexcept { return requests_.size(); }
    /// A place for MPI_Send_init or MPI_Recv_init to write the next request to.
    MPI_Request *add() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

    /// Starts all requests. Local.
    void startAll();
    /// Starts one request of several that are started one by one. Local.
    void start(std::size_t which);
    /// Waits for all; `statuses` has one entry a request, or is empty. Throws MpiError with the text of the first
    /// failed one.
    void waitAll(std::span<MPI_Status> statuses = {});
    /// Whether all are complete, as `waitAll` if they are. Local; lets MPI make progress.
    bool testAll(std::span<MPI_Status> statuses = {});
    /// Whether one request is complete or was not started. Local.
    bool complete(std::size_t which) const;
    /// Cancels the receives that are active, without waiting: `testAll` says when they are through. Local.
    void cancelReceives() noexcept;
    /// Frees all requests.
    void clear() noexcept;

  private:
    static void check(int code, const char *call, std::span<const MPI_Status> statuses);

    Kind kind_;
    bool active_ = false;
    bool cancelled_ = false; ///< since the last start
    std::vector<MPI_Request> requests_;
};

/// Cancels active receives, and lets sends go on; whether none is active any more, so that MPI needs no buffer. Local.
bool settleRequests(RequestSet &receives, RequestSet &sends) noexcept;

} // namespace DNDS
