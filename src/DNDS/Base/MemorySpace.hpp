/// @file MemorySpace.hpp
/// @brief Memory spaces, and whether an access reads or writes.
#pragma once

namespace DNDS {

/// Memory of an allocation.
enum class MemorySpace : unsigned char {
    Host,  ///< ordinary memory that the CPU reads and writes
    Device ///< memory of the device that `Device/Hooks.hpp` provides (CUDA, or host memory posing as a device)
};

/// Whether an access only reads, or writes too; writing makes the copy in the other space stale.
enum class Access : unsigned char { Read, Write };

/// Chooses the memory a view refers to: `array.deviceView<DeviceBackend::CUDA>()`.
enum class DeviceBackend : unsigned char { Host, CUDA };

/// The memory space that views of `backend` refer to.
constexpr MemorySpace memorySpaceOf(DeviceBackend backend) {
    return backend == DeviceBackend::Host ? MemorySpace::Host : MemorySpace::Device;
}

} // namespace DNDS
