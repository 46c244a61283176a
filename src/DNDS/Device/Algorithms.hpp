/// @file Algorithms.hpp
/// @brief Sums, scans, sorts and products of small matrices on the device: CUB and cuBLAS where there is CUDA.
///
/// Spans are of device memory. Work is queued on `stream` unless it returns something; scratch memory is taken from the
/// pool, so none of this can be captured in a graph. Under `emulated` the host does the same. All functions are Local
/// and throw NotBuiltError where there is no device, MemoryError without room, ArgumentError for sizes that do not fit.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <span>

namespace DNDS::Device {

/// The sum of all elements; waits. The order of additions is CUB's: the same in each run on one GPU, but not that of
/// the host. `ArrayDof::sum` has the host's.
real sum(StreamHandle stream, std::span<const real> x);

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
