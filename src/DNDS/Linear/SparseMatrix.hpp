/// @file SparseMatrix.hpp
/// @brief A distributed sparse matrix of numbers or of small blocks.
#pragma once

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Linear/MatrixPattern.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace DNDS {

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
    void finish() {
        if (!pattern_->keepsGhostRows())
            return;
        values_.trans.startPersistentPush();
        values_.trans.waitPersistentPush();
        std::ranges::fill(rowsOf(*values_.son), real(0));
    }

    /// y = A x, overlapped with a pull of x: prepare it once, `x.trans.initPersistentPull()`. Ghosts of y are stale
    /// afterwards. Collective. Rows are summed in the order of the pattern. Throws ArgumentError if x and y are one
    /// vector, LayoutError if rows differ, StateError for vectors of another pattern, StaleError for vectors on the
    /// device.
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
    Values values_;
};

} // namespace DNDS
