/// @file EvenSplit.hpp
/// @brief Splits items numbered from 0 into one contiguous part a rank.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <limits>

namespace DNDS {

/// Splits `total` items into parts whose sizes differ by at most one: rank r's begins at total r / ranks, rounded down.
/// The same on every rank without communication. All functions are Local, O(1) if total times ranks fits 64 bits,
/// and cannot overflow.
class EvenSplit {
  public:
    EvenSplit(index total, int ranks) noexcept
        : total_(total), ranks_(ranks), each_(total / ranks), larger_(total % ranks) {}

    int parts() const noexcept { return static_cast<int>(ranks_); }
    /// Begin of a rank's part; the total for rank `ranks`.
    index begin(int rank) const noexcept { return each_ * rank + larger_ * rank / ranks_; }
    index end(int rank) const noexcept { return begin(rank + 1); }
    index size(int rank) const noexcept { return end(rank) - begin(rank); }
    IndexRange part(int rank) const noexcept { return {begin(rank), end(rank)}; }
    /// The rank whose part contains item `i`, in [0, total).
    int owner(index i) const noexcept {
        // The last rank r that begins at `i` or before: total r / ranks < i + 1, that is, r <= (ranks (i + 1) - 1)
        // / total, rounded down. Where the product would overflow, by bisection: O(log ranks).
        if (i < std::numeric_limits<index>::max() / ranks_)
            return static_cast<int>((ranks_ * (i + 1) - 1) / total_);
        int first = 0; // the last rank that begins at `i` or before
        for (int count = static_cast<int>(ranks_); count > 1;) {
            const int half = count / 2;
            if (begin(first + half) <= i)
                first += half;
            count -= half;
        }
        return first;
    }

  private:
    index total_;
    index ranks_;
    index each_;   ///< items in the smaller parts
    index larger_; ///< number of parts with one more
};

} // namespace DNDS
