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
/// Ranks are reached by loads and stores only. A wrong access, or one to a rank out of reach, is skipped, and the first
/// of them is thrown by the next call of the heap on the host. Operations that return something return 0 then.
///
/// Each thread completes and orders its own operations. Kernel and host must not both operate on the same memory
/// between two synchronisations of the stream.
class HeapView {
  public:
    HeapView() = default;
    explicit HeapView(const Detail::HeapTable &table) : table_(table) {}

    DNDS_HOST_DEVICE int rank() const { return table_.rank; }
    DNDS_HOST_DEVICE int ranks() const { return table_.ranks; }
    /// Polls of a wait; 0 where the view does not allow any.
    std::uint64_t patience() const { return table_.patience; }
    /// Whether kernels reach this rank.
    DNDS_HOST_DEVICE bool reaches(int rank) const {
        return rank >= 0 && rank < table_.ranks && table_.bases[rank] != nullptr;
    }
    /// Where a kernel finds the object of `rank`; null where it does not. Checks nothing.
    template <class T>
    DNDS_HOST_DEVICE T *at(SymmetricPointer<T> pointer, int rank) const {
        std::byte *base = table_.bases[rank];
        return base == nullptr ? nullptr : reinterpret_cast<T *>(base + pointer.offset());
    }
    template <class T>
    DNDS_HOST_DEVICE T *local(SymmetricPointer<T> pointer) const {
        return reinterpret_cast<T *>(table_.own + pointer.offset());
    }

    template <class T>
    DNDS_HOST_DEVICE void put(SymmetricPointer<T> to, const T *from, index count, int rank, Lane lane = {}) const {
        if (std::byte *target = reach(RemoteCall::Put, to, count, rank))
            Detail::copyShare(target, reinterpret_cast<const std::byte *>(from), bytesOf<T>(count), lane);
    }
    template <class T>
    DNDS_HOST_DEVICE void get(T *to, SymmetricPointer<T> from, index count, int rank, Lane lane = {}) const {
        if (const std::byte *source = reach(RemoteCall::Get, from, count, rank))
            Detail::copyShare(reinterpret_cast<std::byte *>(to), source, bytesOf<T>(count), lane);
    }
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
        std::byte *target = reach(RemoteCall::Put, to, spanOf(count, toStride), rank);
        for (index k = target != nullptr ? lane.number : count; k < count; k += lane.count)
            Detail::copyShare(reinterpret_cast<std::byte *>(reinterpret_cast<T *>(target) + k * toStride),
                              reinterpret_cast<const std::byte *>(from + k * fromStride), sizeof(T), {});
    }
    template <class T>
    DNDS_HOST_DEVICE void getStrided(T *to, index toStride, SymmetricPointer<T> from, index fromStride, index count,
                                     int rank, Lane lane = {}) const {
        const std::byte *source = reach(RemoteCall::Get, from, spanOf(count, fromStride), rank);
        for (index k = source != nullptr ? lane.number : count; k < count; k += lane.count)
            Detail::copyShare(reinterpret_cast<std::byte *>(to + k * toStride),
                              reinterpret_cast<const std::byte *>(reinterpret_cast<const T *>(source) + k * fromStride),
                              sizeof(T), {});
    }

    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetch(SymmetricPointer<T> word, int rank) const {
        return atomic(AtomicOp::Fetch, word, T{}, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void set(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        atomic(AtomicOp::Set, word, value, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void add(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        atomic(AtomicOp::Add, word, value, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetchAdd(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        return atomic(AtomicOp::Add, word, value, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T swap(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        return atomic(AtomicOp::Swap, word, value, T{}, rank);
    }
    /// Sets the word to `value` if it has the bits of `expected`.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T compareSwap(SymmetricPointer<T> word, std::type_identity_t<T> expected,
                                   std::type_identity_t<T> value, int rank) const {
        return atomic(AtomicOp::CompareSwap, word, value, expected, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void min(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        atomic(AtomicOp::Min, word, value, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void max(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        atomic(AtomicOp::Max, word, value, T{}, rank);
    }
    template <AtomicWord T>
    requires std::is_integral_v<T> DNDS_HOST_DEVICE void bitAnd(SymmetricPointer<T> word, std::type_identity_t<T> value,
                                                                int rank) const {
        atomic(AtomicOp::And, word, value, T{}, rank);
    }
    template <AtomicWord T>
    requires std::is_integral_v<T> DNDS_HOST_DEVICE void bitOr(SymmetricPointer<T> word, std::type_identity_t<T> value,
                                                               int rank) const {
        atomic(AtomicOp::Or, word, value, T{}, rank);
    }
    /// Any of the above as a value; returns what the word was.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T atomic(AtomicOp op, SymmetricPointer<T> word, std::type_identity_t<T> operand,
                              std::type_identity_t<T> compare, int rank) const {
        std::byte *target = reach(RemoteCall::Atomic, word, 1, rank, sizeof(T));
        return target == nullptr ? T{} : Atomics::apply(reinterpret_cast<T *>(target), op, T{operand}, T{compare});
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
        std::byte *target = reach(RemoteCall::Signal, word, 1, rank, sizeof(value));
        if (target == nullptr)
            return;
        Atomics::fenceRelease();
        Atomics::apply(reinterpret_cast<std::uint64_t *>(target), op == SignalOp::Add ? AtomicOp::Add : AtomicOp::Set,
                       value);
    }
    /// Whether this rank's word compares so now; if so, what was put before the signal is seen.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool test(SymmetricPointer<T> word, Comparison comparison, std::type_identity_t<T> value) const {
        const std::byte *own = reach(RemoteCall::Wait, word, 1, table_.rank, sizeof(T));
        return own != nullptr && holds(loadOwn(reinterpret_cast<const T *>(own)), comparison, T{value});
    }
    /// Waits for that, by one thread of a kernel, whose view allows it (`KernelWaits::Yes`). Gives up after some
    /// seconds: false, and a fault.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(SymmetricPointer<T> word, Comparison comparison,
                                    std::type_identity_t<T> value) const {
        const auto *own = reinterpret_cast<const T *>(reach(RemoteCall::Wait, word, 1, table_.rank, sizeof(T)));
        if (own == nullptr)
            return false;
        for (std::uint64_t poll = 0;; ++poll) {
            if (holds(loadOwn(own), comparison, T{value}))
                return true;
            if (poll >= table_.patience)
                break;
            Detail::pauseInKernel();
        }
        table_.faults->note(AccessFault::Patience, RemoteCall::Wait, table_.rank, word.offset(), sizeof(T));
        return false;
    }

    /// This thread's puts and atomic operations before it are seen before those after it.
    DNDS_HOST_DEVICE void fence() const { Atomics::fenceRelease(); }
    /// This thread's operations are seen by all.
    DNDS_HOST_DEVICE void quiet() const { Atomics::fenceSystem(); }

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
    template <class T>
    DNDS_HOST_DEVICE static T loadOwn(const T *own) {
        return Atomics::valueOf<T>(Atomics::loadAcquire(reinterpret_cast<const Atomics::Bits<T> *>(own)));
    }
    template <class T>
    DNDS_HOST_DEVICE std::byte *reach(RemoteCall call, SymmetricPointer<T> pointer, index count, int rank,
                                      std::uint64_t alignment = 1) const {
        const bool counts = count >= 0 && count < INT64_MAX / static_cast<index>(sizeof(T));
        const std::uint64_t bytes = counts ? bytesOf<T>(count) : UINT64_MAX;
        AccessFault fault = table_.checkBlock(pointer.heap(), rank, pointer.offset(), pointer.begin(), pointer.serial(),
                                              bytes, alignment);
        if (fault == AccessFault::None && table_.bases[rank] == nullptr)
            fault = AccessFault::Unreachable;
        if (fault == AccessFault::None)
            return table_.bases[rank] + pointer.offset();
        table_.faults->note(fault, call, rank, pointer.offset(), bytes);
        return nullptr;
    }

    Detail::HeapTable table_;
};

} // namespace DNDS
