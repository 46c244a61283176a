/// @file MoveMeasurement.hpp
/// @brief Times how blocks that move to other ranks take a field along.
#pragma once

#include "BlockMeasurement.hpp"

namespace DNDS::Bench {

/// A cube of 8^3 blocks of `edge`^3 cells with `components` doubles each, of which one half of the curve gets dearer
/// and cheaper again, so that about a tenth of the blocks move: `rebalanced`, `moved` and the set-up of the next
/// exchange, beside an exchange of all ghosts, and beside a new field into which all values are copied. Prints a table
/// for each regime. Collective. Throws DataError on all ranks if a value is lost.
void measureMoves(const Setting &setting, index edge, int components);

} // namespace DNDS::Bench
