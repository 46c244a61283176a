/// @file Verbs.hpp
/// @brief Operations on memory of other ranks, written once: for heaps and windows, on the host and in kernels.
///
/// `RemoteAddress` is memory of a rank and how it is reached. The classes after it are bases of heaps and windows and
/// of their views, which check an access and find its address (`address`), and add what only the host or a kernel does.
#pragma once

#include "DNDS/OneSided/RemoteTable.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace DNDS {

/// Memory of a rank for an access that was checked: at an address, where loads and stores reach it, and otherwise by
/// `Backend::operate` (RemoteTable in kernels, RemoteMemory on the host). Empty after a wrong access: then operations
/// do nothing. `at` is in bytes from the beginning of the access. Valid as long as the backend. Local.
template <class Backend>
class RemoteAddress {
  public:
    RemoteAddress() = default;
    /// `address` may be null.
    DNDS_HOST_DEVICE RemoteAddress(std::byte *address, Backend *backend, int rank, std::uint64_t offset)
        : address_(address), backend_(backend), rank_(rank), offset_(offset) {}

    /// Whether it is not empty.
    DNDS_HOST_DEVICE explicit operator bool() const { return backend_ != nullptr; }

    /// Copies `bytes` bytes there, or this lane's share.
    DNDS_HOST_DEVICE void put(std::uint64_t at, const void *from, std::uint64_t bytes, Lane lane = {},
                              Completion completion = Completion::Now) const {
        if (address_ != nullptr) [[likely]]
            Detail::copyShare(address_ + at, static_cast<const std::byte *>(from), bytes, lane);
        else if (backend_ != nullptr && bytes > 0)
            backend_->operate({RemoteVerb::Put, rank_, offset_ + at, bytes}, from, nullptr, lane, completion);
    }
    /// Copies `bytes` bytes from there to `to`, or this lane's share.
    DNDS_HOST_DEVICE void get(std::uint64_t at, void *to, std::uint64_t bytes, Lane lane = {},
                              Completion completion = Completion::Now) const {
        if (address_ != nullptr) [[likely]]
            Detail::copyShare(static_cast<std::byte *>(to), address_ + at, bytes, lane);
        else if (backend_ != nullptr && bytes > 0)
            backend_->operate({RemoteVerb::Get, rank_, offset_ + at, bytes}, nullptr, to, lane, completion);
    }
    /// Changes `count` words, each atomically, with its operand from `operands` (null if `op` takes none). Previous
    /// values go to `before`, if not null; then the changes are complete on return, otherwise at `quiet`. `alone`: no
    /// other thread or rank changes the words meanwhile, so that loads and stores do.
    template <AtomicWord T>
    DNDS_HOST_DEVICE void words(std::uint64_t at, AtomicOp op, const T *operands, T *before, index count,
                                T compare = T{}, [[maybe_unused]] bool alone = false) const {
        if (address_ != nullptr) [[likely]] {
            T *const words = reinterpret_cast<T *>(address_ + at);
#if !defined(__CUDA_ARCH__)
            if (alone && operands != nullptr) [[unlikely]]
                return Atomics::changeAlone(words, op, operands, before, count);
#endif
            Atomics::applyEach(words, op, operands, before, count, compare);
        } else if (backend_ != nullptr && count > 0) {
            backend_->operate({before != nullptr ? RemoteVerb::FetchAtomic : RemoteVerb::Atomic, rank_, offset_ + at,
                               static_cast<std::uint64_t>(count) * sizeof(T), Atomics::request(op, T{}, compare)},
                              operands, before);
        }
    }
    /// The value of one word before, or 0 for an empty address.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetchAtomic(std::uint64_t at, AtomicOp op, T operand, T compare = T{}) const {
        T before{};
        words(at, op, &operand, &before, 1, compare);
        return before;
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void atomic(std::uint64_t at, AtomicOp op, T operand) const {
        words<T>(at, op, &operand, nullptr, 1);
    }
    /// Sets or adds to the first word, after all earlier operations on this rank's memory.
    DNDS_HOST_DEVICE void signal(std::uint64_t value, bool add) const {
        const AtomicOp op = add ? AtomicOp::Add : AtomicOp::Set;
        if (address_ != nullptr) [[likely]] {
            Atomics::fenceRelease();
            Atomics::apply(reinterpret_cast<std::uint64_t *>(address_), op, value);
        } else if (backend_ != nullptr) {
            backend_->operate({RemoteVerb::Signal, rank_, offset_, sizeof(value), Atomics::request(op, value)}, &value,
                              nullptr);
        }
    }
    /// Whether the comparison holds for the first word now; if so, puts that were complete before it was set are
    /// visible.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool holds(Comparison comparison, T value) const {
        return *this && DNDS::holds(fetchAtomic(0, AtomicOp::Fetch, T{}), comparison, value);
    }

  private:
    /// Null where loads and stores do not reach the memory. An empty address has no backend.
    std::byte *address_ = nullptr;
    Backend *backend_ = nullptr;
    std::int32_t rank_ = 0;
    std::uint64_t offset_ = 0;
};

/// The address of a kernel's access; empty where `fault`, or a rank out of reach, was noted.
using KernelRemoteAddress = RemoteAddress<const RemoteTable>;
DNDS_HOST_DEVICE inline KernelRemoteAddress addressIn(const RemoteTable &table, AccessFault fault, RemoteCall call,
                                                      int rank, std::uint64_t offset, std::uint64_t bytes) {
    std::byte *const base = fault == AccessFault::None ? table.bases[rank] : nullptr;
    if (fault == AccessFault::None && call == RemoteCall::Atomic)
        fault = table.whyNoAtomics(rank);
    else if (fault == AccessFault::None && base == nullptr && !table.proxy)
        fault = AccessFault::Unreachable;
    if (fault == AccessFault::None) [[likely]]
        return {base == nullptr ? nullptr : base + offset, &table, rank, offset};
    table.faults->note(fault, call, rank, offset, bytes);
    return {};
}

namespace Detail {

/// The bytes of `count` objects; if that is negative or overflows, more than any memory has, so that checks refuse it.
template <class T, class Count>
DNDS_HOST_DEVICE std::uint64_t bytesOf(Count count) {
    const auto objects = static_cast<std::uint64_t>(count);
    return objects > PTRDIFF_MAX / sizeof(T) ? UINT64_MAX : objects * sizeof(T);
}
template <AtomicWord T>
DNDS_HOST_DEVICE constexpr AccessFault whyNot(AtomicOp op) {
    return supports<T>(op) ? AccessFault::None : AccessFault::Real;
}

} // namespace Detail

/// Change of a signal's word by `putSignal`.
enum class SignalOp : unsigned char { Set, Add };

/// Operations of heaps and their views, which count in `Count`. All are Local.
template <class Self, class Count>
class HeapVerbs {
  public:
    /// Copies `count` objects to another rank, or this lane's share of them. `from` may be changed afterwards; complete
    /// after `quiet`.
    template <class T>
    DNDS_HOST_DEVICE void put(SymmetricPointer<T> to, const T *from, Count count, int rank, Lane lane = {}) const {
        addressOf(RemoteCall::Put, to, count, rank).put(0, from, bytesOf<T>(count), lane);
    }
    /// Copies `count` objects from another rank, or this lane's share of them; they are there when it returns.
    template <class T>
    DNDS_HOST_DEVICE void get(T *to, SymmetricPointer<T> from, Count count, int rank, Lane lane = {}) const {
        addressOf(RemoteCall::Get, from, count, rank).get(0, to, bytesOf<T>(count), lane);
    }
    /// The same without waiting: until `quiet`, `from` must not change, and fetched objects are undefined.
    template <class T>
    DNDS_HOST_DEVICE void putNbi(SymmetricPointer<T> to, const T *from, Count count, int rank, Lane lane = {}) const {
        addressOf(RemoteCall::Put, to, count, rank).put(0, from, bytesOf<T>(count), lane, Completion::AtQuiet);
    }
    template <class T>
    DNDS_HOST_DEVICE void getNbi(T *to, SymmetricPointer<T> from, Count count, int rank, Lane lane = {}) const {
        addressOf(RemoteCall::Get, from, count, rank).get(0, to, bytesOf<T>(count), lane, Completion::AtQuiet);
    }
    /// One object; words of 2, 4 and 8 bytes are never torn, but no order is promised: use signals for flags.
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
    /// `to[k * toStride] = from[k * fromStride]` for k < count. Strides are positive, in objects. Off the node each
    /// object is a message: for few, or on one node.
    template <class T>
    DNDS_HOST_DEVICE void putStrided(SymmetricPointer<T> to, Count toStride, const T *from, Count fromStride,
                                     Count count, int rank, Lane lane = {}) const {
        const auto target =
            addressOf(RemoteCall::Put, to, spanOf(count, toStride), rank, 1, whyNot(toStride, fromStride));
        const auto next = static_cast<Count>(lane.count);
        for (auto k = static_cast<Count>(lane.number); target && k < count; k += next) // the last one completes all
            target.put(bytesOf<T>(k * toStride), from + k * fromStride, sizeof(T), {},
                       k + next < count ? Completion::AtQuiet : Completion::Now);
    }
    template <class T>
    DNDS_HOST_DEVICE void getStrided(T *to, Count toStride, SymmetricPointer<T> from, Count fromStride, Count count,
                                     int rank, Lane lane = {}) const {
        const auto source =
            addressOf(RemoteCall::Get, from, spanOf(count, fromStride), rank, 1, whyNot(toStride, fromStride));
        const auto next = static_cast<Count>(lane.count);
        for (auto k = static_cast<Count>(lane.number); source && k < count; k += next)
            source.get(bytesOf<T>(k * fromStride), to + k * toStride, sizeof(T), {},
                       k + next < count ? Completion::AtQuiet : Completion::Now);
    }

    /// Atomic operations on a word of 8 to 64 bits. Functions without a result are complete after `quiet`; the others
    /// return the word's previous value, and are complete on return.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetch(SymmetricPointer<T> word, int rank) const {
        return atomic(AtomicOp::Fetch, word, T{}, T{}, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void set(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        change(AtomicOp::Set, word, value, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void add(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        change(AtomicOp::Add, word, value, rank);
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
        change(AtomicOp::Min, word, value, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void max(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        change(AtomicOp::Max, word, value, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void bitAnd(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        static_assert(std::is_integral_v<T>, "And and Or are for words that are integers");
        change(AtomicOp::And, word, value, rank);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void bitOr(SymmetricPointer<T> word, std::type_identity_t<T> value, int rank) const {
        static_assert(std::is_integral_v<T>, "And and Or are for words that are integers");
        change(AtomicOp::Or, word, value, rank);
    }
    /// Any of the above, with the operation as an argument; with Completion::AtQuiet the result is meaningless.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T atomic(AtomicOp op, SymmetricPointer<T> word, std::type_identity_t<T> operand,
                              std::type_identity_t<T> compare, int rank,
                              Completion completion = Completion::Now) const {
        T before{};
        addressOf(RemoteCall::Atomic, word, 1, rank, sizeof(T), Detail::whyNot<T>(op))
            .words(0, op, &operand, completion == Completion::Now ? &before : nullptr, 1, compare);
        return before;
    }

    /// Puts, then changes the signal word: a rank that sees its new value sees the objects, and everything that an
    /// earlier fence has ordered before. By one thread of a kernel; if several put, let one of them call `signal` after
    /// their barrier.
    template <class T>
    DNDS_HOST_DEVICE void putSignal(SymmetricPointer<T> to, const T *from, Count count,
                                    SymmetricPointer<std::uint64_t> word, std::uint64_t value, SignalOp op,
                                    int rank) const {
        const auto target = signalOf(word, op, rank);
        put(to, from, count, rank);
        target.signal(value, op == SignalOp::Add);
    }
    /// Changes a signal word after all earlier operations of this thread, and of threads that met it in a barrier.
    DNDS_HOST_DEVICE void signal(SymmetricPointer<std::uint64_t> word, std::uint64_t value, SignalOp op,
                                 int rank) const {
        signalOf(word, op, rank).signal(value, op == SignalOp::Add);
    }
    /// Whether this rank's word compares so now; if so, what was put before the signal is seen. On the host, serves
    /// other ranks.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool test(SymmetricPointer<T> word, Comparison comparison, std::type_identity_t<T> value) const {
        return addressOf(RemoteCall::Wait, word, 1, self().rank(), sizeof(T)).holds(comparison, T{value});
    }

  private:
    DNDS_HOST_DEVICE const Self &self() const { return static_cast<const Self &>(*this); }
    template <class T>
    DNDS_HOST_DEVICE static std::uint64_t bytesOf(Count count) {
        return Detail::bytesOf<T>(count);
    }
    /// Objects from the first to the last of `count` at a stride.
    DNDS_HOST_DEVICE static Count spanOf(Count count, Count stride) {
        constexpr std::uint64_t most = PTRDIFF_MAX;
        const auto n = static_cast<std::uint64_t>(count), step = static_cast<std::uint64_t>(stride);
        return static_cast<Count>(n == 0 ? 0 : step == 0 || n > most / step ? most : (n - 1) * step + 1);
    }
    DNDS_HOST_DEVICE static AccessFault whyNot(Count toStride, Count fromStride) {
        return toStride > 0 && fromStride > 0 ? AccessFault::None : AccessFault::Stride;
    }
    template <class T>
    DNDS_HOST_DEVICE auto addressOf(RemoteCall call, SymmetricPointer<T> pointer, Count count, int rank,
                                    std::uint64_t alignment = 1, AccessFault fault = AccessFault::None) const {
        return self().address(fault, call, pointer, bytesOf<T>(count), rank, alignment);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void change(AtomicOp op, SymmetricPointer<T> word, T value, int rank) const {
        addressOf(RemoteCall::Atomic, word, 1, rank, sizeof(T), Detail::whyNot<T>(op)).atomic(0, op, value);
    }
    /// A signal that is set needs no atomic read-modify-write, so that GPUs without atomics on a peer's memory can send
    /// it.
    DNDS_HOST_DEVICE auto signalOf(SymmetricPointer<std::uint64_t> word, SignalOp op, int rank) const {
        return addressOf(op == SignalOp::Add ? RemoteCall::Atomic : RemoteCall::Signal, word, 1, rank,
                         sizeof(std::uint64_t));
    }
};

/// The lock types of MPI_Win_lock.
enum class LockType : std::uint32_t { Shared = 1, Exclusive = 2 };

/// Change of each element by accumulate and the like. Replace and NoOp make getAccumulate a swap and an atomic load.
enum class AccumulateOp : unsigned char { Sum, Min, Max, BitAnd, BitOr, Replace, NoOp };

/// A rank's memory in a window, as MPI_Win_shared_query.
struct WindowShared {
    std::size_t bytes = 0;
    std::size_t displacementUnit = 0;
    void *base = nullptr; ///< null where loads and stores do not reach it
};

/// The atomic operation on one element; Fetch for NoOp.
DNDS_HOST_DEVICE constexpr AtomicOp atomicOpOf(AccumulateOp op) {
    constexpr AtomicOp operations[] = {AtomicOp::Add, AtomicOp::Min,  AtomicOp::Max,  AtomicOp::And, // in the order of
                                       AtomicOp::Or,  AtomicOp::Swap, AtomicOp::Fetch};              // AccumulateOp
    return operations[static_cast<int>(op)];
}

/// Operations of windows and their views, on `count` elements from displacement `at` of the target. All are Local.
/// Without a lock of the target the host throws StateError, and kernels note a fault.
template <class Self, class Count>
class WindowVerbs {
  public:
    /// Copies elements to the target, or this lane's share of them. Complete after `flush` or `unlock`.
    template <class T>
    DNDS_HOST_DEVICE void put(const T *origin, Count count, int rank, Count at, Lane lane = {}) const {
        addressOf<T>(RemoteCall::Put, count, rank, at).put(0, origin, Detail::bytesOf<T>(count), lane);
    }
    /// Copies elements from the target, on the host after this rank's own puts there; they are in `origin` when it
    /// returns.
    template <class T>
    DNDS_HOST_DEVICE void get(T *origin, Count count, int rank, Count at, Lane lane = {}) const {
        addressOf<T>(RemoteCall::Get, count, rank, at).get(0, origin, Detail::bytesOf<T>(count), lane);
    }
    /// Changes elements of the target, each atomically, by those at `origin`. Complete after `flush` or `unlock`.
    template <AtomicWord T>
    DNDS_HOST_DEVICE void accumulate(const T *origin, Count count, int rank, Count at, AccumulateOp op) const {
        const auto target = addressOf<T>(RemoteCall::Atomic, count, rank, at, sizeof(T), atomicOpOf(op));
        if (op != AccumulateOp::NoOp)
            target.words(0, atomicOpOf(op), origin, static_cast<T *>(nullptr), static_cast<index>(count), T{},
                         self().isAlone(rank));
    }
    /// The same; previous values of the elements go to `result`.
    template <AtomicWord T>
    DNDS_HOST_DEVICE void getAccumulate(const T *origin, T *result, Count count, int rank, Count at,
                                        AccumulateOp op) const {
        addressOf<T>(RemoteCall::Atomic, count, rank, at, sizeof(T), atomicOpOf(op))
            .words(0, atomicOpOf(op), op == AccumulateOp::NoOp ? nullptr : origin, result, static_cast<index>(count),
                   T{}, self().isAlone(rank));
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetchAndOp(T origin, int rank, Count at, AccumulateOp op) const {
        T result{};
        getAccumulate(&origin, &result, 1, rank, at, op);
        return result;
    }
    /// Sets the element to `origin` if it has the bits of `compare`; returns its value before.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T compareAndSwap(T origin, T compare, int rank, Count at) const {
        return addressOf<T>(RemoteCall::Atomic, 1, rank, at, sizeof(T))
            .fetchAtomic(0, AtomicOp::CompareSwap, origin, compare);
    }

    /// Waits until this rank may access `rank`'s memory. Ranks that hold several locks take them in one order, or they
    /// may wait for each other. One atomic operation, then polls of one word. In kernels by one thread, whose view
    /// allows it; false and a fault if that takes too long.
    /// First come, first served: a writer waits for all earlier tickets, a reader for earlier writers only, and neither
    /// can starve.
    DNDS_HOST_DEVICE bool lock(LockType type, int rank) const {
        if (!self().isRight(whyNoLock(rank), RemoteCall::Lock, rank))
            return false;
        const auto words = self().lockOf(rank);
        const bool reads = type == LockType::Shared;
        // Invariants: `MayRead` counts the tickets that no longer keep readers out, `MayWrite` the tickets that
        // have been released. A ticket is served when the count has come to it: each rank is served in the order of
        // its ticket.
        const auto ticket = words.fetchAtomic(Next, AtomicOp::Add, std::uint64_t{1});
        const auto served = [&] {
            return words.fetchAtomic(reads ? MayRead : MayWrite, AtomicOp::Fetch, std::uint64_t{0}) == ticket;
        };
        // A ticket cannot be returned: an abandoned one blocks all later ones. The fault or error of this wait revokes
        // the communicator, and `recover` resets the words.
        if (!self().waitForLock(words, rank, served))
            return false;
        if (reads) // lets the next reader in
            words.atomic(MayRead, AtomicOp::Add, std::uint64_t{1});
        else
            words.atomic(Holder, AtomicOp::Set, static_cast<std::uint64_t>(self().rank()) + 1);
        self().setHeld(rank, static_cast<std::uint32_t>(type));
        self().sync();
        return true;
    }
    /// Completes the operations on that memory (in kernels this thread's), then releases the lock.
    DNDS_HOST_DEVICE void unlock(int rank) const {
        if (!isLocked(RemoteCall::Unlock, rank))
            return;
        self().complete();
        release(rank);
    }
    /// Takes shared locks of all ranks, or none if one is not allowed or, in kernels, takes too long. O(ranks).
    DNDS_HOST_DEVICE bool lockAll() const {
        for (int rank = 0; rank < self().ranks(); ++rank)
            if (!self().isRight(whyNoLock(rank), RemoteCall::Lock, rank))
                return false;
        // Ascending on all ranks: locks taken in one order cannot wait for each other in a circle.
        for (int rank = 0; rank < self().ranks(); ++rank)
            if (!lock(LockType::Shared, rank)) {
                while (rank-- > 0)
                    release(rank);
                return false;
            }
        return true;
    }
    /// Releases the locks of all ranks, or none if one is not locked. O(ranks).
    DNDS_HOST_DEVICE void unlockAll() const {
        for (int rank = 0; rank < self().ranks(); ++rank)
            if (!isLocked(RemoteCall::Unlock, rank))
                return;
        self().complete();
        for (int rank = 0; rank < self().ranks(); ++rank)
            release(rank);
    }
    /// Completes all operations on that rank's memory, at both ends.
    DNDS_HOST_DEVICE void flush(int rank) const {
        if (isLocked(RemoteCall::Flush, rank))
            self().complete();
    }
    /// The same for all ranks; at least one must be locked.
    DNDS_HOST_DEVICE void flushAll() const {
        if (isAnyLocked())
            self().complete();
    }
    /// Check the lock and do nothing else: origins may be reused as soon as put and accumulate return.
    DNDS_HOST_DEVICE void flushLocal(int rank) const { isLocked(RemoteCall::Flush, rank); }
    DNDS_HOST_DEVICE void flushLocalAll() const { isAnyLocked(); }
    /// Whether the comparison holds now for the word of type `T` at this rank's displacement `at`; if so, operations
    /// that were complete before it was set are visible. Needs no lock. On the host, serves other ranks.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool test(Count at, Comparison comparison, T value) const {
        const bool so = addressOf<T>(RemoteCall::Wait, 1, self().rank(), at, sizeof(T)).holds(comparison, value);
        if (so)
            self().sync();
        return so;
    }

  protected:
    /// Offsets of a window's own words, after a rank's memory. First a fair lock for readers and writers: each draws a
    /// ticket and is served in order; readers that follow each other are served together (after John Mellor-Crummey and
    /// Michael Scott, and the lock of Open MPI's shared memory windows). Then, for the rank's kernels, the displacement
    /// units of all ranks and the rank's locks of them.
    enum Word : std::uint64_t { Next = 0, MayRead = 8, MayWrite = 16, Holder = 24, lockBytes = 32, Units = 128 };
    DNDS_HOST_DEVICE static std::uint64_t heldAt(int ranks) {
        return Units + static_cast<std::uint64_t>(ranks) * sizeof(std::uint64_t);
    }
    DNDS_HOST_DEVICE static std::uint64_t wordBytes(int ranks) {
        return heldAt(ranks) + static_cast<std::uint64_t>(ranks) * sizeof(std::uint32_t);
    }
    /// The address of an access. A Wait needs no lock.
    template <class T>
    DNDS_HOST_DEVICE auto addressOf(RemoteCall call, Count count, int rank, Count at, std::uint64_t alignment = 1,
                                    AtomicOp op = AtomicOp::Fetch) const {
        AccessFault fault = call == RemoteCall::Wait ? AccessFault::None : whyNoAccess(rank);
        const std::uint64_t unit = fault == AccessFault::Rank ? 1 : self().unitOf(rank);
        // Saturated, so that an overflow is refused as out of range.
        const auto displacement = static_cast<std::uint64_t>(at);
        const std::uint64_t offset = displacement > UINT64_MAX / unit ? UINT64_MAX : displacement * unit;
        if constexpr (AtomicWord<T>)
            fault = fault == AccessFault::None ? Detail::whyNot<T>(op) : fault;
        return self().address(fault, call, rank, offset, Detail::bytesOf<T>(count), alignment);
    }

  private:
    DNDS_HOST_DEVICE const Self &self() const { return static_cast<const Self &>(*this); }
    DNDS_HOST_DEVICE AccessFault whyNoAccess(int rank) const {
        return rank < 0 || rank >= self().ranks() ? AccessFault::Rank
               : self().held(rank) == 0           ? AccessFault::NotLocked
                                                  : AccessFault::None;
    }
    /// A lock is wrong if this rank has one already; then come the reasons of the caller, such as a kernel that
    /// must not wait.
    DNDS_HOST_DEVICE AccessFault whyNoLock(int rank) const {
        const AccessFault fault = whyNoAccess(rank);
        return fault == AccessFault::None        ? AccessFault::Locked
               : fault == AccessFault::NotLocked ? self().whyNoLocks(rank)
                                                 : fault;
    }
    DNDS_HOST_DEVICE bool isLocked(RemoteCall call, int rank) const {
        return self().isRight(whyNoAccess(rank), call, rank);
    }
    DNDS_HOST_DEVICE bool isAnyLocked() const {
        bool any = false;
        for (int rank = 0; rank < self().ranks() && !any; ++rank)
            any = self().held(rank) != 0;
        return self().isRight(any ? AccessFault::None : AccessFault::NotLocked, RemoteCall::Flush, anyRank);
    }
    /// Passes the lock on, after the operations are complete. The holder is cleared before the next one can set it.
    /// Changes three words for a writer, one for a reader, which has let the next reader in when it got the lock.
    DNDS_HOST_DEVICE void release(int rank) const {
        const auto type = static_cast<LockType>(self().held(rank));
        self().setHeld(rank, 0);
        const auto words = self().lockOf(rank);
        if (type == LockType::Exclusive) {
            words.atomic(Holder, AtomicOp::Set, std::uint64_t{0});
            Atomics::fenceRelease(); // other ways keep the order
            words.atomic(MayRead, AtomicOp::Add, std::uint64_t{1});
        }
        words.atomic(MayWrite, AtomicOp::Add, std::uint64_t{1});
    }
};

/// A row at its owner. `rank` is -1 if no row has the number that was asked for.
struct GhostTarget {
    std::int32_t rank = -1;
    std::int64_t row = 0; ///< among the owner's rows
};

/// Operations of windows over rows and their views. All are Local.
template <class Self, class T>
class GhostVerbs {
  public:
    /// The owner's row of ghost `k`; of a local row, owned or ghost; of a global row (O(log ranks)).
    DNDS_HOST_DEVICE GhostTarget ghost(index k) const { return self().table().ghost(k); }
    DNDS_HOST_DEVICE GhostTarget local(index i) const { return self().table().local(i); }
    DNDS_HOST_DEVICE GhostTarget global(index row) const { return self().table().global(row); }
    DNDS_HOST_DEVICE rowsize width() const { return self().table().width; }

    /// A whole row; `row` may be changed afterwards.
    DNDS_HOST_DEVICE void put(GhostTarget target, const T *row) const {
        addressOf(RemoteCall::Put, target, 0, width()).put(0, row, Detail::bytesOf<T>(width()));
    }
    DNDS_HOST_DEVICE void get(GhostTarget target, T *row) const {
        addressOf(RemoteCall::Get, target, 0, width()).get(0, row, Detail::bytesOf<T>(width()));
    }
    /// Element `j` of a row, atomically; returns its value before. Set is Swap.
    DNDS_HOST_DEVICE T fetchAndOp(GhostTarget target, rowsize j, T operand, AtomicOp op) const requires AtomicWord<T> {
        if (op == AtomicOp::Set)
            op = AtomicOp::Swap;
        return addressOf(RemoteCall::Atomic, target, j, 1, op).fetchAtomic(0, op, operand);
    }
    DNDS_HOST_DEVICE T fetch(GhostTarget target, rowsize j = 0) const requires AtomicWord<T> {
        return fetchAndOp(target, j, T{}, AtomicOp::Fetch);
    }
    DNDS_HOST_DEVICE void accumulate(GhostTarget target, rowsize j, T operand,
                                     AtomicOp op = AtomicOp::Add) const requires AtomicWord<T> {
        addressOf(RemoteCall::Atomic, target, j, 1, op).atomic(0, op, operand);
    }
    /// All elements of a row, each atomically.
    DNDS_HOST_DEVICE void accumulateRow(GhostTarget target, const T *row,
                                        AtomicOp op = AtomicOp::Add) const requires AtomicWord<T> {
        addressOf(RemoteCall::Atomic, target, 0, width(), op).words(0, op, row, static_cast<T *>(nullptr), width());
    }
    /// Sets the element to `value` if it has the bits of `expected`; returns its value before.
    DNDS_HOST_DEVICE T compareAndSwap(GhostTarget target, rowsize j, T expected, T value) const requires AtomicWord<T> {
        return addressOf(RemoteCall::Atomic, target, j, 1).fetchAtomic(0, AtomicOp::CompareSwap, value, expected);
    }

  private:
    DNDS_HOST_DEVICE const Self &self() const { return static_cast<const Self &>(*this); }
    DNDS_HOST_DEVICE auto addressOf(RemoteCall call, GhostTarget target, index j, index count,
                                    AtomicOp op = AtomicOp::Fetch) const {
        AccessFault fault = AccessFault::None;
        if constexpr (AtomicWord<T>)
            fault = Detail::whyNot<T>(op);
        return self().address(fault, call, target, j, count);
    }
};

} // namespace DNDS
