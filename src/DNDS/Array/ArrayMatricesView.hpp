/// @file ArrayMatricesView.hpp
/// @brief Views of arrays of matrices in kernels: Eigen maps of their rows.
#pragma once

#include "DNDS/Array/MatrixShapes.hpp"
#include "DNDS/Storage/ArrayView.hpp"
#include "DNDS/Storage/WithGeometry.hpp"

#include <type_traits>

namespace DNDS {

/// A trivially copyable view of an `ArrayMatrices`; `T` is real or const real. Taken and used as `ArrayView`, except
/// that rows are matrices. All functions are Local, O(1), and usable on host and device.
///
///     auto a = jacobians.view();              // jacobians: ArrayEigenMatrix<3, 3>
///     for (index cell = 0; cell < a.size(); ++cell)
///         a[cell] += 2 * Eigen::Matrix3d::Identity();
template <class T, class Shapes, int align = NoAlign>
class ArrayMatricesView {
  public:
    using Rows = ArrayView<T, Shapes::rowSize, Shapes::rowMax, align>;
    using Geometry = typename Shapes::Geometry;
    using Map = MatrixMap<typename Shapes::Matrix, T, align>;

    ArrayMatricesView() = default;
    /// The matrices in `rows`, with shapes from `shapes`.
    DNDS_HOST_DEVICE ArrayMatricesView(const Rows &rows, const Geometry &shapes) : parts_(rows, shapes) {}
    /// A mutable view is also a const view.
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE
        ArrayMatricesView(const ArrayMatricesView<U, Shapes, align> &other)
        : parts_(other.rows(), other.geometry()) {}

    /// The number of rows, and of elements of row `i`.
    DNDS_HOST_DEVICE index size() const { return rows().size(); }
    DNDS_HOST_DEVICE rowsize rowSize(index i) const { return rows().rowSize(i); }
    /// Rows and columns of the matrix of row `i`; of a batch, those of all matrices.
    DNDS_HOST_DEVICE MatrixShape matrixShape(index i) const requires(!Shapes::batch) {
        return geometry().shape(i, rows().rowSize(i));
    }
    DNDS_HOST_DEVICE MatrixShape matrixShape() const requires(Shapes::batch) { return geometry().shape(0, 0); }

    /// The matrix of row `i`; of a batch, all its matrices (`MatrixBatchRow`) or, if they have one size, these
    /// side by side: [m x (n * batchSize)].
    DNDS_HOST_DEVICE auto operator[](index i) const {
        return Shapes::template row<align>(rows()[i], i, rows().rowSize(i), geometry());
    }
    /// Element `j` of row `i`, in column-major order; of a batch, matrix `j`.
    DNDS_HOST_DEVICE decltype(auto) operator()(index i, rowsize j) const {
        if constexpr (Shapes::batch)
            return batch(i, j);
        else
            return rows()(i, j);
    }
    /// Element (`row`, `col`) of the matrix of row `i`.
    DNDS_HOST_DEVICE T &operator()(index i, rowsize row, rowsize col) const requires(!Shapes::batch) {
        return rows()(i, col * matrixShape(i).rows + row);
    }
    /// Batches: the number of matrices of row `i`; matrix `k` of them.
    DNDS_HOST_DEVICE rowsize batchSize(index i) const requires(Shapes::batch) {
        return Shapes::count(rows()[i], rows().rowSize(i), geometry());
    }
    DNDS_HOST_DEVICE Map batch(index i, rowsize k) const requires(Shapes::batch) {
        DNDS_DEBUG_CHECK(k >= 0 && k < batchSize(i), IndexError, "batch: matrix {} is outside [0, {})", k,
                         batchSize(i));
        return Shapes::matrix(rows()[i], k, geometry());
    }

    /// The rows as plain elements.
    DNDS_HOST_DEVICE const Rows &rows() const { return parts_.member(); }
    DNDS_HOST_DEVICE Geometry geometry() const { return parts_.geometry(); }

  private:
    WithGeometry<Rows, Geometry> parts_;
};

/// The views of the arrays of these names.
template <class T, rowsize m, rowsize n, rowsize mMax = m, rowsize nMax = n, int align = NoAlign>
using ArrayEigenMatrixView = ArrayMatricesView<T, OneMatrix<m, n, mMax, nMax>, align>;
template <class T, rowsize m, rowsize n>
using ArrayEigenUniMatrixBatchView = ArrayMatricesView<T, EqualMatrices<m, n>>;
template <class T>
using ArrayEigenMatrixBatchView = ArrayMatricesView<T, DifferingMatrices>;

} // namespace DNDS
