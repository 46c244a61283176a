/// @file Benchmarks.hpp
/// @brief The two questions that bench_exchange answers for one ghost pattern.
#pragma once

#include "Interleave.hpp"
#include "Problem.hpp"
#include "Report.hpp"

#include "DNDS/Exchange/Exchange.hpp"

#include <string>
#include <vector>

namespace DNDS::Bench {

/// State of the rows between two timed pulls.
struct RowState {
    std::string name;
    bool ownersRewrite; ///< the owners write all rows that others need
    bool readersRead;   ///< the readers have read all ghosts of the pull before, so that both ends hold the lines
    bool readTimed;     ///< reading the ghosts is part of the time
};

/// "dirty", "warm", "used", "read". Throws ArgumentError for other names.
RowState rowState(const std::string &name);

/// Common to all measurements of a run.
struct Setting {
    CommunicatorView comm;
    NodeSync &sync;
    Report &report;
    BlockPlan plan;
    std::vector<TransportKind> transports;
    std::vector<RowState> states;
};

/// Times a pull of `width` doubles a row by every method. Collective. Says so, and returns, when memory does not
/// suffice.
void benchmarkPulls(const Setting &setting, const Problem &problem, int width);
/// Times what leads from an unsorted list to a pull that can start. Collective.
void benchmarkSetups(const Setting &setting, const Problem &problem, int width);

} // namespace DNDS::Bench
