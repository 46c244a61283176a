/// @file Transfers.hpp
/// @brief Counts copies between host and device.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"

#include <cstddef>

namespace DNDS::Device {

/// Copies between host and device by this process since it started.
struct Transfers {
    std::size_t copiesToDevice = 0;
    std::size_t bytesToDevice = 0;
    std::size_t copiesToHost = 0;
    std::size_t bytesToHost = 0;
};

/// All copies so far, of arrays and by `Device::copy`: the difference of two calls is what a part of a program copies.
/// Local; O(1); thread-safe. Not counted: kernels' accesses to pinned memory, MPI messages and, on a real device,
/// copies in replayed graphs (the emulated device counts these when the graph has been waited for).
Transfers transfers() noexcept;

/// Called by device back ends.
void countTransfer(MemorySpace to, MemorySpace from, std::size_t bytes) noexcept;

} // namespace DNDS::Device
