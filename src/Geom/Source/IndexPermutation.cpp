#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom {

/// halfBits_ is the least one with 4^halfBits_ >= size; 64-bit shifts allow at most 31 in the loop, and sizes beyond
/// 2^62 get 32.
IndexPermutation::IndexPermutation(index size, std::uint64_t seed) : size_(size) {
    DNDS_CHECK(size >= 0, ArgumentError, "a permutation of {} numbers: give at least 0", size);
    while (halfBits_ < 31 && (std::uint64_t{1} << (2 * halfBits_)) < static_cast<std::uint64_t>(size))
        halfBits_++;
    if ((std::uint64_t{1} << (2 * halfBits_)) < static_cast<std::uint64_t>(size))
        halfBits_ = 32;
    halfMask_ = (std::uint64_t{1} << halfBits_) - 1;
    for (std::uint64_t &key : keys_)
        key = seed = mixBits(seed);
}

/// Cycle walking: a bijection of the larger range is applied until it lands in [0, size). It ends, since the orbit of
/// `i` returns to `i` at the latest.
index IndexPermutation::operator()(index i) const {
    DNDS_DEBUG_CHECK(i >= 0 && i < size_, IndexError, "{} is outside of a permutation of {} numbers", i, size_);
    auto value = static_cast<std::uint64_t>(i);
    do {
        std::uint64_t left = value >> halfBits_;
        std::uint64_t right = value & halfMask_;
        for (std::size_t round = 0; round < keys_.size(); round++) {
            const std::uint64_t next = left ^ roundValue(right, round);
            left = right;
            right = next;
        }
        value = (left << halfBits_) | right;
    } while (value >= static_cast<std::uint64_t>(size_));
    return static_cast<index>(value);
}

/// The same rounds backwards, with the same walk.
index IndexPermutation::inverse(index i) const {
    DNDS_DEBUG_CHECK(i >= 0 && i < size_, IndexError, "{} is outside of a permutation of {} numbers", i, size_);
    auto value = static_cast<std::uint64_t>(i);
    do {
        std::uint64_t left = value >> halfBits_;
        std::uint64_t right = value & halfMask_;
        for (std::size_t round = keys_.size(); round-- > 0;) {
            const std::uint64_t before = right ^ roundValue(left, round);
            right = left;
            left = before;
        }
        value = (left << halfBits_) | right;
    } while (value >= static_cast<std::uint64_t>(size_));
    return static_cast<index>(value);
}

} // namespace DNDS::Geom
