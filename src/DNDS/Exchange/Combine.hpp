/// @file Combine.hpp
/// @brief Combination of a pushed row with the row of its owner.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Exchange/Exchange.hpp"

#include <cstddef>

namespace DNDS {

/// Combines `bytes` bytes at `from` into those at `into`, element by element.
using CombineFunction = void (*)(std::byte *into, const std::byte *from, std::size_t bytes);

/// The function for elements of `kind` under `op`. Local. Integer sums wrap around. Throws LayoutError for operations
/// on opaque elements (structs), which can only be replaced, and for minimum and maximum of accumulators.
CombineFunction combineFunction(ElementKind kind, PushOp op);

} // namespace DNDS
