/// @file PushMeasurement.hpp
/// @brief Times pushes of ghosts beside pulls of the same ghosts.
#pragma once

#include "BlockMeasurement.hpp"

#include <string>

namespace DNDS::Bench {

/// Pulls the ghosts of a field on `grid` and pushes sums of them, by all transports of `setting`. A push moves the same
/// bytes the other way, adds them to cells and zeroes the ghosts. Prints a table for each regime. Collective. Throws
/// DataError on all ranks if a sum is wrong.
void measurePushes(const Setting &setting, const std::string &name, const std::shared_ptr<const BlockGrid> &grid,
                   index width, int components);

} // namespace DNDS::Bench
