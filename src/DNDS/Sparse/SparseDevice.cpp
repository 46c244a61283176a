#include "DNDS/Sparse/SparseDevice.hpp"

#include "DNDS/Device/DeviceMemory.hpp"

#include <cstring>

namespace DNDS {

namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

} // namespace

/// O(elements / 256) tiles, so that a job of any size keeps thread blocks equally busy. A job without elements is
/// dropped; its flag stays 0, which means "nothing above the threshold".
void SparseDevice::add(const SparseJob &job) {
    const std::uint64_t elements = job.cells * job.elements.components;
    if (elements == 0)
        return;
    const auto number = static_cast<std::uint32_t>(jobs_.size());
    jobs_.push_back(job);
    for (std::uint64_t first = 0; first < elements; first += Detail::sparseTileElements)
        tiles_.push_back({number, first});
}

/// A quarter more than asked for, so that buffers that grow slowly are replaced rarely.
std::byte *SparseDevice::ofPinned(HostDeviceBuffer &buffer, std::size_t bytes) {
    if (buffer.bytes() < bytes)
        buffer = HostDeviceBuffer(bytes + bytes / 4, Device::pinnedHostMemory());
    return buffer.write(MemorySpace::Host, "sparse blocks");
}

std::byte *SparseDevice::ofDevice(Device::DeviceBuffer<std::byte> &buffer, std::size_t bytes) {
    if (buffer.size() < bytes) {
        buffer = {};
        buffer = Device::DeviceBuffer<std::byte>(bytes + bytes / 4);
    }
    return buffer.data();
}

/// The host waits for the run, as its flags decide about the next step; buffers can therefore be used again at once.
std::span<const std::uint32_t> SparseDevice::run(std::size_t flags) {
    std::vector<SparseJob> jobs;
    std::vector<Detail::SparseTile> tiles;
    jobs.swap(jobs_); // what fails leaves nothing
    tiles.swap(tiles_);
    if (tiles.empty() && flags == 0)
        return {};
    // Jobs, tiles and zeroed flags lie in one buffer and travel in one copy.
    const std::size_t tilesAt = aligned(jobs.size() * sizeof(SparseJob));
    const std::size_t flagsAt = tilesAt + aligned(tiles.size() * sizeof(Detail::SparseTile));
    const std::size_t flagBytes = flags * sizeof(std::uint32_t);
    std::byte *const pinned = ofPinned(pinnedArguments_, flagsAt + flagBytes);
    std::memset(pinned + flagsAt, 0, flagBytes);
    // Without jobs, flags of zero are the answer.
    if (!tiles.empty()) {
        std::byte *const device = ofDevice(arguments_, flagsAt + flagBytes);
        std::memcpy(pinned, jobs.data(), jobs.size() * sizeof(SparseJob));
        std::memcpy(pinned + tilesAt, tiles.data(), tiles.size() * sizeof(Detail::SparseTile));
        Device::copy(device, MemorySpace::Device, pinned, MemorySpace::Host, flagsAt + flagBytes, stream_);
        Detail::launchSparseJobs(stream_, reinterpret_cast<const SparseJob *>(device),
                                 reinterpret_cast<const Detail::SparseTile *>(device + tilesAt),
                                 static_cast<index>(tiles.size()), reinterpret_cast<std::uint32_t *>(device + flagsAt));
        if (flags > 0)
            Device::copy(pinned + flagsAt, MemorySpace::Host, device + flagsAt, MemorySpace::Device, flagBytes,
                         stream_);
        stream_.synchronize();
    }
    jobs_.swap(jobs); // for the next ones
    tiles_.swap(tiles);
    clear();
    return {reinterpret_cast<const std::uint32_t *>(pinned + flagsAt), flags};
}

} // namespace DNDS
