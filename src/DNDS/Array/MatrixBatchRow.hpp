/// @file MatrixBatchRow.hpp
/// @brief Several matrices of different shapes in one row of reals: how they are encoded, found and sized.
#pragma once

#include "DNDS/Array/MatrixShape.hpp"
#include "DNDS/Base/Error.hpp"

#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace DNDS {

/// What a row says about one of its matrices.
struct MatrixBatchEntry {
    MatrixShape shape;
    index start = 0; ///< where its elements begin, in reals from the beginning of the row
};
static_assert(sizeof(MatrixBatchEntry) == 2 * sizeof(real) && sizeof(index) == sizeof(real));

/// Reads a row of an `ArrayEigenMatrixBatch`; `T` is real or const real. Trivially copyable.
///
/// A row without elements has no matrices. Otherwise its first real holds the bits of their number (int64), the next
/// ones those of a MatrixBatchEntry a matrix, and then come the matrices, column-major without gaps. So a row moves
/// between ranks as it is, and a row of zeros, as ghosts are before their first pull, has no matrices.
template <class T>
class MatrixBatchRow {
  public:
    using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic>;
    using Map = MatrixMap<Matrix, T, NoAlign>;

    /// The `size` elements of a row from `row` on.
    DNDS_HOST_DEVICE MatrixBatchRow(T *row, rowsize size) : row_(row), size_(size) {}

    /// How many matrices the row has; where number `k` lies, and its shape; and number `k` itself.
    DNDS_HOST_DEVICE rowsize batchSize() const {
        if (size_ == 0)
            return 0;
        index count = 0;
        std::memcpy(&count, row_, sizeof count);
        return static_cast<rowsize>(count);
    }
    DNDS_HOST_DEVICE MatrixBatchEntry entry(rowsize k) const {
        MatrixBatchEntry entry;
        std::memcpy(static_cast<void *>(&entry), row_ + 1 + 2 * index{k}, sizeof entry);
        return entry;
    }
    DNDS_HOST_DEVICE Map batch(rowsize k) const {
        DNDS_DEBUG_CHECK(k >= 0 && k < batchSize(), IndexError, "batch: matrix {} is outside [0, {})", k, batchSize());
        const MatrixBatchEntry found = entry(k);
        return Map(row_ + found.start, found.shape.rows, found.shape.cols);
    }

  private:
    T *row_;
    rowsize size_;
};

/// The elements that a row of matrices of these shapes takes, 0 for none. @throws ArgumentError for negative or too
/// large shapes.
rowsize matrixBatchRowSize(std::span<const MatrixShape> shapes, std::string_view label);

/// Makes `row`, which has that many elements, zero matrices of these shapes.
void startMatrixBatchRow(std::span<real> row, std::span<const MatrixShape> shapes);

} // namespace DNDS
