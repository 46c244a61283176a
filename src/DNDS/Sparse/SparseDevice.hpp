/// @file SparseDevice.hpp
/// @brief Copies and threshold tests of many rims of sparse blocks on the device: one kernel for all of them.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace DNDS {

/// Element type of a field for kernels.
struct SparseKind {
    std::uint64_t defaultBits = 0; ///< in the lowest bytes
    ElementKind kind = ElementKind::Opaque;
    std::uint32_t components = 1;
};

/// Cells to be copied, compared with the default, or both: each step of an exchange on the device is a list of these.
/// Rows count cells; elements are aligned; memory is on the device, or pinned. Jobs of one run are in no order, so none
/// may read or write a cell that another one writes.
struct SparseJob {
    const std::byte *source = nullptr;         ///< null: the default value
    const std::uint32_t *sourceRows = nullptr; ///< null: contiguous
    std::byte *destination = nullptr;          ///< null: nothing is written
    const std::uint32_t *destinationRows = nullptr;
    std::uint64_t cells = 0;
    SparseKind elements;
    std::int32_t flag = -1; ///< index of the flag that becomes 1 where an element is above the threshold; -1: no test
    std::int32_t combination = -1; ///< a Device::Combination of what is at the destination with the source; -1: none
    real threshold = 0;
};

namespace Detail {

/// The share of one block of threads: `sparseTileElements` elements of a job. Jobs differ in size from a corner to a
/// face of a block; tiles make all thread blocks equal.
struct SparseTile {
    std::uint32_t job = 0;
    std::uint64_t first = 0; ///< element of the job
};
inline constexpr index sparseTileElements = 256;

/// Queues the kernel for all tiles. Everything is in device memory.
void launchSparseJobs(Device::StreamHandle stream, const SparseJob *jobs, const SparseTile *tiles, index tileCount,
                      std::uint32_t *flags);

} // namespace Detail

/// Collects jobs and runs them as one kernel: launches, not bytes, dominate the cost of hundreds of small rims. A run
/// is one copy to the device, one launch, and one copy back where there are flags. Local. For one thread at a time.
///
///     device.add(job);                              // any number of jobs
///     const auto flags = device.run(flagCount);     // waits; valid until the next run
class SparseDevice {
  public:
    /// Throws NotBuiltError without a device.
    SparseDevice() = default;

    void add(const SparseJob &job);
    /// Drops added jobs that were not run, after an error.
    void clear() noexcept {
        jobs_.clear();
        tiles_.clear();
    }
    /// Runs all added jobs in one kernel, and waits; returns `flags` flags, valid until the next run. Throws
    /// MemoryError; then the jobs are dropped.
    std::span<const std::uint32_t> run(std::size_t flags);

    /// Memory on the device for messages, and pinned on the host for rims, of at least `bytes` bytes; its contents are
    /// lost where it grows.
    std::byte *forMessages(std::size_t bytes) { return ofDevice(messages_, bytes); }
    std::byte *forRims(std::size_t bytes) { return ofPinned(rims_, bytes); }
    Device::StreamHandle stream() const noexcept { return stream_; }

  private:
    static std::byte *ofPinned(HostDeviceBuffer &buffer, std::size_t bytes);
    static std::byte *ofDevice(Device::DeviceBuffer<std::byte> &buffer, std::size_t bytes);

    Device::Stream stream_;
    std::vector<SparseJob> jobs_;
    std::vector<Detail::SparseTile> tiles_;
    HostDeviceBuffer pinnedArguments_; ///< jobs, tiles and flags
    Device::DeviceBuffer<std::byte> arguments_;
    HostDeviceBuffer rims_;
    Device::DeviceBuffer<std::byte> messages_;
};

} // namespace DNDS
