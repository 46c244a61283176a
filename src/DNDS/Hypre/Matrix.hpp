/// @file Matrix.hpp
/// @brief Conversion of sparse matrices of DNDS to those of hypre.
#pragma once

#include "DNDS/Hypre/Vector.hpp"
#include "DNDS/Linear/GlobalEntries.hpp"
#include "DNDS/Linear/SparseMatrix.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <HYPRE_IJ_mv.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::Hypre {

/// A ParCSR matrix of hypre with the entries of a SparseMatrix, on its own communicator: blocks become b rows and b
/// columns of numbers. It is a copy, because hypre separates the columns of this rank from those of other ranks.
/// Entries whose columns are copies of one row (periodic images) are added.
template <int b>
class Matrix {
  public:
    /// Collective. O(entries). Throws on all ranks StateError for a pattern without global numbers, ArgumentError if
    /// hypre's integers are too short or an entry is not finite, and errors of hypre (`check`); on this rank alone
    /// StateError for a matrix that has been moved from.
    explicit Matrix(const SparseMatrix<b> &matrix)
        : comm_(Communicator::duplicate(commOf(matrix))), global_(globalOf(matrix)) {
        std::optional<GlobalEntries<HYPRE_BigInt>> entries;
        comm_.view().guarded([&] {
            entries.emplace(matrix.pattern(), "a matrix of hypre");
            (void)toHypreInt(global_->globalSize() * b, "the rows of a matrix");
        });
        comm_.view().guarded([&] { make(*entries); }); // separate, because hypre waits for all ranks there
        comm_.view().guarded([&] { fill(matrix, *entries); });
        comm_.view().guarded([&] { // likewise
            check(HYPRE_IJMatrixAssemble(matrix_.get()), "HYPRE_IJMatrixAssemble");
            void *object = nullptr;
            check(HYPRE_IJMatrixGetObject(matrix_.get(), &object), "HYPRE_IJMatrixGetObject");
            parcsr_ = static_cast<HYPRE_ParCSRMatrix>(object);
        });
    }

    /// The object of hypre, for its own calls.
    HYPRE_ParCSRMatrix get() const noexcept { return parcsr_; }
    /// The number of rows of all ranks, in blocks. Local. Throws StateError if this has been moved from.
    index globalRows() const {
        requireMine();
        return global_->globalSize();
    }
    /// The communicator in which hypre works.
    CommunicatorView comm() const { return comm_.view(); }

    /// The owned rows of `u` without a copy; hypre may change them. `u` must outlive the result. Local. Throws
    /// LayoutError for rows that differ from those of the matrix, StateError if this has been moved from.
    Vector vector(ArrayDof<b, 1> &u) const {
        requireRows(u);
        return Vector(comm_.view().handle(), *global_, b, u.father->data());
    }
    /// The same for a vector that hypre only reads.
    Vector vector(const ArrayDof<b, 1> &u) const {
        requireRows(u);
        // hypre has no vectors of const numbers.
        return Vector(comm_.view().handle(), *global_, b, const_cast<real *>(std::as_const(*u.father).data()));
    }

  private:
    struct Destroy {
        void operator()(HYPRE_IJMatrix matrix) const noexcept {
            if (mpiActive())
                HYPRE_IJMatrixDestroy(matrix);
        }
    };

    static CommunicatorView commOf(const SparseMatrix<b> &matrix) {
        DNDS_CHECK(matrix.sharedPattern() != nullptr, StateError, "this matrix has been moved from");
        return matrix.pattern().unknowns()->context().comm();
    }
    // Null for patterns from lists, which GlobalEntries rejects on all ranks.
    static std::shared_ptr<const GlobalMapping> globalOf(const SparseMatrix<b> &matrix) {
        const auto &mapping = matrix.pattern().unknowns()->mapping();
        return mapping != nullptr ? mapping->global() : nullptr;
    }
    // Exact numbers of entries in own and other columns: hypre then allocates once.
    void make(const GlobalEntries<HYPRE_BigInt> &entries) {
        const auto begin = static_cast<HYPRE_BigInt>(global_->localBegin() * b);
        const auto end = static_cast<HYPRE_BigInt>(begin + global_->localSize() * b);
        HYPRE_ClearAllErrors(); // clears errors of other callers
        HYPRE_IJMatrix made = nullptr;
        check(HYPRE_IJMatrixCreate(comm_.view().handle(), begin, end - 1, begin, end - 1, &made),
              "HYPRE_IJMatrixCreate");
        matrix_.reset(made);
        check(HYPRE_IJMatrixSetObjectType(made, HYPRE_PARCSR), "HYPRE_IJMatrixSetObjectType");
        const auto spread = [](const std::vector<HYPRE_BigInt> &blocks) {
            std::vector<HYPRE_Int> rows;
            rows.reserve(blocks.size() * b);
            for (const HYPRE_BigInt count : blocks)
                rows.insert(rows.end(), b, static_cast<HYPRE_Int>(count * b));
            return rows;
        };
        check(HYPRE_IJMatrixSetDiagOffdSizes(made, spread(entries.own).data(), spread(entries.others).data()),
              "HYPRE_IJMatrixSetDiagOffdSizes");
        check(HYPRE_IJMatrixInitialize(made), "HYPRE_IJMatrixInitialize");
    }
    // One row of numbers at a time; blocks of the pattern are spread over b of them. hypre adds repeated columns.
    void fill(const SparseMatrix<b> &matrix, const GlobalEntries<HYPRE_BigInt> &entries) {
        const MatrixPattern &pattern = matrix.pattern();
        std::vector<HYPRE_BigInt> columns;
        std::vector<real> values;
        auto number = static_cast<HYPRE_BigInt>(global_->localBegin() * b);
        for (index row = 0; row < pattern.rows(); ++row)
            for (int i = 0; i < b; ++i, ++number) {
                columns.clear();
                values.clear();
                const auto begin = static_cast<std::size_t>(pattern.starts()[static_cast<std::size_t>(row)]);
                for (std::size_t at = begin; at < begin + pattern.columns(row).size(); ++at)
                    for (int j = 0; j < b; ++j) {
                        columns.push_back(entries.columns[at] * b + j);
                        values.push_back(matrix.at(at)(i, j));
                    }
                DNDS_CHECK(std::ranges::all_of(values, [](real value) { return std::isfinite(value); }), ArgumentError,
                           "the matrix '{}' has an entry in own row {} that is not finite", matrix.name(), row);
                auto count = static_cast<HYPRE_Int>(columns.size());
                check(HYPRE_IJMatrixAddToValues(matrix_.get(), 1, &count, &number, columns.data(), values.data()),
                      "HYPRE_IJMatrixAddToValues");
            }
    }
    void requireMine() const { DNDS_CHECK(global_ != nullptr, StateError, "this matrix of hypre has been moved from"); }
    void requireRows(const ArrayDof<b, 1> &u) const {
        requireMine();
        DNDS_CHECK(u.father->size() == global_->localSize(), LayoutError,
                   "the matrix has {} owned rows, but the vector '{}' {}", global_->localSize(), u.father->label(),
                   u.father->size());
    }

    Communicator comm_;
    std::shared_ptr<const GlobalMapping> global_;
    std::unique_ptr<std::remove_pointer_t<HYPRE_IJMatrix>, Destroy> matrix_;
    HYPRE_ParCSRMatrix parcsr_ = nullptr; ///< in it
};

} // namespace DNDS::Hypre
