/// @file BoxKernels.hpp
/// @brief The loops of DofKernels.hpp over boxes of elements instead of all elements: for fields on blocks.
///
/// Pointers are of the memory of `on`; the boxes, which do not overlap, count from them. Sums have the order of the
/// boxes' lines, with the bits of the host on the device. Otherwise as DofKernels.hpp. Local.
#pragma once

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Device/ParallelFor.hpp"

namespace DNDS::DofKernels {

using Boxes = std::span<const ElementBox>;

void combine(Operation operation, real *x, real a, Boxes boxes, const Executor &on);
void fill(real *x, real value, Boxes boxes, const Executor &on);
void copy(real *to, const real *from, Boxes boxes, const Executor &on);
/// y += a x
void addTo(real *y, real a, const real *x, Boxes boxes, const Executor &on);

/// The terms of a sum.
enum class Terms : unsigned char {
    Elements,          ///< x_i
    Magnitudes,        ///< |x_i|
    Products,          ///< x_i y_i
    SquaredDifferences ///< (x_i - y_i)^2
};
/// The sum of terms of `x` and, if they are of two, `y`; and the same sum without rounding: any order gives the same.
real sum(Terms terms, const real *x, const real *y, Boxes boxes, const Executor &on);
WideExactAccumulator exactSum(Terms terms, const real *x, const real *y, Boxes boxes, const Executor &on);
Extremes extremes(const real *x, Boxes boxes, const Executor &on);

} // namespace DNDS::DofKernels
