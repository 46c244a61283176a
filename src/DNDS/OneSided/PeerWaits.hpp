/// @file PeerWaits.hpp
/// @brief Waiting for other ranks: serves them meanwhile, and gives up where one has died or left.
#pragma once

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/OneSided/ProxyView.hpp"
#include "DNDS/Transport/PeerFailure.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace DNDS {

/// What the ranks that share a heap or window know of each other while they wait. The first wait that fails breaks it
/// for good: this rank tells the others, and all later waits throw the same at once, here and there.
class PeerWaits {
  public:
    static constexpr int anyone = -1;
    /// Why a rank takes part no more, as it tells the others.
    enum class Leaving : unsigned char { ByException, AfterError };

    /// `name` of what is shared, for messages. Collective: takes a channel.
    PeerWaits(std::shared_ptr<CommunicatorContext> context, std::string name);
    PeerWaits(const PeerWaits &) = delete;
    PeerWaits &operator=(const PeerWaits &) = delete;

    /// Calls `progress` until `done` returns true. Local. Throws PeerError where the process of `peer` has ended (for
    /// `anyone`, that of any rank of this node), where any rank has left, or after DNDS_WAIT_TIMEOUT seconds. `what` is
    /// what the peer should do, or returns it.
    template <class What, class Done, class Progress>
    void waitFor(int peer, What &&what, Done &&done, Progress &&progress) {
        requireSound();
        if (done())
            return;
        Backoff backoff(context_->comm().handle(), context_->node().crowded);
        while (true) {
            progress();
            Detail::serveProxies();
            if (done())
                return;
            ProgressEngine::progressAll();
            context_->progressParked();
            backoff.pause();
            if (backoff.longWait())
                check(peer, textOf(what), backoff.seconds());
        }
    }

    /// Throws PeerError as `waitFor` where `peer` has ended, or `seconds` of waiting are `patience` or more. Local.
    static void checkAlive(const CommunicatorContext &context, int peer, std::string_view name, std::string_view what,
                           double seconds, double patience);

    /// Which heap or window this is, for `Meetings`.
    std::uint32_t object() const noexcept { return static_cast<std::uint32_t>(leaving_.tag) & 0xffffffU; }
    /// Whether a wait has failed, or `breakDown` was called.
    bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }
    /// The same, after a look whether another rank has told that it left. Local.
    bool hasBroken();
    /// Throws what broke it.
    void requireSound() const {
        if (broken()) [[unlikely]]
            throwCause();
    }
    /// Throws PeerError where another rank has told that it left. Local; looks for a message, on threads that may.
    void requireAll();
    /// Keeps `cause`, unless there is one, and tells the others, who would wait for this rank. Local; does not wait.
    void breakDown(std::exception_ptr cause) noexcept;
    /// Tells the others, unless they have been told. Local; O(ranks) messages, which it does not wait for.
    void leave(Leaving why) noexcept;

  private:
    template <class What>
    static std::string textOf(const What &what) {
        if constexpr (std::is_invocable_v<What>)
            return what();
        else
            return std::string(what);
    }
    void check(int peer, std::string_view what, double seconds);
    void noteLeft() noexcept;
    [[noreturn]] void throwCause() const;

    std::shared_ptr<CommunicatorContext> context_;
    std::string name_;
    Channel leaving_;
    double patience_;
    std::thread::id maker_ = std::this_thread::get_id();
    std::atomic<bool> broken_ = false;
    mutable std::mutex mutex_; ///< of what follows: any thread may wait where MPI allows it
    std::exception_ptr cause_;
    bool told_ = false; ///< the others know that this rank, or another one, has left
};

} // namespace DNDS
