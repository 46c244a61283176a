/// @file RowKernels.hpp
/// @brief The kernels that copy rows on a device: one launch does the work of a table for all peers and arrays.
///
/// Tables are in device or pinned memory. All functions are Local and queue on a stream; none waits. `DeviceRowCopy`
/// and `DeviceCombine` make the tables.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <cstddef>
#include <cstdint>

namespace DNDS::Device {

/// Threads of a block, which copies one tile.
inline constexpr std::uint32_t copyThreads = 256;

/// Loads of rows that a thread issues before its first store.
inline constexpr std::uint32_t rowLoadsAtOnce = 4;

/// Bytes to copy, relative to the bases of a segment.
struct CopyBlock {
    std::uint64_t source;
    std::uint64_t destination;
    std::uint64_t bytes;
};

/// Copies between one pair of bases: rows of one width gathered one after the other, or blocks.
struct CopySegment {
    const std::byte *source;
    std::byte *destination;
    const std::uint32_t *rows;  ///< the rows' numbers in the source; null: `blocks` are copied
    const CopyBlock *blocks;    ///< used without `rows`
    std::uint64_t items;        ///< rows or blocks
    std::uint64_t firstTile;    ///< first tile of this segment
    std::uint32_t itemsPerTile; ///< at most 65536 chunks of rows
    std::uint32_t chunkBytes;   ///< 16, 8, 4, 2 or 1: rows and bases are multiples of it
    std::uint32_t chunksPerRow;
    std::uint32_t reciprocal; ///< 2^32 / chunksPerRow, rounded up
    std::uint32_t wideStores; ///< 1: chunks are stored 16 bytes at a time: for pinned memory, whose link likes that
    std::uint32_t lanes;      ///< threads that share one of `blocks`: a power of two up to 32
};

/// All segments of one launch, cut into tiles of some kilobytes; a block of threads copies one tile.
struct CopyTable {
    const CopySegment *segments;
    const std::uint32_t *segmentOfTile; ///< null: there is one segment
    std::uint64_t tiles;
};

/// Queues the copy of all segments, which do not overlap. @throws NotBuiltError, StateError.
void copyRows(const CopyTable &table, StreamHandle stream);

/// Effect of contributions on an element.
enum class Combination : std::uint8_t { Sum, Min, Max };

/// A row for which contributions arrived.
struct CombineTarget {
    std::uint64_t destination; ///< bytes from the base
    std::uint64_t elements;    ///< scalars in the row
    std::uint64_t first;       ///< first of its contributions, up to the first of the next target
};

/// Rows of one part of an array, each with its contributions in the order in which they are applied. One more target
/// than rows ends the last row's contributions.
struct CombineTable {
    std::byte *destination;
    const std::byte *source;
    const CombineTarget *targets;
    const std::uint64_t *contributions; ///< bytes from `source`
    const std::uint32_t *refused;       ///< if not 0, nothing is changed; may be null
    std::uint64_t rows;
    std::uint32_t lanes; ///< threads that share a row: a power of two up to 32
    ElementKind kind;
    Combination combination;
};

/// Queues the combination: element by element, in the order of contributions: the same bits as on the host. @throws
/// NotBuiltError, StateError.
void combineRows(const CombineTable &table, StreamHandle stream);

/// Queues a comparison: sets `*differs` (in pinned memory) to 1 + the number of a row where a contribution's bytes
/// differ from the destination's. `elements` of the targets count bytes.
void compareRows(const CombineTable &table, std::uint32_t *differs, StreamHandle stream);

} // namespace DNDS::Device
