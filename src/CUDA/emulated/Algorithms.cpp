#include "DNDS/Device/AlgorithmHooks.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace DNDS::Device::Hooks {

namespace {

/// Runs as a kernel of one thread.
/// Queued like on a real device: a caller that reads results without waiting is found out.
template <class Work>
void queue(StreamHandle stream, Work work) {
    launchHostKernel(stream, 1, [work](index, index) { work(); });
}

} // namespace

// In order, unlike CUB: callers may not expect the bits of either.
real sum(StreamHandle stream, std::span<const real> x) {
    real total = 0;
    queue(stream, [x, &total] { total = std::accumulate(x.begin(), x.end(), 0.0); });
    synchronize(stream);
    return total;
}

// No memory besides the result.
std::size_t scratchOfMinimum(std::size_t /*count*/) { return 0; }

void minimum(StreamHandle stream, std::span<const real> x, real *result, std::span<std::byte> /*scratch*/) {
    queue(stream, [x, result] {
        *result = std::accumulate(x.begin(), x.end(), std::numeric_limits<real>::infinity(),
                                  [](real a, real b) { return std::min(a, b); });
    });
}

void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts) {
    queue(stream, [counts, starts] { std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), index{0}); });
}

// Stable, like CUB's radix sort.
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values) {
    queue(stream, [keys, values] {
        std::vector<std::pair<index, index>> pairs(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            pairs[i] = {keys[i], values[i]};
        std::stable_sort(pairs.begin(), pairs.end(), [](auto &a, auto &b) { return a.first < b.first; });
        for (std::size_t i = 0; i < keys.size(); ++i)
            std::tie(keys[i], values[i]) = pairs[i];
    });
}

} // namespace DNDS::Device::Hooks
