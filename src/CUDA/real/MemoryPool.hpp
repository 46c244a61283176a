/// @file MemoryPool.hpp
/// @brief Device memory in large slabs, which other processes open as a whole.
#pragma once

#include "DNDS/Base/BlockAllocator.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace DNDS::Device {

/// Hands out ranges of large allocations ("slabs"), and reuses freed ones without waiting for the device: a freed range
/// may be reused when a fence made at that time has been passed. Knows nothing about CUDA, so it can be tested
/// anywhere. Not thread-safe. O(slabs + free ranges).
class MemoryPool {
  public:
    /// Allocates slabs, and tells when all work queued so far has run.
    struct Source {
        std::function<void *(std::size_t bytes)> allocate; ///< null without room
        std::function<void(void *)> free;
        std::function<std::function<bool()>()> fence; ///< makes a function that returns whether it has been passed
    };
    /// The slab around an address.
    struct Place {
        void *slab = nullptr;
        std::size_t offset = 0;
    };

    static constexpr std::size_t slabBytes = std::size_t{64} << 20;

    explicit MemoryPool(Source source) : source_(std::move(source)) {}

    /// Null if there is no room, even after all fences were waited for and unused slabs freed.
    void *allocate(std::size_t bytes, std::size_t alignment);
    /// False if `pointer` is not from `allocate`.
    bool deallocate(void *pointer);
    /// The slab of memory from `allocate`; null elsewhere.
    Place placeOf(const void *pointer) const;

    std::size_t slabs() const noexcept { return slabs_.size(); }

  private:
    struct Slab {
        std::size_t bytes;
        BlockAllocator ranges;
        std::map<std::size_t, std::size_t> used; ///< begin -> bytes, including those that wait for a fence
    };
    using Slabs = std::map<const std::byte *, Slab>; ///< by address
    struct Waiting {
        void *pointer;
        std::function<bool()> passed;
    };

    Slabs::iterator find(const void *pointer);
    void *allocateIn(Slabs::iterator slab, std::size_t bytes, std::size_t alignment);
    void *tryAllocate(std::size_t bytes, std::size_t alignment);
    void takeBackPassed();
    void freeUnused();

    Source source_;
    Slabs slabs_;
    std::vector<Waiting> waiting_; ///< in the order in which they were freed
};

} // namespace DNDS::Device
