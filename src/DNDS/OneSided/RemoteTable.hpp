/// @file RemoteTable.hpp
/// @brief Where a kernel finds the memory of other ranks, and how it says that an access was wrong.
#pragma once

#include "DNDS/OneSided/ProxyView.hpp"

#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>

namespace DNDS {

/// What is wrong with an access to another rank's memory.
enum class AccessFault : std::uint32_t {
    None,
    Rank,        ///< there is no such rank
    Range,       ///< beyond the memory
    Freed,       ///< the memory was freed
    Foreign,     ///< a pointer of another heap, or null
    Alignment,   ///< a word at an address that is no multiple of its size
    Unreachable, ///< a kernel cannot reach this rank's memory by loads and stores
    NotLocked,   ///< the window is not locked for this rank
    Locked,      ///< this rank has locked it already
    NoAtomics,   ///< this rank's GPU cannot change a word of that rank's memory atomically
    Real,        ///< And or Or of numbers that are not integers
    Patience,    ///< a wait in a kernel took longer than it may
    Proxy        ///< the proxy could not carry it out
};

/// What was called, for messages.
enum class RemoteCall : std::uint32_t { Put, Get, Atomic, Signal, Wait, Lock, Unlock, Flush };

/// Of a fault for want of any locked rank.
inline constexpr int anyRank = -1;

/// For messages; never null.
const char *remoteCallName(RemoteCall call) noexcept;

/// What kernels did wrong.
struct KernelFault {
    AccessFault fault = AccessFault::None;
    RemoteCall call = RemoteCall::Put;
    std::int32_t rank = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t others = 0; ///< faults since the first one
};

/// The first fault of kernels, in memory that kernels and the host share. The next call on the host throws it.
///
/// No word is changed by both, since atomic operations of a GPU and of a host are not atomic together over PCIe:
/// kernels fill the record when `claimed_` equals `taken_`, and the host opens it again by `taken_`.
class FaultRecord {
  public:
    /// Keeps the first fault that is noted, and counts the others. For kernels.
    DNDS_HOST_DEVICE void note(AccessFault what, RemoteCall where, int target, std::uint64_t at, std::uint64_t size) {
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
    std::uint32_t untold() const noexcept { return Atomics::loadAcquire(&others_) - Atomics::loadAcquire(&told_); }
    /// The first fault and the number of others, which are forgotten then; after `noted`. For the host.
    KernelFault take() noexcept {
        std::uint32_t written = Atomics::loadAcquire(&written_);
        for (; written != Atomics::loadAcquire(&claimed_); written = Atomics::loadAcquire(&written_))
            std::this_thread::yield(); // a kernel is writing it
        KernelFault seen = first_;
        const std::uint32_t others = Atomics::loadAcquire(&others_);
        seen.others = others - Atomics::exchange(&told_, others);
        Atomics::storeRelease(&taken_, written); // last: from now on kernels write the next one
        return seen;
    }

  private:
    std::uint32_t claimed_ = 0; ///< records that kernels have begun
    std::uint32_t written_ = 0; ///< records that are complete
    std::uint32_t others_ = 0;  ///< faults that were not the first of their record
    KernelFault first_;
    alignas(128) std::uint32_t taken_ = 0; ///< by the host: records that it has read
    std::uint32_t told_ = 0;               ///< by the host: `others_` that it has read
};

class RemotePlace;

/// The memory of all ranks as kernels see it; trivially copyable. Offsets are bytes from the start of each rank's
/// memory.
struct RemoteTable {
    std::byte *const *bases = nullptr;    ///< by rank; null where loads and stores do not reach
    const std::uint64_t *bytes = nullptr; ///< by rank
    FaultRecord *faults = nullptr;
    int rank = 0;
    int ranks = 0;
    const std::uint8_t *noAtomics = nullptr; ///< by rank: 1 where words must not be changed; null where they all may
    ProxyView proxy{};                       ///< for ranks without a base; may be absent

    /// What an atomic operation of a kernel on a rank's memory fails with.
    DNDS_HOST_DEVICE AccessFault whyNoAtomics(int target) const {
        if (noAtomics != nullptr && noAtomics[target] != 0)
            return AccessFault::NoAtomics; // the proxy would use the same device
        return bases[target] == nullptr && !proxy ? AccessFault::Unreachable : AccessFault::None;
    }
    /// What is wrong with an access to `size` bytes at `offset`; None where nothing is.
    DNDS_HOST_DEVICE AccessFault check(int target, std::uint64_t offset, std::uint64_t size,
                                       std::uint64_t alignment = 1) const {
        if (target < 0 || target >= ranks)
            return AccessFault::Rank;
        if (size > bytes[target] || offset > bytes[target] - size)
            return AccessFault::Range;
        // Memory of the program may begin anywhere; addresses in this process differ by whole pages.
        const auto place = (bases != nullptr ? reinterpret_cast<std::uintptr_t>(bases[target]) : 0) + offset;
        return place % alignment != 0 ? AccessFault::Alignment : AccessFault::None;
    }
    /// Where that access goes, or nowhere after `fault`, or that the rank is out of reach, was noted.
    DNDS_HOST_DEVICE RemotePlace placeOf(AccessFault fault, RemoteCall call, int target, std::uint64_t offset,
                                         std::uint64_t size) const;

    /// This thread's puts, signals and atomic operations before it are seen before those after it.
    DNDS_HOST_DEVICE void fence() const {
        Atomics::fenceRelease();
        if (proxy && !proxy.fence())
            faults->note(AccessFault::Proxy, RemoteCall::Flush, rank, 0, 0);
    }
    /// This thread's operations are complete.
    DNDS_HOST_DEVICE void quiet() const {
        Atomics::fenceSystem();
        if (proxy && !proxy.quiet())
            faults->note(AccessFault::Proxy, RemoteCall::Flush, rank, 0, 0);
    }
};

/// Memory of another rank that an access was found to be right for: at an address, through the proxy, or nowhere where
/// it was wrong. `at` is in bytes from where the access begins. What the proxy fails at is noted as a fault.
class RemotePlace {
  public:
    RemotePlace() = default;
    /// Valid as long as the table.
    DNDS_HOST_DEVICE RemotePlace(const RemoteTable &table, RemoteCall call, int rank, std::uint64_t offset)
        : address_(table.bases[rank] == nullptr ? nullptr : table.bases[rank] + offset), table_(&table), call_(call),
          rank_(rank), offset_(offset) {}

    /// Whether there is such memory; what follows does nothing otherwise.
    DNDS_HOST_DEVICE explicit operator bool() const { return table_ != nullptr; }
    /// Null where loads and stores do not reach it.
    DNDS_HOST_DEVICE std::byte *address() const { return address_; }

    /// Copies `bytes` bytes there, or this lane's share. `from` may be changed afterwards; complete after
    /// RemoteTable::quiet.
    DNDS_HOST_DEVICE void put(std::uint64_t at, const void *from, std::uint64_t bytes, Lane lane = {}) const {
        const auto *source = static_cast<const std::byte *>(from);
        if (address_ != nullptr)
            Detail::copyShare(address_ + at, source, bytes, lane);
        else if (table_ != nullptr && table_->proxy)
            note(table_->proxy.put(rank_, offset_ + at, source, bytes, lane), bytes);
    }
    /// Copies `bytes` bytes from there, or this lane's share; they are in `to` when it returns.
    DNDS_HOST_DEVICE void get(std::uint64_t at, void *to, std::uint64_t bytes, Lane lane = {}) const {
        auto *target = static_cast<std::byte *>(to);
        if (address_ != nullptr)
            Detail::copyShare(target, address_ + at, bytes, lane);
        else if (table_ != nullptr && table_->proxy)
            note(table_->proxy.get(rank_, offset_ + at, target, bytes, lane), bytes);
    }
    /// Complete when it returns; what the word was, or 0 where nothing is done.
    template <AtomicWord T>
    DNDS_HOST_DEVICE T fetchAtomic(std::uint64_t at, AtomicOp op, T operand, T compare = T{}) const {
        if (address_ != nullptr)
            return Atomics::apply(reinterpret_cast<T *>(address_ + at), op, operand, compare);
        std::uint64_t bits = 0;
        if (table_ != nullptr && table_->proxy)
            note(table_->proxy.fetchAtomic(rank_, offset_ + at, requestOf(op, operand, compare), bits), sizeof(T));
        return Atomics::fromBits<T>(bits);
    }
    /// Complete when this thread has called `quiet`.
    template <AtomicWord T>
    DNDS_HOST_DEVICE void atomic(std::uint64_t at, AtomicOp op, T operand) const {
        if (address_ != nullptr)
            Atomics::apply(reinterpret_cast<T *>(address_ + at), op, operand);
        else if (table_ != nullptr && table_->proxy)
            note(table_->proxy.atomic(rank_, offset_ + at, requestOf(op, operand, T{})), sizeof(T));
    }
    /// After what this thread did to this rank before.
    DNDS_HOST_DEVICE void signal(std::uint64_t value, bool add) const {
        if (address_ != nullptr) {
            Atomics::fenceRelease();
            Atomics::apply(reinterpret_cast<std::uint64_t *>(address_), add ? AtomicOp::Add : AtomicOp::Set, value);
        } else if (table_ != nullptr && table_->proxy) {
            note(table_->proxy.signal(rank_, offset_, value, add), sizeof(value));
        }
    }

    /// Whether this rank's own word there compares so now; if so, what was put before the signal is seen.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool holds(Comparison comparison, T value) const {
        using Bits = Atomics::Bits<T>;
        return address_ != nullptr &&
               DNDS::holds(Atomics::valueOf<T>(Atomics::loadAcquire(reinterpret_cast<const Bits *>(address_))),
                           comparison, value);
    }
    /// Waits for that, `patience` polls at most: false, and a fault.
    template <AtomicWord T>
    DNDS_HOST_DEVICE bool waitUntil(Comparison comparison, T value, std::uint64_t patience) const {
        if (address_ == nullptr)
            return false;
        for (std::uint64_t poll = 0; !holds(comparison, value); ++poll) {
            if (poll >= patience) {
                table_->faults->note(AccessFault::Patience, call_, rank_, offset_, sizeof(T));
                return false;
            }
            Detail::pauseInKernel();
        }
        return true;
    }

  private:
    template <AtomicWord T>
    DNDS_HOST_DEVICE static AtomicRequest requestOf(AtomicOp op, T operand, T compare) {
        return {op, std::integral_constant<ElementKind, elementKindOf<T>()>::value, Atomics::toBits(operand),
                Atomics::toBits(compare)};
    }
    DNDS_HOST_DEVICE void note(bool well, std::uint64_t bytes) const {
        if (!well)
            table_->faults->note(AccessFault::Proxy, call_, rank_, offset_, bytes);
    }

    std::byte *address_ = nullptr;
    const RemoteTable *table_ = nullptr;
    RemoteCall call_ = RemoteCall::Put;
    int rank_ = 0;
    std::uint64_t offset_ = 0;
};

DNDS_HOST_DEVICE inline RemotePlace RemoteTable::placeOf(AccessFault fault, RemoteCall call, int target,
                                                         std::uint64_t offset, std::uint64_t size) const {
    if (fault == AccessFault::None)
        fault = call == RemoteCall::Atomic           ? whyNoAtomics(target)
                : bases[target] == nullptr && !proxy ? AccessFault::Unreachable
                                                     : AccessFault::None;
    if (fault == AccessFault::None)
        return {*this, call, target, offset};
    faults->note(fault, call, target, offset, size);
    return {};
}

} // namespace DNDS
