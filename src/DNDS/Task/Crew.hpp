/// @file Crew.hpp
/// @brief The threads of one rank: chunks of loops that the calling thread publishes and oneTBB's workers help to run.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <atomic>
#include <exception>

namespace DNDS::Task {

/// Runs loops that are cut into chunks, several loops at a time, in the calling thread and in workers.
///
/// ```cpp
/// Crew crew(2);
/// crew.begin(2);                  // a run of at most two loops
/// crew.publish(boundary);         // workers start on it
/// crew.publish(inner);
/// crew.wait(boundary, pollMpi);   // runs chunks; calls pollMpi after each
/// crew.end();                     // all that was published is done
/// if (crew.failed())
///     std::rethrow_exception(crew.failure().exception);
/// ```
///
/// One thread at a time, the calling thread, uses a crew; workers call nothing but `Work::run`. `publish` runs nothing:
/// chunks run in workers, `help`, `wait` and `end`, in the order of publication. The calling thread waits only for
/// chunks that a worker has started, so a run ends without workers, too. A crew of one thread has none and never calls
/// oneTBB.
///
/// Workers stay for some 50 microseconds without work, also between runs; then they return to oneTBB, which puts them
/// to sleep, and `begin` and `publish` call them again. Their arena is the crew's own: other uses of oneTBB, also
/// inside a chunk, neither wait for it nor run its chunks. Chunks run with the rounding mode and the other
/// floating-point settings that the calling thread had in `begin`.
///
/// In a forked child the workers are missing: `begin` makes a crew of one thread of it, `abandon` and the destructor
/// do not wait for chunks that the parent's workers have.
///
/// All functions are Local. Cost: some nanoseconds a chunk; nothing is allocated between `begin` and `end` except by
/// oneTBB when workers are called.
class Crew {
  public:
    /// A loop in chunks. It must stay where it is from `publish` until it is done and the run has ended; another run
    /// may publish it again. A run publishes it at most once.
    struct alignas(64) Work {
        index chunks = 0;
        void (*run)(void *context, index chunk) = nullptr; ///< in any thread; may throw
        void *context = nullptr;
        std::atomic<index> left = 0; ///< written by the crew: chunks that are not done
    };

    /// The first chunk that threw, by order of publication, then by chunk. It is the same for any number of threads if
    /// chunks behave the same.
    struct Failure {
        const Work *work = nullptr;
        index chunk = 0;
        std::exception_ptr exception;
    };

    /// `threads` include the calling one. oneTBB starts no more than there are processors, or than its `global_control`
    /// allows. Throws ArgumentError for less than one, NotBuiltError for more than one in a build without oneTBB.
    explicit Crew(int threads);
    /// Abandons a run that has not ended.
    ~Crew();
    Crew(Crew &&other) noexcept;
    Crew &operator=(Crew &&other) noexcept;

    /// Whether this build can have more than one thread.
    static bool hasThreads() noexcept;
    /// Crews that there are, and those that are gone while threads that they called have not come yet, as on busy
    /// machines: these keep a few hundred bytes each until then.
    static int living() noexcept;
    int threads() const noexcept { return threads_; }

    /// A run begins, in which at most `works` works are published; calls workers. Allocates where no earlier run had so
    /// many. Throws StateError if the last run has not ended.
    void begin(index works);
    /// Chunks of `work` may run from now on. Throws StateError outside a run and after more works than `begin` was
    /// told, ArgumentError for negative `chunks`.
    void publish(Work &work);
    /// Runs one chunk in this thread. False if all chunks that are published were started.
    bool help() noexcept;
    /// Whether all chunks have run or were skipped after a failure. What they wrote is visible then.
    static bool done(const Work &work) noexcept { return work.left.load(std::memory_order_acquire) == 0; }
    /// Runs chunks of any work until `work` is done; calls `poll` after each chunk and while it waits. What `poll`
    /// throws leaves the run as it is: call `abandon`.
    template <class Poll>
    void wait(const Work &work, Poll &&poll) {
        for (int turns = 0; !done(work);) {
            if (help())
                turns = 0;
            else
                idle(turns);
            poll();
        }
    }
    void wait(const Work &work) {
        wait(work, [] {});
    }
    /// Runs what is left and waits until all that was published is done. Does nothing outside a run.
    void end() noexcept;
    /// As `end`, but skips chunks that were not started: after an exception in the calling thread. `failed()` is true
    /// afterwards.
    void abandon() noexcept;

    /// Whether a chunk of this run has thrown, or of the last one. Later chunks, also of work that is published later,
    /// are skipped and count as done; earlier ones run.
    bool failed() const noexcept;
    /// What failed; empty without failure, and for runs that were only abandoned. Valid from `end` until `begin`.
    const Failure &failure() const noexcept;

  private:
    struct State;
    /// Spins, then yields, then sleeps.
    static void idle(int &turns) noexcept;

    int threads_;
    State *state_; ///< shared with workers that have been called
};

} // namespace DNDS::Task
