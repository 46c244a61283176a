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
    /// Where a kernel finds a rank's memory; null where loads and stores do not reach it.
    DNDS_HOST_DEVICE std::byte *sharedQuery(int rank) const { return data_.bases[rank]; }

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

    /// Waits for the lock; false and a fault where that takes too long, or the view does not allow it.
    DNDS_HOST_DEVICE bool lock(LockType type, int rank) const {
        if (rank < 0 || rank >= data_.ranks || patience_ == 0) {
            data_.faults->note(patience_ == 0 ? AccessFault::Patience : AccessFault::Rank, RemoteCall::Lock, rank, 0,
                               0);
            return false;
        }
        if (const AccessFault fault = locks_.whyNoAtomics(rank); fault != AccessFault::None) {
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
        locks_.local(held_)[rank] = static_cast<std::uint32_t>(type);
        Atomics::fenceSystem();
        return true;
    }
    /// Completes this thread's operations and lets others in. A fault without a lock.
    DNDS_HOST_DEVICE void unlock(int rank) const {
        if (!isLocked(RemoteCall::Unlock, rank))
            return;
        std::uint32_t &held = locks_.local(held_)[rank];
        const auto type = static_cast<LockType>(held);
        held = 0;
        data_.quiet();
        Detail::WindowLock::leave(locks_, lock_, rank, type);
    }
    /// This thread's operations are complete, at the target too.
    DNDS_HOST_DEVICE void flush(int rank) const {
        if (isLocked(RemoteCall::Flush, rank))
            data_.quiet();
    }
    /// The same for all ranks, of which one at least has to be locked.
    DNDS_HOST_DEVICE void flushAll() const {
        for (int rank = 0; rank < data_.ranks; ++rank)
            if (locks_.local(held_)[rank] != 0) {
                data_.quiet();
                return;
            }
        data_.faults->note(AccessFault::NotLocked, RemoteCall::Flush, anyRank, 0, 0);
    }
    /// Origins may be reused, as they always may here; and loads of this thread see what others have completed.
    DNDS_HOST_DEVICE void flushLocal(int rank) const { isLocked(RemoteCall::Flush, rank); }
    DNDS_HOST_DEVICE void sync() const { Atomics::fenceSystem(); }

  private:
    DNDS_HOST_DEVICE bool isLocked(RemoteCall call, int rank) const {
        AccessFault fault = rank < 0 || rank >= data_.ranks ? AccessFault::Rank : AccessFault::None;
        if (fault == AccessFault::None && locks_.local(held_)[rank] == 0)
            fault = AccessFault::NotLocked;
        if (fault != AccessFault::None)
            data_.faults->note(fault, call, rank, 0, 0);
        return fault == AccessFault::None;
    }
    template <class T>
    DNDS_HOST_DEVICE RemotePlace locate(RemoteCall call, index count, int rank, index at,
                                        std::uint64_t alignment) const {
        if (!isLocked(call, rank))
            return {};
        const std::uint64_t unit = locks_.local(units_)[rank];
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
