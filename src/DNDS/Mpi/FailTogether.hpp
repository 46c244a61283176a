/// @file FailTogether.hpp
/// @brief Failures of one rank that all ranks learn of.
///
/// - `failTogether`: long collective work that ends on all ranks when it fails on one, wherever that is
/// - `requireSame`: checks that all ranks pass the same settings, names or types
/// - `revoke`, `recover`: stop all ranks of the communicator, and continue together
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

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
    FailureScope *outer_;       ///< the next one of this thread's open scopes
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

/// Whether all ranks pass the same key, a hash for example. Collective; one reduction.
bool isSameOnAll(const CommunicatorView &comm, std::uint64_t key);

/// The same for a list of texts.
bool isSameOnAll(const CommunicatorView &comm, std::span<const std::string> texts);

/// Throws on all ranks if their lists of texts differ, and does nothing otherwise. Collective; without differences one
/// reduction, and no allocation.
///
/// On each rank whose list differs from rank 0's, `complain(k, first)` is called and throws: entry `k` is the first
/// that differs, `first` points to rank 0's entry, or is null if rank 0's list is shorter; this rank's own list
/// ends at `k` if that one is shorter. All ranks throw the complaint of the lowest rank with one.
template <class Complain>
void requireSame(const CommunicatorView &comm, std::span<const std::string> mine, Complain &&complain) {
    // By hash, so the usual case costs 16 bytes a rank; texts travel only to explain a difference. Different texts
    // with the same 64-bit hash would pass.
    if (isSameOnAll(comm, mine)) [[likely]]
        return;
    std::vector<std::string> first;
    comm.guarded([&] { first.assign(mine.begin(), mine.end()); });
    broadcastStrings(comm, first);
    comm.guarded([&] {
        for (std::size_t k = 0; k < std::max(mine.size(), first.size()); ++k)
            if (k >= mine.size() || k >= first.size() || mine[k] != first[k])
                complain(k, k < first.size() ? &first[k] : nullptr);
    });
}

/// The same for settings, as "name = value": throws ArgumentError on all ranks that names `call` and the first setting
/// that differs. `describe` makes the list, on each rank the same names in the same order.
template <class Describe>
void requireSameSettings(const CommunicatorView &comm, const char *call, Describe &&describe) {
    std::vector<std::string> mine;
    comm.guarded([&] { mine = describe(); });
    requireSame(comm, mine, [&](std::size_t k, const std::string *first) {
        throw ArgumentError(fmt::format("{}: options differ between ranks: {} on rank {}, {} on rank 0", call, mine[k],
                                        comm.rank(), *first));
    });
}

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
