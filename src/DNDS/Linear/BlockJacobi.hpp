/// @file BlockJacobi.hpp
/// @brief The preconditioner that inverts the diagonal blocks of a matrix.
#pragma once

#include "DNDS/Linear/SparseMatrix.hpp"

#include <Eigen/LU>

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace DNDS {

/// z = D^-1 r for the diagonal blocks D of a matrix, on the host. It keeps the inverses: [owned rows x b x b].
template <int b>
class BlockJacobi {
    using Block = typename SparseMatrix<b>::Block;
    using Row = Eigen::Matrix<real, b, 1>;

  public:
    /// Collective. O(rows b^3). Throws ArgumentError on all ranks if a block is singular to rounding, whatever the
    /// units of its rows and columns, or not finite; the message names its row.
    explicit BlockJacobi(const SparseMatrix<b> &matrix) {
        const MatrixPattern &pattern = matrix.pattern();
        pattern.unknowns()->context().comm().guarded([&] {
            inverses_.reserve(static_cast<std::size_t>(pattern.rows()));
            for (index row = 0; row < pattern.rows(); ++row) {
                const Block block =
                    matrix.at(static_cast<std::size_t>(pattern.starts()[static_cast<std::size_t>(row)]));
                const std::optional<Block> inverse = inverseOf(block);
                DNDS_CHECK(inverse.has_value(), ArgumentError,
                           "the matrix '{}' has no block Jacobi preconditioner: the diagonal block of own row {} of "
                           "rank {} is {}; is there a row without an equation of its own?",
                           matrix.name(), row, pattern.unknowns()->context().comm().rank(),
                           block.allFinite() ? "singular to rounding" : "not finite");
                inverses_.push_back(*inverse);
            }
        });
    }

    /// Sets the owned rows of z. Local. Throws LayoutError for vectors of other rows.
    void operator()(const ArrayDof<b, 1> &r, ArrayDof<b, 1> &z) const {
        DNDS_CHECK(static_cast<std::size_t>(r.father->size()) == inverses_.size() &&
                       z.father->size() == r.father->size(),
                   LayoutError, "the preconditioner has {} rows, but '{}' has {} and '{}' {}", inverses_.size(),
                   r.father->label(), r.father->size(), z.father->label(), z.father->size());
        const real *from = std::as_const(*r.father).data();
        real *to = z.father->data();
        for (const Block &inverse : inverses_) {
            Eigen::Map<Row>(to).noalias() = inverse * Eigen::Map<const Row>(from);
            from += b;
            to += b;
        }
    }

  private:
    /// A power of two that makes the largest of these magnitudes a number between 1 and 2; 0 if they are all 0.
    static real scaleOf(real largest) { return largest > 0 ? std::ldexp(1.0, -std::ilogb(largest)) : 0; }

    /// Empty if rows or columns are linearly dependent up to rounding. Scales their units away first.
    /// Full pivoting tells the rank; powers of two scale without rounding. Equilibration as in LAPACK's geequb: rows
    /// first, then columns. D^-1 = columns (rows D columns)^-1 rows.
    /// Without scaling, a block that couples, say, pressures and mass fractions would look singular. O(b^3).
    static std::optional<Block> inverseOf(const Block &block) {
        const Row rows = block.cwiseAbs().rowwise().maxCoeff().unaryExpr(&scaleOf);
        Block scaled = rows.asDiagonal() * block;
        const Row columns = scaled.cwiseAbs().colwise().maxCoeff().transpose().unaryExpr(&scaleOf);
        scaled *= columns.asDiagonal();
        if (!scaled.allFinite())
            return std::nullopt;
        Eigen::FullPivLU<Eigen::Matrix<real, b, b>> factors(scaled);
        factors.setThreshold(10 * b * std::numeric_limits<real>::epsilon());
        if (!factors.isInvertible())
            return std::nullopt;
        const Block ofScaled = factors.inverse();
        const Block inverse = columns.asDiagonal() * ofScaled * rows.asDiagonal();
        return inverse.allFinite() ? std::optional<Block>(inverse) : std::nullopt;
    }

    /// [owned rows]; copies, so that the matrix may change or end.
    std::vector<Block> inverses_;
};

} // namespace DNDS
