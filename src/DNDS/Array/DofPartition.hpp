/// @file DofPartition.hpp
/// @brief How the sums of `ArrayDof` are cut into parts, on the host and on the device alike: their order is their
/// result.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <algorithm>
#include <cstddef>

namespace DNDS::DofKernels::Partition {

/// Independent partial sums, so that additions overlap and vectorise without reordering by the compiler.
inline constexpr std::size_t lanes = 8;
/// Elements whose sum is made before it is added to the total.
inline constexpr std::size_t blockSize = 1024;

/// Rows are handled several at once, in tiles of about this many elements, so that narrow rows make long loops.
inline constexpr std::size_t tileSize = 128;
/// Tiles that are added up before they meet the rest.
inline constexpr std::size_t tilesPerBlock = 64;

inline std::size_t rowsPerTile(std::size_t width) { return std::max<std::size_t>(tileSize / width, 1); }

} // namespace DNDS::DofKernels::Partition
