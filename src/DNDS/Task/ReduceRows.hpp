/// @file ReduceRows.hpp
/// @brief The smallest, largest or summed values of columns, on the host or on the device.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Task/GraphModel.hpp"

#include <vector>

namespace DNDS::Task {

/// Appends to `result` one value for each of the first `columns` columns of `rows` out of `elements` [all rows x
/// stride]; both in the executor's memory. Waits for its stream. Local. Sums are exact, and so the bits equal the
/// host's.
void reduceRows(const Executor &executor, const real *elements, index stride, rowsize columns, const PartRows &rows,
                ReduceOp op, std::vector<ReductionValue> &result);

} // namespace DNDS::Task
