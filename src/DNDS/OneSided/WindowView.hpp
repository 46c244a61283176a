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
    WindowView(const RemoteTable &data, const HeapView &locks, SymmetricPointer<std::uint64_t> lock,
               SymmetricPointer<std::uint32_t> held, SymmetricPointer<std::uint64_t> units, std::uint64_t patience)
        : data_(data), locks_(locks), lock_(lock), held_(held), units_(units), patience_(patience) {}

    DNDS_HOST_DEVICE int rank() const { return data_.rank; }
    DNDS_HOST_DEVICE int ranks() const { return data_.ranks; }
    /// Where a kernel finds a rank's memory; null where it does not.
    DNDS_HOST_DEVICE std::byte *sharedQuery(int rank) const { return data_.bases[rank]; }

    template <class T>
    DNDS_HOST_DEVICE void put(const T *origin, index count, int rank, index at, Lane lane = {}) const {
        if (std::byte *target = locate<T>(RemoteCall::Put, count, rank, at, 1))
            Detail::copyShare(target, reinterpret_cast<const std::byte *>(origin),
                              static_cast<std::uint64_t>(count) * sizeof(T), lane);
    }
    template <class T>
    DNDS_HOST_DEVICE void get(T *origin, index count, int rank, index at, Lane lane = {}) const {
        if (const std::byte *target = locate<T>(RemoteCall::Get, count, rank, at, 1))
            Detail::copyShare(reinterpret_cast<std::byte *>(origin), target,
                              static_cast<std::uint64_t>(count) * sizeof(T), lane);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void accumulate(const T *origin, index count, int rank, index at, AccumulateOp op) const {
        T *target = words<T>(count, rank, at);
        for (index k = 0; target != nullptr && k < count && op != AccumulateOp::NoOp; ++k)
            Atomics::apply(target + k, atomicOpOf(op), origin[k]);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE void getAccumulate(const T *origin, T *result, index count, int rank, index at,
                                        AccumulateOp op) const {
        T *target = words<T>(count, rank, at);
        for (index k = 0; target != nullptr && k < count; ++k)
            result[k] = Atomics::apply(target + k, atomicOpOf(op), op == AccumulateOp::NoOp ? T{} : origin[k]);
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetchAndOp(T origin, int rank, index at, AccumulateOp op) const {
        T result{};
        getAccumulate(&origin, &result, 1, rank, at, op);
        return result;
    }
    template <AtomicWord T>
    DNDS_HOST_DEVICE T compareAndSwap(T origin, T compare, int rank, index at) const {
        T *target = words<T>(1, rank, at);
        return target == nullptr ? T{} : Atomics::apply(target, AtomicOp::CompareSwap, origin, compare);
    }

    /// Waits for the lock; false and a fault where that takes too long, or the view does not allow it.
    DNDS_HOST_DEVICE bool lock(LockType type, int rank) const {
        if (rank < 0 || rank >= data_.ranks || patience_ == 0) {
            data_.faults->note(patience_ == 0 ? AccessFault::Patience : AccessFault::Rank, RemoteCall::Lock, rank, 0,
                               0);
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
    DNDS_HOST_DEVICE void unlock(int rank) const {
        if (!isLocked(RemoteCall::Unlock, rank))
            return;
        std::uint32_t &held = locks_.local(held_)[rank];
        const auto type = static_cast<LockType>(held);
        held = 0;
        Atomics::fenceSystem();
        Detail::WindowLock::leave(locks_, lock_, rank, type);
    }
    /// This thread's operations are complete, at the target too.
    DNDS_HOST_DEVICE void flush(int /*rank*/) const { Atomics::fenceSystem(); }
    DNDS_HOST_DEVICE void flushAll() const { Atomics::fenceSystem(); }
    DNDS_HOST_DEVICE void flushLocal(int /*rank*/) const {}
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
    DNDS_HOST_DEVICE std::byte *locate(RemoteCall call, index count, int rank, index at,
                                       std::uint64_t alignment) const {
        if (!isLocked(call, rank))
            return nullptr;
        const std::uint64_t unit = locks_.local(units_)[rank];
        const bool sane = count >= 0 && at >= 0 && count < INT64_MAX / static_cast<index>(sizeof(T)) &&
                          static_cast<std::uint64_t>(at) < UINT64_MAX / unit;
        return data_.reach(call, rank, sane ? static_cast<std::uint64_t>(at) * unit : UINT64_MAX,
                           sane ? static_cast<std::uint64_t>(count) * sizeof(T) : UINT64_MAX, alignment);
    }
    template <class T>
    DNDS_HOST_DEVICE T *words(index count, int rank, index at) const {
        return reinterpret_cast<T *>(locate<T>(RemoteCall::Atomic, count, rank, at, sizeof(T)));
    }

    RemoteTable data_;
    HeapView locks_;
    SymmetricPointer<std::uint64_t> lock_;
    SymmetricPointer<std::uint32_t> held_;
    SymmetricPointer<std::uint64_t> units_;
    std::uint64_t patience_ = 0;
};

} // namespace DNDS
