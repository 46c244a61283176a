/// @file Benchmarks.hpp
/// @brief The benchmarks of this folder and what they share.
#pragma once

#include "Interleave.hpp"
#include "Options.hpp"
#include "Report.hpp"

#include <vector>

namespace DNDS::Bench {

struct Setting {
    CommunicatorView comm;
    NodeSync &sync;
    Report &report;
    const CommonOptions &common;
    std::vector<int> threads{1, 2};
    std::vector<index> chunks{1, 8, 64};           ///< of a part
    int parts = 100;                               ///< of a run
    int rows = 0;                                  ///< of a chunk: numbers that it adds up
    std::vector<index> cells{1000, 20000, 500000}; ///< of meshes, about, of all ranks
};

/// The same parts run by a crew, by oneTBB and by a plain loop. Collective. Throws DataError if a chunk did not run
/// once.
void benchmarkCrew(const Setting &setting);

/// Steps of cases/euler: the plan beside what was written by hand. Collective. Throws DataError if results differ.
void benchmarkEulerStep(const Setting &setting);

/// A run of `parts` parts, one after another, of `chunks` calls of `chunk(context, number)` each.
struct PartLoop {
    int parts;
    index chunks;
    void (*chunk)(void *context, index number);
    void *context;
};
/// The part loop by tbb::parallel_for and by tbb::task_group in an arena of so many threads; none in builds without
/// oneTBB. Whoever calls keeps `loop` as it is.
std::vector<Contestant> tbbContestants(const PartLoop &loop, int threads);

} // namespace DNDS::Bench
