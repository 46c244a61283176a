/// @file SymmetricPointer.hpp
/// @brief A place that exists on every rank, at the same offset.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/OneSided/RemoteTable.hpp"

#include <cstddef>
#include <cstdint>

namespace DNDS {

namespace Detail {

/// Stands before each allocation in the heap of each rank; says what it was when it is checked.
struct HeapBlock {
    std::uint64_t serial = 0; ///< 0 after it was freed
    std::uint64_t begin = 0;  ///< offset of the allocation
    std::uint64_t bytes = 0;
};
inline constexpr std::size_t heapUnit = 128; ///< of allocations: two lines, as processors fetch them in pairs

/// What host and kernels know of a heap.
struct HeapTable : RemoteTable {
    const HeapTable *heap = nullptr; ///< the heap's own table on the host: tells heaps apart
    std::byte *own = nullptr;        ///< where this rank's memory begins, in the heap's space
    MemorySpace space = MemorySpace::Host;

    /// Of an access to `size` bytes at `offset` within the allocation that begins at `begin`. Reads the heap's memory.
    DNDS_HOST_DEVICE AccessFault checkBlock(const HeapTable *owner, int target, std::uint64_t offset,
                                            std::uint64_t begin, std::uint64_t serial, std::uint64_t size,
                                            std::uint64_t alignment) const {
        if (owner != heap)
            return AccessFault::Foreign;
        const auto &block = *reinterpret_cast<const HeapBlock *>(own + begin - heapUnit);
        return checkBlock(block, target, offset, serial, size, alignment);
    }
    DNDS_HOST_DEVICE AccessFault checkBlock(const HeapBlock &block, int target, std::uint64_t offset,
                                            std::uint64_t serial, std::uint64_t size, std::uint64_t alignment) const {
        if (target < 0 || target >= ranks)
            return AccessFault::Rank;
        if (block.serial != serial)
            return AccessFault::Freed;
        if (offset < block.begin || size > block.bytes || offset - block.begin > block.bytes - size)
            return AccessFault::Range;
        return offset % alignment != 0 ? AccessFault::Alignment : AccessFault::None;
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
    DNDS_HOST_DEVICE SymmetricPointer(const Detail::HeapTable *heap, std::uint64_t begin, std::uint64_t serial)
        : heap_(heap), offset_(begin), begin_(begin), serial_(serial) {}

    /// Whether it was made by a heap; true also after its memory was freed.
    explicit operator bool() const noexcept { return heap_ != nullptr; }

    /// Where this process reads and writes the object of `rank`; null where loads and stores do not reach it, which
    /// includes device memory. Local, O(1); checks nothing.
    T *at(int rank) const noexcept {
        if (heap_->space != MemorySpace::Host)
            return nullptr;
        std::byte *base = heap_->bases[rank];
        return base == nullptr ? nullptr : reinterpret_cast<T *>(base + offset_);
    }
    /// This rank's own object.
    T *local() const noexcept { return at(heap_->rank); }

    /// For heaps: which one; bytes from the start of a rank's memory to the object and to its allocation; and the
    /// serial number of the allocation.
    DNDS_HOST_DEVICE const Detail::HeapTable *heap() const noexcept { return heap_; }
    DNDS_HOST_DEVICE std::uint64_t offset() const noexcept { return offset_; }
    DNDS_HOST_DEVICE std::uint64_t begin() const noexcept { return begin_; }
    DNDS_HOST_DEVICE std::uint64_t serial() const noexcept { return serial_; }

    /// Arithmetic in objects, on all ranks alike. Local.
    DNDS_HOST_DEVICE SymmetricPointer &operator+=(std::ptrdiff_t n) noexcept {
        offset_ += static_cast<std::uint64_t>(n) * sizeof(T);
        return *this;
    }
    DNDS_HOST_DEVICE SymmetricPointer &operator-=(std::ptrdiff_t n) noexcept { return *this += -n; }
    DNDS_HOST_DEVICE friend SymmetricPointer operator+(SymmetricPointer p, std::ptrdiff_t n) noexcept { return p += n; }
    DNDS_HOST_DEVICE friend SymmetricPointer operator-(SymmetricPointer p, std::ptrdiff_t n) noexcept { return p -= n; }
    DNDS_HOST_DEVICE friend std::ptrdiff_t operator-(SymmetricPointer a, SymmetricPointer b) noexcept {
        return static_cast<std::ptrdiff_t>(a.offset_ - b.offset_) / static_cast<std::ptrdiff_t>(sizeof(T));
    }
    friend bool operator==(const SymmetricPointer &a, const SymmetricPointer &b) noexcept = default;

  private:
    const Detail::HeapTable *heap_ = nullptr;
    std::uint64_t offset_ = 0;
    std::uint64_t begin_ = 0; ///< of the allocation
    std::uint64_t serial_ = 0;
};

} // namespace DNDS
