/// @file Transfers.hpp
/// @brief Counts what is copied between host and device.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"

#include <cstddef>

namespace DNDS::Device {

/// What this process has copied between host and device since it started.
struct Transfers {
    std::size_t copiesToDevice = 0;
    std::size_t bytesToDevice = 0;
    std::size_t copiesToHost = 0;
    std::size_t bytesToHost = 0;
};

/// All copies so far, of arrays and by `Device::copy`: the difference of two answers tells what a part of a program
/// moves. Local; O(1); thread-safe. Not counted: what kernels read and write in pinned memory, messages of MPI, and, on
/// a real device, what replayed graphs copy (the emulated device counts that, too, once it was waited for).
Transfers transfers() noexcept;

/// Called by device back ends.
void countTransfer(MemorySpace to, MemorySpace from, std::size_t bytes) noexcept;

} // namespace DNDS::Device
