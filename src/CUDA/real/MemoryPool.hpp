/// @file MemoryPool.hpp
/// @brief Device memory in large pieces, of which other processes open whole ones.
#pragma once

#include "DNDS/Base/BlockAllocator.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace DNDS::Device {

/// Hands out ranges of large allocations ("slabs"), and takes them back without waiting for the device: what was given
/// back may be used again when a fence, made at that time, has been passed. Knows nothing of CUDA, so that it is tested
/// anywhere. Not thread-safe. O(slabs + free ranges).
class MemoryPool {
  public:
    /// Where slabs come from, and how to tell that all work queued so far has run.
    struct Source {
        std::function<void *(std::size_t bytes)> allocate; ///< null without room
        std::function<void(void *)> free;
        std::function<std::function<bool()>()> fence; ///< makes a function that says whether it was passed
        std::function<void()> wait;                   ///< until all fences have been
    };
    /// What lies around an address.
    struct Place {
        void *slab = nullptr;
        std::size_t offset = 0;
    };

    static constexpr std::size_t slabBytes = std::size_t{64} << 20;

    explicit MemoryPool(Source source) : source_(std::move(source)) {}

    /// Null where there is no room, even after slabs that nobody uses were given back.
    void *allocate(std::size_t bytes, std::size_t alignment);
    /// False where `pointer` does not come from `allocate`.
    bool deallocate(void *pointer);
    /// The slab of what `allocate` returned; null elsewhere.
    Place placeOf(const void *pointer) const;

    std::size_t slabs() const noexcept { return slabs_.size(); }

  private:
    struct Slab {
        std::size_t bytes;
        BlockAllocator ranges;
        std::map<std::size_t, std::size_t> used; ///< begin -> bytes, those that wait for a fence included
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
    std::vector<Waiting> waiting_; ///< in the order in which they were given back
};

} // namespace DNDS::Device
