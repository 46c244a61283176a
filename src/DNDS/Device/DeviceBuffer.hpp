/// @file DeviceBuffer.hpp
/// @brief Owner of plain device memory.
#pragma once

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

} // namespace DNDS::Device
