/// @file HostRunner.hpp
/// @brief Runs a plan on the host, in one thread or in several.
#pragma once

#include "DNDS/Task/Crew.hpp"
#include "DNDS/Task/PlanState.hpp"

#include <deque>
#include <vector>

namespace DNDS::Task {

/// The host's side of a plan. The calling thread alone talks to MPI. It goes through the operations in their order and
/// runs parts itself, or, with more than one thread, in chunks that workers take as well. Local.
class Plan::HostRunner {
  public:
    /// Throws NotBuiltError for more than one thread in a build without oneTBB.
    explicit HostRunner(State &state);

    /// Runs all operations. `next` is the one that is under way. Throws what the first part that failed has thrown,
    /// with the task in front.
    void run(std::size_t &next);
    /// Runs chunks for as long as `pending` is true; looks there between chunks, and helps nobody without threads.
    /// Returns false where there was nothing to run.
    bool help() noexcept { return crew_.threads() > 1 && crew_.help(); }
    /// Ends a run after an exception.
    void abandon() noexcept { crew_.abandon(); }

  private:
    /// A part in chunks.
    struct Chunks {
        Crew::Work work;
        HostRunner *runner = nullptr;
        const Part *part = nullptr;
        index rows = 0; ///< of each chunk
        bool published = false;
        /// Parts that add: the rows that add to [targets[k], targets[k + 1]), by chunk.
        std::vector<index> targets;
        std::vector<std::vector<LocalIndex>> lists;
    };

    void cut(Chunks &chunks, const Part &part);
    void cutSums(Chunks &chunks, const Part &part) const;
    static void runChunk(void *context, index chunk);
    void runPart(std::size_t part);
    void awaitBefore(const Operation &operation);
    void throwFailure();

    State &state_;
    std::deque<Chunks> chunks_; ///< [parts], with more than one thread
    Crew crew_;                 ///< after the chunks, which its workers may still look at
};

} // namespace DNDS::Task
