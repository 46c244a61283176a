/// @file RowList.hpp
/// @brief The numbers of the rows that one peer gives or gets, shared by all exchanges that move them.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// Rows in the order in which they are moved: a range, or a list that somebody else keeps. What copying needs to know
/// about a list is found out once, on first use, and shared by all gathers of it. Not for several threads at a time.
class RowList {
  public:
    /// The rows from `first` up to but without `last`.
    RowList(index first, index last) : range_(true), first_(first), count_(last - first) {}
    /// The rows of a list, which outlives this object.
    explicit RowList(std::span<const index> rows) : rows_(rows), count_(static_cast<index>(rows.size())) {}

    /// Whether this was made as a range, from `first()`.
    bool isRange() const noexcept { return range_; }
    index first() const noexcept { return range_ || rows_.empty() ? first_ : rows_.front(); }
    index count() const noexcept { return count_; }
    /// The listed rows; empty for a range.
    std::span<const index> list() const noexcept { return rows_; }

    template <class Function>
    void forEach(Function &&function) const {
        for (index row = first_; range_ && row < first_ + count_; ++row)
            function(row);
        for (const index row : rows_)
            function(row);
    }

    /// How a list that is not empty spreads. O(rows) once, then O(1).
    struct Extent {
        index least = 0;
        index most = 0;
        std::size_t runs = 0; ///< of consecutive rows
    };
    const Extent &extent() const;

    /// The listed rows, counted from the least of them; null where they do not fit 32 bits. O(rows) once, then O(1);
    /// kept as long as this object or one that got them.
    const std::shared_ptr<const std::vector<std::uint32_t>> &numbers() const;

  private:
    std::span<const index> rows_;
    bool range_ = false;
    index first_ = 0;
    index count_ = 0;
    mutable Extent extent_;
    mutable std::shared_ptr<const std::vector<std::uint32_t>> numbers_;
};

} // namespace DNDS
