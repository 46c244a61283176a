/// @file Launch.hpp
/// @brief Starts the kernels of cases/euler for lists of rows, on the host or on the device.
#pragma once

#include "StepKernels.hpp"

#include "DNDS/Device/ParallelFor.hpp"

namespace HandWritten {

using RowList = DNDS::ArrayView<const DNDS::index>;

/// Kernels' views of the solver's arrays, in their memory space.
struct Views {
    Euler::ReadRows<Euler::variables> state;
    Euler::WriteRows<Euler::variables> newState;
    Euler::ReadRows<Euler::gradientWidth> gradient;
    Euler::WriteRows<Euler::gradientWidth> newGradient;
    Euler::ReadOwn<Euler::variables> flux;
    Euler::WriteOwn<Euler::variables> newFlux;
    Euler::ReadOwn<Euler::variables> start;
    Euler::WriteOwn<Euler::variables> newStart;
    Euler::WriteOwn<Euler::variables> conserved;
    Euler::ReadOwn<1> longest;
    Euler::WriteOwn<1> newLongest;
    Euler::StepLength length;
};

/// Runs a kernel for each row of a list. On the device it is queued on the executor's stream. Local.
void launch(const DNDS::Executor &executor, RowList rows, const Euler::GradientKernel &kernel, const Views &views);
void launch(const DNDS::Executor &executor, RowList rows, const Euler::FluxKernel &kernel, const Views &views);
void launch(const DNDS::Executor &executor, RowList rows, const Euler::FirstUpdateKernel &kernel, const Views &views);
void launch(const DNDS::Executor &executor, RowList rows, const Euler::UpdateKernel &kernel, const Views &views);
void launch(const DNDS::Executor &executor, RowList rows, const Euler::TimeStepKernel &kernel, const Views &views);
void launch(const DNDS::Executor &executor, RowList rows, const Euler::TurnStateKernel &kernel, const Views &views);
void launch(const DNDS::Executor &executor, RowList rows, const Euler::TurnGradientKernel &kernel, const Views &views);

} // namespace HandWritten
