#include "DNDS/Task/ReduceRows.hpp"

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace DNDS::Task {

namespace {

/// Column `i % columns` of every `threads`-th row. One thread: results of all threads are combined by the caller.
/// A thread keeps one accumulator of O(1) size and reads count / threads rows: no atomics and no second kernel.
struct ReduceSome {
    const real *elements;
    PartRows rows;
    index stride; ///< from one row to the next
    rowsize columns;
    index threads;
    ReductionValue none;
    ReductionValue *results; ///< [threads x columns]

    DNDS_HOST_DEVICE void operator()(index i) const {
        ReductionValue value = none;
        for (index k = i / columns; k < rows.count; k += threads)
            value.add(elements[rows(k) * stride + i % columns]);
        results[i] = value;
    }
};

/// Adds each column to its sum: 1024 rows of all columns before the next ones, which are in the cache then.
void addRows(const real *elements, index stride, const PartRows &rows, std::span<ReductionValue> sums) {
    std::array<real, 1024> terms; // NOLINT
    for (index begin = 0; begin < rows.count; begin += std::ssize(terms)) {
        const index count = std::min(std::ssize(terms), rows.count - begin);
        for (std::size_t column = 0; column < sums.size(); ++column) {
            for (index k = 0; k < count; ++k)
                terms[toSize(k)] = elements[rows(begin + k) * stride + static_cast<index>(column)];
            sums[column].sum.addAll(std::span(terms).first(toSize(count)));
        }
    }
}

} // namespace

/// On the device 2048 threads a column each reduce a strided share; the host combines their partial results,
/// O(threads x columns). Exact sums make the split irrelevant to the bits. Elements of neighbouring threads are
/// adjacent in memory.
/// Cost on the device: one kernel, and a copy of threads x columns accumulators to the host, which waits for it.
void reduceRows(const Executor &executor, const real *elements, index stride, rowsize columns, const PartRows &rows,
                ReduceOp op, std::vector<ReductionValue> &result) {
    const std::size_t first = result.size();
    result.resize(first + static_cast<std::size_t>(columns), ReductionValue::none(op));
    if (!executor.onDevice() && op == ReduceOp::Sum)
        return addRows(elements, stride, rows, std::span(result).subspan(first));
    if (!executor.onDevice()) {
        for (index k = 0; k < rows.count; ++k)
            for (rowsize column = 0; column < columns; ++column)
                result[first + static_cast<std::size_t>(column)].add(elements[rows(k) * stride + column]);
        return;
    }
    const index threads = std::min<index>(rows.count, 2048);
    if (threads == 0)
        return;
    const Device::DeviceBuffer<ReductionValue> found(toSize(threads * columns));
    parallelFor(executor, threads * columns,
                ReduceSome{elements, rows, stride, columns, threads, ReductionValue::none(op), found.data()});
    std::vector<ReductionValue> parts(found.size());
    Device::copy(parts.data(), MemorySpace::Host, found.data(), MemorySpace::Device,
                 parts.size() * sizeof(ReductionValue), executor.stream());
    executor.synchronize();
    for (std::size_t k = 0; k < parts.size(); ++k)
        result[first + k % static_cast<std::size_t>(columns)].add(parts[k]);
}

} // namespace DNDS::Task
