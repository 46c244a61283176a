/// @file Wait.hpp
/// @brief The only loop of the library that waits for other ranks, without stealing the processor from them.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <mpi.h>

#include <chrono>
#include <string_view>
#include <thread>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace DNDS {

/// Spins briefly, then yields and lets MPI make progress at each call: ranks may outnumber cores, and a peer may need
/// this rank's MPI library before it can set the flag.
/// Three stages: processor hints for the first calls, then yields, then (crowded nodes only) sleeps. The expected
/// wait is a few microseconds, so the first stage makes no system call.
class Backoff {
  public:
    /// `crowded`: ranks outnumber the processors of their node.
    Backoff(MPI_Comm comm, bool crowded) noexcept : comm_(comm), crowded_(crowded) {}

    /// Call it after each look at the flag: the first calls spin, later ones yield (or sleep, on crowded nodes) and let
    /// MPI make progress. Local.
    void pause() {
        if (++count_ < (crowded_ ? crowdedSpins : spins)) {
#if defined(__SSE2__)
            _mm_pause();
#endif
            return;
        }
        // Between ranks in scheduling groups of their own (as MPICH's launcher makes them) yielding has no effect: only
        // sleeping frees the processor. It costs some 50 microseconds, so it is for crowded nodes and long waits.
        if (crowded_ && count_ > yields)
            std::this_thread::sleep_for(std::chrono::nanoseconds(1));
        else
            std::this_thread::yield();
        if (crowded_ && count_ % crowdedProbeEvery != 0) // the next turn costs only a context switch
            return;
        int found = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &found, MPI_STATUS_IGNORE); // for MPI's progress only
    }

    /// Instead of `pause` where the caller has let MPI make progress just now: only crowded nodes get a pause, so
    /// that messages are matched as promptly as by waiting in MPI.
    void pauseIfCrowded() {
        if (crowded_)
            pause();
        else if (++count_ % patientTurns == 0) // ranks of other communicators may need the processor
            std::this_thread::yield();
    }

    /// True about ten times a second, when `seconds()` has been updated: the moment for costly checks.
    bool longWait() {
        if (count_ < spins || count_ % checkEvery != 0)
            return false;
        const auto now = std::chrono::steady_clock::now();
        if (start_ == std::chrono::steady_clock::time_point{})
            start_ = last_ = now;
        if (now - last_ < std::chrono::milliseconds(100))
            return false;
        last_ = now;
        return true;
    }
    /// Seconds since waiting became long.
    double seconds() const { return std::chrono::duration<double>(last_ - start_).count(); }

  private:
    /// Pauses without a system call before the first yield; on crowded nodes only a few, as the awaited rank may
    /// need this processor.
    static constexpr long spins = 64;
    static constexpr long crowdedSpins = 3;
    /// On crowded nodes one pause in this number lets MPI make progress.
    static constexpr long crowdedProbeEvery = 4;
    /// Pauses on crowded nodes after which yielding is replaced by sleeping.
    static constexpr long yields = 200;
    /// Calls of `pauseIfCrowded` a yield, on nodes that are not crowded.
    static constexpr long patientTurns = 256;
    /// Pauses between two looks at the clock.
    static constexpr long checkEvery = 64;

    /// Any communicator of DNDS: probing it drives the progress of all of MPI.
    MPI_Comm comm_;
    bool crowded_;
    /// Pauses so far.
    long count_ = 0;
    /// The moment when the wait was first found long, and the latest moment at which `longWait` returned true.
    std::chrono::steady_clock::time_point start_{};
    std::chrono::steady_clock::time_point last_{};
};

/// Cost of one look at the awaited event, which decides the pause between looks.
enum class PollTarget : unsigned char {
    Memory, ///< a few loads: MPI gets a turn now and then
    Mpi     ///< a call of MPI, which makes progress itself
};

/// Throws PeerError if the process of a rank of this node has ended, or if `seconds` of waiting for `what` are
/// more than `timeout` (0: no limit). Local; a system call a rank of the node.
void requireAlive(const CommunicatorContext &context, std::string_view what, double seconds, double timeout);

namespace Detail {
/// One pause of `waitUntil`. Returns whether it is time for checks that cost system calls. Local.
bool pauseOnce(CommunicatorContext &context, Backoff &backoff, PollTarget target);
} // namespace Detail

/// Waits until `done()` is true. Between looks all operations in flight on this thread make progress, as peers may need
/// them first. `what` completes "waited for ...", as "rank 3 to send its rows of 'u'"; a text, or a function that
/// returns it. Local. Throws RevokedError if the communicator is revoked; PeerError, with a roll call, if the process
/// of a rank of this node has ended, or after DNDS_WAIT_TIMEOUT seconds; StateError if the communicator was freed.
template <class Done, class What>
void waitUntil(CommunicatorContext &context, Done &&done, What &&what, PollTarget target = PollTarget::Memory) {
    if (done())
        return;
    Backoff backoff(context.comm().handle(), context.node().crowded);
    do {
        if (!Detail::pauseOnce(context, backoff, target)) [[likely]]
            continue;
        static_cast<void>(context.comm()); // throws if it was freed
        if constexpr (std::is_invocable_v<What>)
            requireAlive(context, what(), backoff.seconds(), context.waitTimeout());
        else
            requireAlive(context, what, backoff.seconds(), context.waitTimeout());
    } while (!done());
}

} // namespace DNDS
