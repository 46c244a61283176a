/// @file DofPartition.hpp
/// @brief What the loops of `ArrayDof` compute, on the host and on the device alike, and how their sums are cut into
/// parts: their order is their result. And the loops of the device.
#pragma once

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

namespace DNDS::DofKernels::Partition {

/// Independent partial sums, so that additions overlap and vectorise without reordering by the compiler.
inline constexpr std::size_t lanes = 8;
/// Elements whose sum is made before it is added to the total.
inline constexpr std::size_t blockSize = 1024;

/// Rows are handled several at once, in tiles of about this many elements, so that narrow rows make long loops.
inline constexpr std::size_t tileSize = 128;
/// Tiles that are added up before they meet the rest.
inline constexpr std::size_t tilesPerBlock = 64;

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
using DofKernels::Component;
using DofKernels::Extremes;
using DofKernels::Operation;

/// As the functions of these names in DofKernels.hpp.
void combineRows(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> row);
void combineScalars(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> scalars);
void fillRows(StreamHandle stream, std::span<real> x, std::span<const real> row);
real dot(StreamHandle stream, std::span<const real> x, std::span<const real> y);
real squaredDistance(StreamHandle stream, std::span<const real> x, std::span<const real> y);
real sum(StreamHandle stream, std::span<const real> x);
Extremes extremes(StreamHandle stream, std::span<const real> x);
void accumulate(StreamHandle stream, Component component, std::span<const real> x, std::span<const real> y,
                std::span<real> result);

} // namespace DNDS::DofDeviceKernels
