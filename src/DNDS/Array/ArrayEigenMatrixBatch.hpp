/// @file ArrayEigenMatrixBatch.hpp
/// @brief A distributed array whose rows are several matrices of different shapes each.
#pragma once

#include "DNDS/Array/MatrixBatchRow.hpp"
#include "DNDS/Array/ParArray.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// What kernels see of an `ArrayEigenMatrixBatch`; `T` is real or const real. Trivially copyable; Local, O(1).
template <class T>
class ArrayEigenMatrixBatchView {
  public:
    using Rows = ArrayView<T, NonUniformSize>;
    using Map = typename MatrixBatchRow<T>::Map;

    ArrayEigenMatrixBatchView() = default;
    /// The matrices in `rows`, which are those of an ArrayEigenMatrixBatch.
    DNDS_HOST_DEVICE ArrayEigenMatrixBatchView(const Rows &rows) : rows_(rows) {} // NOLINT: implicit on purpose
    /// A mutable view is a const view, too.
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE
        ArrayEigenMatrixBatchView(const ArrayEigenMatrixBatchView<U> &other)
        : rows_(other.rows()) {}

    /// The numbers of rows, of elements of row `i` (headers included) and of its matrices.
    DNDS_HOST_DEVICE index size() const { return rows_.size(); }
    DNDS_HOST_DEVICE rowsize rowSize(index i) const { return rows_.rowSize(i); }
    DNDS_HOST_DEVICE rowsize batchSize(index i) const { return (*this)[i].batchSize(); }
    /// All matrices of row `i`.
    DNDS_HOST_DEVICE MatrixBatchRow<T> operator[](index i) const { return {rows_[i], rows_.rowSize(i)}; }
    /// Matrix `k` of row `i`.
    DNDS_HOST_DEVICE Map operator()(index i, rowsize k) const { return (*this)[i].batch(k); }
    DNDS_HOST_DEVICE Map batch(index i, rowsize k) const { return (*this)[i].batch(k); }

    /// The rows as plain elements, headers included.
    DNDS_HOST_DEVICE const Rows &rows() const { return rows_; }

  private:
    Rows rows_;
};

/// Several matrices a row, of any number and shapes: the reconstruction matrices of a cell's stencil, say. Rows are
/// CSR.
///
///     ArrayEigenMatrixBatch weights("weights", comm);
///     weights.resize(cells);
///     for (index cell = 0; cell < cells; ++cell)
///         weights.setRow(cell, matricesOf(cell));        // std::vector<Eigen::MatrixXd>
///     weights.compress();
///     weights.batch(0, 1) *= 2;
///
/// Number and shapes are stored in the rows (see MatrixBatchRow), so ghosts have them after a pull; before, they have
/// no matrices. For the same reason rows can be pushed with PushOp::Replace only. `rowSize`, `row` and `data` concern
/// the elements with these headers. Residency, checks and copies are as for `Array`. All functions are Local.
class ArrayEigenMatrixBatch : public ParArray<real, NonUniformSize> {
  public:
    using Base = ParArray<real, NonUniformSize>;
    using Map = MatrixBatchRow<real>::Map;
    using ConstMap = MatrixBatchRow<const real>::Map;
    using View = ArrayEigenMatrixBatchView<real>;
    using ConstView = ArrayEigenMatrixBatchView<const real>;

    using Base::Base;

    /// Makes row `i` zero matrices of these shapes. The array is decompressed, or the row keeps its number of elements.
    /// @throws IndexError, ArgumentError; StateError for a compressed array; StaleError.
    void resizeRow(index i, std::span<const MatrixShape> shapes) {
        checkRow(i);
        const rowsize size = matrixBatchRowSize(shapes, label());
        if (size != rowSize(i))
            Base::resizeRow(i, size);
        startMatrixBatchRow(row(i), shapes);
    }
    void resizeRow(index i, std::initializer_list<MatrixShape> shapes) {
        resizeRow(i, std::span<const MatrixShape>(shapes.begin(), shapes.size()));
    }
    /// Makes row `i` copies of these matrices: a range of Eigen matrices that do not lie in the row itself. As
    /// `resizeRow`.
    template <class Matrices>
    void setRow(index i, const Matrices &matrices) {
        std::vector<MatrixShape> shapes;
        for (const auto &matrix : matrices)
            shapes.push_back({static_cast<rowsize>(matrix.rows()), static_cast<rowsize>(matrix.cols())});
        resizeRow(i, shapes);
        rowsize k = 0;
        for (const auto &matrix : matrices)
            batch(i, k++) = matrix;
    }
    void appendToRow(index i, const real &value) = delete;

    /// The number of matrices of row `i`. @throws IndexError, StaleError.
    rowsize batchSize(index i) const { return (*this)[i].batchSize(); }
    /// All matrices of row `i`. @throws IndexError, StaleError.
    MatrixBatchRow<real> operator[](index i) { return {Base::operator[](i), rowSizeUnchecked(i)}; }
    MatrixBatchRow<const real> operator[](index i) const { return {Base::operator[](i), rowSizeUnchecked(i)}; }
    /// Matrix `k` of row `i`. @throws IndexError, StaleError.
    Map batch(index i, rowsize k) {
        checkBatch(i, k);
        return (*this)[i].batch(k);
    }
    ConstMap batch(index i, rowsize k) const {
        checkBatch(i, k);
        return (*this)[i].batch(k);
    }
    Map operator()(index i, rowsize k) { return batch(i, k); }
    ConstMap operator()(index i, rowsize k) const { return batch(i, k); }

    /// A view of the matrices in the memory of `backend`; as Array::deviceView.
    template <DeviceBackend backend>
    View deviceView() {
        return Base::deviceView<backend>();
    }
    template <DeviceBackend backend>
    ConstView deviceView() const {
        return Base::deviceView<backend>();
    }
    View view() { return deviceView<DeviceBackend::Host>(); }
    ConstView view() const { return deviceView<DeviceBackend::Host>(); }

    /// As ArrayBase::rowLayout. The elements are opaque, because headers must not be added up.
    using Base::rowLayout;
    void rowLayout(MemorySpace space, Access access, RowLayout &into) override {
        Base::rowLayout(space, access, into);
        into.parts[0].kind = ElementKind::Opaque;
    }
    RowLayout rowLayout(MemorySpace space) const override {
        RowLayout described = Base::rowLayout(space);
        described.parts[0].kind = ElementKind::Opaque;
        return described;
    }

  private:
    void checkBatch(index i, rowsize k) const {
        const rowsize count = batchSize(i);
        DNDS_CHECK(k >= 0 && k < count, IndexError, "{}: matrix {} is outside [0, {}) of row {}", label(), k, count, i);
    }
};

} // namespace DNDS
