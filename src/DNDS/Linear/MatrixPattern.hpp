/// @file MatrixPattern.hpp
/// @brief The sparsity pattern of a distributed matrix.
#pragma once

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

/// The entries of square sparse matrices whose rows and columns are the rows of distributed arrays, such as the cells
/// of a mesh. A rank has the rows that it owns; columns are local numbers, owned rows first, then ghosts. Shared by
/// matrices; immutable.
///
///     const auto pattern = MatrixPattern::create("cells", mesh.cells.pattern, mesh.cellCells);
///
/// An entry is a number, or a block of a fixed size. The diagonal comes first in each row, the others in the order of
/// the source list. If that order does not depend on the partition, as in the adjacencies of a mesh, neither do the
/// bits of products.
class MatrixPattern {
  public:
    using Neighbours = ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex>;
    /// Whether this rank may add to rows of other owners.
    enum class GhostRows : unsigned char {
        None,
        Kept ///< it may, and keeps the entries of ghost rows, like their owners
    };

    /// From lists of local numbers, for owned rows at least: `neighbours[row]`. Negative numbers, repetitions and the
    /// row itself are left out; the diagonal is always there. `unknowns` is the pattern by which ghosts of vectors are
    /// pulled. Collective. O(entries); with ghost rows a pull of their lists. Throws on all ranks LayoutError if
    /// rows are missing, IndexError for columns that are neither owned nor ghosts, ArgumentError beyond 2^31 - 1
    /// entries per rank, StateError for a pattern without a mapping where ghost rows are kept.
    static std::shared_ptr<const MatrixPattern> create(std::string name,
                                                       std::shared_ptr<const ExchangePattern> unknowns,
                                                       const Neighbours &neighbours,
                                                       GhostRows ghostRows = GhostRows::None);

    /// The name that `create` was given, for messages.
    const std::string &name() const noexcept { return name_; }
    /// The pattern of the vectors that the matrix multiplies.
    const std::shared_ptr<const ExchangePattern> &unknowns() const noexcept { return unknowns_; }
    /// Whether this was made with GhostRows::Kept, on all ranks.
    bool keepsGhostRows() const noexcept { return keepsGhostRows_; }
    /// Owned rows.
    index rows() const noexcept { return unknowns_->fatherSize(); }
    /// The number of ghost rows whose entries are kept: all ghosts or none.
    index ghostRows() const noexcept { return static_cast<index>(starts_.size()) - 1 - rows(); }
    /// [rows + ghost rows + 1], into `columns`. 32 bits, as other libraries expect.
    std::span<const LocalIndex> starts() const noexcept { return starts_; }
    /// Local numbers; -2 for a column of a ghost row of which this rank has no copy.
    std::span<const LocalIndex> columns() const noexcept { return columns_; }
    std::span<const LocalIndex> columns(index row) const {
        const auto begin = static_cast<std::size_t>(starts_[static_cast<std::size_t>(row)]);
        return std::span(columns_).subspan(begin, static_cast<std::size_t>(starts_[static_cast<std::size_t>(row) + 1]) -
                                                      begin);
    }
    /// The position in `columns()` of an entry. Local, O(entries of the row). Throws IndexError if it is missing.
    std::size_t find(index row, index column) const;

    /// Owned rows without ghost columns, ascending, to be multiplied during a pull. And the other owned rows.
    std::span<const LocalIndex> innerRows() const noexcept { return inner_; }
    std::span<const LocalIndex> borderRows() const noexcept { return border_; }

  private:
    MatrixPattern(std::string name, std::shared_ptr<const ExchangePattern> unknowns)
        : name_(std::move(name)), unknowns_(std::move(unknowns)) {}
    void addOwnedRows(const Neighbours &neighbours);
    void addGhostRows();

    std::string name_;
    std::shared_ptr<const ExchangePattern> unknowns_;
    std::vector<LocalIndex> starts_{0};
    std::vector<LocalIndex> columns_;
    std::vector<LocalIndex> inner_;
    std::vector<LocalIndex> border_;
    bool keepsGhostRows_ = false;
};

} // namespace DNDS
