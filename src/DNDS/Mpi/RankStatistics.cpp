#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace DNDS {

RankStatistics RankStatistics::of(std::span<const double> values, std::span<const int> ranks) {
    if (values.empty())
        return {};
    // By sorting: O(n log n). The mean adds up in ascending order, the same on all ranks.
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const std::size_t half = sorted.size() / 2;
    const auto most = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
    return {sorted.front(), sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]),
            sorted.back(), std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size()),
            ranks.empty() ? static_cast<int>(most) : ranks[most]};
}

// Collective; an allgather of one number a rank. Every rank computes the same statistics.
RankStatistics RankStatistics::over(CommunicatorView comm, double own) {
    const std::vector<double> all = comm.allGather(own);
    RankStatistics spread;
    comm.guarded([&] { spread = of(all); });
    return spread;
}

} // namespace DNDS
