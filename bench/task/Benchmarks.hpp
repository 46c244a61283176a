/// @file Benchmarks.hpp
/// @brief The benchmarks of this folder and what they share.
#pragma once

#include "Interleave.hpp"
#include "Options.hpp"
#include "Report.hpp"

#include <span>
#include <utility>
#include <vector>

namespace DNDS::Bench {

struct Setting {
    CommunicatorView comm;
    NodeSync &sync;
    Report &report;
    const CommonOptions &common;
    std::vector<int> threads{1, 2};
    std::vector<index> chunks{1, 8, 64};           ///< chunks of a part
    int parts = 100;                               ///< parts of a run
    int rows = 0;                                  ///< rows of a chunk: numbers that it adds up
    std::vector<index> cells{1000, 20000, 500000}; ///< cells of meshes, about, over all ranks
    std::vector<index> taskRows{1, 8, 64};         ///< rows of small tasks
    int steps = 10;                                ///< of latency and messages in what is timed at once
    std::vector<index> rankCells{500, 2000};       ///< cells of latency-bound meshes, about, on each rank
    std::vector<index> sharedCells{20000, 200000}; ///< cells of meshes for threads and ranks, about
};

/// The same parts run by a team, by oneTBB and by a plain loop. Collective. Throws DataError if a chunk did not run
/// once.
void benchmarkThreadTeam(const Setting &setting);

/// Steps of cases/euler: the plan beside what was written by hand. Collective. Throws DataError if results differ.
void benchmarkEulerStep(const Setting &setting);

/// Plans of small tasks beside a flow graph of oneTBB and StarPU. Collective. Throws DataError where a task did not
/// run.
void benchmarkPlans(const Setting &setting);

/// Steps on small meshes with two layers of ghosts: pulls by hand, and plans with dropped, fused and recomputed pulls.
/// Collective. Throws DataError if results differ.
void benchmarkLatency(const Setting &setting);

/// Latency, overhead and bandwidth of messages between ranks 0 and 1; pulls of several fields in one message a peer, or
/// in one each. Collective. Throws DataError if a pull gives wrong ghosts.
void benchmarkMessages(const Setting &setting);

/// Of the turns of one way, in microseconds of each of its `steps`: the median over turns of their medians, and the
/// least time.
std::pair<double, double> medianAndLeast(std::span<const Block> blocks, int steps);

/// The same steps in one rank with two threads beside two ranks; needs two ranks. Collective. Throws DataError if
/// results differ.
void benchmarkThreads(const Setting &setting);

/// Tasks that either depend each on the one before (a chain), or all on nothing (a fan).
struct SmallTasks {
    int tasks;
    bool chain;
    void (*task)(void *context, int number);
    void *context;
};
/// Small tasks as nodes of a tbb::flow::graph that is made once; none in builds without oneTBB. The caller keeps
/// `tasks` as it is.
std::vector<Contestant> flowContestants(const SmallTasks &tasks, int threads);
bool hasStarPu();
/// Small tasks submitted to StarPU with a data handle each; none in builds without it.
std::vector<Contestant> starpuContestants(const SmallTasks &tasks, int threads);

/// A run of `parts` parts, one after another, of `chunks` calls of `chunk(context, number)` each.
struct PartLoop {
    int parts;
    index chunks;
    void (*chunk)(void *context, index number);
    void *context;
};
/// The part loop by tbb::parallel_for and by tbb::task_group in an arena of `threads` threads; none in builds without
/// oneTBB. The caller keeps `loop` as it is.
std::vector<Contestant> tbbContestants(const PartLoop &loop, int threads);

} // namespace DNDS::Bench
