/// @file BlockMeasurement.hpp
/// @brief Times the methods of one or several cases in turns, and reports them beside the baselines of their case.
#pragma once

#include "GhostMethod.hpp"
#include "Interleave.hpp"
#include "Report.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Bench {

/// Common to all measurements of a run.
struct Setting {
    CommunicatorView comm;
    NodeSync &sync;
    Report &report;
    BlockPlan plan;
    std::vector<TransportKind> transports;
};

/// A case and everything that is timed on it.
struct Contest {
    std::unique_ptr<BlockCase> of;
    std::vector<std::unique_ptr<GhostMethod>> methods;
};

/// The hand-written methods and the library's transports. Collective over the communicator of the case.
Contest makeContest(const Setting &setting, std::unique_ptr<BlockCase> of);

/// Checks all methods, times them in turns, checks them again, and prints a table for each regime. Collective over
/// `setting.comm`. Throws DataError on all ranks if a ghost is wrong.
void measure(const Setting &setting, const std::string &title, std::span<const Contest> contests);

} // namespace DNDS::Bench
