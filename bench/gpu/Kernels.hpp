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

/// How the rows of one's own reach a kernel.
enum class OwnRows { InPlace, ThroughSharedMemory };

/// y[r] += a x[r] for rows of 3, 5 or 8 doubles, a thread a row. @throws ArgumentError for other widths.
void sweepRows(OwnRows how, int width, real a, const real *x, real *y, index count, Device::StreamHandle stream);

/// y[r] = sum over the four neighbours n[r] of (x[n] - x[r]), for rows of 3, 5 or 8 doubles.
void sumNeighbours(OwnRows how, int width, const LocalIndex *neighbours, const real *x, real *y, index count,
                   Device::StreamHandle stream);

/// y += a x
void axpy(real a, const real *x, real *y, index count, Device::StreamHandle stream);

} // namespace DNDS::Bench
