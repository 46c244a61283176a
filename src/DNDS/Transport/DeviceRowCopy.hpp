/// @file DeviceRowCopy.hpp
/// @brief A fixed set of copies of rows between device and pinned memory, made in one kernel launch.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/RowKernels.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/RowGather.hpp"
#include "DNDS/Transport/RowScatter.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace DNDS {

/// Built once (`add...`), pointed at memory when that changes (`point`), launched again and again:
///
///     DeviceRowCopy pack;
///     for (const RowGather &part : parts) pack.addGather(part);
///     pack.point(k, father, buffer + offset);          // for each k
///     pack.launch(stream);
///
/// Lists of rows are kept on the device. All launches and pointings of one object belong to one stream, which orders
/// them. Local. `prepare` waits where lists are new, `launch` where addresses have changed again before those of the
/// launch before had left pinned memory.
class DeviceRowCopy {
  public:
    /// Gathers rows, packed. Returns the segment's number. O(rows).
    std::size_t addGather(const RowGather &gather);
    /// `bytes` bytes as they are. O(bytes / 1024).
    std::size_t addRange(std::size_t bytes);
    /// Scatters packed bytes into the rows of `scatter`; the destination's base is that of the part, plus
    /// `scatter.offset()`. O(bytes / 1024 + runs).
    std::size_t addScatter(const RowScatter &scatter);
    /// Blocks of any size and order that do not overlap in the destination. O(bytes / 1024 + blocks).
    std::size_t addBlocks(std::span<const Device::CopyBlock> blocks);

    /// Sets the bases of a segment. The kernel that runs later reads and writes there, and writes to pinned host memory
    /// (`MemorySpace::Host`) 16 bytes at a time.
    void point(std::size_t segment, const std::byte *source, std::byte *destination,
               MemorySpace destinationSpace = MemorySpace::Device);

    /// Takes the memory that launches need, so that only a device that fails can make them fail. O(rows) where there
    /// are new segments. Throws MemoryError.
    void prepare(Device::StreamHandle stream);
    /// Queues all segments as one kernel; nothing where there are no bytes. Prepares where that was not done.
    void launch(Device::StreamHandle stream);

  private:
    /// One segment: its lists, bases, and places in the table.
    struct Plan {
        /// Either row numbers, counted from `firstRow`, of rows of `stride` bytes; or blocks, each at most 1024
        /// bytes.
        std::vector<std::uint32_t> rows;
        std::vector<Device::CopyBlock> blocks;
        std::size_t firstRow = 0;
        std::size_t stride = 0;
        std::size_t bytes = 0;
        /// As `point` set them: bases of the rows or blocks, and of the packed bytes.
        const std::byte *source = nullptr;
        std::byte *destination = nullptr;
        MemorySpace destinationSpace = MemorySpace::Device;
        std::uint64_t rowsAt = 0; ///< the start of each list in `lists_`
        std::uint64_t blocksAt = 0;
        std::uint64_t firstTile = 0;
    };

    /// Fills in the numbers of the rows of which `runs` consist; none where 32 bits do not reach. O(rows).
    static void numberRows(std::span<const ByteBlock> runs, Plan &plan);
    /// Lays out tiles and copies all lists to the device; waits. When segments were added.
    void uploadLists(Device::StreamHandle stream);
    /// Copies the segments with their present addresses, by way of pinned memory. When an address changed.
    void uploadSegments(Device::StreamHandle stream);
    /// Rows or blocks of one tile, which a block of threads copies.
    std::uint32_t itemsPerTile(const Plan &plan) const;
    /// Threads that share one block: one for each 16 bytes of an average block, at most a warp.
    static std::uint32_t lanesOf(const Plan &plan);
    static std::uint64_t itemsOf(const Plan &plan) { return plan.rows.empty() ? plan.blocks.size() : plan.rows.size(); }

    /// By the segment's number.
    std::vector<Plan> plans_;
    Device::DeviceBuffer<std::byte> lists_; ///< row numbers, blocks and the segment of each tile
    HostDeviceBuffer pinned_;               ///< the segments on the host
    Device::DeviceBuffer<Device::CopySegment> segments_;
    Device::Event uploaded_; ///< their last copy
    /// Place of that list in `lists_`; the number of tiles.
    std::size_t segmentOfTileAt_ = 0;
    std::uint64_t tiles_ = 0;
    /// Chunks of rows that a thread loads in all; at most the number that it loads at once.
    std::size_t rowLoads_ = 1;
    /// Whether the lists, and the segments, on the device are those of the plans.
    bool listsCurrent_ = false;
    bool segmentsCurrent_ = false;
};

} // namespace DNDS
