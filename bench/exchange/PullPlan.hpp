/// @file PullPlan.hpp
/// @brief The set-up of a ghost pull as a careful author writes it by hand: the yardstick for the library's.
#pragma once

#include "Problem.hpp"

#include <span>
#include <vector>

namespace DNDS::Bench {

/// The part of a list that one peer accounts for.
struct PeerRange {
    int rank = 0;
    index begin = 0;
    index count = 0;
};

/// Senders, receivers and rows of a pull. Ghosts are sorted by global row, so each owner's are one range.
struct PullPlan {
    std::vector<index> ghosts;        ///< global rows
    std::vector<PeerRange> owners;    ///< ranges of `ghosts`
    std::vector<LocalIndex> sentRows; ///< own rows, reader by reader
    std::vector<PeerRange> readers;   ///< ranges of `sentRows`

    /// Collective. Radix sort, one merge over the ownership offsets, MPI_Alltoall of counts, lists point to point.
    static PullPlan make(CommunicatorView comm, std::span<const index> offsets, std::span<const index> pullList);
};

/// Ascending, by a least-significant-digit radix sort. Local, O(n) a digit of 11 bits.
std::vector<index> radixSorted(std::span<const index> values);

} // namespace DNDS::Bench
