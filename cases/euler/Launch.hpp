/// @file Launch.hpp
/// @brief Starts the solver's kernels on the host or on the device.
#pragma once

#include "StepKernels.hpp"

#include "DNDS/Device/Executor.hpp"

namespace Euler {

/// The rows that a kernel runs for: cells, faces, or entries of a list.
using RowList = ArrayView<const index>;

/// Runs a kernel for each row of a list. On the host it returns when done; on the device it queues on the executor's
/// stream. Rows and views must be in the executor's memory. Local.
void launch(const DNDS::Executor &executor, RowList rows, const GradientKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const FluxKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const UpdateKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const TimeStepKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const ResidualKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const SetTimeStepKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const AmountKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const TurnStateKernel &kernel);
void launch(const DNDS::Executor &executor, RowList rows, const TurnGradientKernel &kernel);
/// For all of the kernel's faces.
void launch(const DNDS::Executor &executor, const ForceKernel &kernel);

} // namespace Euler
