/// @file ArrayEigenMatrixView.hpp
/// @brief What kernels see of an array of matrices: Eigen maps of its rows.
#pragma once

#include "DNDS/Array/MatrixShape.hpp"
#include "DNDS/Storage/ArrayView.hpp"
#include "DNDS/Storage/WithGeometry.hpp"

#include <type_traits>

namespace DNDS {

/// A trivially copyable window on an `ArrayEigenMatrix`; `T` is real or const real. Taken and used as `ArrayView`,
/// except that a row is an Eigen map. All functions are Local, O(1), and usable on host and device.
///
///     auto a = jacobians.view();              // jacobians: ArrayEigenMatrix<3, 3>
///     for (index cell = 0; cell < a.size(); ++cell)
///         a[cell] += 2 * Eigen::Matrix3d::Identity();
template <class T, rowsize m, rowsize n, rowsize mMax = m, rowsize nMax = n, int align = NoAlign>
class ArrayEigenMatrixView {
  public:
    using Traits = MatrixTraits<m, n, mMax, nMax>;
    using Matrix = typename Traits::Matrix;
    using Map = MatrixMap<Matrix, T, align>;
    using Rows = ArrayView<T, Traits::rowSize, Traits::rowMax, align>;
    using Geometry = MatrixGeometry<m, n>;

    ArrayEigenMatrixView() = default;
    /// The matrices in `rows`, of which `shapes` tells the shapes.
    DNDS_HOST_DEVICE ArrayEigenMatrixView(const Rows &rows, const Geometry &shapes) : parts_(rows, shapes) {}
    /// A mutable view is a const view, too.
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE
        ArrayEigenMatrixView(const ArrayEigenMatrixView<U, m, n, mMax, nMax, align> &other)
        : parts_(other.rows(), other.geometry()) {}

    /// The number of rows: one matrix each.
    DNDS_HOST_DEVICE index size() const { return rows().size(); }
    /// The number of elements of the matrix of row `i`.
    DNDS_HOST_DEVICE rowsize rowSize(index i) const { return rows().rowSize(i); }
    /// Rows and columns of the matrix of row `i`.
    DNDS_HOST_DEVICE MatrixShape matrixShape(index i) const { return geometry().shape(i, rows().rowSize(i)); }

    /// The matrix of row `i`.
    DNDS_HOST_DEVICE Map operator[](index i) const {
        const MatrixShape shape = matrixShape(i);
        return Map(rows()[i], shape.rows, shape.cols);
    }
    /// Element `j` of row `i`, counted down the columns.
    DNDS_HOST_DEVICE T &operator()(index i, rowsize j) const { return rows()(i, j); }
    /// Element (`row`, `col`) of the matrix of row `i`.
    DNDS_HOST_DEVICE T &operator()(index i, rowsize row, rowsize col) const {
        return rows()(i, col * matrixShape(i).rows + row);
    }

    /// The rows as plain elements.
    DNDS_HOST_DEVICE const Rows &rows() const { return parts_.member(); }
    DNDS_HOST_DEVICE Geometry geometry() const { return parts_.geometry(); }

  private:
    WithGeometry<Rows, Geometry> parts_;
};

} // namespace DNDS
