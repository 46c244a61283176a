/// @file EigenMatrix.hpp
/// @brief A view of a matrix on one rank for Eigen.
#pragma once

#include "DNDS/Linear/SparseMatrix.hpp"

#include <Eigen/SparseCore>

namespace DNDS {

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
