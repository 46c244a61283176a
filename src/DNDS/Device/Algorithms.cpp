#include "DNDS/Device/Algorithms.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/AlgorithmHooks.hpp"

namespace DNDS::Device {

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
template <class T, class Reduce>
void forColumns(StreamHandle stream, std::size_t columns, std::span<T> results, const Reduce &reduce) {
    requireDevice("reduce columns");
    DNDS_CHECK(columns > 0 && columns == results.size(), ArgumentError, "{} columns are given for {} results", columns,
               results.size());
    const DeviceBuffer<T> found(columns);
    for (std::size_t k = 0; k < columns; ++k)
        reduce(k, found.data() + k);
    copy(results.data(), MemorySpace::Host, found.data(), MemorySpace::Device, results.size_bytes(), stream);
    synchronize(stream);
}

} // namespace

void largestOfColumns(StreamHandle stream, std::span<const FixedPoint::Column> columns, std::span<real> largest) {
    forColumns(stream, columns.size(), largest,
               [&](std::size_t k, real *result) { Hooks::largestMagnitude(stream, columns[k], result); });
}

void integerSumsOfColumns(StreamHandle stream, std::span<const FixedPoint::Column> columns,
                          std::span<const std::optional<FixedPoint::Scale>> scales, std::span<FixedPoint::Wide> sums) {
    forColumns(stream, columns.size(), sums, [&](std::size_t k, FixedPoint::Wide *result) {
        const FixedPoint::Column column = scales[k] ? columns[k] : FixedPoint::Column{};
        Hooks::integerSum(stream, column, scales[k].value_or(FixedPoint::Scale(1)), result);
    });
}

} // namespace DNDS::Device
