/// @file AlignedVector.hpp
/// @brief Vectors that start on a page, so that no contestant wins or loses by where the allocator put its
/// buffer.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace DNDS::Bench {

template <class T>
struct PageAllocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{4096};

    PageAllocator() = default;
    template <class U>
    PageAllocator(const PageAllocator<U> &) {}

    T *allocate(std::size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), alignment)); }
    void deallocate(T *memory, std::size_t) { ::operator delete(memory, alignment); }
    bool operator==(const PageAllocator &) const { return true; }
};

template <class T>
using AlignedVector = std::vector<T, PageAllocator<T>>;

} // namespace DNDS::Bench
