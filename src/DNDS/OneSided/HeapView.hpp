/// @file HeapView.hpp
/// @brief A symmetric heap in kernels.
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
    /// This rank's own object, by the name that heaps have for it and by that of pointers.
    template <class T>
    DNDS_HOST_DEVICE T *own(SymmetricPointer<T> pointer) const {
        return reinterpret_cast<T *>(table_.own + pointer.offset());
    }
    template <class T>
    DNDS_HOST_DEVICE T *local(SymmetricPointer<T> pointer) const {
        return own(pointer);
    }

    /// Waits until this rank's word compares so, by one thread of a kernel, whose view allows it (`KernelWaits::Yes`).
    /// Puts before the signal are seen then. False, and a fault, after some seconds.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(SymmetricPointer<T> word, Comparison comparison,
                                    std::type_identity_t<T> value) const {
        // The word is this rank's own, so polling it costs no traffic between ranks.
        const auto mine = address(AccessFault::None, RemoteCall::Wait, word, sizeof(T), table_.rank, sizeof(T));
        return mine && table_.waitFor(RemoteCall::Wait, table_.rank, word.offset(), sizeof(T),
                                      [&] { return mine.holds(comparison, T{value}); });
    }
    /// This thread's puts and atomic operations before it are seen before those after it.
    DNDS_HOST_DEVICE void fence() const { table_.fence(); }
    /// This thread's operations are seen by all.
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

} // namespace DNDS
