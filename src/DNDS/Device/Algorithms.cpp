#include "DNDS/Device/Algorithms.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/AlgorithmHooks.hpp"

namespace DNDS::Device {

real sum(StreamHandle stream, std::span<const real> x) {
    requireDevice("sum elements");
    return x.empty() ? 0.0 : Hooks::sum(stream, x);
}

// Scratch memory is allocated once, so that the call itself can be captured in a graph.
Minimum::Minimum(index count) : count_(static_cast<std::size_t>(count)) {
    requireDevice("find the smallest element");
    scratch_ = DeviceBuffer<std::byte>(Hooks::scratchOfMinimum(count_));
}

void Minimum::operator()(StreamHandle stream, std::span<const real> x, real *result) const {
    DNDS_CHECK(x.size() == count_, ArgumentError, "{} elements are given to a Minimum made for {}", x.size(), count_);
    Hooks::minimum(stream, x, result, {scratch_.data(), scratch_.size()});
}

namespace {

/// Calls `reduce(k, result)` for each column and copies the results from the device to the host.
/// A kernel a column, one copy for all results, and a wait for the stream.
template <class T, class Reduce>
void forColumns(StreamHandle stream, std::size_t columns, std::span<T> results, const Reduce &reduce) {
    requireDevice("reduce columns");
    DNDS_CHECK(columns > 0 && columns == results.size(), ArgumentError, "{} columns are given for {} results", columns,
               results.size());
    // All columns are reduced before the one copy back.
    const DeviceBuffer<T> found(columns);
    for (std::size_t k = 0; k < columns; ++k)
        reduce(k, found.data() + k);
    copy(results.data(), MemorySpace::Host, found.data(), MemorySpace::Device, results.size_bytes(), stream);
    synchronize(stream);
}

} // namespace

// Phase one of exact sums: the largest magnitude of each column decides its scale.
void largestOfColumns(StreamHandle stream, std::span<const FixedPoint::Column> columns, std::span<real> largest) {
    forColumns(stream, columns.size(), largest,
               [&](std::size_t k, real *result) { Hooks::largestMagnitude(stream, columns[k], result); });
}

// Phase two of exact sums (FixedPoint): elements scaled to integers, whose sums do not depend on order. A column
// without a scale has only zeros, or no finite sum: no rows are read, and its result is 0.
void integerSumsOfColumns(StreamHandle stream, std::span<const FixedPoint::Column> columns,
                          std::span<const std::optional<FixedPoint::Scale>> scales, std::span<FixedPoint::Wide> sums) {
    forColumns(stream, columns.size(), sums, [&](std::size_t k, FixedPoint::Wide *result) {
        const FixedPoint::Column column = scales[k] ? columns[k] : FixedPoint::Column{};
        Hooks::integerSum(stream, column, scales[k].value_or(FixedPoint::Scale(1)), result);
    });
}

void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts) {
    requireDevice("compute offsets");
    DNDS_CHECK(counts.size() == starts.size(), ArgumentError, "{} counts are given for {} starts", counts.size(),
               starts.size());
    if (!counts.empty())
        Hooks::exclusiveScan(stream, counts, starts);
}

void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values) {
    requireDevice("sort");
    DNDS_CHECK(keys.size() == values.size(), ArgumentError, "{} keys are given for {} values", keys.size(),
               values.size());
    if (!keys.empty())
        Hooks::sortByKey(stream, keys, values);
}

} // namespace DNDS::Device
