/// @file EmulatedMemory.hpp
/// @brief Host memory that only the emulated device may touch.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <cstddef>
#include <cstdint>

#include <map>
#include <mutex>

namespace DNDS::Device {

/// All device memory of this process under the emulated back end, and memory of other processes that it has opened.
///
/// All allocations are in one anonymous file, which other processes open by the process's number. Each is mapped twice:
/// at the user's address, which is inaccessible while no kernel runs, and at a second address for copies. So copies
/// never open the first mapping, and a host thread that accesses device memory faults even while another one copies.
/// Ranges of the file are not reused, only their memory is freed. Thread-safe.
class EmulatedMemory {
  public:
    /// The user's address. @throws MemoryError.
    void *allocate(std::size_t bytes);
    void deallocate(void *pointer) noexcept;

    /// The address for copies of `[pointer, pointer + bytes)`. @throws ArgumentError unless it is within one
    /// allocation.
    std::byte *alias(const void *pointer, std::size_t bytes) const;

    /// @throws ArgumentError unless `pointer` lies in an allocation of this process.
    SharedHandle share(const void *pointer) const;
    /// The address of the shared byte, in this process that of `share`. @throws StateError, ArgumentError, MemoryError.
    void *open(const SharedHandle &handle);
    void close(void *pointer) noexcept;

    /// Makes all allocations accessible until `lock` has been called as often.
    void unlock();
    void lock() noexcept;

  private:
    struct Block {
        /// A second mapping, always accessible, for copies.
        std::byte *alias;
        std::size_t bytes;   ///< as requested
        std::size_t mapped;  ///< in whole pages
        std::uint64_t begin; ///< offset in the file
        bool foreign;        ///< belongs to another process
    };
    using Blocks = std::map<const std::byte *, Block>; ///< keyed by the user's address

    Blocks::const_iterator find(const void *pointer, std::size_t bytes) const;
    void openFile();
    std::byte *map(int file, std::uint64_t begin, std::size_t bytes, std::size_t mapped, bool foreign);
    void unmap(Blocks::const_iterator block) noexcept;
    void protectAll(int protection) const noexcept;

    /// Guards all members.
    mutable std::mutex mutex_;
    Blocks blocks_;
    /// A memfd, which other processes open through /proc.
    int file_ = -1;
    /// Start of the next allocation.
    std::uint64_t fileEnd_ = 0;
    /// Kernels that run; memory is accessible while there is one.
    int openings_ = 0;
};

} // namespace DNDS::Device
