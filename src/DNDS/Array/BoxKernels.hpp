/// @file BoxKernels.hpp
/// @brief The loops of DofKernels.hpp over boxes of elements instead of all elements: for fields on blocks.
///
/// The boxes' arrays are in the memory of `on`, and what is written does not overlap. Sums have the order of the boxes'
/// lines, with the bits of the host on the device. Otherwise as DofKernels.hpp. Local.
#pragma once

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Device/ParallelFor.hpp"

namespace DNDS::DofKernels {

/// Elements at the same places of up to three arrays: the box counts from each.
struct VectorBox : ElementBox {
    const real *x = nullptr;
    const real *y = nullptr;
    real *to = nullptr; ///< may be one of the others
};
using Boxes = std::span<const VectorBox>;

/// to = to operation a; to = value; to = x; to += a x.
void combine(Operation operation, real a, Boxes boxes, const Executor &on);
void fill(real value, Boxes boxes, const Executor &on);
void copy(Boxes boxes, const Executor &on);
void addTo(real a, Boxes boxes, const Executor &on);

/// The terms of a sum.
enum class Terms : unsigned char {
    Elements,          ///< x_i
    Magnitudes,        ///< |x_i|
    Products,          ///< x_i y_i
    SquaredDifferences ///< (x_i - y_i)^2
};
/// The sum of terms of `x` and, if they are of two, `y`.
real sum(Terms terms, Boxes boxes, const Executor &on);
/// Adds the terms to `sum`: any order gives the same.
void addExactly(Terms terms, Boxes boxes, WideExactAccumulator &sum, const Executor &on);
/// The extremes of `x`.
Extremes extremes(Boxes boxes, const Executor &on);

} // namespace DNDS::DofKernels
