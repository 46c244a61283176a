#include "Measure.hpp"

#include "Statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace DNDS::Bench {

namespace {

/// Median microseconds over turns, whatever the regime: the ratio between contestants of one run is what counts.
double medianOf(const std::vector<Block> &blocks) {
    std::vector<double> times;
    for (const Block &block : blocks)
        times.push_back(block.microseconds);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/// Of a repetition.
double leastOf(const std::vector<Block> &blocks) {
    double least = std::numeric_limits<double>::infinity();
    for (const Block &block : blocks)
        for (const double time : block.times)
            least = std::min(least, time);
    return least;
}

} // namespace

double measure(Setting &setting, Table &table, const std::string &what, int repeats,
               const std::vector<Contestant> &contestants) {
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.common.plan);
    const double ours = medianOf(blocks[0]) / repeats;
    std::vector<std::string> row{what, numberOrDash(ours)};
    for (std::size_t k = 1; k < contestants.size(); ++k) {
        const double theirs = medianOf(blocks[k]) / repeats;
        row.push_back(contestants[k].name.empty() ? "-"
                                                  : fmt::format("{} ({:.2f})", numberOrDash(theirs), ours / theirs));
        if (!contestants[k].name.empty())
            setting.report.add({{"operation", what},
                                {"method", contestants[0].name},
                                {"microseconds", ours},
                                {"baseline", contestants[k].name},
                                {"baselineMicroseconds", theirs},
                                {"ratio_to_baseline", numberOrNull(ours / theirs)},
                                {"least_to_baseline", numberOrNull(leastOf(blocks[0]) / leastOf(blocks[k]))}});
    }
    table.add(row);
    return ours;
}

} // namespace DNDS::Bench
