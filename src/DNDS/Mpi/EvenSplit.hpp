/// @file EvenSplit.hpp
/// @brief Cuts things that are counted from 0 into one contiguous part a rank.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <algorithm>

namespace DNDS {

/// A contiguous part [begin, end) of something.
struct IndexRange {
    index begin = 0;
    index end = 0;
    index size() const noexcept { return end - begin; }
};

/// `total` things in parts whose sizes differ by one at most, in order of rank; the larger parts come first. The same
/// on every rank without communication. All functions are Local, O(1), and cannot overflow.
class EvenSplit {
  public:
    EvenSplit(index total, int ranks) noexcept
        : each_(total / ranks), larger_(total % ranks), inLarger_(larger_ * (each_ + 1)) {}

    /// Where the part of a rank begins; the total for rank `ranks`.
    index begin(int rank) const noexcept { return each_ * rank + std::min<index>(rank, larger_); }
    index end(int rank) const noexcept { return begin(rank + 1); }
    index size(int rank) const noexcept { return each_ + (rank < larger_ ? 1 : 0); }
    IndexRange part(int rank) const noexcept { return {begin(rank), end(rank)}; }
    /// The rank whose part has thing `i`, which lies in [0, total).
    int owner(index i) const noexcept {
        return static_cast<int>(i < inLarger_ ? i / (each_ + 1) : larger_ + (i - inLarger_) / each_);
    }

  private:
    index each_;     ///< in the smaller parts
    index larger_;   ///< so many parts have one more
    index inLarger_; ///< things in these
};

} // namespace DNDS
