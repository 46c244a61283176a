/// @file DofKernels.hpp
/// @brief The loops of `ArrayDof` over memory of the host or the device, compiled once for all matrix sizes.
///
/// `x` holds rows of `width` elements without gaps: [rows x width]. Spans are of the memory of `on`; a single row, and
/// results, are on the host. On the device, void functions are queued on its stream, except for
/// `accumulate`; the others wait for it. They throw NotBuiltError for a device without one. Everything but the last
/// function is Local.
///
/// Sums have a fixed order that depends on the number of elements only, in blocks, so that rounding errors grow
/// slowly. The device's are the same to the bit, unless the host's compiler fuses products and sums (it does so with
/// DNDS_NATIVE on some processors).
///
/// `exactSums` adds up rows in host or device memory with bits that depend on no order.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <exception>
#include <span>

namespace DNDS::DofKernels {

/// Operation on an element and its partner.
enum class Operation : unsigned char { Add, Subtract, Multiply, Divide };

/// Combines every element of `x` with `a`.
void combine(Operation operation, std::span<real> x, real a, const Executor &on = Executor::host());
/// Combines every element of `x` with that of `y`, of the same size.
void combine(Operation operation, std::span<real> x, std::span<const real> y, const Executor &on = Executor::host());
/// Combines every row of `x` with `row`, element by element; the width is that of `row`.
void combineRows(Operation operation, std::span<real> x, std::span<const real> row,
                 const Executor &on = Executor::host());
/// Combines row `i` of `x` with the number `scalars[i]`.
void combineScalars(Operation operation, std::span<real> x, std::span<const real> scalars,
                    const Executor &on = Executor::host());
/// Sets all elements to `value`.
void fill(std::span<real> x, real value, const Executor &on = Executor::host());
void copy(std::span<real> to, std::span<const real> from, const Executor &on = Executor::host());
/// Sets every row of `x` to a copy of `row`.
void fillRows(std::span<real> x, std::span<const real> row, const Executor &on = Executor::host());
/// y += a x
void addTo(std::span<real> y, real a, std::span<const real> x, const Executor &on = Executor::host());

/// The sum of all products x_i y_i.
real dot(std::span<const real> x, std::span<const real> y, const Executor &on = Executor::host());
/// The sum of all (x_i - y_i)^2.
real squaredDistance(std::span<const real> x, std::span<const real> y, const Executor &on = Executor::host());
/// The sum of all elements.
real sum(std::span<const real> x, const Executor &on = Executor::host());

/// The smallest and the largest element, both NaN if any element is; +infinity and -infinity without elements.
struct Extremes {
    real min;
    real max;
};
Extremes extremes(std::span<const real> x, const Executor &on = Executor::host());

/// Quantity accumulated over rows, for each of their elements.
enum class Component : unsigned char { AbsoluteSum, SquareSum, AbsoluteMax };
/// Fills `result`, of one row's width, with 0 and accumulates the rows of `x` in it, or of `x - y` if `y` is not
/// empty. NaN stays NaN.
void accumulate(Component component, std::span<const real> x, std::span<const real> y, std::span<real> result,
                const Executor &on = Executor::host());

/// Combination of the values of ranks. Max makes NaN of values that are NaN on any rank.
enum class Reduction : unsigned char { Sum, Max };

/// Reduces `values` element-wise over ranks, in place. Collective; one reduction, which also carries failures. If
/// any rank passes a `failure`, all ranks throw that of the lowest failing one; see CommunicatorView::agree.
void reduceOrThrow(const CommunicatorView &comm, std::span<real> values, Reduction reduction,
                   const std::exception_ptr &failure);

/// Reduces the value of `body` over ranks. A rank that throws tells the others in the same reduction. Collective.
template <class Body>
real reduced(const CommunicatorView &comm, Reduction reduction, const Body &body) {
    real value = 0;
    const std::exception_ptr failure = attempt([&] { value = body(); });
    reduceOrThrow(comm, {&value, 1}, reduction, failure);
    return value;
}

/// As `FixedPoint::addColumns`, for columns in the memory of the executor, with the bits of the host. On the device it
/// runs after the present work of the stream, and waits for 64 bytes from it after each column. Local.
void addColumns(std::span<const FixedPoint::Column> columns, std::span<WideExactAccumulator> sums, const Executor &on);

} // namespace DNDS::DofKernels

namespace DNDS {

/// As `exactSums` of `Mpi/Reductions.hpp`, for rows in the memory of the executor: [own rows x columns]. See
/// `addColumns`. Collective. Throws also device errors of any rank, on all ranks.
inline void exactSums(CommunicatorView comm, const Executor &on, std::span<const real> rows, std::span<real> sums) {
    exactSums(
        comm,
        [&](std::span<WideExactAccumulator> own) {
            DofKernels::addColumns(FixedPoint::columnsOf(rows, own.size()), own, on);
        },
        sums);
}

} // namespace DNDS
