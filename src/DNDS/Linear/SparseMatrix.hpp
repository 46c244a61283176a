/// @file SparseMatrix.hpp
/// @brief A distributed sparse matrix of numbers or of small blocks.
///
/// - `MatrixPattern`: its sparsity pattern
/// - `GlobalEntries`: its entries by global numbers, as other libraries take them
/// - `eigenMatrix`: a matrix on one rank for Eigen
#pragma once

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <Eigen/SparseCore>

#include <algorithm>
#include <cstddef>
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
    /// CSR; owned rows, then ghost rows if they are kept.
    std::vector<LocalIndex> starts_{0};
    std::vector<LocalIndex> columns_;
    std::vector<LocalIndex> inner_;
    std::vector<LocalIndex> border_;
    bool keepsGhostRows_ = false;
};

/// A square sparse matrix of b x b blocks over the rows of distributed arrays: [owned rows], on the host. It multiplies
/// `ArrayDof<b, 1>` of the same pattern; other libraries get its lists without a copy (docs/guides/linear.md).
///
///     SparseMatrix<> a("laplacian", pattern);
///     for (...)
///         a.add(row, column, value);            // local numbers; also to ghost rows that the pattern keeps
///     a.finish();                               // sends what was added to ghost rows to their owners
///     a.multiply(x, y);                         // y = A x
template <int b = 1>
class SparseMatrix {
    static_assert(b >= 1, "blocks have at least one row");

  public:
    using Vector = ArrayDof<b, 1>;
    using Block = Eigen::Matrix<real, b, b, b == 1 ? Eigen::ColMajor : Eigen::RowMajor>;
    static constexpr int blockSize = b;

    /// A matrix of zeros. Collective. O(entries).
    SparseMatrix(const std::string &name, std::shared_ptr<const MatrixPattern> pattern) : pattern_(std::move(pattern)) {
        DNDS_CHECK(pattern_ != nullptr, ArgumentError, "the matrix '{}' needs a pattern", name);
        const CommunicatorView comm = pattern_->unknowns()->context().comm();
        values_.initPair(name, comm);
        const index owned = pattern_->rows();
        const auto width = [&](index row) { return static_cast<rowsize>(pattern_->columns(row).size() * b * b); };
        comm.guarded([&] { values_.father->resize(owned, width); });
        if (!pattern_->keepsGhostRows())
            return;
        values_.transAttach();
        values_.trans.usePattern(pattern_->unknowns());
        values_.trans.createMPITypes();
        values_.trans.initPersistentPush(PushOp::Sum);
    }

    /// The sparsity pattern, and the name for messages. Local.
    const MatrixPattern &pattern() const noexcept { return *pattern_; }
    const std::shared_ptr<const MatrixPattern> &sharedPattern() const noexcept { return pattern_; }
    const std::string &name() const { return values_.father->name(); }

    /// Local, O(entries).
    void setZero() {
        std::ranges::fill(rowsOf(*values_.father), real(0));
        std::ranges::fill(rowsOf(*values_.son), real(0));
    }
    /// Adds to an entry, by local numbers. Local, O(entries of the row). Throws IndexError if it is missing.
    void add(index row, index column, const Block &value) { at(pattern_->find(row, column)) += value; }
    void add(index row, index column, real value) requires(b == 1) { at(pattern_->find(row, column))(0, 0) += value; }
    /// The entry at a position of `pattern().columns()`; row-major. Local, O(1).
    Eigen::Map<Block> at(std::size_t position) { return Eigen::Map<Block>(place(values_, position)); }
    Eigen::Map<const Block> at(std::size_t position) const {
        return Eigen::Map<const Block>(place(std::as_const(values_), position));
    }
    /// All entries of owned rows, in the order of `pattern().columns()`, each row-major. Local, O(1).
    std::span<const real> values() const { return rowsOf(std::as_const(*values_.father)); }

    /// Sends contributions to ghost rows to their owners, which add them, and zeroes the ghost rows. Collective; one
    /// push. Does nothing if the pattern keeps no ghost rows. Sums from several ranks are in rank order: their last
    /// bits depend on the partition. To avoid that, let each rank compute all contributions to its own rows.
    /// Entries of a ghost row have the positions of the owner's row: contributions are added without column numbers.
    void finish() {
        if (!pattern_->keepsGhostRows())
            return;
        values_.trans.startPersistentPush();
        values_.trans.waitPersistentPush();
        std::ranges::fill(rowsOf(*values_.son), real(0));
    }

    /// y = A x, overlapped with a pull of x: prepare it once, `x.trans.initPersistentPull()`. Ghosts of y are stale
    /// afterwards. Collective; O(entries) and one pull. Rows are summed in the order of the pattern. Throws
    /// ArgumentError if x and y are one vector, LayoutError if rows differ, StateError for vectors of another pattern,
    /// StaleError for vectors on the device.
    /// Inner rows are computed between start and wait, border rows after it; each row is summed in one go, so the
    /// overlap changes no bits.
    void multiply(Vector &x, Vector &y) const {
        requireMine(x);
        requireMine(y);
        DNDS_CHECK(x.father != y.father, ArgumentError,
                   "the matrix '{}' cannot multiply '{}' in place: rows of the product would be taken for those of the "
                   "vector; give another vector for the product",
                   name(), x.father->label());
        Product product{pattern_->starts().data(),
                        pattern_->columns().data(),
                        values().data(),
                        static_cast<LocalIndex>(pattern_->rows()),
                        std::as_const(*x.father).data(),
                        nullptr,
                        y.father->data()};
        x.trans.startPersistentPull();
        for (const LocalIndex row : pattern_->innerRows())
            product.compute(row);
        x.trans.waitPersistentPull();
        product.ghosts = std::as_const(*x.son).data();
        for (const LocalIndex row : pattern_->borderRows())
            product.compute(row);
    }

  private:
    using Values = ArrayPair<ParArray<real, NonUniformSize>>;
    /// The operands of a row's product.
    struct Product {
        const LocalIndex *starts;
        const LocalIndex *columns;
        const real *values;
        LocalIndex mine; ///< owned rows
        const real *owned;
        const real *ghosts;
        real *to;

        /// One row of the product: a compressed sparse row (BSR with b x b blocks).
        void compute(LocalIndex row) const {
            Eigen::Matrix<real, b, 1> sum = Eigen::Matrix<real, b, 1>::Zero();
            for (std::ptrdiff_t k = starts[row]; k < starts[row + 1]; ++k) {
                const std::ptrdiff_t column = columns[k];
                const real *const from = column < mine ? owned + column * b : ghosts + (column - mine) * b;
                sum += Eigen::Map<const Block>(values + k * b * b)
                           .lazyProduct(Eigen::Map<const Eigen::Matrix<real, b, 1>>(from));
            }
            Eigen::Map<Eigen::Matrix<real, b, 1>>(to + std::ptrdiff_t{row} * b) = sum;
        }
    };

    template <class TArray>
    static auto rowsOf(TArray &array) {
        return std::span(array.data(), static_cast<std::size_t>(array.dataSize()));
    }
    // Entries of ghost rows follow those of owned rows in positions, but are in the son's memory.
    template <class TValues>
    static auto *place(TValues &values, std::size_t position) {
        const std::size_t at = position * b * b;
        const auto owned = static_cast<std::size_t>(values.father->dataSize());
        return at < owned ? values.father->data() + at : values.son->data() + (at - owned);
    }
    void requireMine(const Vector &x) const {
        DNDS_CHECK(pattern_ != nullptr, StateError, "this matrix has been moved from");
        DNDS_CHECK(x.trans.pattern() == pattern_->unknowns(), StateError,
                   "the matrix '{}' and the vector '{}' have ghosts of different patterns: make the vector with the "
                   "pattern of the matrix (attachField, borrowGGIndexing)",
                   name(), x.father->label());
        DNDS_CHECK(x.father->size() == pattern_->rows(), LayoutError,
                   "the matrix '{}' has {} owned rows, but the vector '{}' {}", name(), pattern_->rows(),
                   x.father->label(), x.father->size());
    }
    std::shared_ptr<const MatrixPattern> pattern_;
    /// Each row holds the blocks of a row of the matrix, in the order of the pattern; the son has the ghost rows.
    Values values_;
};

/// The entries of the owned rows of a pattern, in integers of type `Int`, which must be wide enough for them.
/// Exact counts let PETSc and hypre allocate once; without them assembly would move entries again and again.
template <class Int>
struct GlobalEntries {
    /// Local, O(entries). Throws StateError, which names `what`, for a pattern without global numbers.
    GlobalEntries(const MatrixPattern &pattern, const char *what) {
        const auto &mapping = pattern.unknowns()->mapping();
        DNDS_CHECK(mapping != nullptr, StateError,
                   "the pattern '{}' was made from lists, without global numbers, which {} needs", pattern.name(),
                   what);
        columns.reserve(pattern.columns().size());
        for (index row = 0; row < pattern.rows(); ++row) {
            Int mine = 0;
            for (const LocalIndex column : pattern.columns(row)) {
                const index global = mapping->toGlobal(column);
                columns.push_back(static_cast<Int>(global));
                mine += mapping->global()->isLocal(global) ? 1 : 0; // also where a ghost copies an own row
            }
            own.push_back(mine);
            others.push_back(static_cast<Int>(pattern.columns(row).size()) - mine);
        }
    }

    std::vector<Int> columns; ///< global numbers of the columns of all entries, in the order of the pattern
    std::vector<Int> own;     ///< [owned rows] entries in columns of this rank
    std::vector<Int> others;  ///< [owned rows] entries in columns of other ranks
};

/// The matrix as a sparse matrix of Eigen that shares its memory. For matrices of numbers on one rank. Rows are not
/// sorted by columns; a column-major copy is: `Eigen::SparseMatrix<real> sorted = eigenMatrix(a);`, which direct
/// solvers take. Local, O(1). Throws StateError if rows have ghost columns, as on several ranks.
inline Eigen::Map<const Eigen::SparseMatrix<real, Eigen::RowMajor, LocalIndex>>
eigenMatrix(const SparseMatrix<1> &matrix) {
    const MatrixPattern &pattern = matrix.pattern();
    DNDS_CHECK(pattern.borderRows().empty(), StateError,
               "the matrix '{}' has {} rows with ghost columns here: Eigen's matrices are those of one rank",
               matrix.name(), pattern.borderRows().size());
    const auto entries = static_cast<Eigen::Index>(matrix.values().size());
    return {pattern.rows(),          pattern.rows(),           entries,
            pattern.starts().data(), pattern.columns().data(), matrix.values().data()};
}

} // namespace DNDS
