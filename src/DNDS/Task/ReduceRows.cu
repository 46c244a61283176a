#include "DNDS/Task/ReduceRows.hpp"

#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <algorithm>

namespace DNDS::Task {

namespace {

/// Column `i % columns` of every `threads`-th row.
struct ReduceSome {
    const real *elements;
    index rows;
    rowsize columns;
    index threads;
    ReductionValue none;
    ReductionValue *results; ///< [threads x columns]

    DNDS_HOST_DEVICE void operator()(index i) const {
        ReductionValue value = none;
        for (index row = i / columns; row < rows; row += threads)
            value.add(elements[row * columns + i % columns]);
        results[i] = value;
    }
};

} // namespace

void reduceRows(const Executor &executor, std::span<const real> elements, rowsize columns, ReduceOp op,
                std::vector<ReductionValue> &result) {
    const index rows = columns > 0 ? static_cast<index>(elements.size()) / columns : 0;
    const std::size_t first = result.size();
    result.resize(first + static_cast<std::size_t>(columns), ReductionValue::none(op));
    if (!executor.onDevice()) {
        for (index row = 0; row < rows; ++row)
            for (rowsize column = 0; column < columns; ++column)
                result[first + static_cast<std::size_t>(column)].add(elements[toSize(row * columns + column)]);
        return;
    }
    const index threads = std::min<index>(rows, 2048);
    if (threads == 0)
        return;
    const Device::DeviceBuffer<ReductionValue> found(toSize(threads * columns));
    parallelFor(executor, threads * columns,
                ReduceSome{elements.data(), rows, columns, threads, ReductionValue::none(op), found.data()});
    std::vector<ReductionValue> parts(found.size());
    Device::copy(parts.data(), MemorySpace::Host, found.data(), MemorySpace::Device,
                 parts.size() * sizeof(ReductionValue), executor.stream());
    executor.synchronize();
    for (std::size_t k = 0; k < parts.size(); ++k)
        result[first + k % static_cast<std::size_t>(columns)].add(parts[k]);
}

} // namespace DNDS::Task
