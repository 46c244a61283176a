/// @file ArrayEigenMatrix.hpp
/// @brief A distributed array whose rows are matrices.
#pragma once

#include "DNDS/Array/ArrayEigenMatrixView.hpp"
#include "DNDS/Array/MatrixShapes.hpp"
#include "DNDS/Array/ParArray.hpp"

#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// One column-major matrix a row, seen as an Eigen map: [rows x m x n].
///
///     ArrayEigenMatrix<3, 2> gradients("gradients", comm);                // one size, known to the compiler
///     gradients.resize(cells);
///     gradients[0].col(1).setOnes();
///
///     ArrayEigenMatrix<DynamicSize, 5> states("states", comm, dofs, 5);   // one size, chosen at run time
///     states.resize(cells);
///
///     ArrayEigenMatrix<NonUniformSize, NonUniformSize> inverses("inverses", comm);  // a size for each row
///     inverses.resize(cells, [&](index cell) { return std::pair(dofs[cell], dofs[cell]); });
///
/// MatrixTraits tells how m, n and their limits choose among the row layouts: without limits, rows that differ in shape
/// are CSR; with limits they are padded. The matrix of a padded row is stored without gaps at the beginning of the row.
/// Where both dimensions differ between rows, shapes are kept for each row and travel with every exchange; pushes with
/// an operation throw DataError where they differ. ArrayTransformer::createMPITypes gives ghosts the shapes of their
/// owners' rows.
///
/// Residency, checks and copies are as for `Array`. All functions are Local unless they say otherwise.
template <rowsize m = 1, rowsize n = 1, rowsize mMax = m, rowsize nMax = n, int align = NoAlign>
class ArrayEigenMatrix
    : public ParArray<real, MatrixTraits<m, n, mMax, nMax>::rowSize, MatrixTraits<m, n, mMax, nMax>::rowMax, align> {
  public:
    using Traits = MatrixTraits<m, n, mMax, nMax>;
    using Base = ParArray<real, Traits::rowSize, Traits::rowMax, align>;
    using Matrix = typename Traits::Matrix;
    using Map = MatrixMap<Matrix, real, align>;
    using ConstMap = MatrixMap<Matrix, const real, align>;
    using View = ArrayEigenMatrixView<real, m, n, mMax, nMax, align>;
    using ConstView = ArrayEigenMatrixView<const real, m, n, mMax, nMax, align>;

    /// Whether shapes are kept for each row, as the last part of `rowLayout`.
    static constexpr bool shapePerRow = Traits::shapePerRow;

    /// No rows, on the ranks of `comm`. The name is for messages.
    explicit ArrayEigenMatrix(CommunicatorView comm) : Base(comm) {}
    ArrayEigenMatrix(std::string name, CommunicatorView comm) : Base(std::move(name), comm) {}
    /// Chooses the run-time sizes, or limits, as `resize(0, rows, cols)`.
    ArrayEigenMatrix(std::string name, CommunicatorView comm, rowsize rows, rowsize cols)
        : Base(std::move(name), comm) {
        resize(0, rows, cols);
    }

    /// Changes the number of rows; as ArrayBase::resize(rows). New rows of differing shapes are empty matrices.
    void resize(index rows) override {
        if (!shapePerRow || rows == this->size() || rows < 0) {
            Base::resize(rows);
            return;
        }
        HostDeviceBuffer shapes = shapes_.resizedBuffer(static_cast<std::size_t>(rows));
        Base::resize(rows);
        shapes_.perRow().swap(shapes);
    }
    /// The same and chooses run-time sizes (rows of one shape), run-time limits (padded), or makes every row zero
    /// matrices of that size (CSR). Static numbers must be repeated. Other sizes than before start over with zeros.
    /// @throws ArgumentError as ArrayBase::resize(rows, width).
    void resize(index rows, rowsize matrixRows, rowsize matrixCols) {
        const MatrixShape shape{matrixRows, matrixCols};
        if constexpr (Base::layout == ArrayLayout::CSR) {
            const MatrixShape common = shapes_.mergedRows(Traits::limit, {&shape, 1}, this->label());
            resizeRows(rows, common, [&](index) { return shape; });
        } else {
            const MatrixShape common = shapes_.merged(shape, this->label());
            if (common != shapes_.common()) {
                Base::resize(0, common.size());
                keep(common, shapes_.newBuffer(0));
            }
            resize(rows);
        }
    }
    /// Starts over with rows of zero matrices of `shapeOf(row)`: a MatrixShape, or a pair (rows, columns). It is called
    /// once a row, in order. A size common to all rows (DynamicSize) that was not chosen is taken from the first row.
    /// A function that returns a number of elements instead leaves per-row shapes 0 x 0 until they are pulled.
    /// @throws ArgumentError for shapes that do not fit; StateError where a run-time limit was not chosen.
    template <std::invocable<index> ShapeOf>
    requires(Traits::nonUniform) void resize(index rows, ShapeOf &&shapeOf) {
        if constexpr (std::convertible_to<std::invoke_result_t<ShapeOf, index>, rowsize>) {
            HostDeviceBuffer shapes =
                shapes_.newBuffer(shapePerRow ? static_cast<std::size_t>(std::max(rows, index{0})) : 0);
            Base::resize(rows, std::forward<ShapeOf>(shapeOf));
            keep(shapes_.common(), std::move(shapes));
        } else {
            resizeRows(rows, shapes_.common(), std::forward<ShapeOf>(shapeOf));
        }
    }
    void resizeGhosts(index rows, [[maybe_unused]] std::span<const rowsize> sizes) override {
        if constexpr (Traits::nonUniform)
            ArrayEigenMatrix::resize(rows, [&](index i) { return sizes[static_cast<std::size_t>(i)]; });
        else
            ArrayEigenMatrix::resize(rows);
    }
    /// The same and chooses the run-time limits of padded rows.
    template <std::invocable<index> ShapeOf>
    requires(Base::layout == ArrayLayout::Max) void resize(index rows, rowsize maxRows, rowsize maxCols,
                                                           ShapeOf &&shapeOf) {
        resize(0, maxRows, maxCols);
        resizeRows(rows, shapes_.common(), std::forward<ShapeOf>(shapeOf));
    }
    /// Gives the matrix of row `i` another shape. What is kept are the first elements in column-major order: whole
    /// columns where the number of rows stays. New elements are zero. CSR arrays must be decompressed, unless the
    /// number of elements stays.
    /// @throws IndexError, ArgumentError; StateError for a compressed CSR array; StaleError.
    void resizeMatrix(index i, rowsize matrixRows, rowsize matrixCols) {
        const MatrixShape shape{matrixRows, matrixCols};
        this->checkRow(i);
        shapes_.check(i, shape, this->label());
        if constexpr (shapePerRow)
            (void)shapes_.read(MemorySpace::Host, this->label());
        if (shape.size() != this->rowSize(i))
            Base::resizeRow(i, shape.size());
        if constexpr (shapePerRow) {
            shapes_.write(MemorySpace::Host, this->label())[i] = shape;
            this->markWritten();
        }
    }
    void resizeRow(index i, rowsize width) = delete; ///< `resizeMatrix` does it
    void appendToRow(index i, const real &value) = delete;

    /// The shape of the matrix of row `i`. @throws IndexError, StaleError.
    MatrixShape matrixShape(index i) const { return geometryIn(MemorySpace::Host).shape(i, this->rowSize(i)); }
    rowsize matRowSize(index i) const { return matrixShape(i).rows; }
    rowsize matColSize(index i) const { return matrixShape(i).cols; }
    /// What the matrices of all rows share, or are limited to; DynamicSize where it was not chosen, NonUniformSize
    /// without limit.
    const MatrixShape &commonShape() const noexcept { return shapes_.common(); }

    /// The matrix of row `i`. @throws IndexError, StaleError.
    Map operator[](index i) {
        const MatrixShape shape = matrixShape(i);
        return Map(Base::operator[](i), shape.rows, shape.cols);
    }
    ConstMap operator[](index i) const {
        const MatrixShape shape = matrixShape(i);
        return ConstMap(Base::operator[](i), shape.rows, shape.cols);
    }

    /// A view of the matrices in the memory of `backend`; as Array::deviceView.
    template <DeviceBackend backend>
    View deviceView() {
        const auto geometry = geometryIn(memorySpaceOf(backend));
        return {Base::template deviceView<backend>(), geometry};
    }
    template <DeviceBackend backend>
    ConstView deviceView() const {
        return {Base::template deviceView<backend>(), geometryIn(memorySpaceOf(backend))};
    }
    View view() { return deviceView<DeviceBackend::Host>(); }
    ConstView view() const { return deviceView<DeviceBackend::Host>(); }

    /// As ParArray::agreeShape, for both dimensions. Collective; no communication without run-time sizes.
    void agreeShape() override {
        if constexpr (Traits::runTime) {
            const bool changed = shapes_.agree(this->comm(), this->size(), this->label());
            if constexpr (Base::layout != ArrayLayout::CSR) {
                if (changed)
                    Base::resize(0, shapes_.common().size());
            }
        }
    }
    /// As ArrayBase::adoptShape, for both dimensions.
    void adoptShape(const Base &other) override {
        const auto *matrices = dynamic_cast<const ArrayEigenMatrix *>(&other);
        DNDS_CHECK(matrices != nullptr, LayoutError, "'{}' cannot take the shape of '{}', which has other matrices",
                   this->label(), other.label());
        shapes_.adopt(matrices->shapes_, this->size(), this->label());
        Base::adoptShape(other);
    }
    bool hasRowShapes() const noexcept override { return shapePerRow; }

    /// As ArrayBase's, for elements and shapes.
    void toDevice() {
        Base::toDevice();
        shapes_.perRow().toDevice();
    }
    void toDevice(Device::StreamHandle stream) {
        Base::toDevice(stream);
        shapes_.perRow().toDevice(stream);
    }
    /// As ArrayBase's, for elements and shapes.
    void toHost() {
        Base::toHost();
        shapes_.perRow().toHost();
    }
    void toHost(Device::StreamHandle stream) {
        Base::toHost(stream);
        shapes_.perRow().toHost(stream);
    }
    void rehost(const HostMemoryResource &resource) override {
        Base::rehost(resource);
        shapes_.perRow().rehost(resource);
    }

    /// As ArrayBase::rowLayout; per-row shapes are the last part, and sizes chosen at run time belong to the signature.
    using Base::rowLayout;
    void rowLayout(MemorySpace space, Access access, RowLayout &into) override {
        // both are checked before either makes its other side stale
        const std::byte *shapes = shapes_.perRow().read(space, this->label());
        Base::rowLayout(space, access, into);
        if (access == Access::Write)
            shapes_.perRow().write(space, this->label());
        shapes_.describe(into, const_cast<std::byte *>(shapes));
    }
    RowLayout rowLayout(MemorySpace space) const override {
        RowLayout described = Base::rowLayout(space);
        shapes_.describe(described, const_cast<std::byte *>(shapes_.perRow().read(space, this->label())));
        return described;
    }

    /// As ArrayBase::hash; equal elements in other shapes hash differently.
    std::uint64_t hash() const { return shapes_.hash(Base::hash(), this->label()); }

    /// As Array's: contents and shapes change places.
    void swapData(ArrayEigenMatrix &other) noexcept {
        Base::swapData(other);
        shapes_.swap(other.shapes_);
    }
    friend void swap(ArrayEigenMatrix &a, ArrayEigenMatrix &b) noexcept {
        swap(static_cast<Base &>(a), static_cast<Base &>(b));
        a.shapes_.swap(b.shapes_);
    }
    /// As Array's: a copy of contents and shapes.
    void clone(const ArrayEigenMatrix &other) {
        Base::clone(other);
        shapes_ = other.shapes_;
    }

  private:
    /// Starts over with the shapes that `shapeOf` tells.
    template <class ShapeOf>
    void resizeRows(index rows, MatrixShape common, ShapeOf &&shapeOf) {
        std::vector<MatrixShape> all(static_cast<std::size_t>(std::max(rows, index{0})));
        for (index i = 0; i < rows; ++i) {
            const auto &[matrixRows, matrixCols] = shapeOf(i);
            all[static_cast<std::size_t>(i)] = {static_cast<rowsize>(matrixRows), static_cast<rowsize>(matrixCols)};
        }
        common = shapes_.mergedRows(common, all, this->label());
        HostDeviceBuffer shapes = shapes_.newBuffer(shapePerRow ? all.size() : 0);
        if constexpr (shapePerRow)
            std::copy(all.begin(), all.end(),
                      reinterpret_cast<MatrixShape *>(shapes.write(MemorySpace::Host, this->label())));
        Base::resize(rows, [&](index i) { return all[static_cast<std::size_t>(i)].size(); });
        keep(common, std::move(shapes));
    }
    void keep(MatrixShape common, HostDeviceBuffer shapes) noexcept {
        shapes_.setCommon(common);
        shapes_.perRow().swap(shapes);
    }

    typename View::Geometry geometryIn([[maybe_unused]] MemorySpace space) const {
        if constexpr (shapePerRow)
            return {shapes_.read(space, this->label())};
        else if constexpr (m < 0 || n < 0)
            return {shapes_.common()};
        else
            return {};
    }

    MatrixShapes shapes_{Traits::declared, Traits::limit};
};

} // namespace DNDS
