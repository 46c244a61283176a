/// @file Measure.hpp
/// @brief A row of times of one operation done in several ways.
#pragma once

#include "Interleave.hpp"
#include "Options.hpp"
#include "Report.hpp"

#include <string>
#include <vector>

namespace DNDS::Bench {

struct Setting {
    CommunicatorView comm;
    NodeSync &sync;
    Report &report;
    CommonOptions common;
};

/// Times `contestants`, of which each does `repeats` operations, and adds a row of times of one operation in
/// microseconds, the first contestant's divided by the others' in brackets. Contestants without a name are left out.
/// Returns the first one's microseconds. Collective.
double measure(Setting &setting, Table &table, const std::string &what, int repeats,
               const std::vector<Contestant> &contestants);

} // namespace DNDS::Bench
