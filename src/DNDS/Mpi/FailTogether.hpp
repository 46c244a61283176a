/// @file FailTogether.hpp
/// @brief Long collective work that ends on all ranks when it fails on one, wherever that is.
#pragma once

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <exception>
#include <optional>
#include <type_traits>

namespace DNDS {

namespace Detail {

/// While one lives, collectives of this rank are preceded by an agreement that no rank has failed.
class FailureScope {
  public:
    explicit FailureScope(CommunicatorView comm) noexcept;
    FailureScope(const FailureScope &) = delete;
    FailureScope &operator=(const FailureScope &) = delete;
    ~FailureScope();

    /// Ends the work: `failure` is what it threw here, if anything. Throws on all ranks or on none.
    void finish(const std::exception_ptr &failure) const;

    /// The outermost open scope whose ranks are those of `comm`, or null. All of them agree on its communicator,
    /// whichever they work on.
    static FailureScope *of(const CommunicatorView &comm) noexcept;
    const CommunicatorView &comm() const noexcept { return comm_; }
    /// Remembers an exception that all ranks of this scope throw.
    void noteAgreed(std::exception_ptr failure) noexcept { agreed_ = std::move(failure); }
    bool isAgreed(const std::exception_ptr &failure) const noexcept { return failure == agreed_; }

  private:
    CommunicatorView comm_;
    /// Neighbours in the list of this thread's open scopes.
    FailureScope *outer_;
    FailureScope *inner_ = nullptr;
    std::exception_ptr agreed_; ///< thrown by the last agreement that failed
};

} // namespace Detail

/// Runs `body`, which may communicate over `comm` and its duplicates, and returns what it returns. Collective.
///
/// Whatever any rank throws, between collectives too, is thrown on all: each collective that goes through
/// `CommunicatorView`, `sparseExchange` and the like is preceded by one reduction in which ranks tell whether they have
/// failed, so this is for set-up, not for time steps. `body` must make the same collectives on all ranks, and what it
/// makes must not wait for other ranks when an exception destroys it. An exception must leave the outermost
/// scope of these ranks before it is caught: inside, some ranks have left already. Scopes may be nested; those of the
/// same ranks meet on the outermost. Work of some of the ranks over a communicator of their own has a scope of its own;
/// call `beforeCollective` on all before it, and `CommunicatorView::guarded` on all with what came of it. Exchanges are
/// not agreed on between their set-up and their end: start and wait for them outside.
///
/// Errors: as `CommunicatorView::agree`; MpiError leaves at once, on the rank it happened, as other ranks may be caught
/// in the call that failed: end the program with MPI_Abort, as MpiSession does.
template <class Body>
auto failTogether(CommunicatorView comm, Body &&body) {
    using Result = std::invoke_result_t<Body>;
    const Detail::FailureScope scope(comm);
    std::exception_ptr failure;
    if constexpr (std::is_void_v<Result>) {
        attempt(failure, [&] { body(); });
        scope.finish(failure);
    } else {
        std::optional<Result> result;
        attempt(failure, [&] { result.emplace(body()); });
        scope.finish(failure);
        return std::move(*result);
    }
}

/// Runs `body` on rank 0; what it throws is thrown on all ranks. Collective.
template <class Body>
void onRankZero(const CommunicatorView &comm, Body &&body) {
    comm.guarded([&] {
        if (comm.rank() == 0)
            body();
    });
}

} // namespace DNDS
