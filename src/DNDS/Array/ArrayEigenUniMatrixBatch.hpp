/// @file ArrayEigenUniMatrixBatch.hpp
/// @brief A distributed array whose rows are lists of matrices of one size.
#pragma once

#include "DNDS/Array/MatrixShapes.hpp"
#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Storage/WithGeometry.hpp"

#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace DNDS {

/// What kernels see of an `ArrayEigenUniMatrixBatch`; `T` is real or const real. Trivially copyable; Local, O(1).
template <class T, rowsize m, rowsize n>
class ArrayEigenUniMatrixBatchView {
  public:
    using Rows = ArrayView<T, NonUniformSize>;
    using Geometry = MatrixGeometry<m, n>;
    using Map = MatrixMap<typename MatrixTraits<m, n, m, n>::Matrix, T, NoAlign>;
    using RowMap = MatrixMap<typename MatrixTraits<m, DynamicSize, m, DynamicSize>::Matrix, T, NoAlign>;

    ArrayEigenUniMatrixBatchView() = default;
    /// The matrices in `rows`, of which `shapes` tells the size.
    DNDS_HOST_DEVICE ArrayEigenUniMatrixBatchView(const Rows &rows, const Geometry &shapes) : parts_(rows, shapes) {}
    /// A mutable view is a const view, too.
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE
        ArrayEigenUniMatrixBatchView(const ArrayEigenUniMatrixBatchView<U, m, n> &other)
        : parts_(other.rows(), other.geometry()) {}

    /// The numbers of rows, and of elements and matrices of row `i`; `matrixShape` is the size of every matrix.
    DNDS_HOST_DEVICE index size() const { return rows().size(); }
    DNDS_HOST_DEVICE rowsize rowSize(index i) const { return rows().rowSize(i); }
    DNDS_HOST_DEVICE MatrixShape matrixShape() const { return geometry().shape(0, 0); }
    DNDS_HOST_DEVICE rowsize batchSize(index i) const {
        const rowsize size = rows().rowSize(i);
        return size > 0 ? size / matrixShape().size() : 0;
    }
    /// Matrix `k` of row `i`.
    DNDS_HOST_DEVICE Map operator()(index i, rowsize k) const {
        DNDS_DEBUG_CHECK(k >= 0 && k < batchSize(i), IndexError, "batch: matrix {} is outside [0, {})", k,
                         batchSize(i));
        const MatrixShape shape = matrixShape();
        return Map(rows()[i] + index{k} * shape.size(), shape.rows, shape.cols);
    }
    DNDS_HOST_DEVICE Map batch(index i, rowsize k) const { return (*this)(i, k); }
    /// The matrices of row `i` beside each other: [m x (n * batchSize)].
    DNDS_HOST_DEVICE RowMap operator[](index i) const {
        const MatrixShape shape = matrixShape();
        return RowMap(rows()[i], shape.rows, batchSize(i) * shape.cols);
    }

    /// The rows as plain elements.
    DNDS_HOST_DEVICE const Rows &rows() const { return parts_.member(); }
    DNDS_HOST_DEVICE Geometry geometry() const { return parts_.geometry(); }

  private:
    WithGeometry<Rows, Geometry> parts_;
};

/// Any number of m x n matrices a row; m and n are positive numbers, or DynamicSize. Rows are CSR.
///
///     ArrayEigenUniMatrixBatch<DynamicSize, 5> fluxes("fluxes", comm, dofs, 5);
///     fluxes.resize(cells);
///     for (index cell = 0; cell < cells; ++cell)
///         fluxes.resizeBatch(cell, faceCount[cell]);
///     fluxes.compress();
///     fluxes(0, 2).setOnes();
///
/// Residency, checks and copies are as for `Array`. All functions are Local unless they say otherwise.
template <rowsize m = DynamicSize, rowsize n = DynamicSize>
class ArrayEigenUniMatrixBatch : public ParArray<real, NonUniformSize> {
    static_assert((m > 0 || m == DynamicSize) && (n > 0 || n == DynamicSize),
                  "matrices of one size have a positive number of rows and columns, or DynamicSize");

  public:
    using Base = ParArray<real, NonUniformSize>;
    using View = ArrayEigenUniMatrixBatchView<real, m, n>;
    using ConstView = ArrayEigenUniMatrixBatchView<const real, m, n>;

    /// No rows, on the ranks of `comm`. The name is for messages.
    explicit ArrayEigenUniMatrixBatch(CommunicatorView comm) : Base(comm) {}
    ArrayEigenUniMatrixBatch(std::string name, CommunicatorView comm) : Base(std::move(name), comm) {}
    /// Chooses the size of the matrices.
    ArrayEigenUniMatrixBatch(std::string name, CommunicatorView comm, rowsize rows, rowsize cols)
        : Base(std::move(name), comm) {
        resize(0, rows, cols);
    }

    /// As ArrayBase::resize, in elements: what exchanges use for ghosts.
    using Base::resize;
    /// Changes the number of rows and chooses the size of the matrices; another size than before starts over with empty
    /// rows. Static numbers must be repeated. @throws ArgumentError.
    void resize(index rows, rowsize matrixRows, rowsize matrixCols) {
        const MatrixShape common = shapes_.merged({matrixRows, matrixCols}, this->label());
        DNDS_CHECK(common.size() > 0, ArgumentError, "{}: matrices of {} x {} cannot be counted", this->label(),
                   common.rows, common.cols);
        if (common != shapes_.common())
            Base::resize(0);
        shapes_.setCommon(common);
        Base::resize(rows);
    }
    /// Starts over with rows of `countOf(row)` zero matrices, compressed. @throws ArgumentError; StateError before the
    /// size of the matrices was chosen.
    template <std::invocable<index> CountOf>
    void resizeBatches(index rows, CountOf &&countOf) {
        Base::resize(rows, [&](index i) { return elements(static_cast<index>(countOf(i))); });
    }
    /// Gives row `i` this many matrices: those that remain keep their values, new ones are zero. As
    /// ArrayBase::resizeRow.
    void resizeBatch(index i, rowsize count) { Base::resizeRow(i, elements(count)); }
    void resizeRow(index i, rowsize width) = delete; ///< `resizeBatch` does it
    void appendToRow(index i, const real &value) = delete;

    /// The size of all matrices; DynamicSize where it was not chosen.
    const MatrixShape &matrixShape() const noexcept { return shapes_.common(); }
    rowsize matRowSize() const noexcept { return shapes_.common().rows; }
    rowsize matColSize() const noexcept { return shapes_.common().cols; }

    /// The number of matrices of row `i`. @throws IndexError.
    rowsize batchSize(index i) const {
        const rowsize size = this->rowSize(i);
        return size > 0 ? size / shapes_.common().size() : 0;
    }
    /// Matrix `k` of row `i`. @throws IndexError, StaleError.
    typename View::Map operator()(index i, rowsize k) {
        checkBatch(i, k);
        const MatrixShape shape = matrixShape();
        return {Base::operator[](i) + index{k} * shape.size(), shape.rows, shape.cols};
    }
    typename ConstView::Map operator()(index i, rowsize k) const {
        checkBatch(i, k);
        const MatrixShape shape = matrixShape();
        return {Base::operator[](i) + index{k} * shape.size(), shape.rows, shape.cols};
    }
    /// The matrices of row `i` beside each other: [m x (n * batchSize)]. @throws IndexError, StaleError.
    typename View::RowMap operator[](index i) { return {Base::operator[](i), rowsOf(i), colsOf(i)}; }
    typename ConstView::RowMap operator[](index i) const { return {Base::operator[](i), rowsOf(i), colsOf(i)}; }

    /// A view of the matrices in the memory of `backend`; as Array::deviceView.
    template <DeviceBackend backend>
    View deviceView() {
        return {Base::template deviceView<backend>(), geometry()};
    }
    template <DeviceBackend backend>
    ConstView deviceView() const {
        return {Base::template deviceView<backend>(), geometry()};
    }
    View view() { return deviceView<DeviceBackend::Host>(); }
    ConstView view() const { return deviceView<DeviceBackend::Host>(); }

    /// Makes the size of the matrices equal on all ranks. Collective; no communication where it is static. @throws
    /// LayoutError.
    void agreeShape() override {
        if constexpr (m == DynamicSize || n == DynamicSize)
            shapes_.agree(this->comm(), this->size(), this->label());
    }
    void adoptShape(const Base &other) override {
        const auto *batches = dynamic_cast<const ArrayEigenUniMatrixBatch *>(&other);
        DNDS_CHECK(batches != nullptr, LayoutError, "'{}' cannot take the shape of '{}', which has other matrices",
                   this->label(), other.label());
        shapes_.adopt(batches->shapes_, this->size(), this->label());
    }

    /// As ArrayBase::rowLayout; sizes chosen at run time belong to the signature.
    using Base::rowLayout;
    void rowLayout(MemorySpace space, Access access, RowLayout &into) override {
        Base::rowLayout(space, access, into);
        shapes_.describe(into, nullptr);
    }
    RowLayout rowLayout(MemorySpace space) const override {
        RowLayout described = Base::rowLayout(space);
        shapes_.describe(described, nullptr);
        return described;
    }
    std::uint64_t hash() const { return shapes_.hash(Base::hash(), this->label()); }

    /// As ParArray's: contents and the sizes of the matrices change places. O(1).
    void swapData(ArrayEigenUniMatrixBatch &other) noexcept {
        Base::swapData(other);
        shapes_.swap(other.shapes_);
    }
    friend void swap(ArrayEigenUniMatrixBatch &a, ArrayEigenUniMatrixBatch &b) noexcept {
        swap(static_cast<Base &>(a), static_cast<Base &>(b));
        a.shapes_.swap(b.shapes_);
    }
    /// As ParArray's: a deep copy of contents and of the size of the matrices. O(array).
    void clone(const ArrayEigenUniMatrixBatch &other) {
        Base::clone(other);
        shapes_ = other.shapes_;
    }

  private:
    rowsize elements(index count) const {
        DNDS_CHECK(shapes_.chosen(), StateError,
                   "{}: the size of the matrices was not chosen yet; call resize(rows, m, n)", this->label());
        const index size = shapes_.common().size();
        DNDS_CHECK(count >= 0 && count <= std::numeric_limits<rowsize>::max() / size, ArgumentError,
                   "{}: a row cannot have {} matrices of {} x {}", this->label(), count, matRowSize(), matColSize());
        return static_cast<rowsize>(count * size);
    }
    void checkBatch(index i, rowsize k) const {
        const rowsize count = batchSize(i);
        DNDS_CHECK(k >= 0 && k < count, IndexError, "{}: matrix {} is outside [0, {}) of row {}", this->label(), k,
                   count, i);
    }
    rowsize rowsOf(index i) const { return batchSize(i) > 0 || m > 0 ? shapes_.common().rows : 0; }
    rowsize colsOf(index i) const { return batchSize(i) > 0 ? batchSize(i) * shapes_.common().cols : 0; }
    typename View::Geometry geometry() const {
        if constexpr (m > 0 && n > 0)
            return {};
        else
            return {shapes_.common()};
    }

    MatrixShapes shapes_{{m, n}, {m, n}};
};

} // namespace DNDS
