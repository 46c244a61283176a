/// @file SymmetricPointer.hpp
/// @brief A place that exists on every rank, at the same offset.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/OneSided/RemoteTable.hpp"

#include <cstddef>
#include <cstdint>

namespace DNDS {

namespace Detail {

/// Stands before each allocation in the heap of each rank; describes it for checks.
struct HeapBlock {
    std::uint64_t serial = 0; ///< 0 after it was freed
    std::uint64_t begin = 0;  ///< offset of the allocation
    std::uint64_t bytes = 0;
};
inline constexpr std::size_t heapUnit = 128; ///< for allocations: two lines, as processors fetch them in pairs

struct HeapTable;

/// The place of an object in an allocation, of any type.
struct HeapPlace {
    const HeapTable *heap = nullptr; ///< the heap that made it
    std::uint64_t offset = 0;        ///< bytes from the start of a rank's memory
    std::uint64_t begin = 0;         ///< the same, of the allocation
    std::uint64_t serial = 0;        ///< the allocation's

    friend bool operator==(const HeapPlace &, const HeapPlace &) = default;
};

/// The facts about a heap that host and kernels share.
struct HeapTable : RemoteTable {
    const HeapTable *heap = nullptr; ///< the heap's own table on the host: tells heaps apart
    std::byte *own = nullptr;        ///< the start of this rank's memory, in the heap's space
    MemorySpace space = MemorySpace::Host;

    /// Of an access to `size` bytes at `place`. Reads the heap's memory.
    DNDS_HOST_DEVICE AccessFault check(const HeapPlace &place, int target, std::uint64_t size,
                                       std::uint64_t alignment) const {
        if (place.heap != heap)
            return AccessFault::Foreign;
        // This rank's own copy of the description: all ranks have the same.
        const auto &block = *reinterpret_cast<const HeapBlock *>(own + place.begin - heapUnit);
        return checkIn(block, place, target, size, alignment);
    }
    /// The same within what is allocated there, of a place of this heap.
    DNDS_HOST_DEVICE AccessFault checkIn(const HeapBlock &block, const HeapPlace &place, int target, std::uint64_t size,
                                         std::uint64_t alignment) const {
        if (target < 0 || target >= ranks)
            return AccessFault::Rank;
        // Before the range: the description of freed memory says nothing about it.
        if (block.serial != place.serial)
            return AccessFault::Freed;
        if (place.offset < block.begin || size > block.bytes || place.offset - block.begin > block.bytes - size)
            return AccessFault::Range;
        return place.offset % alignment != 0 ? AccessFault::Alignment : AccessFault::None;
    }
};

} // namespace Detail

/// An object of an array in a `SymmetricHeap`: the same offset on every rank. Trivially copyable, for kernels too; the
/// heap must outlive it. Arithmetic may leave the allocation; using such a pointer is an error that operations notice.
template <class T>
class SymmetricPointer {
  public:
    SymmetricPointer() = default;
    /// For heaps.
    DNDS_HOST_DEVICE explicit SymmetricPointer(const Detail::HeapPlace &place) : place_(place) {}

    /// Whether it was made by a heap; true also after its memory was freed.
    explicit operator bool() const noexcept { return place_.heap != nullptr; }

    /// The address of the object of `rank` in this process; null where loads and stores do not reach it, which
    /// includes device memory. Local, O(1); checks nothing.
    T *at(int rank) const noexcept {
        if (place_.heap->space != MemorySpace::Host)
            return nullptr;
        std::byte *base = place_.heap->bases[rank];
        return base == nullptr ? nullptr : reinterpret_cast<T *>(base + offset());
    }
    /// This rank's own object.
    T *local() const noexcept { return at(place_.heap->rank); }

    /// For heaps: where it is; and bytes from the start of a rank's memory.
    DNDS_HOST_DEVICE const Detail::HeapPlace &place() const noexcept { return place_; }
    DNDS_HOST_DEVICE std::uint64_t offset() const noexcept { return place_.offset; }

    /// Arithmetic in objects, on all ranks alike. Local.
    DNDS_HOST_DEVICE SymmetricPointer &operator+=(std::ptrdiff_t n) noexcept {
        place_.offset += static_cast<std::uint64_t>(n) * sizeof(T);
        return *this;
    }
    DNDS_HOST_DEVICE SymmetricPointer &operator-=(std::ptrdiff_t n) noexcept { return *this += -n; }
    DNDS_HOST_DEVICE friend SymmetricPointer operator+(SymmetricPointer p, std::ptrdiff_t n) noexcept { return p += n; }
    DNDS_HOST_DEVICE friend SymmetricPointer operator-(SymmetricPointer p, std::ptrdiff_t n) noexcept { return p -= n; }
    DNDS_HOST_DEVICE friend std::ptrdiff_t operator-(SymmetricPointer a, SymmetricPointer b) noexcept {
        return static_cast<std::ptrdiff_t>(a.offset() - b.offset()) / static_cast<std::ptrdiff_t>(sizeof(T));
    }
    friend bool operator==(const SymmetricPointer &a, const SymmetricPointer &b) noexcept = default;

  private:
    Detail::HeapPlace place_;
};

} // namespace DNDS
