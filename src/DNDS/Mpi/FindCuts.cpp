#include "DNDS/Mpi/FindCuts.hpp"

#include <algorithm>

namespace DNDS {

namespace {

/// Trials a goal and round: 15 divide an interval in 16, four bits a reduction.
constexpr std::size_t maxTrials = 15;
constexpr std::size_t maxNumbers =
    4096; ///< limit for several trials a goal: up to it a reduction takes as long as its latency

} // namespace

// Multisection instead of bisection: several trials a round cost no more than one while the reduction is bound by
// latency. Rounds: log(most - least) / log(trials + 1).
// Invariant: `lower` and `upper` derive from reduced weights alone, so they are equal on all ranks, and the loop ends
// on all of them in the same round. A trial is always below `upper`: each round shortens every open interval.
std::vector<std::uint64_t> findCuts(CommunicatorView comm, std::span<const index> goals, std::uint64_t least,
                                    std::uint64_t most, const std::function<index(std::uint64_t)> &below) {
    const std::size_t trials =
        std::clamp<std::size_t>(maxNumbers / std::max<std::size_t>(1, goals.size()), 1, maxTrials);
    std::vector<std::uint64_t> lower, upper;
    std::vector<index> weights;
    comm.guarded([&] {
        lower.assign(goals.size(), least);
        upper.assign(goals.size(), std::max(least, most));
        weights.resize(goals.size() * trials);
    });
    // The answer lies in [lower, upper]; trial t lies that far into it, and below `upper`.
    const auto trial = [&](std::size_t k, std::size_t t) {
        const std::uint64_t width = upper[k] - lower[k];
        const std::uint64_t step = width / (trials + 1), rest = width % (trials + 1);
        return lower[k] + step * (t + 1) + rest * (t + 1) / (trials + 1);
    };
    while (lower != upper) {
        // Goals that are found give zeros: all ranks reduce equally many numbers until the last goal is found.
        for (std::size_t k = 0; k < goals.size(); k++)
            for (std::size_t t = 0; t < trials; t++)
                weights[k * trials + t] = lower[k] == upper[k] ? 0 : below(trial(k, t));
        comm.allReduce(weights.data(), static_cast<int>(weights.size()), MPI_SUM);
        for (std::size_t k = 0; k < goals.size(); k++) {
            if (lower[k] == upper[k])
                continue;
            // Weights ascend with the trials, since `below` does. The first trial whose weight reaches the goal
            // bounds the answer from above, the one before it from below: each round divides the interval by trials
            // + 1.
            const auto first = weights.begin() + static_cast<std::ptrdiff_t>(k * trials);
            const auto reached = std::lower_bound(first, first + static_cast<std::ptrdiff_t>(trials), goals[k]);
            const auto t = static_cast<std::size_t>(reached - first);
            const std::uint64_t end = t < trials ? trial(k, t) : upper[k];
            if (t > 0)
                lower[k] = trial(k, t - 1) + 1;
            upper[k] = end;
        }
    }
    return lower;
}

} // namespace DNDS
