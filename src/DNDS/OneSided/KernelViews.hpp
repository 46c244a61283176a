/// @file KernelViews.hpp
/// @brief One-sided operations in kernels.
///
/// - `HeapView`: a symmetric heap
/// - `WindowView`: a window
/// - `GhostWindowView`: the owners' rows of ghosts
#pragma once

#include "DNDS/OneSided/Verbs.hpp"

#include <cstdint>

namespace DNDS {

/// The operations of a `SymmetricHeap` in kernels, on the device and on the host: by one thread, or by several that
/// each copy a share (`Lane`). Trivially copyable; valid as long as the heap.
///
///     struct PutRim {                                    // HeapView by value; pointers of the heap's space
///         HeapView heap;
///         SymmetricPointer<double> halo;
///         const double *rim;
///         int neighbour;
///         DNDS_HOST_DEVICE void operator()(index k) const {
///             heap.putValue(halo + k, rim[k], neighbour);
///         }
///     };
///     parallelFor(Executor::device(stream), n, PutRim{heap.view(), halo, rim, next});
///     heap.barrier(stream);
///
/// Ranks are reached by loads and stores, and others through the proxy where there is one (docs/guides/one_sided.md). A
/// wrong access, or one to a rank out of reach, is skipped, and the first of them is thrown by the next call of the
/// heap on the host. Operations that return something return 0 then.
///
/// Each thread completes and orders its own operations. Kernel and host must not both operate on the same memory
/// between two synchronisations of the stream.
class HeapView : public HeapVerbs<HeapView, index> {
  public:
    HeapView() = default;
    /// For `SymmetricHeap::view`.
    explicit HeapView(const Detail::HeapTable &table) : table_(table) {}

    /// This rank, and the number of ranks.
    DNDS_HOST_DEVICE int rank() const { return table_.rank; }
    DNDS_HOST_DEVICE int ranks() const { return table_.ranks; }
    /// The memory that the heap lies in.
    DNDS_HOST_DEVICE MemorySpace space() const { return table_.space; }
    /// Whether kernels reach this rank, by loads and stores or through the proxy.
    DNDS_HOST_DEVICE bool reaches(int rank) const {
        return rank >= 0 && rank < table_.ranks && (table_.bases[rank] != nullptr || table_.proxy);
    }
    /// The object of `rank` as a kernel reaches it; null where loads and stores do not reach it. Checks nothing.
    template <class T>
    DNDS_HOST_DEVICE T *at(SymmetricPointer<T> pointer, int rank) const {
        std::byte *base = table_.bases[rank];
        return base == nullptr ? nullptr : reinterpret_cast<T *>(base + pointer.offset());
    }
    /// This rank's own object: `own` as in SymmetricHeap, `local` as in SymmetricPointer.
    template <class T>
    DNDS_HOST_DEVICE T *own(SymmetricPointer<T> pointer) const {
        return reinterpret_cast<T *>(table_.own + pointer.offset());
    }
    template <class T>
    DNDS_HOST_DEVICE T *local(SymmetricPointer<T> pointer) const {
        return own(pointer);
    }

    /// Waits, in one thread of a kernel, until the comparison holds for this rank's word; the view must allow it
    /// (`KernelWaits::Yes`). Puts before the signal are visible then. False, and a fault, after some seconds.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(SymmetricPointer<T> word, Comparison comparison,
                                    std::type_identity_t<T> value) const {
        // The word is this rank's own, so polling it costs no traffic between ranks.
        const auto mine = address(AccessFault::None, RemoteCall::Wait, word, sizeof(T), table_.rank, sizeof(T));
        return mine && table_.waitFor(RemoteCall::Wait, table_.rank, word.offset(), sizeof(T),
                                      [&] { return mine.holds(comparison, T{value}); });
    }
    /// This thread's earlier puts and atomic operations are seen before its later ones.
    DNDS_HOST_DEVICE void fence() const { table_.fence(); }
    /// Completes this thread's operations: all ranks see their effects.
    DNDS_HOST_DEVICE void quiet() const { table_.quiet(); }

  private:
    friend class HeapVerbs<HeapView, index>;

    template <class T>
    DNDS_HOST_DEVICE KernelRemoteAddress address(AccessFault fault, RemoteCall call, SymmetricPointer<T> pointer,
                                                 std::uint64_t bytes, int rank, std::uint64_t alignment) const {
        if (fault == AccessFault::None)
            fault = table_.check(pointer.place(), rank, bytes, alignment);
        return addressIn(table_, fault, call, rank, pointer.offset(), bytes);
    }

    /// A copy of the heap's, with the addresses that kernels reach.
    Detail::HeapTable table_;
};

/// The operations of a `Window` in kernels, each by one thread; put and get also by several (`Lane`). Locks of the host
/// count; one thread of a kernel may take locks if its view allows waiting. Trivially copyable.
///
/// A wrong access is skipped, and the next call of the window on the host throws the first one; operations with a
/// result return 0 then. Each thread completes its own operations; host and kernel do not access the same window
/// between two synchronisations.
class WindowView : public WindowVerbs<WindowView, index> {
  public:
    WindowView() = default;
    /// For `Window::view`: the data, and the memory followed by the window's own words.
    WindowView(const RemoteTable &data, const RemoteTable &words, MemorySpace space)
        : data_(data), words_(words), space_(space) {}

    /// This rank, and the number of ranks.
    DNDS_HOST_DEVICE int rank() const { return data_.rank; }
    DNDS_HOST_DEVICE int ranks() const { return data_.ranks; }
    /// The memory space of the window: kernels of that space may access it.
    DNDS_HOST_DEVICE MemorySpace residing() const { return space_; }
    /// This rank's memory.
    DNDS_HOST_DEVICE void *own() const { return data_.bases[data_.rank]; }
    /// A rank's memory; its base is null if loads and stores of this kernel do not reach it. For a rank that does not
    /// exist an empty result, and a fault.
    DNDS_HOST_DEVICE WindowShared sharedQuery(int rank) const {
        if (!isRight(data_.check(rank, 0, 0), RemoteCall::Get, rank))
            return {};
        return {data_.bytes[rank], unitOf(rank), data_.bases[rank]};
    }
    /// Loads of this thread see completed operations of others.
    DNDS_HOST_DEVICE void sync() const { Atomics::fenceSystem(); }
    /// Waits for a word that `test` accepts, by one thread of a kernel whose view allows it. False, and a fault, after
    /// some seconds.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(index at, Comparison comparison, T value) const {
        const auto mine = addressOf<T>(RemoteCall::Wait, 1, data_.rank, at, sizeof(T));
        return mine && words_.waitFor(RemoteCall::Wait, data_.rank, static_cast<std::uint64_t>(at) * unitOf(data_.rank),
                                      sizeof(T), [&] { return mine.holds(comparison, value); });
    }

  private:
    friend class WindowVerbs<WindowView, index>;

    /// One of the window's own words at this rank, at an offset from their start.
    template <class T>
    DNDS_HOST_DEVICE T *mine(std::uint64_t at) const {
        return reinterpret_cast<T *>(words_.bases[words_.rank] + words_.behind(words_.rank) + at);
    }
    DNDS_HOST_DEVICE std::uint64_t unitOf(int rank) const { return mine<std::uint64_t>(Units)[rank]; }
    DNDS_HOST_DEVICE std::uint32_t held(int rank) const { return mine<std::uint32_t>(heldAt(words_.ranks))[rank]; }
    DNDS_HOST_DEVICE void setHeld(int rank, std::uint32_t how) const {
        mine<std::uint32_t>(heldAt(words_.ranks))[rank] = how;
    }
    /// Threads of a kernel share their rank's locks.
    DNDS_HOST_DEVICE static constexpr bool isAlone(int /*rank*/) { return false; }
    DNDS_HOST_DEVICE bool isRight(AccessFault fault, RemoteCall call, int rank) const {
        if (fault != AccessFault::None)
            data_.faults->note(fault, call, rank, 0, 0);
        return fault == AccessFault::None;
    }
    DNDS_HOST_DEVICE AccessFault whyNoLocks(int rank) const {
        return words_.maxPolls == 0 ? AccessFault::TimedOut : words_.whyNoAtomics(rank);
    }
    DNDS_HOST_DEVICE KernelRemoteAddress lockOf(int rank) const {
        return addressIn(words_, AccessFault::None, RemoteCall::Atomic, rank, words_.behind(rank), lockBytes);
    }
    template <class Place, class Done>
    DNDS_HOST_DEVICE bool waitForLock(const Place & /*lock*/, int rank, const Done &done) const {
        return words_.waitFor(RemoteCall::Lock, rank, 0, 0, done);
    }
    DNDS_HOST_DEVICE void complete() const { data_.quiet(); }
    DNDS_HOST_DEVICE KernelRemoteAddress address(AccessFault fault, RemoteCall call, int rank, std::uint64_t offset,
                                                 std::uint64_t bytes, std::uint64_t alignment) const {
        if (fault == AccessFault::None)
            fault = data_.check(rank, offset, bytes, alignment);
        return addressIn(data_, fault, call, rank, offset, bytes);
    }

    /// The window's memory, and the memory that its own words follow: the same after `Window::allocate`.
    RemoteTable data_;
    RemoteTable words_;
    MemorySpace space_ = MemorySpace::Host;
};

namespace Detail {

/// Limit of the rows of a rank: their offsets in bytes fit 64 bits.
inline constexpr std::int64_t maxRows = std::int64_t{1} << 40;

/// Description of a window over rows, besides the memory.
struct GhostTable : RemoteTable {
    const GhostTarget *ghosts = nullptr;     ///< one per ghost
    const std::int64_t *firstRows = nullptr; ///< global, by rank, and the total
    std::int64_t ghostCount = 0;
    std::int64_t owned = 0;   ///< rows of this rank
    std::uint64_t stride = 0; ///< bytes from row to row, of all ranks
    std::int32_t width = 0;   ///< elements of a row

    /// The target of ghost `k`, local row `i` (owned rows, then ghosts) or a global row; rank -1 for numbers out of
    /// range, which operations refuse. O(1), global rows by bisection O(log(ranks)).
    DNDS_HOST_DEVICE GhostTarget ghost(index k) const {
        return k >= 0 && k < ghostCount ? ghosts[k] : GhostTarget{-1, k};
    }
    DNDS_HOST_DEVICE GhostTarget local(index i) const {
        return i >= owned ? ghost(i - owned) : i >= 0 ? GhostTarget{rank, i} : GhostTarget{-1, i};
    }
    /// Invariant of the bisection: firstRows[low] <= row < firstRows[high]. Ranks without rows have equal entries.
    DNDS_HOST_DEVICE GhostTarget global(index row) const {
        if (row < 0 || row >= firstRows[ranks])
            return {-1, row};
        int low = 0, high = ranks; // the last rank that begins at or before the row, and so has rows
        while (high - low > 1) {
            const int middle = low + (high - low) / 2;
            (firstRows[middle] <= row ? low : high) = middle;
        }
        return {low, row - firstRows[low]};
    }
    /// The offset of `count` elements from element `j` of a row; beyond all memory if the row lacks them.
    template <class T>
    DNDS_HOST_DEVICE std::uint64_t offsetOf(GhostTarget target, index j, index count) const {
        const bool sane = target.row >= 0 && target.row < maxRows && j >= 0 && count >= 0 && j <= width - count;
        return sane ? static_cast<std::uint64_t>(target.row) * stride + static_cast<std::uint64_t>(j) * sizeof(T)
                    : UINT64_MAX;
    }
};

} // namespace Detail

/// The operations of a `GhostWindow` in kernels, each by one thread. Trivially copyable; valid as long as the window.
///
///     struct Hook {
///         GhostWindowView<std::int64_t> labels;
///         DNDS_HOST_DEVICE void operator()(index cell) const {
///             labels.accumulate(labels.local(cell), 0, smallest, AtomicOp::Min);   // owned or ghost: the owner's row
///         }
///     };
///
/// A row that does not exist, or whose owner kernels do not reach, is skipped, and the next call of the window on the
/// host throws the first such fault; the operation returns 0.
template <class T>
class GhostWindowView : public GhostVerbs<GhostWindowView<T>, T> {
  public:
    GhostWindowView() = default;
    /// For `GhostWindow::view`.
    explicit GhostWindowView(const Detail::GhostTable &table) : table_(table) {}

    /// The number of ghosts, and of owned rows.
    DNDS_HOST_DEVICE index ghostSize() const { return table_.ghostCount; }
    DNDS_HOST_DEVICE index fatherSize() const { return table_.owned; }

    /// This thread's earlier puts and changes are seen, at each owner, before its later ones.
    DNDS_HOST_DEVICE void fence() const { table_.fence(); }
    /// Completes this thread's operations, at the owners, too.
    DNDS_HOST_DEVICE void quiet() const { table_.quiet(); }

  private:
    friend class GhostVerbs<GhostWindowView, T>;

    DNDS_HOST_DEVICE const Detail::GhostTable &table() const { return table_; }
    DNDS_HOST_DEVICE KernelRemoteAddress address(AccessFault fault, RemoteCall call, GhostTarget target, index j,
                                                 index count) const {
        const std::uint64_t offset = table_.template offsetOf<T>(target, j, count);
        const std::uint64_t bytes = static_cast<std::uint64_t>(count) * sizeof(T);
        if (fault == AccessFault::None)
            fault = table_.check(target.rank, offset, bytes, call == RemoteCall::Atomic ? sizeof(T) : 1);
        return addressIn(table_, fault, call, target.rank, offset, bytes);
    }

    /// A copy, with addresses that kernels reach.
    Detail::GhostTable table_;
};

} // namespace DNDS
