/// @file RemoteTable.hpp
/// @brief Where a kernel finds the memory of other ranks, and how it says that an access was wrong.
#pragma once

#include "DNDS/OneSided/Atomics.hpp"

#include <cstddef>
#include <cstdint>
#include <thread>

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
    Patience     ///< a wait in a kernel took longer than it may
};

/// What was called, for messages.
enum class RemoteCall : std::uint32_t { Put, Get, Atomic, Signal, Wait, Lock, Unlock, Flush };

/// The first fault of kernels, in memory that kernels and the host share. The next call on the host throws it.
struct FaultRecord {
    std::uint32_t taken = 0; ///< 1 while a kernel writes the rest, then 2
    AccessFault fault = AccessFault::None;
    RemoteCall call = RemoteCall::Put;
    std::int32_t rank = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    /// Keeps the first fault that is noted.
    DNDS_HOST_DEVICE void note(AccessFault what, RemoteCall where, int target, std::uint64_t at, std::uint64_t size) {
        if (Atomics::compareExchange<std::uint32_t>(&taken, 0, 1) != 0)
            return;
        fault = what;
        call = where;
        rank = target;
        offset = at;
        bytes = size;
        Atomics::storeRelease<std::uint32_t>(&taken, 2);
    }
};

/// The memory of all ranks as kernels see it; trivially copyable. Offsets are bytes from the start of each rank's
/// memory.
struct RemoteTable {
    std::byte *const *bases = nullptr;    ///< by rank; null where loads and stores do not reach
    const std::uint64_t *bytes = nullptr; ///< by rank
    FaultRecord *faults = nullptr;
    int rank = 0;
    int ranks = 0;

    DNDS_HOST_DEVICE AccessFault check(int target, std::uint64_t offset, std::uint64_t size,
                                       std::uint64_t alignment = 1) const {
        if (target < 0 || target >= ranks)
            return AccessFault::Rank;
        if (size > bytes[target] || offset > bytes[target] - size)
            return AccessFault::Range;
        return offset % alignment != 0 ? AccessFault::Alignment : AccessFault::None;
    }
    /// The address of memory of another rank, or null after the fault was noted.
    DNDS_HOST_DEVICE std::byte *reach(RemoteCall call, int target, std::uint64_t offset, std::uint64_t size,
                                      std::uint64_t alignment = 1) const {
        AccessFault fault = check(target, offset, size, alignment);
        if (fault == AccessFault::None && bases[target] == nullptr)
            fault = AccessFault::Unreachable;
        if (fault == AccessFault::None)
            return bases[target] + offset;
        faults->note(fault, call, target, offset, size);
        return nullptr;
    }
};

/// One of several threads of a kernel that do an operation together: thread `number` of `count` copies its share.
/// Nothing waits for the others: put the block's barrier behind the call.
struct Lane {
    index number = 0;
    index count = 1;
};

namespace Detail {

/// Makes room for whoever is waited for.
DNDS_HOST_DEVICE inline void pauseInKernel() {
#if defined(__CUDA_ARCH__)
    __nanosleep(200);
#else
    std::this_thread::yield();
#endif
}

/// memcpy on the host, out of sight of compilers that think of all sizes that a small buffer might be copied with.
void copyMany(std::byte *to, const std::byte *from, std::uint64_t bytes) noexcept;

/// Copies this lane's share, in words where both sides allow it, so that no word of 4 or 8 bytes is torn.
DNDS_HOST_DEVICE inline void copyShare(std::byte *to, const std::byte *from, std::uint64_t bytes, Lane lane) {
#if !defined(__CUDA_ARCH__)
    if (lane.count == 1 && bytes > 64) {
        copyMany(to, from, bytes);
        return;
    }
#endif
    const auto together = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
    const auto each = [&](auto word) {
        using Word = decltype(word);
        const auto count = static_cast<index>(bytes / sizeof(Word));
        for (index k = lane.number; k < count; k += lane.count)
#if defined(__CUDA_ARCH__)
            static_cast<volatile Word *>(static_cast<void *>(to))[k] =
                static_cast<const volatile Word *>(static_cast<const void *>(from))[k];
#else
            __atomic_store_n(
                static_cast<Word *>(static_cast<void *>(to)) + k,
                __atomic_load_n(static_cast<const Word *>(static_cast<const void *>(from)) + k, __ATOMIC_RELAXED),
                __ATOMIC_RELAXED);
#endif
    };
    if (together % 8 == 0)
        each(std::uint64_t{});
    else if (together % 4 == 0)
        each(std::uint32_t{});
    else
        each(std::uint8_t{});
}

} // namespace Detail

} // namespace DNDS
