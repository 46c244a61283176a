/// @file IndexPermutation.hpp
/// @brief A pseudo-random bijection of an index range that every rank can evaluate without a table.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <array>
#include <cstdint>

namespace DNDS::Geom {

/// Scrambles 64 bits so that neighbouring inputs give unrelated outputs (the finalizer of SplitMix64: Steele, Lea and
/// Flood, Fast splittable pseudorandom number generators, OOPSLA 2014). A bijection. Local.
constexpr std::uint64_t mixBits(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/// A bijection of {0, ..., size - 1} chosen by a seed, the same on every rank and for any number of ranks.
///
/// Memory O(1); each evaluation walks a four-round Feistel network over the next power of four until it falls into the
/// range, fewer than four times on average (Black and Rogaway, Ciphers with arbitrary finite domains, CT-RSA 2002). All
/// functions are Local.
class IndexPermutation {
  public:
    /// Throws ArgumentError for a negative size.
    IndexPermutation(index size, std::uint64_t seed);

    index size() const noexcept { return size_; }
    /// The image of `i` in [0, size).
    index operator()(index i) const;
    /// The preimage of `i` in [0, size): `inverse((*this)(i)) == i`.
    index inverse(index i) const;

  private:
    std::uint64_t roundValue(std::uint64_t half, std::size_t round) const {
        return mixBits(half ^ keys_[round]) & halfMask_;
    }

    index size_;
    int halfBits_ = 0;
    std::uint64_t halfMask_ = 0;
    std::array<std::uint64_t, 4> keys_{};
};

} // namespace DNDS::Geom
