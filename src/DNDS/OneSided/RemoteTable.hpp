/// @file RemoteTable.hpp
/// @brief Addresses of other ranks' memory in kernels, and reports of wrong accesses.
///
/// - `RemoteTable`: where each rank's memory is
/// - `SymmetricPointer`: a place that exists on every rank, at the same offset
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/OneSided/ProxyView.hpp"

#include <cstddef>
#include <cstdint>
#include <thread>

namespace DNDS {

/// Fault of an access to another rank's memory.
enum class AccessFault : std::uint32_t {
    None,
    Rank,        ///< the rank does not exist
    Range,       ///< beyond the memory
    Freed,       ///< the memory was freed
    Foreign,     ///< a pointer of another heap, or null
    Alignment,   ///< a word at an address that is no multiple of its size
    Unreachable, ///< a kernel cannot reach this rank's memory by loads and stores
    NotLocked,   ///< the window is not locked for this rank
    Locked,      ///< this rank has locked it already
    NoAtomics,   ///< this rank's GPU cannot change a word of that rank's memory atomically
    Real,        ///< And or Or of numbers that are not integers
    Stride,      ///< a stride of 0 or less
    TimedOut,    ///< a wait in a kernel exceeded its limit
    Proxy        ///< the proxy could not carry it out
};

/// The call, for messages.
enum class RemoteCall : std::uint32_t { Put, Get, Atomic, Signal, Wait, Lock, Unlock, Flush };

/// Target of a fault for lack of any locked rank.
inline constexpr int anyRank = -1;

/// The call that contains an operation.
DNDS_HOST_DEVICE constexpr RemoteCall callOf(RemoteVerb verb) {
    return verb == RemoteVerb::Put                                  ? RemoteCall::Put
           : verb == RemoteVerb::Get                                ? RemoteCall::Get
           : verb == RemoteVerb::Signal                             ? RemoteCall::Signal
           : verb == RemoteVerb::Fence || verb == RemoteVerb::Quiet ? RemoteCall::Flush
                                                                    : RemoteCall::Atomic;
}

/// Name of a call in messages; never null.
const char *remoteCallName(RemoteCall call) noexcept;

/// An error of a kernel.
struct KernelFault {
    AccessFault fault = AccessFault::None;
    RemoteCall call = RemoteCall::Put;
    std::int32_t rank = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t others = 0; ///< faults since the first one
};

/// The first fault of kernels, in memory that kernels and the host share. Kernels cannot throw: they note the fault,
/// skip the access, and the next call on the host throws it. O(1) memory, however many threads fail.
///
/// No word is changed by both, since atomic operations of a GPU and of a host are not atomic together over PCIe:
/// kernels fill the record when `claimed_` equals `taken_`, and the host opens it again by `taken_`.
/// Single-writer rounds: a kernel may claim the record only while `claimed_` equals `taken_`, and only the host, after
/// reading it, makes them equal again.
class FaultRecord {
  public:
    /// Keeps the first fault, and counts the others. For kernels.
    DNDS_HOST_DEVICE void note(AccessFault what, RemoteCall where, int target, std::uint64_t at, std::uint64_t size) {
        // The first thread of a round wins the compare-and-swap and writes the record; the others only count.
        const std::uint32_t round = Atomics::loadAcquire(&taken_);
        if (Atomics::compareExchange<std::uint32_t>(&claimed_, round, round + 1) != round) {
            Atomics::fetchAdd<std::uint32_t>(&others_, 1);
            return;
        }
        first_.fault = what;
        first_.call = where;
        first_.rank = target;
        first_.offset = at;
        first_.bytes = size;
        Atomics::storeRelease(&written_, round + 1);
    }
    /// Whether there was a fault. For the host.
    bool noted() const noexcept { return Atomics::loadAcquire(&claimed_) != Atomics::loadAcquire(&taken_); }
    /// The number of faults that no `take` has returned, besides the one that is `noted`. For the host.
    std::uint32_t unreported() const noexcept {
        return Atomics::loadAcquire(&others_) - Atomics::loadAcquire(&reported_);
    }
    /// Returns and clears the first fault and the number of others; after `noted`. For the host.
    KernelFault take() noexcept {
        // The record is complete once `written_` has caught up with `claimed_`.
        std::uint32_t written = Atomics::loadAcquire(&written_);
        for (; written != Atomics::loadAcquire(&claimed_); written = Atomics::loadAcquire(&written_))
            std::this_thread::yield(); // a kernel is writing it
        KernelFault seen = first_;
        const std::uint32_t others = Atomics::loadAcquire(&others_);
        seen.others = others - Atomics::exchange(&reported_, others);
        Atomics::storeRelease(&taken_, written); // last: from now on kernels write the next record
        return seen;
    }

  private:
    std::uint32_t claimed_ = 0; ///< records that kernels have begun: taken_, or one more
    std::uint32_t written_ = 0; ///< records that are complete
    std::uint32_t others_ = 0;  ///< faults other than the first of their record
    /// Written by the kernel thread that has claimed the record, read by the host once it is complete.
    KernelFault first_;
    alignas(128) std::uint32_t taken_ = 0; ///< written by the host: records that it has read
    std::uint32_t reported_ = 0;           ///< written by the host: `others_` that it has read
};

/// The memory of all ranks as seen by kernels; trivially copyable. Offsets are bytes from the start of each rank's
/// memory.
struct RemoteTable {
    std::byte *const *bases = nullptr;    ///< indexed by rank; null where loads and stores do not reach it
    const std::uint64_t *bytes = nullptr; ///< indexed by rank
    FaultRecord *faults = nullptr;
    int rank = 0;
    int ranks = 0;
    const std::uint8_t *noAtomics = nullptr; ///< indexed by rank: 1 for words that must not be changed; null if all may
    ProxyView proxy{};                       ///< for ranks without a base; may be absent
    std::uint64_t maxPolls = 0;              ///< limit of polls in a kernel's wait; 0 if it must not wait

    /// The fault of an atomic operation of a kernel on a rank's memory.
    DNDS_HOST_DEVICE AccessFault whyNoAtomics(int target) const {
        if (noAtomics != nullptr && noAtomics[target] != 0)
            return AccessFault::NoAtomics; // the proxy would use the same device
        return bases[target] == nullptr && !proxy ? AccessFault::Unreachable : AccessFault::None;
    }
    /// The fault of an access to `size` bytes at `offset`; None if it is allowed.
    DNDS_HOST_DEVICE AccessFault check(int target, std::uint64_t offset, std::uint64_t size,
                                       std::uint64_t alignment = 1) const {
        if (target < 0 || target >= ranks)
            return AccessFault::Rank;
        // Written without sums, which could overflow.
        if (size > bytes[target] || offset > bytes[target] - size)
            return AccessFault::Range;
        // Memory of the program may begin anywhere; addresses in this process differ by whole pages.
        const auto place = (bases != nullptr ? reinterpret_cast<std::uintptr_t>(bases[target]) : 0) + offset;
        return place % alignment != 0 ? AccessFault::Alignment : AccessFault::None;
    }
    /// The offset of the library's words (locks of windows) after a rank's memory, in lines that the data do not share.
    DNDS_HOST_DEVICE std::uint64_t behind(int target) const { return (bytes[target] + 127) / 128 * 128; }
    /// Polls until `done()`, up to the limit: then false, and a fault. Bounded, as a kernel that waits for a failed
    /// rank cannot be stopped by the host.
    template <class Done>
    DNDS_HOST_DEVICE bool waitFor(RemoteCall call, int target, std::uint64_t offset, std::uint64_t size,
                                  const Done &done) const {
        for (std::uint64_t poll = 0; !done(); ++poll) {
            if (poll >= maxPolls) {
                faults->note(AccessFault::TimedOut, call, target, offset, size);
                return false;
            }
            Detail::pauseInKernel();
        }
        return true;
    }

    /// Operates through the proxy, if there is one; a failure is a fault.
    DNDS_HOST_DEVICE void operate(const RemoteOperation &operation, const void *from, void *to, Lane lane = {},
                                  Completion /*completion*/ = Completion::Now) const {
        if (proxy &&
            !proxy.operate(operation, static_cast<const std::byte *>(from), static_cast<std::byte *>(to), lane))
            faults->note(AccessFault::Proxy, callOf(operation.verb), operation.rank, operation.offset, operation.bytes);
    }
    /// This thread's earlier puts, signals and atomic operations are seen before its later ones.
    DNDS_HOST_DEVICE void fence() const {
        Atomics::fenceRelease();
        if (proxy && !proxy.fence())
            faults->note(AccessFault::Proxy, RemoteCall::Flush, rank, 0, 0);
    }
    /// Completes this thread's operations.
    DNDS_HOST_DEVICE void quiet() const {
        Atomics::fenceSystem();
        if (proxy && !proxy.quiet())
            faults->note(AccessFault::Proxy, RemoteCall::Flush, rank, 0, 0);
    }
};

namespace Detail {

/// The description of an allocation, in the unit before it, on each rank: checks of host memory and kernels read it in
/// O(1), without a table to keep on the device.
struct HeapBlock {
    std::uint64_t serial = 0; ///< unique on the communicator; 0 after it was freed
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

    /// The fault of an access to `size` bytes at `place`. Reads the description in the heap's own memory.
    DNDS_HOST_DEVICE AccessFault check(const HeapPlace &place, int target, std::uint64_t size,
                                       std::uint64_t alignment) const {
        if (place.heap != heap)
            return AccessFault::Foreign;
        // This rank's own copy of the description: all ranks have the same.
        const auto &block = *reinterpret_cast<const HeapBlock *>(own + place.begin - heapUnit);
        return checkIn(block, place, target, size, alignment);
    }
    /// The same by a description `block`, for a place of this heap.
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
