/// @file AlgorithmHooks.hpp
/// @brief Functions of a device back end for Algorithms.hpp. Sizes are checked and not 0 unless stated.
#pragma once

#include "DNDS/Device/Algorithms.hpp"

namespace DNDS::Device::Hooks {

real sum(StreamHandle stream, std::span<const real> x);
std::size_t scratchOfMinimum(std::size_t count); ///< bytes; count may be 0
void minimum(StreamHandle stream, std::span<const real> x, real *result, std::span<std::byte> scratch);

using FixedPoint::Column;
using FixedPoint::Scale;
/// `result` is in device memory; columns may have 0 rows. Both functions queue.
void largestMagnitude(StreamHandle stream, const Column &column, real *result);
void integerSum(StreamHandle stream, const Column &column, const Scale &scale, FixedPoint::Wide *result);
void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts);
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values);
void multiply(StreamHandle stream, real alpha, const MatrixRows<const real> &a, const MatrixRows<const real> &b,
              real beta, const MatrixRows<real> &c);

/// Computes one element of `multiply`: element `i % (rows cols)` of product `i / (rows cols)`.
struct ProductElement {
    real alpha;
    real beta;
    MatrixRows<const real> a;
    MatrixRows<const real> b;
    MatrixRows<real> c;

    DNDS_HOST_DEVICE void operator()(index i) const {
        const index elements = index{c.rows} * c.cols;
        const index matrix = i / elements;
        const index row = i % elements % c.rows;
        const index col = i % elements / c.rows;
        const real *left = a.data + matrix * a.stride + row;
        const real *right = b.data + matrix * b.stride + col * b.rows;
        real sum = 0;
        for (rowsize k = 0; k < a.cols; ++k)
            sum += left[index{k} * a.rows] * right[k];
        real &element = c.data[matrix * c.stride + i % elements];
        // without beta the previous value is ignored, even if it is NaN
        element = beta == 0 ? alpha * sum : alpha * sum + beta * element;
    }
};

} // namespace DNDS::Device::Hooks
