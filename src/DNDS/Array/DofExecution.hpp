/// @file DofExecution.hpp
/// @brief The loops behind `ArrayDof` on either side: spans are of the memory space of the executor.
#pragma once

#include "DNDS/Array/DofDeviceKernels.hpp"
#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Device/Executor.hpp"

#include <span>

namespace DNDS::DofExecution {

using DofKernels::Component;
using DofKernels::Extremes;
using DofKernels::Operation;

/// As the functions of these names in DofKernels.hpp, run where `on` says. On the device, those that return nothing are
/// queued on its stream, but for `accumulate`; the others wait for it. They throw NotBuiltError for the device without
/// one. Local.
inline void combine(const Executor &on, Operation operation, std::span<real> x, real a) {
    return on.onDevice() ? DofDeviceKernels::combine(on.stream(), operation, x, a)
                         : DofKernels::combine(operation, x, a);
}
inline void combine(const Executor &on, Operation operation, std::span<real> x, std::span<const real> y) {
    return on.onDevice() ? DofDeviceKernels::combine(on.stream(), operation, x, y)
                         : DofKernels::combine(operation, x, y);
}
inline void combineRows(const Executor &on, Operation operation, std::span<real> x, std::span<const real> row) {
    return on.onDevice() ? DofDeviceKernels::combineRows(on.stream(), operation, x, row)
                         : DofKernels::combineRows(operation, x, row);
}
inline void combineScalars(const Executor &on, Operation operation, std::span<real> x, std::span<const real> scalars) {
    return on.onDevice() ? DofDeviceKernels::combineScalars(on.stream(), operation, x, scalars)
                         : DofKernels::combineScalars(operation, x, scalars);
}
inline void fill(const Executor &on, std::span<real> x, real value) {
    return on.onDevice() ? DofDeviceKernels::fill(on.stream(), x, value) : DofKernels::fill(x, value);
}
inline void fillRows(const Executor &on, std::span<real> x, std::span<const real> row) {
    return on.onDevice() ? DofDeviceKernels::fillRows(on.stream(), x, row) : DofKernels::fillRows(x, row);
}
inline void addTo(const Executor &on, std::span<real> y, real a, std::span<const real> x) {
    return on.onDevice() ? DofDeviceKernels::addTo(on.stream(), y, a, x) : DofKernels::addTo(y, a, x);
}
inline void copy(const Executor &on, std::span<real> to, std::span<const real> from) {
    return on.onDevice() ? DofDeviceKernels::copy(on.stream(), to, from) : DofKernels::copy(to, from);
}
inline real dot(const Executor &on, std::span<const real> x, std::span<const real> y) {
    return on.onDevice() ? DofDeviceKernels::dot(on.stream(), x, y) : DofKernels::dot(x, y);
}
inline real squaredDistance(const Executor &on, std::span<const real> x, std::span<const real> y) {
    return on.onDevice() ? DofDeviceKernels::squaredDistance(on.stream(), x, y) : DofKernels::squaredDistance(x, y);
}
inline real sum(const Executor &on, std::span<const real> x) {
    return on.onDevice() ? DofDeviceKernels::sum(on.stream(), x) : DofKernels::sum(x);
}
inline Extremes extremes(const Executor &on, std::span<const real> x) {
    return on.onDevice() ? DofDeviceKernels::extremes(on.stream(), x) : DofKernels::extremes(x);
}
inline void accumulate(const Executor &on, Component component, std::span<const real> x, std::span<const real> y,
                       std::span<real> result) {
    return on.onDevice() ? DofDeviceKernels::accumulate(on.stream(), component, x, y, result)
                         : DofKernels::accumulate(component, x, y, result);
}

} // namespace DNDS::DofExecution
