/// @file SortUnique.hpp
/// @brief Sorting lists of global row numbers.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <span>
#include <vector>

namespace DNDS {

/// The distinct values of `values` in ascending order. Local.
///
/// Cost: O(n) for lists already sorted; O(n + range / 64) by a bitmap where the values are dense;
/// else a least-significant-digit radix sort, O(n) for each 11 bits of the range. Short lists use std::sort.
std::vector<index> sortedUnique(std::span<const index> values);

} // namespace DNDS
