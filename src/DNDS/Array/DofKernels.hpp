/// @file DofKernels.hpp
/// @brief The loops behind `ArrayDof`, over plain memory on the host. Compiled once, for all matrix sizes.
///
/// `x` holds rows of `width` elements without gaps: [rows x width]. Everything is Local. Sums are made in a fixed order
/// that depends on the number of elements only, in blocks, so that rounding errors grow slowly.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <span>

namespace DNDS::DofKernels {

/// What to do with an element and its partner.
enum class Operation : unsigned char { Add, Subtract, Multiply, Divide };

/// Every element of `x` with `a`.
void combine(Operation operation, std::span<real> x, real a);
/// Every element of `x` with that of `y`, which has as many.
void combine(Operation operation, std::span<real> x, std::span<const real> y);
/// Every row of `x` with `row`, element by element; the width is that of `row`.
void combineRows(Operation operation, std::span<real> x, std::span<const real> row);
/// Row `i` of `x` with the number `scalars[i]`.
void combineScalars(Operation operation, std::span<real> x, std::span<const real> scalars);
/// All elements.
void fill(std::span<real> x, real value);
void copy(std::span<real> to, std::span<const real> from);
/// Makes every row of `x` a copy of `row`.
void fillRows(std::span<real> x, std::span<const real> row);
/// y += a x
void addTo(std::span<real> y, real a, std::span<const real> x);

/// The sum of all products x_i y_i.
real dot(std::span<const real> x, std::span<const real> y);
/// The sum of all (x_i - y_i)^2.
real squaredDistance(std::span<const real> x, std::span<const real> y);
/// The sum of all elements.
real sum(std::span<const real> x);

/// The smallest and the largest element, both NaN if any element is; +infinity and -infinity where there are none.
struct Extremes {
    real min;
    real max;
};
Extremes extremes(std::span<const real> x);

/// What is accumulated over rows, for each of their elements.
enum class Component : unsigned char { AbsoluteSum, SquareSum, AbsoluteMax };
/// Fills `result`, of one row's width, with 0 and accumulates the rows of `x` in it, or of `x - y` where `y` is not
/// empty. NaN stays NaN.
void accumulate(Component component, std::span<const real> x, std::span<const real> y, std::span<real> result);

} // namespace DNDS::DofKernels
