#include "DNDS/Device/AlgorithmHooks.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace DNDS::Device::Hooks {

namespace {

/// Runs as a kernel of one thread.
template <class Work>
void queue(StreamHandle stream, Work work) {
    launchHostKernel(stream, 1, [work](index, index) { work(); });
}

} // namespace

std::size_t scratchOfMinimum(std::size_t /*count*/) { return 0; }

void minimum(StreamHandle stream, std::span<const real> x, real *result, std::span<std::byte> /*scratch*/) {
    queue(stream, [x, result] {
        *result = std::accumulate(x.begin(), x.end(), std::numeric_limits<real>::infinity(),
                                  [](real a, real b) { return std::min(a, b); });
    });
}

void largestMagnitude(StreamHandle stream, const Column &column, real *result) {
    queue(stream, [column, result] {
        *result = 0;
        for (index row = 0; row < column.size; ++row)
            *result = std::max(*result, FixedPoint::magnitude(column(row)));
    });
}

void integerSum(StreamHandle stream, const Column &column, const Scale &scale, FixedPoint::Wide *result) {
    queue(stream, [column, scale, result] {
        *result = 0;
        for (index row = 0; row < column.size; ++row)
            *result += scale.toInteger(column(row));
    });
}

} // namespace DNDS::Device::Hooks
