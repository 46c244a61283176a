/// @file DofPartition.hpp
/// @brief The terms and operations of the loops of `ArrayDof`, on the host and on the device alike, and how their sums
/// are cut into parts: their order is their result. And the loops of the device.
#pragma once

#include "DNDS/Array/BoxKernels.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/RowKernelBodies.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

namespace DNDS::DofKernels::Partition {

/// Independent partial sums, so that additions overlap and vectorise without reordering by the compiler.
inline constexpr index lanes = 8;
/// Elements whose sum is made before it is added to the total.
inline constexpr index blockSize = 1024;

/// Lines of boxes are cut into chunks of up to `blockSize` elements.
/// Chunks end with their line, so the order of additions depends on the boxes alone.
DNDS_HOST_DEVICE inline index chunksOf(const ElementBox &box) {
    return box.lines() * ((box.counts[3] + blockSize - 1) / blockSize);
}
/// Elements first + i stride of a line, 0 <= i < count.
struct Chunk {
    index first;
    index count;
    index stride;
};
/// Chunk `n` of a box.
DNDS_HOST_DEVICE inline Chunk chunkOf(const ElementBox &box, index n) {
    const index perLine = (box.counts[3] + blockSize - 1) / blockSize;
    const index begin = n % perLine * blockSize;
    const index left = box.counts[3] - begin;
    index at[4]; // NOLINT
    return {box.lineStart(n / perLine, at) + begin * box.strides[3], left < blockSize ? left : +blockSize,
            box.strides[3]};
}

/// The terms of a sum over a box.
template <Terms terms>
struct Term {
    const real *a = nullptr;
    const real *b = nullptr; ///< for two numbers a term

    Term() = default;
    DNDS_HOST_DEVICE explicit Term(const VectorBox &box) : a(Device::asGlobal(box.x)) {
        if constexpr (terms == Terms::Products || terms == Terms::SquaredDifferences)
            b = Device::asGlobal(box.y);
    }
    DNDS_HOST_DEVICE real operator()(index i) const {
        if constexpr (terms == Terms::Magnitudes)
            return std::fabs(a[i]);
        else if constexpr (terms == Terms::Products)
            return a[i] * b[i];
        else if constexpr (terms == Terms::SquaredDifferences)
            return (a[i] - b[i]) * (a[i] - b[i]);
        else
            return a[i];
    }
};

/// Calls `function` with a Term of this kind.
template <class Function>
auto withTerms(Terms terms, const Function &function) {
    switch (terms) {
    case Terms::Magnitudes:
        return function(Term<Terms::Magnitudes>());
    case Terms::Products:
        return function(Term<Terms::Products>());
    case Terms::SquaredDifferences:
        return function(Term<Terms::SquaredDifferences>());
    default:
        return function(Term<Terms::Elements>());
    }
}

/// Rows are handled several at once, in tiles of about this many elements, so that narrow rows make long loops.
inline constexpr std::size_t tileSize = 128;
/// Tiles that are added up before they meet the rest.
inline constexpr std::size_t tilesPerBlock = 64;

// At least one row, however wide.
inline std::size_t rowsPerTile(std::size_t width) { return std::max<std::size_t>(tileSize / width, 1); }

/// Calls `function` with the operation as a function object, so that kernels are compiled for each.
template <class Function>
void withOperation(Operation operation, const Function &function) {
    switch (operation) {
    case Operation::Add:
        return function(std::plus<real>{});
    case Operation::Subtract:
        return function(std::minus<real>{});
    case Operation::Multiply:
        return function(std::multiplies<real>{});
    case Operation::Divide:
        return function(std::divides<real>{});
    }
}

/// Copying as an operation on two numbers: the result is the second.
struct Second {
    DNDS_HOST_DEVICE real operator()(real /*a*/, real b) const { return b; }
};

/// The way a component is accumulated.
template <Component component>
struct Accumulation {
    /// Two sums of parts. NaN stays NaN.
    DNDS_HOST_DEVICE static real join(real a, real b) {
        if constexpr (component == Component::AbsoluteMax)
            return b > a || b != b ? b : a;
        else
            return a + b;
    }
    /// A sum and one more element.
    DNDS_HOST_DEVICE static real add(real sum, real value) {
        return join(sum, component == Component::SquareSum ? value * value : std::fabs(value));
    }
};

/// Calls `function` with the component's Accumulation.
template <class Function>
void withComponent(Component component, const Function &function) {
    switch (component) {
    case Component::AbsoluteSum:
        return function(Accumulation<Component::AbsoluteSum>{});
    case Component::SquareSum:
        return function(Accumulation<Component::SquareSum>{});
    case Component::AbsoluteMax:
        return function(Accumulation<Component::AbsoluteMax>{});
    }
}

} // namespace DNDS::DofKernels::Partition

namespace DNDS::DofDeviceKernels {

using Device::StreamHandle;
using DofKernels::Boxes;
using DofKernels::Component;
using DofKernels::Extremes;
using DofKernels::Operation;
using DofKernels::Terms;
using DofKernels::VectorBox;

/// As the functions of these names in DofKernels.hpp and BoxKernels.hpp.
void combineRows(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> row);
void combineScalars(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> scalars);
void fillRows(StreamHandle stream, std::span<real> x, std::span<const real> row);
real sum(StreamHandle stream, Terms terms, Boxes boxes);
void addExactly(StreamHandle stream, Terms terms, Boxes boxes, WideExactAccumulator &sum);
Extremes extremes(StreamHandle stream, Boxes boxes);
void accumulate(StreamHandle stream, Component component, std::span<const real> x, std::span<const real> y,
                std::span<real> result);

} // namespace DNDS::DofDeviceKernels
