/// @file Checksum.hpp
/// @brief The checksums of a checkpoint's blocks. Part of Checkpoint.
#pragma once

#include "DNDS/Serialize/CheckpointContent.hpp"
#include "DNDS/Serialize/RowBlocks.hpp"

#include <zlib.h>

#include <cstdint>
#include <span>
#include <vector>

namespace DNDS::Detail {

/// CRC-32 as in zlib, gzip and PNG (ISO 3309, polynomial 0x04C11DB7 reflected).
inline std::uint32_t crc32Of(std::span<const std::byte> bytes) {
    return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

/// Calls `block(number, begin, end)` for each block of a rank, with its rows in the slab.
template <class Block>
void forEachBlock(const CheckpointArray &array, const FileRanks &files, int rank, Block &&block) {
    const BlockSpread spread(array, files);
    const index first = spread.firstRow(rank);
    for (index b = spread.firstBlock(rank); b < spread.firstBlock(rank + 1); b++)
        block(b, spread.rowOfBlock(b) - first, spread.rowOfBlock(b + 1) - first);
}

} // namespace DNDS::Detail
