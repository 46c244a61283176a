/// @file CopyMeasurement.hpp
/// @brief Times copies of a cube between slabs of one dimension and slabs of another.
#pragma once

#include "BlockMeasurement.hpp"

namespace DNDS::Bench {

/// Copies one double a cell of a cube of `edge`^3 from slabs in x to slabs in z, back, and with x and z exchanged, by
/// all transports of `setting`; beside memcpy of the bytes that each rank gets, once and twice. Prints a table for each
/// regime. Collective. Throws DataError on all ranks if a cell is wrong.
void measureCopies(const Setting &setting, index edge);

} // namespace DNDS::Bench
