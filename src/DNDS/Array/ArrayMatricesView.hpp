/// @file ArrayMatricesView.hpp
/// @brief Views of arrays of matrices in kernels: Eigen maps of their rows.
///
/// `MatrixShapes` and what is beside it lead from parameters of matrix arrays to row layouts, Eigen types and the shape
/// of each matrix.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Storage/ArrayView.hpp"

#include <Eigen/Core>

#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace DNDS {

/// The Eigen map of `Matrix` over elements of type `T` (real or const real) in rows aligned to `align` bytes.
template <class Matrix, class T, int align>
using MatrixMap =
    Eigen::Map<std::conditional_t<std::is_const_v<T>, const Matrix, Matrix>, (align >= 128  ? Eigen::Aligned128
                                                                              : align >= 64 ? Eigen::Aligned64
                                                                              : align >= 32 ? Eigen::Aligned32
                                                                              : align >= 16 ? Eigen::Aligned16
                                                                                            : Eigen::Unaligned)>;

/// Computes the shape of a row's matrix from the row's number and size; trivially copyable, for views. This one is for
/// shapes that are the same in all rows, or follow from the row's size because only one dimension differs between rows.
template <rowsize m, rowsize n>
struct MatrixGeometry {
    MatrixShape common; ///< the dimensions common to all rows

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

/// For dimensions known to the compiler: takes no memory.
template <rowsize m, rowsize n>
requires(m >= 0 && n >= 0) struct MatrixGeometry<m, n> {
    /// m x n, for any row.
    DNDS_HOST_DEVICE static constexpr MatrixShape shape(index /*row*/, rowsize /*size*/) { return {m, n}; }
};

/// For two dimensions that differ between rows.
template <>
struct MatrixGeometry<NonUniformSize, NonUniformSize> {
    const MatrixShape *shapes = nullptr;

    /// Rows and columns of the matrix in `row`.
    DNDS_HOST_DEVICE constexpr MatrixShape shape(index row, rowsize /*size*/) const { return shapes[row]; }
};

/// One matrix a row. A dimension is a number, DynamicSize (the same for all rows, chosen at run time) or NonUniformSize
/// (each row has its own), and then its limit is a number, DynamicSize (chosen at run time) or NonUniformSize (no
/// limit, CSR). Limits of dimensions that are not NonUniformSize are ignored.
template <rowsize m, rowsize n, rowsize mMax, rowsize nMax>
struct OneMatrix {
    static_assert(m >= NonUniformSize && n >= NonUniformSize && mMax >= NonUniformSize && nMax >= NonUniformSize,
                  "rows, columns and their limits are numbers, DynamicSize or NonUniformSize");

    static constexpr bool batch = false;
    static constexpr bool hasRowHeaders = false;
    static constexpr bool nonUniform = m == NonUniformSize || n == NonUniformSize;
    /// Shape by the type, limits aside.
    static constexpr MatrixShape declared{m, n};
    /// Upper bound of all rows' shapes, as far as the types tell.
    static constexpr MatrixShape limit{m == NonUniformSize ? mMax : m, n == NonUniformSize ? nMax : n};

    static constexpr bool unlimited = limit.rows == NonUniformSize || limit.cols == NonUniformSize;
    static_assert(!unlimited ||
                      !((m == NonUniformSize && mMax == DynamicSize) || (n == NonUniformSize && nMax == DynamicSize)),
                  "where one dimension has no limit rows are CSR, and a limit at run time for the other has no effect");
    static_assert(!nonUniform || (m != 0 && n != 0), "rows of no elements have no size of their own");

    static constexpr rowsize rowSize = nonUniform ? NonUniformSize : limit.chosen() ? m * n : DynamicSize;
    static constexpr rowsize rowMax = !nonUniform      ? rowSize
                                      : unlimited      ? NonUniformSize
                                      : limit.chosen() ? limit.rows * limit.cols
                                                       : DynamicSize;

    /// Column-major, but Eigen requires one-row matrices to be declared row-major; their memory is the same.
    using Matrix =
        Eigen::Matrix<real, m >= 0 ? m : Eigen::Dynamic, n >= 0 ? n : Eigen::Dynamic,
                      m == 1 && n != 1 ? Eigen::RowMajor : Eigen::ColMajor,
                      limit.rows >= 0 ? limit.rows : Eigen::Dynamic, limit.cols >= 0 ? limit.cols : Eigen::Dynamic>;
    template <class T, int align>
    using Row = MatrixMap<Matrix, T, align>;
    using Geometry = MatrixGeometry<m, n>;

    /// The matrix of row `i`, which has `size` elements from `start` on.
    template <int align, class T>
    DNDS_HOST_DEVICE static Row<T, align> row(T *start, index i, rowsize size, const Geometry &geometry) {
        const MatrixShape shape = geometry.shape(i, size);
        return Row<T, align>(start, shape.rows, shape.cols);
    }
};

/// Any number of m x n matrices a row, in CSR rows; m and n are positive numbers, or DynamicSize.
template <rowsize m, rowsize n>
struct EqualMatrices {
    static_assert((m > 0 || m == DynamicSize) && (n > 0 || n == DynamicSize),
                  "matrices of one size have a positive number of rows and columns, or DynamicSize");

    static constexpr bool batch = true;
    static constexpr bool hasRowHeaders = false;
    static constexpr rowsize rowSize = NonUniformSize, rowMax = NonUniformSize;
    static constexpr MatrixShape declared{m, n};
    static constexpr MatrixShape limit{m, n};

    using Matrix = typename OneMatrix<m, n, m, n>::Matrix;
    template <class T, int align>
    using Row = MatrixMap<typename OneMatrix<m, DynamicSize, m, DynamicSize>::Matrix, T, align>;
    using Geometry = MatrixGeometry<m, n>;

    /// The matrices of a row side by side: [m x (n * count)]; their number; and number `k`.
    template <int align, class T>
    DNDS_HOST_DEVICE static Row<T, align> row(T *start, index /*i*/, rowsize size, const Geometry &geometry) {
        const MatrixShape shape = geometry.shape(0, 0);
        return Row<T, align>(start, shape.rows, count(start, size, geometry) * shape.cols);
    }
    DNDS_HOST_DEVICE static rowsize count(const real * /*start*/, rowsize size, const Geometry &geometry) {
        const rowsize each = geometry.shape(0, 0).size(); // 0 before it was chosen
        return each > 0 ? size / each : 0;
    }
    template <class T>
    DNDS_HOST_DEVICE static MatrixMap<Matrix, T, NoAlign> matrix(T *start, rowsize k, const Geometry &geometry) {
        const MatrixShape shape = geometry.shape(0, 0);
        return MatrixMap<Matrix, T, NoAlign>(start + index{k} * shape.size(), shape.rows, shape.cols);
    }
};

/// A row's entry for one of its matrices of differing shapes.
struct MatrixBatchEntry {
    MatrixShape shape;
    index start = 0; ///< begin of its elements, in reals from the beginning of the row
};
static_assert(sizeof(MatrixBatchEntry) == 2 * sizeof(real) && sizeof(index) == sizeof(real));

/// Reads a row of an `ArrayEigenMatrixBatch`; `T` is real or const real. Trivially copyable.
///
/// A row without elements has no matrices. Otherwise its first real holds the bits of their number (int64), the next
/// ones those of a MatrixBatchEntry a matrix, and then come the matrices, column-major without gaps. So rows move
/// between ranks unchanged, and a row of zeros, as ghosts are before their first pull, has no matrices.
template <class T>
class MatrixBatchRow {
  public:
    using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic>;
    using Map = MatrixMap<Matrix, T, NoAlign>;

    /// The `size` elements of a row from `row` on.
    DNDS_HOST_DEVICE MatrixBatchRow(T *row, rowsize size) : row_(row), size_(size) {}

    /// Number of matrices in the row; place and shape of number `k`; and number `k` itself.
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

/// Several matrices a row, of any number and shapes, stored in CSR rows: see MatrixBatchRow.
struct DifferingMatrices {
    static constexpr bool batch = true;
    static constexpr bool hasRowHeaders = true;
    static constexpr rowsize rowSize = NonUniformSize, rowMax = NonUniformSize;
    static constexpr MatrixShape declared{};
    static constexpr MatrixShape limit{};

    using Matrix = MatrixBatchRow<real>::Matrix;
    template <class T, int align>
    using Row = MatrixBatchRow<T>;
    using Geometry = MatrixGeometry<0, 0>; // unused

    /// All matrices of a row; their number; and number `k`.
    template <int align, class T>
    DNDS_HOST_DEVICE static MatrixBatchRow<T> row(T *start, index /*i*/, rowsize size, const Geometry & /*geometry*/) {
        return {start, size};
    }
    DNDS_HOST_DEVICE static rowsize count(const real *start, rowsize size, const Geometry & /*geometry*/) {
        return MatrixBatchRow<const real>(start, size).batchSize();
    }
    template <class T>
    DNDS_HOST_DEVICE static auto matrix(T *start, rowsize k, const Geometry & /*geometry*/) {
        return MatrixBatchRow<T>(start, 1).batch(k);
    }
};

/// Completes `common`: run-time sizes not chosen yet are those of `first`.
constexpr MatrixShape chosenBy(MatrixShape first, MatrixShape declared, MatrixShape common) {
    return {common.rows == DynamicSize && declared.rows == DynamicSize ? first.rows : common.rows,
            common.cols == DynamicSize && declared.cols == DynamicSize ? first.cols : common.cols};
}

/// @throws ArgumentError unless a matrix of `shape` can be row `i` of the array `label`: dimensions are at most those
/// of `common` where `declared` is NonUniformSize, and equal elsewhere.
void checkMatrix(MatrixShape declared, MatrixShape common, index i, MatrixShape shape, std::string_view label);

/// The elements that a row of matrices of these shapes takes, 0 for none. @throws ArgumentError for negative or too
/// large shapes.
rowsize matrixBatchRowSize(std::span<const MatrixShape> shapes, std::string_view label);

/// Sets `row`, of that size, to zero matrices of these shapes.
void startMatrixBatchRow(std::span<real> row, std::span<const MatrixShape> shapes);

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
