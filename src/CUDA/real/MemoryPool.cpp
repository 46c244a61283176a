#include "MemoryPool.hpp"

#include <iterator>
#include <thread>

namespace DNDS::Device {

// The last slab that starts at or before the address, if it reaches that far.
MemoryPool::Slabs::iterator MemoryPool::find(const void *pointer) {
    const auto *address = static_cast<const std::byte *>(pointer);
    const auto after = slabs_.upper_bound(address);
    if (after == slabs_.begin())
        return slabs_.end();
    const auto slab = std::prev(after);
    return static_cast<std::size_t>(address - slab->first) < slab->second.bytes ? slab : slabs_.end();
}

// Null for memory of others.
MemoryPool::Location MemoryPool::locate(const void *pointer) const {
    const auto slab = const_cast<MemoryPool *>(this)->find(pointer);
    if (slab == slabs_.end())
        return {};
    return {const_cast<std::byte *>(slab->first),
            static_cast<std::size_t>(static_cast<const std::byte *>(pointer) - slab->first)};
}

// Null if the slab has no gap that is large enough.
void *MemoryPool::allocateIn(Slabs::iterator slab, std::size_t bytes, std::size_t alignment) {
    const auto begin = slab->second.ranges.allocate(bytes, alignment);
    if (!begin)
        return nullptr;
    slab->second.used.emplace(*begin, bytes);
    return const_cast<std::byte *>(slab->first) + *begin;
}

// A new slab is taken only if no gap fits, so that fragmentation of one slab is reused before the device is asked.
void *MemoryPool::tryAllocate(std::size_t bytes, std::size_t alignment) {
    for (auto slab = slabs_.begin(); slab != slabs_.end(); ++slab)
        if (void *pointer = allocateIn(slab, bytes, alignment))
            return pointer;
    // Large allocations get their own slab, so that it can be freed; sizes are whole megabytes, the driver's unit. So
    // do all when less than a slab is left.
    constexpr std::size_t granularity = std::size_t{2} << 20;
    const std::size_t least = (bytes + granularity - 1) / granularity * granularity;
    std::size_t size = bytes > slabBytes / 2 ? least : slabBytes;
    auto *memory = static_cast<std::byte *>(source_.allocate(size));
    if (memory == nullptr && size > least)
        memory = static_cast<std::byte *>(source_.allocate(size = least));
    if (memory == nullptr)
        return nullptr;
    const auto slab = slabs_.emplace(memory, Slab{size, BlockAllocator(size), {}}).first;
    return allocateIn(slab, bytes, alignment);
}

// First fit over the slabs, then a new slab; only if the device is out of memory, waits for freed ranges and frees
// unused slabs. Invariant: a range is handed out only after the fence of its last use has passed.
void *MemoryPool::allocate(std::size_t bytes, std::size_t alignment) {
    reclaimCompleted();
    if (void *pointer = tryAllocate(bytes, alignment))
        return pointer;
    // Does not synchronise the device, which would invalidate a graph that another thread captures.
    for (reclaimCompleted(); !waiting_.empty() && !(source_.blocked && source_.blocked()); reclaimCompleted())
        std::this_thread::yield();
    freeUnused();
    return tryAllocate(bytes, alignment);
}

// Also refuses an inner address and a second free of a range that still waits.
// O(log slabs + waiting ranges), and a fence: a query of each stream.
bool MemoryPool::deallocate(void *pointer) {
    const auto slab = find(pointer);
    if (slab == slabs_.end())
        return false;
    const auto offset = static_cast<std::size_t>(static_cast<std::byte *>(pointer) - slab->first);
    if (slab->second.used.count(offset) == 0)
        return false;
    if (waiting_.contains(pointer))
        return false;
    waiting_.emplace(pointer, source_.fence());
    reclaimCompleted();
    return true;
}

// Fences may pass in any order: streams are independent of each other.
// Called at every allocation and free, so the list of waiting ranges stays short without a thread of its own.
void MemoryPool::reclaimCompleted() {
    std::erase_if(waiting_, [this](const auto &waiting) {
        const auto &[pointer, completed] = waiting;
        if (!completed())
            return false;
        const auto slab = find(pointer);
        const auto offset = static_cast<std::size_t>(static_cast<std::byte *>(pointer) - slab->first);
        const auto range = slab->second.used.find(offset);
        slab->second.ranges.release(range->first, range->second);
        slab->second.used.erase(range);
        return true;
    });
}

// Ranges that wait for a fence count as used.
void MemoryPool::freeUnused() {
    for (auto slab = slabs_.begin(); slab != slabs_.end();) {
        if (!slab->second.used.empty()) {
            ++slab;
            continue;
        }
        source_.free(const_cast<std::byte *>(slab->first));
        slab = slabs_.erase(slab);
    }
}

} // namespace DNDS::Device
