/// @file WindowView.hpp
/// @brief A window in kernels.
#pragma once

#include "DNDS/OneSided/WindowTable.hpp"

namespace DNDS {

/// The operations of a `Window` in kernels, each by one thread; put and get also by several (`Lane`). Locks of the host
/// count, and locks may be taken here by one thread of a kernel, whose view allows it to wait. Trivially copyable.
///
/// A wrong access is skipped, and the first of them thrown by the next call of the window on the host. Each thread
/// completes its own operations; host and kernel do not access the same window between two synchronisations.
class WindowView {
  public:
    WindowView() = default;
    /// For `Window::view`.
    WindowView(const RemoteTable &data, const HeapView &locks, SymmetricPointer<std::uint64_t> lock,
               SymmetricPointer<std::uint32_t> held, SymmetricPointer<std::uint64_t> units, std::uint64_t patience)
        : data_(data), locks_(locks), lock_(lock), held_(held), units_(units), patience_(patience) {}

    /// This rank, and the number of ranks.
    DNDS_HOST_DEVICE int rank() const { return data_.rank; }
    DNDS_HOST_DEVICE int ranks() const { return data_.ranks; }
    /// The memory that the window lies in, which is where it may be accessed from.
    DNDS_HOST_DEVICE MemorySpace residing() const { return locks_.space(); }
    /// This rank's memory.
    DNDS_HOST_DEVICE void *own() const { return data_.bases[data_.rank]; }
    /// A rank's memory; its base is null where loads and stores of this kernel do not reach it. A fault, and nothing,
    /// for a rank that does not exist.
    DNDS_HOST_DEVICE WindowShared sharedQuery(int rank) const {
        if (rank < 0 || rank >= data_.ranks) {
            data_.faults->note(AccessFault::Rank, RemoteCall::Get, rank, 0, 0);
            return {};
        }
        return {data_.bytes[rank], locks_.own(units_)[rank], data_.bases[rank]};
    }

    /// As the functions of `Window` of these names; put and get copy this lane's share. Without a lock of the target
    /// they note a fault, and those that return something return 0.
    template <class T>
    DNDS_HOST_DEVICE void put(const T *origin, index count, int rank, index at, Lane lane = {}) const {
        locate<T>(RemoteCall::Put, count, rank, at, 1)
            .put(0, origin, static_cast<std::uint64_t>(count) * sizeof(T), lane);
    }
    template <class T>
    DNDS_HOST_DEVICE void get(T *origin, index count, int rank, index at, Lane lane = {}) const {
        locate<T>(RemoteCall::Get, count, rank, at, 1)
            .get(0, origin, static_cast<std::uint64_t>(count) * sizeof(T), lane);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void accumulate(const T *origin, index count, int rank, index at, AccumulateOp op) const {
        const RemotePlace target = words<T>(count, rank, at);
        for (index k = 0; target && k < count && op != AccumulateOp::NoOp; ++k)
            target.atomic(static_cast<std::uint64_t>(k) * sizeof(T), atomicOpOf(op), origin[k]);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void getAccumulate(const T *origin, T *result, index count, int rank, index at,
                                        AccumulateOp op) const {
        const RemotePlace target = words<T>(count, rank, at);
        for (index k = 0; target && k < count; ++k)
            result[k] = target.fetchAtomic(static_cast<std::uint64_t>(k) * sizeof(T), atomicOpOf(op),
                                           op == AccumulateOp::NoOp ? T{} : origin[k]);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetchAndOp(T origin, int rank, index at, AccumulateOp op) const {
        T result{};
        getAccumulate(&origin, &result, 1, rank, at, op);
        return result;
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T compareAndSwap(T origin, T compare, int rank, index at) const {
        return words<T>(1, rank, at).fetchAtomic(0, AtomicOp::CompareSwap, origin, compare);
    }

    /// Waits for the lock; false and a fault where that takes too long, the view does not allow it, or this rank has a
    /// lock there.
    DNDS_HOST_DEVICE bool lock(LockType type, int rank) const {
        if (const AccessFault fault = whyNoLock(rank); fault != AccessFault::None) {
            data_.faults->note(fault, RemoteCall::Lock, rank, 0, 0);
            return false;
        }
        const std::uint64_t ticket = Detail::WindowLock::draw(locks_, lock_, rank);
        for (std::uint64_t poll = 0; !Detail::WindowLock::served(locks_, lock_, rank, ticket, type); ++poll) {
            if (poll >= patience_) {
                data_.faults->note(AccessFault::Patience, RemoteCall::Lock, rank, 0, 0);
                return false;
            }
            Detail::pauseInKernel();
        }
        Detail::WindowLock::enter(locks_, lock_, rank, type);
        locks_.own(held_)[rank] = static_cast<std::uint32_t>(type);
        Atomics::fenceSystem();
        return true;
    }
    /// Completes this thread's operations and lets others in. A fault without a lock.
    DNDS_HOST_DEVICE void unlock(int rank) const {
        if (!isLocked(RemoteCall::Unlock, rank))
            return;
        data_.quiet();
        release(rank);
    }
    /// Shared locks of all ranks, or of none: false and a fault.
    DNDS_HOST_DEVICE bool lockAll() const {
        for (int rank = 0; rank < data_.ranks; ++rank)
            if (const AccessFault fault = whyNoLock(rank); fault != AccessFault::None) {
                data_.faults->note(fault, RemoteCall::Lock, rank, 0, 0);
                return false;
            }
        for (int rank = 0; rank < data_.ranks; ++rank)
            if (!lock(LockType::Shared, rank)) {
                while (rank-- > 0)
                    release(rank);
                return false;
            }
        return true;
    }
    /// All of them; nothing but a fault where one is not locked.
    DNDS_HOST_DEVICE void unlockAll() const {
        for (int rank = 0; rank < data_.ranks; ++rank)
            if (!isLocked(RemoteCall::Unlock, rank))
                return;
        data_.quiet();
        for (int rank = 0; rank < data_.ranks; ++rank)
            release(rank);
    }
    /// This thread's operations are complete, at the target too.
    DNDS_HOST_DEVICE void flush(int rank) const {
        if (isLocked(RemoteCall::Flush, rank))
            data_.quiet();
    }
    /// The same for all ranks, of which one at least has to be locked.
    DNDS_HOST_DEVICE void flushAll() const {
        if (isAnyLocked())
            data_.quiet();
    }
    /// Origins may be reused, as they always may here; and loads of this thread see what others have completed.
    DNDS_HOST_DEVICE void flushLocal(int rank) const { isLocked(RemoteCall::Flush, rank); }
    DNDS_HOST_DEVICE void flushLocalAll() const { isAnyLocked(); }
    DNDS_HOST_DEVICE void sync() const { Atomics::fenceSystem(); }

    /// Whether the word at this rank's displacement `at` compares so with `value` now, whose type says what lies there;
    /// if so, what was completed before it was set is seen. Needs no lock.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool test(index at, Comparison comparison, T value) const {
        return placeOf<T>(RemoteCall::Wait, 1, data_.rank, at, sizeof(T)).holds(comparison, value);
    }
    /// Waits for that, by one thread of a kernel, whose view allows it. Gives up after some seconds: false, and a
    /// fault.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(index at, Comparison comparison, T value) const {
        return placeOf<T>(RemoteCall::Wait, 1, data_.rank, at, sizeof(T)).waitUntil(comparison, value, patience_);
    }

  private:
    DNDS_HOST_DEVICE bool isLocked(RemoteCall call, int rank) const {
        AccessFault fault = rank < 0 || rank >= data_.ranks ? AccessFault::Rank : AccessFault::None;
        if (fault == AccessFault::None && locks_.own(held_)[rank] == 0)
            fault = AccessFault::NotLocked;
        if (fault != AccessFault::None)
            data_.faults->note(fault, call, rank, 0, 0);
        return fault == AccessFault::None;
    }
    DNDS_HOST_DEVICE bool isAnyLocked() const {
        for (int rank = 0; rank < data_.ranks; ++rank)
            if (locks_.own(held_)[rank] != 0)
                return true;
        data_.faults->note(AccessFault::NotLocked, RemoteCall::Flush, anyRank, 0, 0);
        return false;
    }
    DNDS_HOST_DEVICE AccessFault whyNoLock(int rank) const {
        if (patience_ == 0)
            return AccessFault::Patience;
        if (rank < 0 || rank >= data_.ranks)
            return AccessFault::Rank;
        return locks_.own(held_)[rank] != 0 ? AccessFault::Locked : locks_.whyNoAtomics(rank);
    }
    /// After this thread's operations are complete.
    DNDS_HOST_DEVICE void release(int rank) const {
        std::uint32_t &held = locks_.own(held_)[rank];
        const auto type = static_cast<LockType>(held);
        held = 0;
        Detail::WindowLock::leave(locks_, lock_, rank, type);
    }
    template <class T>
    DNDS_HOST_DEVICE RemotePlace locate(RemoteCall call, index count, int rank, index at,
                                        std::uint64_t alignment) const {
        return isLocked(call, rank) ? placeOf<T>(call, count, rank, at, alignment) : RemotePlace{};
    }
    template <class T>
    DNDS_HOST_DEVICE RemotePlace placeOf(RemoteCall call, index count, int rank, index at,
                                         std::uint64_t alignment) const {
        const std::uint64_t unit = locks_.own(units_)[rank];
        const bool sane = count >= 0 && at >= 0 && count < INT64_MAX / static_cast<index>(sizeof(T)) &&
                          static_cast<std::uint64_t>(at) < UINT64_MAX / unit;
        const std::uint64_t offset = sane ? static_cast<std::uint64_t>(at) * unit : UINT64_MAX;
        const std::uint64_t bytes = sane ? static_cast<std::uint64_t>(count) * sizeof(T) : UINT64_MAX;
        return data_.placeOf(data_.check(rank, offset, bytes, alignment), call, rank, offset, bytes);
    }
    template <class T>
    DNDS_HOST_DEVICE RemotePlace words(index count, int rank, index at) const {
        return locate<T>(RemoteCall::Atomic, count, rank, at, sizeof(T));
    }

    RemoteTable data_;
    HeapView locks_;
    SymmetricPointer<std::uint64_t> lock_;
    SymmetricPointer<std::uint32_t> held_;
    SymmetricPointer<std::uint64_t> units_;
    std::uint64_t patience_ = 0;
};

} // namespace DNDS
