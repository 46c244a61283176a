#include "DNDS/Base/HostMemory.hpp"

#include <algorithm>
#include <cstddef>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace DNDS {

namespace {

/// At least a cache line: no two arrays share one.
constexpr std::size_t minimumAlignment = 64;

/// Allocations from here on consist of huge pages, where the system has them to give: first writes to fresh memory are
/// several times as fast, and views need fewer translations of addresses.
constexpr std::size_t fewestHugeBytes = std::size_t{4} << 20;
constexpr std::size_t hugePage = std::size_t{2} << 20;

class AlignedMemory final : public std::pmr::memory_resource {
    static std::align_val_t alignmentFor(std::size_t bytes, std::size_t alignment) {
        return std::align_val_t{std::max(alignment, bytes >= fewestHugeBytes ? hugePage : minimumAlignment)};
    }
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        void *const memory = ::operator new(bytes, alignmentFor(bytes, alignment));
#ifdef MADV_HUGEPAGE
        if (bytes >= fewestHugeBytes) // whole pages only; advice that is not taken costs nothing
            static_cast<void>(madvise(memory, bytes / hugePage * hugePage, MADV_HUGEPAGE));
#endif
        return memory;
    }
    void do_deallocate(void *pointer, std::size_t bytes, std::size_t alignment) override {
        ::operator delete(pointer, alignmentFor(bytes, alignment));
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }
};

} // namespace

const HostMemoryResource &defaultHostMemory() {
    // never destroyed: static arrays may release memory until the process ends
    static const auto *resource = new HostMemoryResource(std::make_shared<AlignedMemory>());
    return *resource;
}

} // namespace DNDS
