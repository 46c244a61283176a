/// @file AlgorithmHooks.hpp
/// @brief What a device back end has to define for Algorithms.hpp; sizes were checked and, unless it says so, are not
/// 0.
#pragma once

#include "DNDS/Device/Algorithms.hpp"

namespace DNDS::Device::Hooks {

real sum(StreamHandle stream, std::span<const real> x);
std::size_t scratchOfMinimum(std::size_t count); ///< bytes; of 0 elements, too
void minimum(StreamHandle stream, std::span<const real> x, real *result, std::span<std::byte> scratch);

/// One column of rows on the device; of 0 rows, too.
struct Column {
    const real *first;
    index width; ///< of rows
    index size;

    DNDS_HOST_DEVICE real operator()(index row) const { return first[row * width]; }
};
/// `result` is on the device. These two queue.
void largestMagnitude(StreamHandle stream, const Column &column, real *result);
void integerSum(StreamHandle stream, const Column &column, int shift, FixedPoint::Wide *result);
void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts);
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values);
void multiply(StreamHandle stream, real alpha, const MatrixRows<const real> &a, const MatrixRows<const real> &b,
              real beta, const MatrixRows<real> &c);

} // namespace DNDS::Device::Hooks
