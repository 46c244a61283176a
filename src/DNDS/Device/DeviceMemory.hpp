/// @file DeviceMemory.hpp
/// @brief Memory of the device and for copies to it.
///
/// - `DeviceBuffer`: owner of plain device memory
/// - `pinnedHostMemory`: host memory for copies to and from the device, for arrays and for buffers
/// - `Transfers`: counts copies between host and device
#pragma once

#include "DNDS/Base/HostMemory.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Hooks.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace DNDS::Device {

/// `size` elements of uninitialised device memory, for scratch space and packed rows. Move-only; Local. It may be
/// destroyed as soon as the work that uses it is queued. Throws NotBuiltError without a device, or MemoryError.
///
///     Device::DeviceBuffer<real> packed(rows * width);
///     parallelFor(Executor::device(stream), rows, Pack{view, packed.data()});
template <class T>
class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    DeviceBuffer() = default;
    /// Allocates `size` elements.
    explicit DeviceBuffer(std::size_t size) : data_(static_cast<T *>(allocate(size * sizeof(T)))), size_(size) {}
    DeviceBuffer(DeviceBuffer &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
        if (this != &other) {
            deallocate(data_);
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }
    DeviceBuffer(const DeviceBuffer &) = delete;
    DeviceBuffer &operator=(const DeviceBuffer &) = delete;
    ~DeviceBuffer() { deallocate(data_); }

    /// Device memory: for kernels and copies only. Null for no elements.
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// Pinned host memory for arrays and containers: `array.rehost(Device::pinnedHostMemory())`, or std::pmr containers.
/// Local; never null. Allocating throws NotBuiltError without a device.
const HostMemoryResource &pinnedHostMemory();

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
