/// @file ReduceRows.hpp
/// @brief The smallest, largest or summed values of columns, on the host or on the device.
#pragma once

#include "DNDS/Device/Executor.hpp"
#include "DNDS/Mpi/PendingReduction.hpp"

#include <span>
#include <vector>

namespace DNDS::Task {

/// Appends to `result` one value for each column of rows [rows x columns], which lie where the executor runs. Waits for
/// its stream. Local. Sums are exact, and so the bits are those of the host.
void reduceRows(const Executor &executor, std::span<const real> elements, rowsize columns, ReduceOp op,
                std::vector<ReductionValue> &result);

} // namespace DNDS::Task
