/// @file MatrixShape.hpp
/// @brief How the template parameters of matrix arrays choose shapes: the row layout, the Eigen types, and each row's
/// shape.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Storage/ArrayLayout.hpp"

#include <Eigen/Core>

#include <type_traits>

namespace DNDS {

/// Rows and columns of a matrix; DynamicSize where a number was not chosen yet, NonUniformSize where it has no limit.
struct MatrixShape {
    rowsize rows = 0;
    rowsize cols = 0;

    /// The number of elements, where rows and columns are known.
    DNDS_HOST_DEVICE constexpr rowsize size() const { return rows * cols; }
    friend constexpr bool operator==(const MatrixShape &, const MatrixShape &) = default;
};

/// What `ArrayEigenMatrix<m, n, mMax, nMax>` and its views know at compile time. A dimension is a number, DynamicSize
/// (the same for all rows, chosen at run time) or NonUniformSize (each row has its own), and then its limit is a
/// number, DynamicSize (chosen at run time) or NonUniformSize (no limit, CSR). Limits of dimensions that are not
/// NonUniformSize are ignored.
template <rowsize m, rowsize n, rowsize mMax, rowsize nMax>
struct MatrixTraits {
    static_assert(m >= NonUniformSize && n >= NonUniformSize && mMax >= NonUniformSize && nMax >= NonUniformSize,
                  "rows, columns and their limits are numbers, DynamicSize or NonUniformSize");

    static constexpr bool nonUniform = m == NonUniformSize || n == NonUniformSize;
    static constexpr MatrixShape declared{m, n};
    /// What no row exceeds, as far as the types tell.
    static constexpr MatrixShape limit{m == NonUniformSize ? mMax : m, n == NonUniformSize ? nMax : n};
    /// Whether some number is chosen at run time, so that ranks have to agree on it.
    static constexpr bool runTime = limit.rows == DynamicSize || limit.cols == DynamicSize;
    /// Whether each row's shape has to be stored, because it does not follow from the row's size.
    static constexpr bool shapePerRow = m == NonUniformSize && n == NonUniformSize;

    static constexpr bool unlimited = limit.rows == NonUniformSize || limit.cols == NonUniformSize;
    static_assert(!unlimited ||
                      !((m == NonUniformSize && mMax == DynamicSize) || (n == NonUniformSize && nMax == DynamicSize)),
                  "where one dimension has no limit rows are CSR, and a limit at run time for the other has no effect");
    static_assert(!nonUniform || (m != 0 && n != 0), "rows of no elements have no size of their own");

    static constexpr rowsize rowSize = nonUniform ? NonUniformSize : runTime ? DynamicSize : m * n;
    static constexpr rowsize rowMax = !nonUniform ? rowSize
                                      : unlimited ? NonUniformSize
                                      : runTime   ? DynamicSize
                                                  : limit.rows * limit.cols;

    /// Column-major, but Eigen wants matrices of one row to be called row-major; their memory is the same.
    using Matrix =
        Eigen::Matrix<real, m >= 0 ? m : Eigen::Dynamic, n >= 0 ? n : Eigen::Dynamic,
                      m == 1 && n != 1 ? Eigen::RowMajor : Eigen::ColMajor,
                      limit.rows >= 0 ? limit.rows : Eigen::Dynamic, limit.cols >= 0 ? limit.cols : Eigen::Dynamic>;
};

/// The Eigen map of `Matrix` over elements of type `T` (real or const real) in rows aligned to `align` bytes.
template <class Matrix, class T, int align>
using MatrixMap =
    Eigen::Map<std::conditional_t<std::is_const_v<T>, const Matrix, Matrix>, (align >= 128  ? Eigen::Aligned128
                                                                              : align >= 64 ? Eigen::Aligned64
                                                                              : align >= 32 ? Eigen::Aligned32
                                                                              : align >= 16 ? Eigen::Aligned16
                                                                                            : Eigen::Unaligned)>;

/// Tells the shape of a row's matrix from the row's number and size; trivially copyable, for views. This one is for
/// shapes that are the same in all rows, or follow from the row's size because only one dimension differs between rows.
template <rowsize m, rowsize n>
struct MatrixGeometry {
    MatrixShape common; ///< the dimensions that all rows have

    /// Rows and columns of the matrix in a row of `size` elements.
    DNDS_HOST_DEVICE constexpr MatrixShape shape(index /*row*/, rowsize size) const {
        const rowsize rows = m >= 0 ? m : common.rows;
        const rowsize cols = n >= 0 ? n : common.cols;
        if constexpr (m == NonUniformSize)
            return {cols > 0 ? size / cols : 0, cols};
        else if constexpr (n == NonUniformSize)
            return {rows, rows > 0 ? size / rows : 0};
        else
            return {rows, cols};
    }
};

/// All dimensions are known to the compiler: takes no memory.
template <rowsize m, rowsize n>
requires(m >= 0 && n >= 0) struct MatrixGeometry<m, n> {
    /// m x n, whatever the row.
    DNDS_HOST_DEVICE static constexpr MatrixShape shape(index /*row*/, rowsize /*size*/) { return {m, n}; }
};

/// Both dimensions differ between rows.
template <>
struct MatrixGeometry<NonUniformSize, NonUniformSize> {
    const MatrixShape *shapes = nullptr;

    /// Rows and columns of the matrix in `row`.
    DNDS_HOST_DEVICE constexpr MatrixShape shape(index row, rowsize /*size*/) const { return shapes[row]; }
};

} // namespace DNDS
