/// @file MemoryPool.hpp
/// @brief Device memory in large slabs, which other processes open as a whole.
#pragma once

#include "DNDS/Base/BlockAllocator.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <utility>

namespace DNDS::Device {

/// Hands out ranges of large allocations ("slabs") and reuses freed ranges without waiting for the device: a range is
/// reusable once the fence made when it was freed has passed. Independent of CUDA, so that it can be tested anywhere.
/// Not thread-safe. O(slabs + free ranges).
class MemoryPool {
  public:
    /// Allocates slabs, and reports when all work queued so far has run.
    struct Source {
        std::function<void *(std::size_t bytes)> allocate; ///< returns null when out of memory
        std::function<void(void *)> free;
        std::function<std::function<bool()>()> fence; ///< makes a function that tells whether the fence has passed
        /// Whether fences wait for the calling thread: it would wait for itself. Never, if null.
        std::function<bool()> blocked{};
    };
    /// The slab that contains an address.
    struct Location {
        void *slab = nullptr;
        std::size_t offset = 0;
    };

    /// 64 MiB: small against a device's memory, large against most arrays of a rank.
    static constexpr std::size_t slabBytes = std::size_t{64} << 20;

    explicit MemoryPool(Source source) : source_(std::move(source)) {}

    /// Returns null when out of memory, even after waiting for all fences, unless they are blocked, and freeing unused
    /// slabs.
    void *allocate(std::size_t bytes, std::size_t alignment);
    /// False if `pointer` is not from `allocate`.
    bool deallocate(void *pointer);
    /// The slab that holds `pointer`, or null if it is not from `allocate`.
    Location locate(const void *pointer) const;

    std::size_t slabs() const noexcept { return slabs_.size(); }

  private:
    struct Slab {
        std::size_t bytes;
        BlockAllocator ranges;
        std::map<std::size_t, std::size_t> used; ///< begin -> bytes, including ranges that wait for a fence
    };
    using Slabs = std::map<const std::byte *, Slab>; ///< keyed by address

    Slabs::iterator find(const void *pointer);
    void *allocateIn(Slabs::iterator slab, std::size_t bytes, std::size_t alignment);
    /// First fit, then a new slab; null when the driver has no room.
    void *tryAllocate(std::size_t bytes, std::size_t alignment);
    /// Makes ranges reusable whose fences have passed. O(waiting ranges).
    void reclaimCompleted();
    /// Returns slabs without ranges to the driver, for larger ones.
    void freeUnused();

    Source source_;
    Slabs slabs_;
    /// Fences of ranges that were freed while work might still use them, keyed by address.
    std::map<void *, std::function<bool()>> waiting_;
};

} // namespace DNDS::Device
