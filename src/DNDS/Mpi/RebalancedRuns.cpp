#include "DNDS/Mpi/RebalancedRuns.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <utility>

namespace DNDS {

namespace {

/// The items of each rank, ascending.
using ItemsOfRanks = std::vector<std::vector<int>>;

/// Cuts a row of items into one run a rank. Ends of runs are numbers of items; end 0 is 0, run k is [end k - 1, end
/// k). Each run has an item, so there are at most as many runs as items. Chains on chains partitioning (Pinar and
/// Aykanat: Fast optimal load balancing algorithms for 1D partitioning, J. Parallel Distrib. Comput. 64, 2004): a limit
/// is possible if filling runs greedily up to it reaches the last item. Bisection on the limit, O(ranks log items) a
/// try; then, among the cuts within the limit, one that moves few items.
class RunCutter {
  public:
    /// `ranks` take the runs in this order.
    RunCutter(const ItemsOfRanks &ofRank, std::vector<int> ranks, std::span<const real> costs)
        : ofRank_(ofRank), ranks_(std::move(ranks)), items_(static_cast<int>(costs.size())), before_(costs.size() + 1) {
        std::partial_sum(costs.begin(), costs.end(), before_.begin() + 1);
        for (const int rank : ranks_)
            present_.push_back(present_.back() + static_cast<int>(ofRank_[toSize(rank)].size()));
    }

    /// The ends such that no run costs more than `limit`, or where that cannot be 1 % more than the least limit that
    /// can, and that keep the most items on their ranks. `highest` is the cost of the dearest item.
    /// O(ranks log items) a try, about ten tries. Bisection is sound since a limit stays possible when it grows;
    /// `high` is possible at all times, so the last bounds always lead to a cut.
    std::vector<int> cut(real limit, real mean, real highest) {
        limit_ = std::max(limit, highest);
        if (!findBounds()) {
            real low = limit_;
            real high = 1.001 * (mean + highest); // any cut that fills runs one after another is below
            // Ends for the least positive numbers, too, of which none is between low and high.
            for (real middle = 0.5 * (low + high); high - low > 0.01 * low && middle > low && middle < high;
                 middle = 0.5 * (low + high)) {
                limit_ = middle;
                (findBounds() ? high : low) = limit_;
            }
            limit_ = high;
            findBounds();
        }
        std::vector<int> ends = nearestEnds();
        index shift = 0;
        for (std::size_t k = 0; k < ends.size(); ++k)
            shift = std::max<index>(shift, std::abs(ends[k] - present_[k]));
        constexpr index most = index{1} << 23U; // ends to try: 40 MB, less than a second
        return shift == 0 || 4 * shift * runs() > most ? ends : endsWithin(2 * shift);
    }

  private:
    bool fits(int begin, int end) const { return before_[toSize(end)] <= before_[toSize(begin)] + limit_; }
    int runs() const { return static_cast<int>(ranks_.size()); }
    /// The last end of a run from `begin`.
    int lastEnd(int begin) const {
        const auto beyond = std::ranges::upper_bound(before_, before_[toSize(begin)] + limit_);
        return static_cast<int>(beyond - before_.begin()) - 1;
    }

    /// Finds the first and last possible ends of all runs. False if the limit is too low.
    /// O(runs log items). `last_` is greedy from the left: each run as long as the limit allows, with one item left
    /// for each later run. `first_` is greedy from the right. Every end between the two bounds is part of some cut
    /// within the limit, so choices from left to right never get stuck.
    bool findBounds() {
        first_.assign(ranks_.size() + 1, items_);
        last_.assign(ranks_.size() + 1, 0);
        for (int k = 1; k <= runs(); ++k)
            last_[toSize(k)] = std::min(lastEnd(last_[toSize(k) - 1]), items_ - (runs() - k));
        for (int k = runs(); k > 0; --k) {
            const real cost = before_[toSize(first_[toSize(k)])];
            const auto begin = std::ranges::partition_point(before_, [&](real less) { return cost > less + limit_; });
            first_[toSize(k) - 1] = std::max(static_cast<int>(begin - before_.begin()), k - 1);
        }
        return last_.back() == items_;
    }

    /// Moves each present end as little as the bounds and the end before it allow.
    /// O(runs log items). The bounds of the clamp do not cross: an end at or above first_[k - 1] reaches first_[k].
    std::vector<int> nearestEnds() const {
        std::vector<int> ends{0};
        for (std::size_t k = 1; k < present_.size(); ++k)
            ends.push_back(std::clamp(present_[k], std::max(first_[k], ends.back() + 1),
                                      std::min(last_[k], lastEnd(ends.back()))));
        return ends;
    }

    /// The number of items in [0, end) that are on the rank of run `k` already.
    int ownedBefore(int k, int end) const {
        const auto &own = ofRank_[toSize(ranks_[toSize(k) - 1])];
        return static_cast<int>(std::ranges::lower_bound(own, end) - own.begin());
    }

    /// Run k for ends of it from `first` on: the most items that stay in runs up to k (-1: impossible), and the begins
    /// of run k for that.
    struct Choices {
        int first = 0;
        std::vector<int> staying;
        std::vector<int> begins;
    };

    /// The best choice for each possible end of run `k`, by those of the run before. Windows of begins move forwards
    /// with ends, so that the best begin of each is found in O(1), amortised.
    /// Sliding-window maximum with a monotonic deque: a begin with a lower gain than a later begin is dropped at
    /// once. A run that is too long for one end is too long for all later ends, since prefix sums ascend.
    Choices choose(int k, const Choices &before, int first, int last) const {
        Choices made{first, {}, {}};
        const auto gain = [&](int begin) { // less what run k would have kept before `begin`
            return before.staying[toSize(begin - before.first)] - ownedBefore(k, begin);
        };
        std::deque<std::pair<int, int>> best; // begins and gains, in descending order of gains
        int next = before.first;
        const int beyond = before.first + static_cast<int>(before.staying.size());
        for (int end = first; end <= last; ++end) {
            for (; next < std::min(end, beyond); ++next) {
                if (before.staying[toSize(next - before.first)] < 0)
                    continue;
                const int gained = gain(next);
                while (!best.empty() && best.back().second < gained)
                    best.pop_back();
                best.emplace_back(next, gained);
            }
            while (!best.empty() && !fits(best.front().first, end))
                best.pop_front();
            made.staying.push_back(best.empty() ? -1 : best.front().second + ownedBefore(k, end));
            made.begins.push_back(best.empty() ? -1 : best.front().first);
        }
        return made;
    }

    /// The ends that keep the most items on their ranks, among those at most `shift` from the present ones, of which
    /// some are possible. Dynamic programming over runs.
    /// O(runs x shift) time and memory. Ties go to the least begin, so all ranks find the same ends.
    std::vector<int> endsWithin(index shift) const {
        std::vector<Choices> choices{{0, {0}, {0}}};
        for (int k = 1; k <= runs(); ++k) {
            const index present = present_[toSize(k)];
            choices.push_back(choose(k, choices.back(),
                                     static_cast<int>(std::max<index>(first_[toSize(k)], present - shift)),
                                     static_cast<int>(std::min<index>(last_[toSize(k)], present + shift))));
            choices[toSize(k) - 1].staying = {};
        }
        std::vector<int> ends(ranks_.size() + 1, items_);
        for (int k = runs(); k > 0; --k) {
            const Choices &of = choices[toSize(k)];
            ends[toSize(k) - 1] = of.begins[toSize(ends[toSize(k)] - of.first)];
        }
        return ends;
    }

    const ItemsOfRanks &ofRank_;
    /// [runs] The rank of each run, which keeps items that it has already.
    std::vector<int> ranks_;
    int items_;
    std::vector<real> before_;    ///< costs of the items before each, [items + 1]
    std::vector<int> present_{0}; ///< ends by the present numbers of items
    /// The cost that no run may exceed.
    real limit_ = 0;
    std::vector<int> first_, last_; ///< bounds of the ends
};

/// As many ranks as there can be runs: those with items in the order of their first ones, then others.
std::vector<int> ranksInOrder(const ItemsOfRanks &ofRank, std::size_t items) {
    std::vector<int> ranks(ofRank.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::stable_sort(ranks, {}, [&](int rank) {
        const auto &own = ofRank[toSize(rank)];
        return own.empty() ? static_cast<int>(items) : own.front();
    });
    ranks.resize(std::min(ranks.size(), items));
    return ranks;
}

/// The costs of all items, by number. Collective.
/// One allgatherv of 8 bytes an item. Items of a rank ascend on both sides, so values travel without numbers.
std::vector<real> gatherCosts(const ItemsOfRanks &ofRank, std::size_t items, const CommunicatorView &comm,
                              std::span<const real> mine, std::string_view item) {
    const auto &own = ofRank[toSize(comm.rank())];
    DNDS_CHECK(mine.size() == own.size(), ArgumentError, "rank {} gives {} costs for its {} {}s: give one each",
               comm.rank(), mine.size(), own.size(), item);
    for (std::size_t b = 0; b < mine.size(); ++b)
        DNDS_CHECK(mine[b] >= 0 && std::isfinite(mine[b]), ArgumentError,
                   "{} {} is to cost {}: give a number of 0 or more", item, own[b], mine[b]);
    const std::vector<real> all = comm.allGatherV(mine);
    std::vector<real> costs(items);
    auto next = all.begin();
    for (const auto &numbers : ofRank)
        for (const int number : numbers)
            costs[toSize(number)] = *next++;
    return costs;
}

} // namespace

// Every rank computes the same cut: the same costs, added in the same order. No further communication, O(items log
// items) time.
std::vector<int> rebalancedRuns(const CommunicatorView &comm, std::span<const int> rankOf, std::span<const real> mine,
                                real imbalance, std::string_view item) {
    DNDS_CHECK(imbalance >= 0 && std::isfinite(imbalance), ArgumentError, "an imbalance of {}: give 0 or more",
               imbalance);
    ItemsOfRanks ofRank(toSize(comm.size()));
    for (std::size_t k = 0; k < rankOf.size(); ++k)
        if (rankOf[k] >= 0)
            ofRank[toSize(rankOf[k])].push_back(static_cast<int>(k));
    const std::vector<real> costs = gatherCosts(ofRank, rankOf.size(), comm, mine, item);
    std::vector<int> ranks(rankOf.size());
    if (ranks.empty())
        return ranks;
    const std::vector<int> order = ranksInOrder(ofRank, ranks.size());
    const real mean = std::accumulate(costs.begin(), costs.end(), real{0}) / comm.size();
    const std::vector<int> ends =
        RunCutter(ofRank, order, costs).cut((1 + imbalance) * mean, mean, std::ranges::max(costs));
    for (std::size_t k = 0; k < order.size(); ++k)
        std::fill(ranks.begin() + ends[k], ranks.begin() + ends[k + 1], order[k]);
    return ranks;
}

} // namespace DNDS
