#include "DNDS/Transport/DeviceRowCopy.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace DNDS {

namespace {

/// The largest group of threads that share one block of bytes: a warp.
constexpr std::uint64_t maxLanes = 32;

/// The widest word that a thread moves.
constexpr std::uint64_t maxChunk = 16;

/// Blocks are cut to this size, so that a group of threads finishes one soon: two chunks for each of a warp.
constexpr std::uint64_t blockBytes = 2 * maxLanes * maxChunk;

/// Tiles that keep a large device busy: two for each of its multiprocessors. If there would be fewer, threads load less
/// at once.
constexpr std::size_t busyTiles = 264;

/// Runs of rows that are shorter on average, in bytes and in rows, are gathered row by row: of 1280 bytes, 8 rows, in
/// 0.74 of the time that blocks take (H100). The numbers of many short rows would be as long as the rows.
constexpr std::size_t longRunBytes = 4096;
constexpr std::size_t longRunRows = 32;

/// So that row numbers times chunks stay within what the kernel's division by multiplication is exact for.
constexpr std::size_t maxChunks = 65536;

/// Lists in one buffer begin at multiples of 16 bytes.
std::size_t aligned(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// The widest word, up to 16 bytes, that divides both addresses and the stride: the lowest bit of all of them.
std::uint32_t chunkBytesOf(const std::byte *source, const std::byte *destination, std::size_t stride) {
    const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(source) |
                                reinterpret_cast<std::uintptr_t>(destination) | stride | std::uintptr_t{maxChunk};
    return std::uint32_t{1} << static_cast<unsigned>(std::countr_zero(bits));
}

} // namespace

std::size_t DeviceRowCopy::addGather(const RowGather &gather) {
    // Rows of one width become numbers, four bytes a row on the device, unless runs are long; others become blocks.
    Plan plan;
    plan.rows.assign(gather.rowNumbers().begin(), gather.rowNumbers().end());
    plan.firstRow = gather.firstRow();
    plan.stride = gather.stride();
    plan.bytes = gather.bytes();
    if (plan.rows.empty()) {
        const std::vector<ByteBlock> runs = gather.blocks();
        const std::size_t average = plan.bytes / std::max<std::size_t>(1, runs.size());
        if (plan.stride > 0 && average < longRunBytes && average < longRunRows * plan.stride)
            numberRows(runs, plan);
        if (plan.rows.empty()) {
            std::vector<Device::CopyBlock> blocks;
            std::uint64_t to = 0;
            for (const ByteBlock &run : runs) {
                blocks.push_back({run.offset, to, run.bytes});
                to += run.bytes;
            }
            return addBlocks(blocks);
        }
    }
    plans_.push_back(std::move(plan));
    listsCurrent_ = false;
    return plans_.size() - 1;
}

void DeviceRowCopy::numberRows(std::span<const ByteBlock> runs, Plan &plan) {
    std::size_t first = std::numeric_limits<std::size_t>::max();
    std::size_t end = 0;
    for (const ByteBlock &run : runs) {
        first = std::min(first, run.offset / plan.stride);
        end = std::max(end, (run.offset + run.bytes) / plan.stride);
    }
    if (end - first > std::numeric_limits<std::uint32_t>::max())
        return;
    plan.firstRow = first;
    for (const ByteBlock &run : runs)
        for (std::size_t row = run.offset / plan.stride; row < (run.offset + run.bytes) / plan.stride; ++row)
            plan.rows.push_back(static_cast<std::uint32_t>(row - first));
}

std::size_t DeviceRowCopy::addRange(std::size_t bytes) {
    const Device::CopyBlock block{0, 0, bytes};
    return addBlocks({&block, 1});
}

std::size_t DeviceRowCopy::addScatter(const RowScatter &scatter) {
    if (scatter.contiguous())
        return addRange(scatter.bytes());
    std::vector<Device::CopyBlock> blocks;
    std::uint64_t from = 0;
    for (const ByteBlock &run : scatter.runs()) {
        blocks.push_back({from, run.offset, run.bytes});
        from += run.bytes;
    }
    return addBlocks(blocks);
}

// O(bytes / 1 KiB). Blocks are cut to equal work, so that one long block does not keep a group of threads busy alone.
std::size_t DeviceRowCopy::addBlocks(std::span<const Device::CopyBlock> blocks) {
    Plan &plan = plans_.emplace_back();
    for (Device::CopyBlock block : blocks)
        while (block.bytes > 0) {
            const std::uint64_t bytes = std::min(block.bytes, blockBytes);
            plan.blocks.push_back({block.source, block.destination, bytes});
            plan.bytes += bytes;
            block = {block.source + bytes, block.destination + bytes, block.bytes - bytes};
        }
    listsCurrent_ = false;
    return plans_.size() - 1;
}

void DeviceRowCopy::point(std::size_t segment, const std::byte *source, std::byte *destination,
                          MemorySpace destinationSpace) {
    // Only changed addresses cost an upload.
    Plan &plan = plans_.at(segment);
    if (plan.source == source && plan.destination == destination && plan.destinationSpace == destinationSpace)
        return;
    plan.source = source;
    plan.destination = destination;
    plan.destinationSpace = destinationSpace;
    segmentsCurrent_ = false;
}

std::uint32_t DeviceRowCopy::itemsPerTile(const Plan &plan) const {
    // A tile has a block for each group of threads that share one, or the rows that its threads load at once (measured
    // on an H100: half as many rows or twice as many take up to a quarter longer).
    if (plan.rows.empty())
        return Device::copyThreads / lanesOf(plan);
    DNDS_CHECK(plan.stride <= maxChunks, ArgumentError, "rows of {} bytes cannot be gathered one by one", plan.stride);
    const std::size_t tileBytes = Device::copyThreads * rowLoads_ * chunkBytesOf(nullptr, nullptr, plan.stride);
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, tileBytes / plan.stride));
}

// The average block decides: threads that share a block copy 16 bytes each in a step, and more threads than chunks
// would be idle.
std::uint32_t DeviceRowCopy::lanesOf(const Plan &plan) {
    const std::uint64_t chunks =
        plan.bytes / std::max<std::size_t>(1, plan.blocks.size()) / maxChunk; // of a block, on average
    return static_cast<std::uint32_t>(std::bit_ceil(std::clamp<std::uint64_t>(chunks, 1, maxLanes)));
}

// O(rows + blocks + tiles), with a wait for the upload; only after segments were added.
void DeviceRowCopy::uploadLists(Device::StreamHandle stream) {
    // Tiles: segments are cut into pieces of about equal work, numbered through, so that one launch with a block of
    // threads a tile balances segments of any sizes. `segmentOfTile` leads from a tile to its segment.
    std::size_t chunks = 0;
    for (const Plan &plan : plans_)
        if (!plan.rows.empty())
            chunks += plan.bytes / chunkBytesOf(nullptr, nullptr, plan.stride);
    rowLoads_ = std::clamp<std::size_t>(chunks / (Device::copyThreads * busyTiles), 1, Device::rowLoadsAtOnce);

    std::size_t bytes = 0;
    std::uint64_t tiles = 0;
    for (Plan &plan : plans_) {
        plan.rowsAt = bytes;
        bytes = aligned(bytes + plan.rows.size() * sizeof(std::uint32_t));
        plan.blocksAt = bytes;
        bytes = aligned(bytes + plan.blocks.size() * sizeof(Device::CopyBlock));
        plan.firstTile = tiles;
        const std::uint64_t items = itemsPerTile(plan);
        tiles += (itemsOf(plan) + items - 1) / items;
    }
    segmentOfTileAt_ = bytes;
    tiles_ = tiles;
    bytes += static_cast<std::size_t>(tiles) * sizeof(std::uint32_t);

    // One upload for all lists: row numbers and blocks of each segment, and the segment of each tile.
    std::vector<std::byte> lists(bytes);
    for (std::size_t k = 0; k < plans_.size(); ++k) {
        const Plan &plan = plans_[k];
        if (!plan.rows.empty())
            std::memcpy(lists.data() + plan.rowsAt, plan.rows.data(), plan.rows.size() * sizeof(std::uint32_t));
        if (!plan.blocks.empty())
            std::memcpy(lists.data() + plan.blocksAt, plan.blocks.data(),
                        plan.blocks.size() * sizeof(Device::CopyBlock));
        const std::uint64_t end = k + 1 < plans_.size() ? plans_[k + 1].firstTile : tiles;
        for (std::uint64_t tile = plan.firstTile; tile < end; ++tile) {
            const auto segment = static_cast<std::uint32_t>(k);
            std::memcpy(lists.data() + segmentOfTileAt_ + tile * sizeof(segment), &segment, sizeof(segment));
        }
    }
    lists_ = Device::DeviceBuffer<std::byte>(bytes);
    Device::copy(lists_.data(), MemorySpace::Device, lists.data(), MemorySpace::Host, bytes, stream);
    Device::synchronize(stream);
}

// O(segments) on the host and one asynchronous copy, after an address has changed.
void DeviceRowCopy::uploadSegments(Device::StreamHandle stream) {
    uploaded_.synchronize();
    const std::byte *lists = lists_.data();
    // Pinned memory is reused once the copy before has read it (`uploaded_`).
    std::byte *to = pinned_.write(MemorySpace::Host, "segments of an exchange");
    for (const Plan &plan : plans_) {
        Device::CopySegment segment{};
        segment.source = plan.source + plan.firstRow * plan.stride;
        segment.destination = plan.destination;
        segment.rows = plan.rows.empty() ? nullptr : reinterpret_cast<const std::uint32_t *>(lists + plan.rowsAt);
        segment.blocks = reinterpret_cast<const Device::CopyBlock *>(lists + plan.blocksAt);
        segment.items = itemsOf(plan);
        segment.firstTile = plan.firstTile;
        segment.itemsPerTile = itemsPerTile(plan);
        segment.lanes = lanesOf(plan);
        segment.wideStores = plan.destinationSpace == MemorySpace::Host ? 1 : 0;
        if (!plan.rows.empty()) {
            segment.chunkBytes = chunkBytesOf(segment.source, segment.destination, plan.stride);
            segment.chunksPerRow = static_cast<std::uint32_t>(plan.stride) / segment.chunkBytes;
            // Division by multiplication (Granlund and Montgomery: Division by invariant integers using
            // multiplication, PLDI 1994). Exact for numerators below 2^16 and chunksPerRow up to 2^16: the error of
            // the reciprocal times the numerator stays below 2^32.
            segment.reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << 32U) + segment.chunksPerRow - 1) /
                                                            segment.chunksPerRow);
        }
        std::memcpy(to, &segment, sizeof(segment));
        to += sizeof(segment);
    }
    Device::copy(segments_.data(), MemorySpace::Device, pinned_.read(MemorySpace::Host, "segments of an exchange"),
                 MemorySpace::Host, pinned_.bytes(), stream);
    uploaded_.record(stream);
    segmentsCurrent_ = true;
}

void DeviceRowCopy::prepare(Device::StreamHandle stream) {
    // Called when arrays are bound: in set-up ranks agree on a lack of memory, while in a launch it would revoke
    // the communicator.
    if (listsCurrent_)
        return;
    uploadLists(stream);
    if (tiles_ > 0) {
        uploaded_.synchronize();
        pinned_ = HostDeviceBuffer(plans_.size() * sizeof(Device::CopySegment), Device::pinnedHostMemory());
        segments_ = Device::DeviceBuffer<Device::CopySegment>(plans_.size());
    }
    listsCurrent_ = true;
    segmentsCurrent_ = false;
}

void DeviceRowCopy::launch(Device::StreamHandle stream) {
    // Usually one kernel launch: lists and segments are on the device from the launch before.
    prepare(stream);
    if (tiles_ == 0)
        return;
    if (!segmentsCurrent_)
        uploadSegments(stream);
    Device::CopyTable table{};
    table.segments = segments_.data();
    if (plans_.size() > 1)
        table.segmentOfTile = reinterpret_cast<const std::uint32_t *>(lists_.data() + segmentOfTileAt_);
    table.tiles = tiles_;
    Device::copyRows(table, stream);
}

} // namespace DNDS
