/// @file RowMask.hpp
/// @brief A set of rows, one bit a row, for the analysis of graphs.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <bit>
#include <cstdint>
#include <vector>

namespace DNDS::Task {

/// A set of rows out of [0, size). Local. Operations on two sets need equal sizes.
class RowMask {
  public:
    RowMask() = default;
    /// No rows of [0, size).
    explicit RowMask(index size) : words_(toSize((size + 63) / 64)), size_(size) {}
    /// The rows [first, last) out of [0, size).
    RowMask(index size, index first, index last) : RowMask(size) { setRange(first, last); }

    /// The limit of row numbers. `count` is the number of rows in the set.
    index size() const noexcept { return size_; }
    /// Whether `row`, of [0, size), is in the set.
    bool test(index row) const noexcept { return (words_[toSize(row) / 64] >> (row % 64) & 1U) != 0; }
    /// Adds a row, or the rows [first, last), all of [0, size).
    void set(index row) noexcept { words_[toSize(row) / 64] |= std::uint64_t{1} << (row % 64); }
    void setRange(index first, index last) noexcept {
        for (; first < last && first % 64 != 0; ++first)
            set(first);
        for (; first + 64 <= last; first += 64)
            words_[toSize(first) / 64] = ~std::uint64_t{0};
        for (; first < last; ++first)
            set(first);
    }
    /// Removes all rows. O(size).
    void clear() noexcept { words_.assign(words_.size(), 0); }

    /// Adds the rows of `other`, or keeps only the rows of `other`. O(size).
    RowMask &operator|=(const RowMask &other) noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            words_[k] |= other.words_[k];
        return *this;
    }
    RowMask &operator&=(const RowMask &other) noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            words_[k] &= other.words_[k];
        return *this;
    }
    /// Removes the rows of `other`.
    RowMask &operator-=(const RowMask &other) noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            words_[k] &= ~other.words_[k];
        return *this;
    }

    /// Whether there are rows in the set; whether some are in both sets. O(size).
    bool any() const noexcept {
        for (const std::uint64_t word : words_)
            if (word != 0)
                return true;
        return false;
    }
    bool intersects(const RowMask &other) const noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            if ((words_[k] & other.words_[k]) != 0)
                return true;
        return false;
    }
    /// Whether all rows of `other` are in this set.
    bool contains(const RowMask &other) const noexcept {
        for (std::size_t k = 0; k < words_.size(); ++k)
            if ((other.words_[k] & ~words_[k]) != 0)
                return false;
        return true;
    }
    /// The number of rows in the set. O(size).
    index count() const noexcept {
        index rows = 0;
        for (const std::uint64_t word : words_)
            rows += std::popcount(word);
        return rows;
    }
    /// Calls `visit(row)` for each row, ascending.
    template <class Visit>
    void forEach(Visit &&visit) const {
        for (std::size_t k = 0; k < words_.size(); ++k)
            for (std::uint64_t word = words_[k]; word != 0; word &= word - 1)
                visit(static_cast<index>(k * 64) + std::countr_zero(word));
    }
    /// The rows of the set, ascending. O(size).
    std::vector<LocalIndex> list() const {
        std::vector<LocalIndex> rows;
        rows.reserve(toSize(count()));
        forEach([&](index row) { rows.push_back(static_cast<LocalIndex>(row)); });
        return rows;
    }

  private:
    std::vector<std::uint64_t> words_;
    index size_ = 0;
};

} // namespace DNDS::Task
