/// @file Rebalancing.hpp
/// @brief When moving work to other ranks pays.
#pragma once

#include "DNDS/Mpi/RankStatistics.hpp"

#include <string>

namespace DNDS {

/// The distribution of work over ranks, seconds, cells or costs: the same on all ranks. Collective; memory O(ranks).
/// Throws ArgumentError on all ranks for a number that is negative or not finite.
RankStatistics measureImbalance(const CommunicatorView &comm, double own);
/// "rank 3 has 1.42 x the mean of 4 ranks: balancing would save at most 30 % of a step".
std::string describeImbalance(const CommunicatorView &comm, const RankStatistics &work);

/// Decides when a time loop should move work to other ranks (Geom::Repartition, BlockGrid::rebalanced): when the
/// excess over the mean, summed over the steps since the last move, exceeds the cost of that move, and is above a
/// threshold.
///
///     Rebalancing policy(0.1);
///     for (...) {
///         ... measure `seconds` of this rank's own computing ...
///         if (policy.isDue(comm, seconds)) {
///             ... move cells or blocks ...
///             policy.moved(comm, secondsThatItTook);
///         }
///     }
class Rebalancing {
  public:
    /// `threshold`, the same on all ranks: less excess than this is left alone. Throws ArgumentError unless it is 0 or
    /// more.
    explicit Rebalancing(double threshold);

    /// Counts a step. Collective; memory O(ranks). The same answer on all ranks. Throws ArgumentError on
    /// all ranks where thresholds differ, and as measureImbalance.
    bool isDue(const CommunicatorView &comm, double seconds);
    /// Reports the duration of a move on this rank. Collective; as measureImbalance.
    void moved(const CommunicatorView &comm, double seconds);
    /// The work of the last step.
    const RankStatistics &last() const noexcept { return last_; }

  private:
    double threshold_;
    double lost_ = 0; ///< seconds of the slowest rank beyond the mean, since the last move
    double cost_ = 0; ///< seconds of the last move
    /// Work of the latest step, for `last`.
    RankStatistics last_;
};

} // namespace DNDS
