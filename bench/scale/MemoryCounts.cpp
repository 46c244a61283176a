#include "MemoryCounts.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> inUse = 0;
std::atomic<std::int64_t> peak = 0;

void *counted(void *memory) noexcept {
    const auto now = inUse += static_cast<std::int64_t>(malloc_usable_size(memory));
    std::int64_t most = peak;
    while (now > most && !peak.compare_exchange_weak(most, now)) {
    }
    return memory;
}

void *allocate(std::size_t bytes, std::size_t alignment) {
    // aligned_alloc wants whole multiples.
    void *const memory = alignment == 0
                             ? std::malloc(std::max<std::size_t>(bytes, 1))
                             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr)
        throw std::bad_alloc();
    return counted(memory);
}

void release(void *memory) noexcept {
    inUse -= static_cast<std::int64_t>(malloc_usable_size(memory));
    std::free(memory);
}

} // namespace

namespace DNDS::Bench {

std::int64_t memoryInUse() { return inUse; }
std::int64_t takeMemoryPeak() { return peak.exchange(inUse); }

} // namespace DNDS::Bench

// Those for arrays and without exceptions call these. Not inlined, or g++ warns of free() beside operator new.
[[gnu::noinline]] void *operator new(std::size_t bytes) { return allocate(bytes, 0); }
[[gnu::noinline]] void *operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::align_val_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::size_t, std::align_val_t) noexcept { release(memory); }
