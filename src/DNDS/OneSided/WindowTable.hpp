/// @file WindowTable.hpp
/// @brief What host and kernels know of a window, and the lock that each rank's memory has.
#pragma once

#include "DNDS/OneSided/HeapView.hpp"

#include <cstddef>
#include <cstdint>

namespace DNDS {

/// Of MPI_Win_lock.
enum class LockType : std::uint32_t { Shared = 1, Exclusive = 2 };

/// What accumulate and the like do to each element. Replace and NoOp make getAccumulate a swap and an atomic load.
enum class AccumulateOp : unsigned char { Sum, Min, Max, BitAnd, BitOr, Replace, NoOp };

/// A rank's memory in a window, as MPI_Win_shared_query.
struct WindowShared {
    std::size_t bytes = 0;
    std::size_t displacementUnit = 0;
    void *base = nullptr; ///< null where loads and stores do not reach it
};

/// The atomic operation on one element; Fetch for NoOp.
DNDS_HOST_DEVICE constexpr AtomicOp atomicOpOf(AccumulateOp op) {
    switch (op) {
    case AccumulateOp::Sum:
        return AtomicOp::Add;
    case AccumulateOp::Min:
        return AtomicOp::Min;
    case AccumulateOp::Max:
        return AtomicOp::Max;
    case AccumulateOp::BitAnd:
        return AtomicOp::And;
    case AccumulateOp::BitOr:
        return AtomicOp::Or;
    case AccumulateOp::Replace:
        return AtomicOp::Swap;
    case AccumulateOp::NoOp:
        break;
    }
    return AtomicOp::Fetch;
}

namespace Detail {

/// A fair lock for readers and writers: whoever asks draws a ticket and is served in order; readers that follow each
/// other are served together. The words are in the memory of the rank whose window it guards (after John Mellor-Crummey
/// and Michael Scott, and the lock of Open MPI's shared memory windows).
struct WindowLock {
    enum Word : std::ptrdiff_t { Next, MayRead, MayWrite, Holder, words };

    /// Draws a ticket. `Place` has fetchAdd and the like of a heap, host or view.
    template <class Place>
    DNDS_HOST_DEVICE static std::uint64_t draw(Place &place, SymmetricPointer<std::uint64_t> lock, int rank) {
        return place.fetchAdd(lock + Next, 1, rank);
    }
    template <class Place>
    DNDS_HOST_DEVICE static bool served(Place &place, SymmetricPointer<std::uint64_t> lock, int rank,
                                        std::uint64_t ticket, LockType type) {
        return place.fetch(lock + (type == LockType::Shared ? MayRead : MayWrite), rank) == ticket;
    }
    /// After it was served: readers let the next one in; a writer says who it is.
    template <class Place>
    DNDS_HOST_DEVICE static void enter(Place &place, SymmetricPointer<std::uint64_t> lock, int rank, LockType type) {
        if (type == LockType::Shared)
            place.add(lock + MayRead, 1, rank);
        else
            place.set(lock + Holder, static_cast<std::uint64_t>(place.rank()) + 1, rank);
    }
    /// After all operations are complete.
    template <class Place>
    DNDS_HOST_DEVICE static void leave(Place &place, SymmetricPointer<std::uint64_t> lock, int rank, LockType type) {
        if (type == LockType::Exclusive) {
            place.set(lock + Holder, 0, rank);
            place.fence();
            place.add(lock + MayRead, 1, rank);
        }
        place.add(lock + MayWrite, 1, rank);
    }
};

} // namespace Detail

} // namespace DNDS
