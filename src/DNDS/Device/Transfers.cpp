#include "DNDS/Device/DeviceMemory.hpp"

#include <atomic>

namespace DNDS::Device {

namespace {

/// Relaxed: counts are statistics, and order nothing.
struct Counter {
    std::atomic<std::size_t> copies{0};
    std::atomic<std::size_t> bytes{0};

    void add(std::size_t more) noexcept {
        copies.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(more, std::memory_order_relaxed);
    }
};
Counter toDevice;
Counter toHost;

} // namespace

// Four loads, not one snapshot: copies by other threads meanwhile may be counted in part.
Transfers transfers() noexcept { return {toDevice.copies, toDevice.bytes, toHost.copies, toHost.bytes}; }

void countTransfer(MemorySpace to, MemorySpace from, std::size_t bytes) noexcept {
    if (to != from)
        (to == MemorySpace::Device ? toDevice : toHost).add(bytes);
}

} // namespace DNDS::Device
