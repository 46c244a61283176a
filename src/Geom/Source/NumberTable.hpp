/// @file NumberTable.hpp
/// @brief Finds the position of a number in a list of distinct numbers.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include <bit>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// A list of distinct numbers >= 0 with a hash table of their positions (open addressing). All functions are Local.
/// Linear probing (Knuth, The Art of Computer Programming, vol. 3, section 6.4), at most half full, and the hash
/// mixes all bits, since global numbers come in runs. Numbers are never removed. Positions follow the order of `add`,
/// so a table doubles as the list of local entities. 16 bytes a bucket, 32 to 64 a number.
class NumberTable {
  public:
    static constexpr LocalIndex none = -1;

    explicit NumberTable(std::size_t expected = 0) { rehash(expected); }
    /// Position `i` holds `numbers[i]`; they are distinct.
    explicit NumberTable(std::span<const index> numbers) : NumberTable(numbers.size()) {
        for (const index number : numbers)
            add(number);
    }

    index size() const noexcept { return static_cast<index>(numbers_.size()); }
    std::span<const index> numbers() const noexcept { return numbers_; }
    index operator[](LocalIndex position) const { return numbers_[static_cast<std::size_t>(position)]; }

    /// The position of `number`, appended if it is new, and whether it was. O(1) amortised. Throws ArgumentError beyond
    /// 2^31 - 1 numbers.
    std::pair<LocalIndex, bool> add(index number) {
        if (2 * (numbers_.size() + 1) > buckets_.size())
            rehash(2 * numbers_.size() + 1);
        std::size_t at = bucketOf(number);
        for (; buckets_[at].number != empty; at = (at + 1) & mask_)
            if (buckets_[at].number == number)
                return {buckets_[at].position, false};
        DNDS_CHECK(numbers_.size() < static_cast<std::size_t>(std::numeric_limits<LocalIndex>::max()), ArgumentError,
                   "more than {} entities on one rank do not fit 32-bit local numbers", numbers_.size());
        buckets_[at] = {number, static_cast<LocalIndex>(numbers_.size())};
        numbers_.push_back(number);
        return {buckets_[at].position, true};
    }
    /// The position of `number`, or `none`. O(1).
    LocalIndex find(index number) const noexcept {
        for (std::size_t at = bucketOf(number); buckets_[at].number != empty; at = (at + 1) & mask_)
            if (buckets_[at].number == number)
                return buckets_[at].position;
        return none;
    }

  private:
    static constexpr index empty = -1;
    struct Bucket {
        index number = empty;
        LocalIndex position = none;
    };
    std::size_t bucketOf(index number) const noexcept {
        return static_cast<std::size_t>(mixBits(static_cast<std::uint64_t>(number))) & mask_;
    }
    /// Buckets are rebuilt from `numbers_`: nothing is removed, so there are no tombstones.
    void rehash(std::size_t expected) {
        buckets_.assign(std::bit_ceil(2 * expected + 2), Bucket{});
        mask_ = buckets_.size() - 1;
        numbers_.reserve(expected);
        for (std::size_t i = 0; i < numbers_.size(); i++) {
            std::size_t at = bucketOf(numbers_[i]);
            while (buckets_[at].number != empty)
                at = (at + 1) & mask_;
            buckets_[at] = {numbers_[i], static_cast<LocalIndex>(i)};
        }
    }

    std::vector<index> numbers_;
    /// A power of two in number; `mask_` is that number less one.
    std::vector<Bucket> buckets_;
    std::size_t mask_ = 0;
};

} // namespace DNDS::Geom
