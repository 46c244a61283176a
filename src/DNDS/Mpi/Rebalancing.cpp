#include "DNDS/Mpi/Reductions.hpp"

#include "DNDS/Mpi/FailTogether.hpp"

#include <cmath>
#include <vector>

namespace DNDS {

RankStatistics measureImbalance(const CommunicatorView &comm, double own) {
    comm.guarded(
        [&] { DNDS_CHECK(own >= 0 && std::isfinite(own), ArgumentError, "a rank's work is measured as {}", own); });
    return RankStatistics::over(comm, own);
}

std::string describeImbalance(const CommunicatorView &comm, const RankStatistics &work) {
    if (comm.size() == 1 || work.mean == 0)
        return "there is nothing to balance";
    return fmt::format("rank {} has {:.2f} x the mean of {} ranks: balancing would save at most {:.0f} % of a step",
                       work.maxRank, work.imbalance() + 1, comm.size(), 100 * (1 - work.mean / work.max));
}

Rebalancing::Rebalancing(double threshold) : threshold_(threshold) {
    DNDS_CHECK(threshold >= 0, ArgumentError, "a threshold of {} for balancing: give 0 or more", threshold);
}

// The ski-rental problem: imbalance is the rent paid each step, a move is the purchase, and moving when the rent
// paid so far reaches the price costs at most twice what the best choice in hindsight would have cost (Karlin,
// Manasse, Rudolph and Sleator: Competitive snoopy caching, Algorithmica 3, 1988). The price is taken from the
// latest move, and is 0 before the first one.
bool Rebalancing::isDue(const CommunicatorView &comm, double seconds) {
    requireSameSettings(comm, "Rebalancing",
                        [&] { return std::vector<std::string>{fmt::format("threshold = {}", threshold_)}; });
    last_ = measureImbalance(comm, seconds);
    lost_ += last_.max - last_.mean;
    return last_.imbalance() > threshold_ && lost_ >= cost_;
}

void Rebalancing::moved(const CommunicatorView &comm, double seconds) {
    cost_ = measureImbalance(comm, seconds).max;
    lost_ = 0;
}

} // namespace DNDS
