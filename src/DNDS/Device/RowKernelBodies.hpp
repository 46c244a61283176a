/// @file RowKernelBodies.hpp
/// @brief Work of one block of threads of each kernel in RowKernels.hpp; the same source for host and device.
///
/// On a device `thread` is one of `threads` in a block; the emulated device runs a block as one thread.
#pragma once

#include "DNDS/Device/RowKernels.hpp"

#include <array>
#include <cstring>
#include <type_traits>

namespace DNDS::Device {

/// Sixteen bytes, copied by one instruction.
struct alignas(16) Chunk16 {
    std::uint64_t low;
    std::uint64_t high;
};

/// The same address, marked for nvcc as global memory (device or pinned): addresses from tables are then accessed as
/// directly as kernel arguments.
template <class T>
DNDS_HOST_DEVICE inline T *asGlobal(T *pointer) {
#if defined(__CUDA_ARCH__)
    __builtin_assume(__isGlobal(pointer));
#endif
    return pointer;
}

/// The host must not access bytes as another type; the device loads whole aligned words only that way.
template <class T>
DNDS_HOST_DEVICE inline T loadAs(const std::byte *from) {
#if defined(__CUDA_ARCH__)
    return *asGlobal(reinterpret_cast<const T *>(from));
#else
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
#endif
}
template <class T>
DNDS_HOST_DEVICE inline void storeAs(std::byte *to, const T &value) {
#if defined(__CUDA_ARCH__)
    *asGlobal(reinterpret_cast<T *>(to)) = value;
#else
    std::memcpy(to, &value, sizeof(T));
#endif
}

/// Whether `storeWide` is for these: bytes would take more registers than they are worth.
template <class Chunk>
inline constexpr bool storedTogether = sizeof(Chunk) == 4 || sizeof(Chunk) == 8;

/// Stores `load(0)`, `load(1)`, ... one after the other from `to`, several by one store of 16 bytes where they fill an
/// aligned place; those at both ends one by one.
/// Each thread owns aligned places of 16 bytes. Loads stay narrow, since the chunks of one place may come from
/// different rows.
template <class Chunk, class Load>
DNDS_HOST_DEVICE inline void storeWide(std::byte *to, std::uint32_t chunks, std::uint32_t thread, std::uint32_t threads,
                                       const Load &load) {
    constexpr std::uint32_t perStore = sizeof(Chunk16) / sizeof(Chunk);
    const auto skew =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) % sizeof(Chunk16) / sizeof(Chunk));
    const std::uint32_t end = skew + chunks; // counted from the aligned address before `to`
    std::byte *aligned = to - skew * sizeof(Chunk);
    for (std::uint32_t first = thread * perStore; first < end; first += threads * perStore)
        if (first >= skew && first + perStore <= end) {
            std::array<Chunk, perStore> held;
            for (std::uint32_t k = 0; k < perStore; ++k)
                held[k] = load(first + k - skew);
            Chunk16 together;
            memcpy(&together, &held, sizeof(together));
            storeAs(aligned + first * sizeof(Chunk), together);
        } else {
            for (std::uint32_t k = first; k < first + perStore; ++k)
                if (k >= skew && k < end)
                    storeAs(aligned + k * sizeof(Chunk), load(k - skew));
        }
}

/// Chunk `chunk` of the rows of a tile.
template <class Chunk>
DNDS_HOST_DEVICE inline Chunk loadOfRows(const CopySegment &segment, std::uint64_t firstRow, std::uint32_t chunk) {
    // Division by multiplication with the reciprocal, exact for the chunks of a tile: see DeviceRowCopy.
    const auto row = segment.chunksPerRow == 1
                         ? chunk
                         : static_cast<std::uint32_t>(std::uint64_t{chunk} * segment.reciprocal >> 32U);
    const std::uint64_t from = std::uint64_t{asGlobal(segment.rows)[firstRow + row]} * segment.chunksPerRow +
                               (chunk - row * segment.chunksPerRow);
    return loadAs<Chunk>(segment.source + from * sizeof(Chunk));
}

/// Rows of a tile: consecutive threads copy consecutive chunks, so that stores are coalesced. Several loads are issued
/// before the first store, since the compiler must assume that the two overlap.
template <class Chunk>
DNDS_HOST_DEVICE inline void copyTileRows(const CopySegment &segment, std::uint64_t firstRow, std::uint32_t rows,
                                          std::uint32_t thread, std::uint32_t threads) {
    const std::uint32_t chunks = rows * segment.chunksPerRow;
    std::byte *to = segment.destination + firstRow * segment.chunksPerRow * sizeof(Chunk);
    if constexpr (storedTogether<Chunk>)
        if (segment.wideStores != 0) {
            storeWide<Chunk>(to, chunks, thread, threads,
                             [&](std::uint32_t chunk) { return loadOfRows<Chunk>(segment, firstRow, chunk); });
            return;
        }
    for (std::uint32_t begin = thread; begin < chunks; begin += threads * rowLoadsAtOnce) {
        Chunk held[rowLoadsAtOnce];
        for (std::uint32_t k = 0; k < rowLoadsAtOnce; ++k) {
            const std::uint32_t chunk = begin + k * threads;
            if (chunk >= chunks)
                break;
            held[k] = loadOfRows<Chunk>(segment, firstRow, chunk);
        }
        for (std::uint32_t k = 0; k < rowLoadsAtOnce; ++k) {
            const std::uint32_t chunk = begin + k * threads;
            if (chunk >= chunks)
                break;
            storeAs(to + std::uint64_t{chunk} * sizeof(Chunk), held[k]);
        }
    }
}

/// One block of bytes, by `lanes` threads in turns: neighbours in a group access neighbouring words.
template <class Chunk>
DNDS_HOST_DEVICE inline void copyBlock(const std::byte *from, std::byte *to, std::uint64_t bytes, bool wideStores,
                                       std::uint32_t lane, std::uint32_t lanes) {
    if constexpr (storedTogether<Chunk>)
        if (wideStores) {
            storeWide<Chunk>(
                to, static_cast<std::uint32_t>(bytes / sizeof(Chunk)), lane, lanes,
                [&](std::uint32_t chunk) { return loadAs<Chunk>(from + std::size_t{chunk} * sizeof(Chunk)); });
            return;
        }
    for (std::uint64_t at = std::uint64_t{lane} * sizeof(Chunk); at < bytes; at += std::uint64_t{lanes} * sizeof(Chunk))
        storeAs(to + at, loadAs<Chunk>(from + at));
}

/// Blocks of a tile: a group of threads copies one block, so that short ones keep as many threads busy as long ones.
DNDS_HOST_DEVICE inline void copyTileBlocks(const CopySegment &segment, std::uint64_t first, std::uint32_t count,
                                            std::uint32_t thread, std::uint32_t threads) {
    const std::uint32_t lanes = threads < segment.lanes ? threads : segment.lanes;
    for (std::uint32_t k = thread / lanes; k < count; k += threads / lanes) {
        const CopyBlock block = asGlobal(segment.blocks)[first + k];
        const std::byte *from = segment.source + block.source;
        std::byte *to = segment.destination + block.destination;
        const auto bits = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to) | block.bytes;
        const bool wide = segment.wideStores != 0;
        // The widest word that both addresses and the length allow.
        if (bits % 16 == 0)
            copyBlock<Chunk16>(from, to, block.bytes, wide, thread % lanes, lanes);
        else if (bits % 8 == 0)
            copyBlock<std::uint64_t>(from, to, block.bytes, wide, thread % lanes, lanes);
        else if (bits % 4 == 0)
            copyBlock<std::uint32_t>(from, to, block.bytes, wide, thread % lanes, lanes);
        else
            copyBlock<std::uint8_t>(from, to, block.bytes, wide, thread % lanes, lanes);
    }
}

/// Entry of the kernel: finds the segment of the tile (a table of segments, or the only one), and its rows or blocks.
DNDS_HOST_DEVICE inline void copyTile(const CopyTable &table, std::uint64_t tile, std::uint32_t thread,
                                      std::uint32_t threads) {
    const CopySegment segment = table.segments[table.segmentOfTile == nullptr ? 0 : table.segmentOfTile[tile]];
    const std::uint64_t first = (tile - segment.firstTile) * segment.itemsPerTile;
    if (first >= segment.items) // left out of this launch
        return;
    const std::uint64_t left = segment.items - first;
    const auto count = static_cast<std::uint32_t>(left < segment.itemsPerTile ? left : segment.itemsPerTile);
    if (segment.rows == nullptr) {
        copyTileBlocks(segment, first, count, thread, threads);
        return;
    }
    switch (segment.chunkBytes) {
    case 16:
        return copyTileRows<Chunk16>(segment, first, count, thread, threads);
    case 8:
        return copyTileRows<std::uint64_t>(segment, first, count, thread, threads);
    case 4:
        return copyTileRows<std::uint32_t>(segment, first, count, thread, threads);
    case 2:
        return copyTileRows<std::uint16_t>(segment, first, count, thread, threads);
    default:
        return copyTileRows<std::uint8_t>(segment, first, count, thread, threads);
    }
}

/// Same results as the host's `combineFunction`.
template <class T>
DNDS_HOST_DEVICE inline T combineElement(T mine, T theirs, Combination combination) {
    if constexpr (std::is_same_v<T, ExactAccumulator>) {
        mine += theirs;
        return mine;
    } else {
        if (combination == Combination::Min)
            return theirs < mine ? theirs : mine;
        if (combination == Combination::Max)
            return mine < theirs ? theirs : mine;
        if constexpr (std::is_floating_point_v<T>)
            return mine + theirs;
        else // unsigned arithmetic wraps around where signed would be undefined
            return static_cast<T>(static_cast<std::make_unsigned_t<T>>(mine) +
                                  static_cast<std::make_unsigned_t<T>>(theirs));
    }
}

/// Work of thread `thread` of the launch: `lanes` threads share a row.
/// Each element is loaded once, combined with its contributions in order, and stored once: no atomics, and the bits
/// of the host. Threads of a row take every `lanes`-th element.
template <class T>
DNDS_HOST_DEVICE inline void combineRow(const CombineTable &table, std::uint64_t thread) {
    const std::uint64_t row = thread / table.lanes;
    if (row >= table.rows || (table.refused != nullptr && *table.refused != 0))
        return;
    const CombineTarget target = table.targets[row];
    const std::uint64_t end = table.targets[row + 1].first;
    for (std::uint64_t e = thread % table.lanes; e < target.elements; e += table.lanes) {
        std::byte *at = table.destination + target.destination + e * sizeof(T);
        T value = loadAs<T>(at);
        for (std::uint64_t c = target.first; c < end; ++c)
            value = combineElement(value, loadAs<T>(table.source + table.contributions[c] + e * sizeof(T)),
                                   table.combination);
        storeAs(at, value);
    }
}

/// As `combineRow`, for `compareRows`.
/// Bytes, not scalars: sizes and shapes of rows are equal or not.
DNDS_HOST_DEVICE inline void compareRow(const CombineTable &table, std::uint32_t *differs, std::uint64_t thread) {
    const std::uint64_t row = thread / table.lanes;
    if (row >= table.rows)
        return;
    const CombineTarget target = table.targets[row];
    const std::uint64_t end = table.targets[row + 1].first;
    bool differ = false;
    for (std::uint64_t e = thread % table.lanes; e < target.elements; e += table.lanes)
        for (std::uint64_t c = target.first; c < end; ++c)
            differ = differ || table.destination[target.destination + e] != table.source[table.contributions[c] + e];
    if (differ)
        *differs = static_cast<std::uint32_t>(row + 1); // threads may race: any of these rows will do
}

/// Calls `function.template operator()<T>()` for the type of `kind`; nothing for opaque elements.
template <class Function>
inline void forElementKind(ElementKind kind, Function &&function) {
    if (kind == ElementKind::Accumulator)
        return function.template operator()<ExactAccumulator>();
    visitNumber(
        kind, [&](auto zero) { function.template operator()<decltype(zero)>(); }, [] {});
}

} // namespace DNDS::Device
