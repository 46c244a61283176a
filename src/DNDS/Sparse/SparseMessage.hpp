/// @file SparseMessage.hpp
/// @brief Layout of the rims of sparse blocks in a message: bits first, then data.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace DNDS {

/// Header of a message. It is followed by
/// - a bit for each field and channel: whether data follow (channel c of field f is bit f * channels + c)
/// - the data in the same order, at their `DataPlaces`; with `apart` they are a message in device memory instead
/// - in pushes, the number of the block from which each of these data is, 4 bytes.
/// No place or size is sent: both ranks compute them from the bits and from the channels, which they know alike. An
/// empty exchange of 1,000 channels and one field takes 160 bytes.
struct SparseHeader {
    std::uint64_t epoch = 0;     ///< exchanges begun by the sender: must be the receiver's
    std::uint64_t signature = 0; ///< signature of pattern, fields and thresholds; plus 1 + PushOp in pushes
    std::uint64_t stages = 0;    ///< hash of the positions of the stages 0, which `swapStages` moves
    std::uint64_t apart = 0;     ///< 1: data are a message of their own
};
inline constexpr std::size_t sparseHeaderBytes = sizeof(SparseHeader);

constexpr std::size_t alignTo8(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

/// The places of rims in the data of a message: one after another without gaps, except that each field begins at a
/// multiple of 8 bytes, so that kernels read aligned elements.
struct DataPlaces {
    std::size_t end = 0;
    std::size_t field = 0; ///< field of the last rim

    /// The place that the next rim would have if it were of field `f`.
    std::size_t next(std::size_t f) const noexcept { return f == field ? end : alignTo8(end); }
    /// Adds that rim, of `bytes` bytes, and returns its place.
    std::size_t add(std::size_t f, std::size_t bytes) noexcept {
        const std::size_t at = next(f);
        end = at + bytes;
        field = f;
        return at;
    }
};

/// Bits in words of the caller: a set of n bits is visited in O(n / 64 + set bits).
namespace Bits {

inline std::size_t words(std::size_t bits) noexcept { return (bits + 63) / 64; }
inline bool test(const std::uint64_t *bits, std::size_t k) noexcept { return (bits[k / 64] >> k % 64 & 1U) != 0; }
inline void set(std::uint64_t *bits, std::size_t k) noexcept { bits[k / 64] |= std::uint64_t{1} << k % 64; }
inline void unset(std::uint64_t *bits, std::size_t k) noexcept { bits[k / 64] &= ~(std::uint64_t{1} << k % 64); }
/// Calls `visit(k)` for set bits, ascending; bit k may be unset meanwhile.
template <class Visit>
void forEach(const std::uint64_t *bits, std::size_t words, Visit &&visit) {
    for (std::size_t w = 0; w < words; ++w)
        for (std::uint64_t rest = bits[w]; rest != 0; rest &= rest - 1)
            visit(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
}

} // namespace Bits

/// Calls `visit(field, channel)` for set bits, ascending; bit field * channels + channel may be unset meanwhile.
template <class Visit>
void forEachChannel(const std::uint64_t *bits, std::size_t words, std::size_t channels, Visit &&visit) {
    std::size_t field = 0;
    std::size_t first = 0; // of this field: no divisions
    Bits::forEach(bits, words, [&](std::size_t bit) {
        for (; bit - first >= channels; first += channels)
            ++field;
        visit(field, bit - first);
    });
}

/// A set of blocks of this rank, one bit each. Loops cost O(blocks / 64 + members).
class BlockBits {
  public:
    void resize(std::size_t blocks) { words_.assign(Bits::words(blocks), 0); }
    void clear() noexcept { std::fill(words_.begin(), words_.end(), 0); }
    bool test(int block) const noexcept { return Bits::test(words_.data(), static_cast<std::size_t>(block)); }
    void set(int block) noexcept { Bits::set(words_.data(), static_cast<std::size_t>(block)); }
    void unset(int block) noexcept { Bits::unset(words_.data(), static_cast<std::size_t>(block)); }
    bool any() const noexcept {
        return std::any_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word != 0; });
    }
    template <class Visit>
    void forEach(Visit &&visit) const {
        Bits::forEach(words_.data(), words_.size(), [&](std::size_t block) { visit(static_cast<int>(block)); });
    }

  private:
    std::vector<std::uint64_t> words_;
};

} // namespace DNDS
