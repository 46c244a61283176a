/// @file RankStatistics.hpp
/// @brief How a number differs between ranks.
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
    int maxRank = 0; ///< the rank that has most, the lowest of them

    /// Of one number a rank, and the numbers of these ranks; none: from 0. Local.
    static RankStatistics of(std::span<const double> values, std::span<const int> ranks = {});
    /// Of the number that each rank of `comm` gives; the same on all ranks. Collective; memory O(ranks).
    static RankStatistics over(CommunicatorView comm, double own);
    /// How much more than the mean the highest rank has: 0.5 is half as much again. 0 where all have nothing.
    double imbalance() const noexcept { return mean > 0.0 ? max / mean - 1.0 : 0.0; }
};

} // namespace DNDS
