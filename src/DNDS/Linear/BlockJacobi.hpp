/// @file BlockJacobi.hpp
/// @brief The preconditioner that inverts the diagonal blocks of a matrix.
#pragma once

#include "DNDS/Linear/SparseMatrix.hpp"

#include <Eigen/LU>

#include <cstddef>
#include <utility>
#include <vector>

namespace DNDS {

/// z = D^-1 r for the diagonal blocks D of a matrix, on the host. It keeps the inverses: [owned rows x b x b].
template <int b>
class BlockJacobi {
    using Block = typename SparseMatrix<b>::Block;
    using Row = Eigen::Matrix<real, b, 1>;

  public:
    /// Collective. O(rows). Throws ArgumentError on all ranks where a block has no inverse, which names its row.
    explicit BlockJacobi(const SparseMatrix<b> &matrix) {
        const MatrixPattern &pattern = matrix.pattern();
        pattern.unknowns()->context().comm().guarded([&] {
            inverses_.reserve(static_cast<std::size_t>(pattern.rows()));
            for (index row = 0; row < pattern.rows(); ++row) {
                const Block block =
                    matrix.at(static_cast<std::size_t>(pattern.starts()[static_cast<std::size_t>(row)]));
                inverses_.push_back(block.inverse());
                DNDS_CHECK(
                    inverses_.back().allFinite(), ArgumentError,
                    "the matrix '{}' has no block Jacobi preconditioner: the diagonal block of own row {} is singular",
                    matrix.name(), row);
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
    std::vector<Block> inverses_;
};

} // namespace DNDS
