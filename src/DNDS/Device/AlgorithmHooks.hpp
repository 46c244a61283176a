/// @file AlgorithmHooks.hpp
/// @brief Functions of a device back end for Algorithms.hpp. Sizes are checked and not 0 unless stated.
#pragma once

#include "DNDS/Device/Algorithms.hpp"

namespace DNDS::Device::Hooks {

real sum(StreamHandle stream, std::span<const real> x);
std::size_t scratchOfMinimum(std::size_t count); ///< bytes; count may be 0
void minimum(StreamHandle stream, std::span<const real> x, real *result, std::span<std::byte> scratch);

void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts);
void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values);

} // namespace DNDS::Device::Hooks
