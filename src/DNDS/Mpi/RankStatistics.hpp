/// @file RankStatistics.hpp
/// @brief Numbers of all ranks compared.
///
/// - `RankStatistics`: statistics of a number over ranks
/// - `Rebalancing`: when moving work to other ranks pays
/// - `clockOffset`: the offset between this rank's clock and rank 0's
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <string>

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
    /// The relative imbalance, max / mean - 1, below which nothing is moved.
    double threshold_;
    double lost_ = 0; ///< seconds of the slowest rank beyond the mean, since the last move
    double cost_ = 0; ///< seconds of the last move
    /// Work of the latest step, for `last`.
    RankStatistics last_;
};

/// The seconds that this rank adds to its clock to read rank 0's; 0 on rank 0. Collective; 16 messages each way between
/// rank 0 and each other rank, one rank after another.
///
/// Exact to half of the fastest round trip (about 1 microsecond over Infiniband, 20 over Ethernet), as in Cristian,
/// "Probabilistic clock synchronization" (1989). Offsets below that accuracy count as 0: exactly right on one
/// machine. Clocks of different machines drift apart afterwards, by a microsecond a second or so.
double clockOffset(CommunicatorView comm, double (*clock)() noexcept = monotonicSeconds);

} // namespace DNDS
