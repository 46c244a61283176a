/// @file EmulatedMemory.hpp
/// @brief Host memory that only the emulated device may touch.
#pragma once

#include <cstddef>

#include <map>
#include <mutex>

namespace DNDS::Device {

/// All device memory of the process under the emulated back end.
///
/// Each allocation is mapped twice from one anonymous file: at the address that users hold, which is inaccessible while
/// no kernel runs, and at a second address that copies go through. So copies never open the first mapping, and a host
/// thread that strays into device memory faults even while another one copies. Thread-safe.
class EmulatedMemory {
  public:
    /// The address users hold. @throws MemoryError.
    void *allocate(std::size_t bytes);
    void deallocate(void *pointer) noexcept;

    /// Where copies may reach `[pointer, pointer + bytes)`. @throws ArgumentError unless it lies within one allocation.
    std::byte *alias(const void *pointer, std::size_t bytes) const;

    /// Makes all allocations accessible until `close` was called as often.
    void open();
    void close() noexcept;

  private:
    struct Block {
        std::byte *alias;
        std::size_t bytes;  ///< as asked for
        std::size_t mapped; ///< in whole pages
    };

    void protectAll(int protection) const noexcept;

    mutable std::mutex mutex_;
    std::map<const std::byte *, Block> blocks_; ///< by the address users hold
    int openings_ = 0;
};

} // namespace DNDS::Device
