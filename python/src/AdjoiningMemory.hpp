/// @file AdjoiningMemory.hpp
/// @brief Puts ghosts directly after owned rows, so that both are one array to NumPy.
#pragma once

#include "AnyPair.hpp"

namespace DNDS::Python {

/// Moves both arrays of a pair with fixed rows into one block, ghosts after owned rows: if possible in memory that the
/// node's ranks share, so that exchanges leave the ghosts in place. Local, O(array). Contents are kept.
void adjoin(AnyPair &pair);

/// Whether ghosts still follow owned rows directly: neither was resized since. Local, O(1).
bool areAdjoining(const ArrayBase &father, const ArrayBase &son);

} // namespace DNDS::Python
