/// @file ThreadTeam.hpp
/// @brief The threads of one rank: chunks of loops that the calling thread publishes and workers help to run.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/types.h>

namespace DNDS::Task {

/// Runs loops that are split into chunks, several loops at a time, in the calling thread and in workers.
///
/// ```cpp
/// ThreadTeam team(2);
/// team.begin(2);                  // a run of at most two loops
/// team.publish(boundary);         // workers start on it
/// team.publish(inner);
/// team.wait(boundary, pollMpi);   // runs chunks; calls pollMpi after each
/// team.end();                     // all published loops are done
/// if (team.failed())
///     std::rethrow_exception(team.failure().exception);
/// ```
///
/// One thread at a time, the calling thread, uses a team; workers call nothing but `Loop::run`. `publish` runs nothing:
/// chunks run in workers, `help`, `wait` and `end`, in the order of publication. The calling thread waits only for
/// chunks that a worker has started, so a run ends without workers, too: if the system has no more threads, and in a
/// forked child, which has none of its parent's.
///
/// Workers look for work for some 50 microseconds, also between runs, and sleep until `begin` or `publish` wakes them.
/// Chunks run with the rounding mode and the other floating-point settings that the calling thread had in `begin`.
///
/// All functions are Local. Cost: some nanoseconds a chunk; nothing is allocated between `begin` and `end`.
class ThreadTeam {
  public:
    /// A loop in chunks. It must stay at its address from `publish` until it is done and the run has ended; another run
    /// may publish it again. A run publishes it at most once.
    struct alignas(64) Loop {
        index chunks = 0;
        void (*run)(void *context, index chunk) = nullptr; ///< in any thread; may throw
        void *context = nullptr;
        std::atomic<index> left = 0; ///< written by the team: number of unfinished chunks
    };

    /// The first chunk that threw, by order of publication, then by chunk. It is the same for any number of threads if
    /// chunks behave the same.
    struct Failure {
        const Loop *loop = nullptr;
        index chunk = 0;
        std::exception_ptr exception;
    };

    /// `threads`, at least 1, include the calling one.
    explicit ThreadTeam(int threads);
    ThreadTeam(const ThreadTeam &) = delete;
    ThreadTeam &operator=(const ThreadTeam &) = delete;
    /// Abandons a run in progress.
    ~ThreadTeam();

    int threads() const noexcept { return threads_; }

    /// Begins a run of at most `loops` loops; wakes workers. The previous run must have ended. Allocates
    /// if no earlier run had that number.
    void begin(index loops);
    /// Chunks of `loop` may run from now on.
    void publish(Loop &loop) noexcept;
    /// Runs one chunk in this thread. False if all published chunks were started.
    bool help() noexcept;
    /// Whether all chunks have run or were skipped after a failure. Their writes are visible then.
    static bool done(const Loop &loop) noexcept { return loop.left.load(std::memory_order_acquire) == 0; }
    /// Runs chunks of any loop until `loop` is done; calls `poll` after each chunk and while it waits. Exceptions of
    /// `poll` leave the run as it is: call `abandon`.
    template <class Poll>
    void wait(const Loop &loop, Poll &&poll) {
        for (int turns = 0; !done(loop);) {
            if (help())
                turns = 0;
            else
                idle(turns);
            poll();
        }
    }
    void wait(const Loop &loop) {
        wait(loop, [] {});
    }
    /// Runs the remaining chunks and waits until all published loops are done. Does nothing outside a run.
    void end() noexcept;
    /// As `end`, but skips unstarted chunks: after an exception in the calling thread. `failed()` is true
    /// afterwards.
    void abandon() noexcept;

    /// Whether a chunk of this run has thrown, or of the last one. Later chunks, also of loops published
    /// later, are skipped and count as done; earlier ones run.
    bool failed() const noexcept { return failedAt_.load(std::memory_order_relaxed) != never; }
    /// The failure; empty without failure, and for runs that were only abandoned. Valid from `end` until `begin`.
    const Failure &failure() const noexcept { return failure_; }

  private:
    static constexpr index never = std::numeric_limits<index>::max();

    /// Progress of a thread.
    struct Cursor {
        std::uint64_t run = 0;
        std::size_t slot = 0;
        index next = 0; ///< at most `claimed_`
        /// Unfinished accounting keeps the run from ending, so the pointer is valid while `finished` is not 0.
        Loop *loop = nullptr; ///< the last loop whose chunks it ran
        index finished = 0;   ///< its chunks that are not yet subtracted from `left`
    };

    /// Spins, then yields, then sleeps.
    static void idle(int &turns) noexcept;
    /// Takes the position `at.next - 1`; false if none is left.
    bool claim(Cursor &at) noexcept;
    /// Claims a chunk and runs it. It counts as done after `settle`, or once the thread has turned to other work.
    bool runNext(Cursor &at) noexcept;
    /// Counts finished chunks as done: once for several chunks of a loop, so that threads do not wait for each other's
    /// writes.
    static void settle(Cursor &at) noexcept;
    /// Keeps the failure of the least position.
    void fail(index position, Failure newest) noexcept;
    /// Ends the sleep of workers; call it after the stores that they are to see.
    void wake() noexcept;
    /// The worker loop.
    void serve() noexcept;
    /// Whether this is a child of the process with the workers.
    bool forked() const noexcept;

    // All chunks ever published have one numbering, their positions. A thread claims the next position by a
    // compare and swap; since positions never return, a worker that slept since an earlier run claims a chunk of this
    // one or none. A claimed chunk keeps its run from ending, and so the slots of the run in place.
    // Each on a cache line of its own: claims write one, idle threads read the other.
    alignas(64) std::atomic<index> claimed_ = 0;
    alignas(64) std::atomic<index> published_ = 0;
    std::atomic<int> calls_ = 0; ///< calls to workers, which sleep on it
    std::atomic<bool> closed_ = false;
    alignas(64) std::atomic<index> failedAt_ = never; ///< the least position that threw; -1 after `abandon`

    // Written by the calling thread before it publishes, and read by a thread that has claimed a chunk of the run.
    std::uint64_t run_ = 0;
    std::vector<std::pair<Loop *, index>> slots_; ///< loops, each with the position after its last chunk
    std::fenv_t environment_{};

    // Used by the calling thread only.
    const int threads_;
    const pid_t process_;
    std::size_t used_ = 0; ///< slots of this run
    /// The calling thread's; workers have theirs on their stacks.
    Cursor cursor_;
    bool running_ = false;

    /// Orders writes of `failure_`; `end` orders the read after them.
    std::mutex failing_;
    Failure failure_;
    std::vector<pthread_t> workers_;
};

} // namespace DNDS::Task
