#include "DNDS/Base/HostMemory.hpp"

#include <algorithm>
#include <cstddef>
#include <new>

namespace DNDS {

namespace {

/// At least a cache line: no two arrays share one.
constexpr std::size_t minimumAlignment = 64;

class AlignedMemory final : public std::pmr::memory_resource {
    static std::align_val_t alignmentFor(std::size_t alignment) {
        return std::align_val_t{std::max(alignment, minimumAlignment)};
    }
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        return ::operator new(bytes, alignmentFor(alignment));
    }
    void do_deallocate(void *pointer, std::size_t /*bytes*/, std::size_t alignment) override {
        ::operator delete(pointer, alignmentFor(alignment));
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }
};

} // namespace

const HostMemoryResource &defaultHostMemory() {
    // never destroyed: static arrays may release memory until the process ends
    static const auto *resource = new HostMemoryResource(std::make_shared<AlignedMemory>());
    return *resource;
}

void *allocateData(std::pmr::memory_resource &source, std::size_t bytes, std::size_t alignment, std::string_view what) {
    // An exception of this type tells which data there was no room for; std::bad_alloc would not.
    try {
        // Called so, it does not promise the alignment to the compiler: memory of others that an array takes over
        // without copying is aligned for its elements only.
        const auto allocate = &std::pmr::memory_resource::allocate;
        return (source.*allocate)(bytes, alignment);
    } catch (const std::bad_alloc &error) {
        throw MemoryError(fmt::format("no room for {} bytes of {}: {}", bytes, what, error.what()));
    }
}

} // namespace DNDS
