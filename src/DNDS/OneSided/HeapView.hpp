/// @file HeapView.hpp
/// @brief A symmetric heap in kernels.
#pragma once

#include "DNDS/OneSided/SymmetricPointer.hpp"

#include <cstdint>

namespace DNDS {

/// What `putSignal` does to the signal's word.
enum class SignalOp : unsigned char { Set, Add };

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
/// Ranks are reached by loads and stores, and others through the proxy where there is one (docs/one_sided.md). A wrong
/// access, or one to a rank out of reach, is skipped, and the first of them is thrown by the next call of the heap on
/// the host. Operations that return something return 0 then.
///
/// Each thread completes and orders its own operations. Kernel and host must not both operate on the same memory
/// between two synchronisations of the stream.
class HeapView {
  public:
    HeapView() = default;
    /// For `SymmetricHeap::view`.
    explicit HeapView(const Detail::HeapTable &table) : table_(table) {}

    /// This rank, and the number of ranks.
    DNDS_HOST_DEVICE int rank() const { return table_.rank; }
    DNDS_HOST_DEVICE int ranks() const { return table_.ranks; }
    /// The memory that the heap lies in.
    DNDS_HOST_DEVICE MemorySpace space() const { return table_.space; }
    /// Polls of a wait; 0 where the view does not allow any.
    DNDS_HOST_DEVICE std::uint64_t patience() const { return table_.patience; }
    /// What this rank's kernels cannot change words of that rank's memory for; None where they can.
    DNDS_HOST_DEVICE AccessFault whyNoAtomics(int rank) const { return table_.whyNoAtomics(rank); }
    /// Whether kernels reach this rank, by loads and stores or through the proxy.
    DNDS_HOST_DEVICE bool reaches(int rank) const {
        return rank >= 0 && rank < table_.ranks && (table_.bases[rank] != nullptr || table_.proxy);
    }
    /// Where a kernel finds the object of `rank`; null where loads and stores do not reach it. Checks nothing.
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

    /// Copies `count` objects to another rank, or this lane's share of them. `from` may be changed afterwards; complete
    /// after `quiet`.
    template <class T>
    DNDS_HOST_DEVICE void put(SymmetricPointer<T> to, const T *from, index count, int rank, Lane lane = {}) const {
        placeOf(RemoteCall::Put, to, count, rank).put(0, from, bytesOf<T>(count), lane);
    }
    /// Copies `count` objects from another rank, or this lane's share of them; they are there when it returns.
    template <class T>
    DNDS_HOST_DEVICE void get(T *to, SymmetricPointer<T> from, index count, int rank, Lane lane = {}) const {
        placeOf(RemoteCall::Get, from, count, rank).get(0, to, bytesOf<T>(count), lane);
    }
    /// `putNbi` and `getNbi` promise less, as on the host; here they do the same as `put` and `get`.
    template <class T>
    DNDS_HOST_DEVICE void putNbi(SymmetricPointer<T> to, const T *from, index count, int rank, Lane lane = {}) const {
        put(to, from, count, rank, lane);
    }
    template <class T>
    DNDS_HOST_DEVICE void getNbi(T *to, SymmetricPointer<T> from, index count, int rank, Lane lane = {}) const {
        get(to, from, count, rank, lane);
    }
    /// One object; words of 2, 4 and 8 bytes are never torn.
    template <class T>
    DNDS_HOST_DEVICE void putValue(SymmetricPointer<T> to, const std::type_identity_t<T> &value, int rank) const {
        put(to, &value, 1, rank);
    }
    template <class T>
    DNDS_HOST_DEVICE T getValue(SymmetricPointer<T> from, int rank) const {
        T value{};
        get(&value, from, 1, rank);
        return value;
    }
    /// `to[k * toStride] = from[k * fromStride]` for k < count; strides are positive.
    template <class T>
    DNDS_HOST_DEVICE void putStrided(SymmetricPointer<T> to, index toStride, const T *from, index fromStride,
                                     index count, int rank, Lane lane = {}) const {
        const RemotePlace target = placeOf(RemoteCall::Put, to, spanOf(count, toStride), rank);
        for (index k = target ? lane.number : count; k < count; k += lane.count)
            target.put(bytesOf<T>(k * toStride), from + k * fromStride, sizeof(T));
    }
    template <class T>
    DNDS_HOST_DEVICE void getStrided(T *to, index toStride, SymmetricPointer<T> from, index fromStride, index count,
                                     int rank, Lane lane = {}) const {
        const RemotePlace source = placeOf(RemoteCall::Get, from, spanOf(count, fromStride), rank);
        for (index k = source ? lane.number : count; k < count; k += lane.count)
            source.get(bytesOf<T>(k * fromStride), to + k * toStride, sizeof(T));
    }

    /// Atomic operations on a word of 8 to 64 bits. `set` and `add` are complete after `quiet`; the others return what
    /// the word was, and are complete then.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetch(SymmetricPointer<T> word, int rank) const {
        return atomic(AtomicOp::Fetch, word, T{}, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void set(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        change(AtomicOp::Set, word, T{value}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void add(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        change(AtomicOp::Add, word, T{value}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetchAdd(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        return atomic(AtomicOp::Add, word, value, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T swap(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        return atomic(AtomicOp::Swap, word, value, T{}, rank);
    }
    /// Sets the word to `value` if it has the bits of `expected`; returns what it was, and is complete then.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T compareSwap(SymmetricPointer<T> word, std::type_identity_t<T> expected,
                                   std::type_identity_t<T> value, int rank) const {
        return atomic(AtomicOp::CompareSwap, word, value, expected, rank);
    }
    /// The word becomes its minimum, maximum, And or Or with `value`. Complete after `quiet`.
    template <AtomicWord T>
    DNDS_HOST_DEVICE void min(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        change(AtomicOp::Min, word, T{value}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void max(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        change(AtomicOp::Max, word, T{value}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void bitAnd(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        static_assert(std::is_integral_v<T>, "And and Or are for words that are integers");
        change(AtomicOp::And, word, T{value}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void bitOr(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        static_assert(std::is_integral_v<T>, "And and Or are for words that are integers");
        change(AtomicOp::Or, word, T{value}, rank);
    }
    /// Any of the above as a value; returns what the word was.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T atomic(AtomicOp op, SymmetricPointer<T> word, std::type_identity_t<T> operand,
                              std::type_identity_t<T> compare, int rank) const {
        if (!suits<T>(op)) {
            table_.faults->note(AccessFault::Real, RemoteCall::Atomic, rank, word.offset(), sizeof(T));
            return T{};
        }
        return placeOf(RemoteCall::Atomic, word, 1, rank, sizeof(T)).fetchAtomic(0, op, T{operand}, T{compare});
    }

    /// Puts, then changes the signal: by one thread. Where several put, let one call `signal` after their barrier.
    template <class T>
    DNDS_HOST_DEVICE void putSignal(SymmetricPointer<T> to, const T *from, index count,
                                    SymmetricPointer<std::uint64_t> word, std::uint64_t value, SignalOp op,
                                    int rank) const {
        put(to, from, count, rank);
        signal(word, value, op, rank);
    }
    /// Changes a word after everything that this thread did before, and threads before a barrier with it.
    DNDS_HOST_DEVICE void signal(SymmetricPointer<std::uint64_t> word, std::uint64_t value, SignalOp op,
                                 int rank) const {
        const RemoteCall call = op == SignalOp::Add ? RemoteCall::Atomic : RemoteCall::Signal;
        placeOf(call, word, 1, rank, sizeof(value)).signal(value, op == SignalOp::Add);
    }
    /// Whether this rank's word compares so now; if so, what was put before the signal is seen.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool test(SymmetricPointer<T> word, Comparison comparison, std::type_identity_t<T> value) const {
        return placeOf(RemoteCall::Wait, word, 1, table_.rank, sizeof(T)).holds(comparison, T{value});
    }
    /// Waits for that, by one thread of a kernel, whose view allows it (`KernelWaits::Yes`). Gives up after some
    /// seconds: false, and a fault.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(SymmetricPointer<T> word, Comparison comparison,
                                    std::type_identity_t<T> value) const {
        return placeOf(RemoteCall::Wait, word, 1, table_.rank, sizeof(T))
            .waitUntil(comparison, T{value}, table_.patience);
    }

    /// This thread's puts and atomic operations before it are seen before those after it.
    DNDS_HOST_DEVICE void fence() const { table_.fence(); }
    /// This thread's operations are seen by all.
    DNDS_HOST_DEVICE void quiet() const { table_.quiet(); }

  private:
    /// Objects from the first to the last of `count` at a stride; -1, which is no size, where numbers make no sense.
    DNDS_HOST_DEVICE static index spanOf(index count, index stride) {
        if (count <= 0 || stride <= 0)
            return count == 0 ? 0 : -1;
        return count - 1 < INT64_MAX / stride ? (count - 1) * stride + 1 : -1;
    }
    template <class T>
    DNDS_HOST_DEVICE static std::uint64_t bytesOf(index count) {
        return static_cast<std::uint64_t>(count) * sizeof(T);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void change(AtomicOp op, SymmetricPointer<T> word, T value, int rank) const {
        placeOf(RemoteCall::Atomic, word, 1, rank, sizeof(T)).atomic(0, op, value);
    }
    template <class T>
    DNDS_HOST_DEVICE RemotePlace placeOf(RemoteCall call, SymmetricPointer<T> pointer, index count, int rank,
                                         std::uint64_t alignment = 1) const {
        const bool counts = count >= 0 && count < INT64_MAX / static_cast<index>(sizeof(T));
        const std::uint64_t bytes = counts ? bytesOf<T>(count) : UINT64_MAX;
        const AccessFault fault = table_.checkBlock(pointer.heap(), rank, pointer.offset(), pointer.begin(),
                                                    pointer.serial(), bytes, alignment);
        return table_.placeOf(fault, call, rank, pointer.offset(), bytes);
    }

    Detail::HeapTable table_;
};

} // namespace DNDS
