/// @file HostRunner.hpp
/// @brief Runs a plan on the host, in one thread or in several.
#pragma once

#include "DNDS/Task/PlanState.hpp"
#include "DNDS/Task/ThreadTeam.hpp"

#include <thread>
#include <vector>

namespace DNDS::Task {

/// The host's side of a plan. Only the calling thread calls MPI. It takes the steps in their order and
/// runs parts itself, or, with more than one thread, in chunks that workers take as well. Local.
class Plan::HostRunner {
  public:
    explicit HostRunner(State &state);
    ~HostRunner();

    /// Runs all steps. Throws the exception of the first failed part, with the task in front.
    void run();
    /// Runs one chunk of a published part; false if all have been taken, or without threads. For loops that wait: they
    /// look at the awaited event after each chunk.
    bool help() noexcept { return team_.threads() > 1 && team_.help(); }
    /// Ends a run after an exception.
    void abandon() noexcept { team_.abandon(); }

  private:
    struct Chunks;

    /// Divides a part among threads.
    void cut(Chunks &chunks, const Part &part);
    void cutSums(Chunks &chunks, const Part &part) const;
    /// For the team: runs one chunk of a part; `context` is its Chunks.
    static void runChunk(void *context, index chunk);
    /// Runs a part, or publishes its chunks.
    void runPart(std::size_t part);
    /// Waits for the parts that have to be complete before `step`.
    /// Runs chunks of published parts meanwhile.
    void awaitBefore(const PlanStep &step);
    /// Ends the run of the team. Throws the exception of the first failed part, if any.
    void end();

    State &state_;
    std::thread::id caller_;     ///< calls `run`, with more than one thread: thread 0 of traces
    std::vector<Chunks> chunks_; ///< [parts], with more than one thread; does not grow
    bool shares_ = false;        ///< whether workers run chunks of some part
    ThreadTeam team_;            ///< after the chunks, which its workers may still read
};

} // namespace DNDS::Task
