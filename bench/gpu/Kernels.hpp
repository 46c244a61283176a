/// @file Kernels.hpp
/// @brief Yardsticks among the kernels: nothing, a gather as one would write it first, and a step of a solver.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Hooks.hpp"

namespace DNDS::Bench {

/// A kernel of one thread that does nothing.
void emptyKernel(Device::StreamHandle stream);

/// to[r] = from[rows[r]], each row copied by one thread, as most codes do it.
void threadPerRow(const real *from, const LocalIndex *rows, real *to, index count, int width,
                  Device::StreamHandle stream);

/// to[r] = from[rows[r]], each element by one thread, neighbours in memory by neighbouring threads.
void threadPerElement(const real *from, const LocalIndex *rows, real *to, index count, int width,
                      Device::StreamHandle stream);

/// y += a x
void axpy(real a, const real *x, real *y, index count, Device::StreamHandle stream);

} // namespace DNDS::Bench
