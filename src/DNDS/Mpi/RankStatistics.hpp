/// @file RankStatistics.hpp
/// @brief Statistics of a number over ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <span>

namespace DNDS {

/// A number that each rank has: seconds, cells, bytes.
struct RankStatistics {
    double min = 0.0;
    double median = 0.0;
    double max = 0.0;
    double mean = 0.0;
    int maxRank = 0; ///< the rank with the maximum, the lowest of them

    /// Statistics of one number a rank, and the numbers of these ranks; none: from 0. Local.
    static RankStatistics of(std::span<const double> values, std::span<const int> ranks = {});
    /// Statistics of each rank's number; the same on all ranks. Collective; memory O(ranks).
    static RankStatistics over(CommunicatorView comm, double own);
    /// Excess of the highest rank over the mean: 0.5 is half as much again. 0 if all ranks have 0.
    double imbalance() const noexcept { return mean > 0.0 ? max / mean - 1.0 : 0.0; }
};

} // namespace DNDS
