/// @file Algorithms.hpp
/// @brief Sums, scans, sorts and products of small matrices on the device: CUB and cuBLAS where there is CUDA.
///
/// Spans are of device memory. Work is queued on `stream` unless it returns something; scratch memory is taken from the
/// pool, so nothing but `Minimum` can be captured in a graph. Under `emulated` the host does the same. All functions
/// are Local and throw NotBuiltError where there is no device, MemoryError without room, ArgumentError for sizes that
/// do not fit.
#pragma once

#include "DNDS/Base/FixedPoint.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <optional>
#include <span>

namespace DNDS::Device {

/// The sum of all elements; waits. The order of additions is CUB's: the same in each run on one GPU, but not that of
/// the host. `ArrayDof::sum` has the host's.
real sum(StreamHandle stream, std::span<const real> x);

/// The smallest of a fixed number of elements, again and again. It keeps its scratch memory and leaves the result on
/// the device, so it can be captured in a graph. Uses of one object follow each other on one stream.
class Minimum {
  public:
    explicit Minimum(index count);
    /// Queues `*result` = the smallest of `x`, which has `count` elements, none of them NaN; infinity for none.
    /// `result` is device memory.
    void operator()(StreamHandle stream, std::span<const real> x, real *result) const;

  private:
    std::size_t count_;
    DeviceBuffer<std::byte> scratch_;
};

/// Of rows [rows x columns] on the device, to [columns] on the host: the largest `FixedPoint::magnitude`, 0 without
/// rows. Waits. For `exactSums`.
void largestOfColumns(StreamHandle stream, std::span<const real> rows, std::span<real> largest);

/// The same for the sum of `FixedPoint::toInteger(value, shift)`, 0 in columns without shift. Waits.
void integerSumsOfColumns(StreamHandle stream, std::span<const real> rows, std::span<const std::optional<int>> shifts,
                          std::span<FixedPoint::Wide> sums);

/// starts[i] = counts[0] + ... + counts[i - 1]: from row sizes to row offsets. They may be the same memory.
void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts);

/// Sorts keys into ascending order, and values with them; equal keys keep their order.
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values);

/// Matrices of one shape, column by column, one each `stride` elements: rows of an `ArrayEigenMatrix<m, n>`.
template <class T>
struct MatrixRows {
    T *data = nullptr;
    rowsize rows = 0;
    rowsize cols = 0;
    index stride = 0;
    index count = 0;
};

/// c_i = alpha a_i b_i + beta c_i for all i. O(count m n k).
void multiply(StreamHandle stream, real alpha, const MatrixRows<const real> &a, const MatrixRows<const real> &b,
              real beta, const MatrixRows<real> &c);

} // namespace DNDS::Device
