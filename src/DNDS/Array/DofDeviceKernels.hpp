/// @file DofDeviceKernels.hpp
/// @brief The loops behind `ArrayDof`, over memory of the device: the same functions as in DofKernels.hpp.
///
/// Spans are of device memory, rows and results are on the host. What changes `x` is queued on `stream`; what returns
/// something waits for it. Everything is Local. Sums are made in the order of DofKernels.hpp and so are the same to the
/// bit, where the host's compiler does not fuse products and sums (it does so with DNDS_NATIVE on some processors).
#pragma once

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <span>

namespace DNDS::DofDeviceKernels {

using Device::StreamHandle;
using DofKernels::Component;
using DofKernels::Extremes;
using DofKernels::Operation;

/// As the functions of these names in DofKernels.hpp, queued on `stream`. They throw NotBuiltError without a device.
void combine(StreamHandle stream, Operation operation, std::span<real> x, real a);
void combine(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> y);
void combineRows(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> row);
void combineScalars(StreamHandle stream, Operation operation, std::span<real> x, std::span<const real> scalars);
void fill(StreamHandle stream, std::span<real> x, real value);
void fillRows(StreamHandle stream, std::span<real> x, std::span<const real> row);
void addTo(StreamHandle stream, std::span<real> y, real a, std::span<const real> x);
void copy(StreamHandle stream, std::span<real> to, std::span<const real> from);

/// As the functions of these names in DofKernels.hpp; they wait for `stream`. `result` is on the host. They throw
/// NotBuiltError without a device.
real dot(StreamHandle stream, std::span<const real> x, std::span<const real> y);
real squaredDistance(StreamHandle stream, std::span<const real> x, std::span<const real> y);
real sum(StreamHandle stream, std::span<const real> x);
Extremes extremes(StreamHandle stream, std::span<const real> x);
void accumulate(StreamHandle stream, Component component, std::span<const real> x, std::span<const real> y,
                std::span<real> result);

} // namespace DNDS::DofDeviceKernels
