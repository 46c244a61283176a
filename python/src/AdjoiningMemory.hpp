/// @file AdjoiningMemory.hpp
/// @brief Puts ghosts directly behind owned rows, so that both are one array to NumPy.
#pragma once

#include "AnyPair.hpp"

namespace DNDS::Python {

/// Moves both arrays of a pair with fixed rows into one block, ghosts behind owned rows: memory that the node's ranks
/// share where there is such, so that exchanges leave the ghosts where they are. Local, O(array). Contents are kept.
void adjoin(AnyPair &pair);

/// Whether ghosts still stand directly behind owned rows: neither was resized since. Local, O(1).
bool areAdjoining(const ArrayBase &father, const ArrayBase &son);

} // namespace DNDS::Python
