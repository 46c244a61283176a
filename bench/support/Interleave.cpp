#include "Interleave.hpp"

#include "Statistics.hpp"

#include <algorithm>
#include <chrono>

namespace DNDS::Bench {

namespace {

/// Microseconds of `count` repetitions on the slowest rank of each.
std::vector<double> repeat(CommunicatorView comm, NodeSync &sync, const Contestant &contestant, int warmUps,
                           int count) {
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(count));
    for (int repetition = -warmUps; repetition < count; ++repetition) {
        if (contestant.prepare)
            contestant.prepare();
        sync.barrier();
        const auto start = std::chrono::steady_clock::now();
        contestant.timed();
        const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
        if (contestant.finish)
            contestant.finish();
        if (repetition >= 0)
            times.push_back(elapsed.count());
    }
    comm.allReduce(times.data(), count, MPI_MAX);
    return times;
}

} // namespace

std::vector<std::vector<Block>> interleave(CommunicatorView comm, NodeSync &sync,
                                           std::span<const Contestant> contestants, const BlockPlan &plan) {
    const std::size_t count = contestants.size();
    std::vector<int> repetitions;
    for (const Contestant &contestant : contestants) {
        const double estimate = std::max(median(repeat(comm, sync, contestant, 2, 3)), 0.1);
        repetitions.push_back(
            static_cast<int>(std::clamp(plan.secondsPerBlock * 1e6 / estimate, static_cast<double>(plan.minRepetitions),
                                        static_cast<double>(plan.maxRepetitions))));
    }
    std::vector<std::vector<Block>> blocks(count);
    double before = sync.probe();
    for (int round = 0; round < plan.blocks; ++round) {
        for (std::size_t turn = 0; turn < count; ++turn) {
            const std::size_t which = (turn + static_cast<std::size_t>(round)) % count;
            Block block;
            block.times = repeat(comm, sync, contestants[which], plan.warmUps, repetitions[which]);
            block.microseconds = median(block.times);
            const double after = sync.probe();
            block.latency = before;
            block.regime = regimeOf(before, after, plan.nearBelow);
            blocks[which].push_back(std::move(block));
            before = after;
        }
    }
    return blocks;
}

Summary summarize(std::span<const Block> blocks, Regime regime) {
    Summary summary{};
    std::vector<double> times;
    std::vector<double> latencies;
    for (const Block &block : blocks) {
        if (block.regime != regime)
            continue;
        times.push_back(block.microseconds);
        latencies.push_back(block.latency);
        summary.times.insert(summary.times.end(), block.times.begin(), block.times.end());
    }
    std::ranges::sort(summary.times);
    summary.blocks = static_cast<int>(times.size());
    summary.microseconds = median(std::move(times));
    summary.latency = median(std::move(latencies));
    return summary;
}

} // namespace DNDS::Bench
