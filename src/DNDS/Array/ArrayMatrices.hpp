/// @file ArrayMatrices.hpp
/// @brief Distributed arrays whose rows are vectors, matrices or batches of matrices, seen as Eigen maps.
#pragma once

#include "DNDS/Array/ArrayMatricesView.hpp"
#include "DNDS/Array/ParArray.hpp"

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// An array of column-major matrices; `Shapes` is OneMatrix, EqualMatrices or DifferingMatrices. Programs use these
/// aliases of it, explained below:
///
/// | type                                        | a row is                                                   |
/// |---------------------------------------------|------------------------------------------------------------|
/// | `ArrayEigenMatrix<m, n, mMax, nMax, align>` | one matrix                                                 |
/// | `ArrayEigenVector<size, max, align>`        | one vector: an ArrayEigenMatrix of one column              |
/// | `ArrayEigenUniMatrixBatch<m, n>`            | any number of matrices of one size                         |
/// | `ArrayEigenMatrixBatch`                     | any number of matrices of any shapes                       |
///
/// Shapes belong to the rows: copies, swaps, hashes, exchanges and checkpoints include them, and
/// ArrayTransformer::createMPITypes gives ghosts the shapes of their owners' rows. Residency, checks and copies are as
/// for `Array`. All functions are Local.
template <class Shapes, int align = NoAlign>
class ArrayMatrices : public ParArray<real, Shapes::rowSize, Shapes::rowMax, align> {
    static constexpr bool batches = Shapes::batch;
    static constexpr bool mixed = Shapes::hasRowHeaders;
    static constexpr bool vectors = !batches && Shapes::declared.cols == 1;

  public:
    using Traits = Shapes;
    using Base = ParArray<real, Shapes::rowSize, Shapes::rowMax, align>;
    using Matrix = typename Shapes::Matrix;
    using View = ArrayMatricesView<real, Shapes, align>;
    using ConstView = ArrayMatricesView<const real, Shapes, align>;
    using Map = typename View::Map;
    using ConstMap = typename ConstView::Map;

    static constexpr ArrayShape shapeStatic = [] {
        ArrayShape shape = Base::shapeStatic;
        shape.declared = Shapes::declared;
        shape.limit = Shapes::limit;
        shape.hasRowHeaders = mixed;
        return shape;
    }();
    /// Whether each row keeps its shape, as the last part of `rowLayout`.
    static constexpr bool shapePerRow = shapeStatic.shapePerRow();

    /// No rows, on the ranks of `comm`. The name is for messages.
    explicit ArrayMatrices(CommunicatorView comm) : Base(comm) { this->setShape(shapeStatic); }
    ArrayMatrices(std::string name, CommunicatorView comm) : Base(std::move(name), comm) {
        this->setShape(shapeStatic);
    }
    /// Chooses the run-time sizes, or limits, as `resize(0, rows, cols)`; for vectors, as `resize(0, width)`.
    ArrayMatrices(std::string name, CommunicatorView comm, rowsize rows, rowsize cols) requires(!mixed)
        : ArrayMatrices(std::move(name), comm) {
        resize(0, rows, cols);
    }
    ArrayMatrices(std::string name, CommunicatorView comm, rowsize width) requires(vectors)
        : ArrayMatrices(std::move(name), comm, width, 1) {}

    /// Changes the number of rows; as ArrayBase::resize(rows). New rows of differing shapes are empty matrices.
    void resize(index rows) { Base::resize(rows); }
    /// The same and chooses run-time sizes (rows of one shape, batches), run-time limits (padded), or makes every row
    /// zero matrices of that size (CSR). Static numbers must be repeated. A changed size starts over with
    /// zeros, batches with empty rows.
    /// @throws ArgumentError as ArrayBase::resize(rows, width).
    void resize(index rows, rowsize matrixRows, rowsize matrixCols) requires(!mixed) {
        // CSR rows of single matrices: the shape is that of every row now. Elsewhere it is that of the whole array.
        constexpr bool each = Base::layout == ArrayLayout::CSR && !batches;
        constexpr MatrixShape declared = each ? Shapes::declared : Shapes::limit;
        const MatrixShape shape{matrixRows, matrixCols};
        const MatrixShape common = chosenBy(shape, declared, Shapes::limit);
        checkMatrix(declared, common, 0, shape, this->label());
        DNDS_CHECK(!batches || common.size() > 0, ArgumentError, "{}: matrices of {} x {} cannot be counted",
                   this->label(), common.rows, common.cols);
        if constexpr (each) {
            resizeRows(rows, common, [&](index) { return shape; });
        } else {
            if (common != this->commonShape()) {
                if constexpr (batches)
                    Base::resize(0);
                else
                    Base::resize(0, common.size());
                this->setCommonShape(common);
            }
            Base::resize(rows);
        }
    }
    /// Starts over with rows of zero matrices of `shapeOf(row)`: a MatrixShape, or a pair (rows, columns). It is called
    /// once a row, in order. A size common to all rows (DynamicSize) that was not chosen is taken from the first row.
    /// For vectors and batches it returns the number of elements, as for ArrayBase::resize; if it does for other
    /// matrices, shapes of differing matrices are 0 x 0 until they are pulled.
    /// @throws ArgumentError for invalid shapes; StateError if a run-time limit was not chosen.
    template <std::invocable<index> ShapeOf>
    requires(!isFixedLayout(Base::layout)) void resize(index rows, ShapeOf &&shapeOf) {
        if constexpr (std::convertible_to<std::invoke_result_t<ShapeOf, index>, rowsize>)
            Base::resize(rows, std::forward<ShapeOf>(shapeOf));
        else
            resizeRows(rows, this->commonShape(), std::forward<ShapeOf>(shapeOf));
    }
    /// The same and chooses the run-time limits of padded rows.
    template <std::invocable<index> ShapeOf>
    requires(Base::layout == ArrayLayout::Max) void resize(index rows, rowsize maxRows, rowsize maxCols,
                                                           ShapeOf &&shapeOf) {
        resize(0, maxRows, maxCols);
        resize(rows, std::forward<ShapeOf>(shapeOf));
    }
    /// Vectors and batches: as ArrayBase::resize and resizeRow, in elements.
    void resize(index rows, rowsize width) requires(vectors || batches) {
        if constexpr (vectors)
            resize(rows, width, 1);
        else
            Base::resize(rows, width);
    }
    template <std::invocable<index> SizeOf>
    requires(vectors &&Base::layout == ArrayLayout::Max) void resize(index rows, rowsize width, SizeOf &&sizeOf) {
        resize(rows, width, 1, std::forward<SizeOf>(sizeOf));
    }
    void resizeRow(index i, rowsize width) requires(vectors) { resizeMatrix(i, width, 1); }
    void appendToRow(index i, const real &value) requires(vectors && !isFixedLayout(Base::layout)) {
        Base::appendToRow(i, value);
    }

    /// Changes the shape of the matrix of row `i`. Keeps the first elements in column-major order: whole
    /// columns if the number of rows stays. New elements are zero. CSR arrays must be decompressed, unless the
    /// number of elements stays.
    /// @throws IndexError, ArgumentError; StateError for a compressed CSR array; StaleError.
    void resizeMatrix(index i, rowsize matrixRows, rowsize matrixCols) requires(!batches) {
        const MatrixShape shape{matrixRows, matrixCols};
        this->checkRow(i);
        checkMatrix(Shapes::declared, this->commonShape(), i, shape, this->label());
        if constexpr (shapePerRow)
            (void)this->rowShapesIn(MemorySpace::Host);
        if (shape.size() != this->rowSize(i))
            Base::resizeRow(i, shape.size());
        if constexpr (shapePerRow)
            this->writeRowShapes()[i] = shape;
    }

    /// Batches of one size: starts over with rows of `countOf(row)` zero matrices, compressed; gives row `i` this many,
    /// as ArrayBase::resizeRow. @throws ArgumentError; StateError before the size of the matrices was chosen.
    template <std::invocable<index> CountOf>
    requires(batches && !mixed) void resizeBatches(index rows, CountOf &&countOf) {
        Base::resize(rows, [&](index i) { return elements(static_cast<index>(countOf(i))); });
    }
    void resizeBatch(index i, rowsize count) requires(batches && !mixed) { Base::resizeRow(i, elements(count)); }

    /// Batches of differing shapes: makes row `i` zero matrices of these shapes. The array must be decompressed, unless
    /// the row keeps its number of elements.
    /// @throws IndexError, ArgumentError; StateError for a compressed array; StaleError.
    void resizeRow(index i, std::span<const MatrixShape> shapes) requires(mixed) {
        this->checkRow(i);
        const rowsize size = matrixBatchRowSize(shapes, this->label());
        if (size != this->rowSize(i))
            Base::resizeRow(i, size);
        startMatrixBatchRow(this->row(i), shapes);
    }
    void resizeRow(index i, std::initializer_list<MatrixShape> shapes) requires(mixed) {
        resizeRow(i, std::span<const MatrixShape>(shapes.begin(), shapes.size()));
    }
    /// The same, with copies of these matrices: a range of Eigen matrices outside the row itself.
    template <class Matrices>
    requires(mixed) void setRow(index i, const Matrices &matrices) {
        std::vector<MatrixShape> shapes;
        for (const auto &matrix : matrices)
            shapes.push_back({static_cast<rowsize>(matrix.rows()), static_cast<rowsize>(matrix.cols())});
        resizeRow(i, shapes);
        rowsize k = 0;
        for (const auto &matrix : matrices)
            batch(i, k++) = matrix;
    }

    /// The shape of the matrix of row `i`. @throws IndexError, StaleError.
    MatrixShape matrixShape(index i) const requires(!batches) {
        return geometryIn(MemorySpace::Host).shape(i, this->rowSize(i));
    }
    rowsize matRowSize(index i) const requires(!batches) { return matrixShape(i).rows; }
    rowsize matColSize(index i) const requires(!batches) { return matrixShape(i).cols; }
    /// Batches of one size: the shape of all matrices; DynamicSize if it was not chosen.
    MatrixShape matrixShape() const noexcept requires(batches && !mixed) { return this->commonShape(); }
    rowsize matRowSize() const noexcept requires(batches && !mixed) { return this->commonShape().rows; }
    rowsize matColSize() const noexcept requires(batches && !mixed) { return this->commonShape().cols; }
    using Base::commonShape;

    /// The matrix of row `i`; of a batch all matrices, as ArrayMatricesView::operator[]. @throws IndexError,
    /// StaleError.
    auto operator[](index i) { return rowAt(i, Base::operator[](i)); }
    auto operator[](index i) const { return rowAt(i, Base::operator[](i)); }
    /// Element `j` of row `i`; of a batch, matrix `j`. @throws IndexError, StaleError.
    decltype(auto) operator()(index i, rowsize j) {
        if constexpr (batches)
            return batch(i, j);
        else
            return Base::operator()(i, j);
    }
    decltype(auto) operator()(index i, rowsize j) const {
        if constexpr (batches)
            return batch(i, j);
        else
            return Base::operator()(i, j);
    }
    decltype(auto) operator()(index i) { return (*this)(i, 0); }
    decltype(auto) operator()(index i) const { return (*this)(i, 0); }

    /// Batches: the number of matrices of row `i`; matrix `k` of them. @throws IndexError, StaleError.
    rowsize batchSize(index i) const requires(batches) {
        const rowsize size = this->rowSize(i);
        return Shapes::count(mixed ? Base::operator[](i) : nullptr, size, geometryIn(MemorySpace::Host));
    }
    Map batch(index i, rowsize k) requires(batches) {
        checkBatch(i, k);
        return Shapes::matrix(Base::operator[](i), k, geometryIn(MemorySpace::Host));
    }
    ConstMap batch(index i, rowsize k) const requires(batches) {
        checkBatch(i, k);
        return Shapes::matrix(Base::operator[](i), k, geometryIn(MemorySpace::Host));
    }

    /// A view of the matrices in the memory of `backend`; as Array::deviceView.
    template <DeviceBackend backend>
    View deviceView() {
        const auto geometry = geometryIn(memorySpaceOf(backend)); // first, so that a failure changes nothing
        return {Base::template deviceView<backend>(), geometry};
    }
    template <DeviceBackend backend>
    ConstView deviceView() const {
        return {Base::template deviceView<backend>(), geometryIn(memorySpaceOf(backend))};
    }
    View view() { return deviceView<DeviceBackend::Host>(); }
    ConstView view() const { return deviceView<DeviceBackend::Host>(); }

    /// As ParArray's, for arrays of the same matrices only.
    void swapData(ArrayMatrices &other) noexcept { Base::swapData(other); }
    void clone(const ArrayMatrices &other) { Base::clone(other); }

  private:
    /// Starts over with the shapes from `shapeOf`.
    template <class ShapeOf>
    void resizeRows(index rows, MatrixShape common, ShapeOf &&shapeOf) {
        static_assert(!batches, "rows of batches have no shape");
        // Collected first: `shapeOf` is called once a row, and if it throws nothing has changed.
        std::vector<MatrixShape> all(static_cast<std::size_t>(std::max(rows, index{0})));
        for (index i = 0; i < rows; ++i) {
            const auto &[matrixRows, matrixCols] = shapeOf(i);
            const MatrixShape shape{static_cast<rowsize>(matrixRows), static_cast<rowsize>(matrixCols)};
            common = chosenBy(shape, Shapes::declared, common);
            checkMatrix(Shapes::declared, common, i, shape, this->label());
            all[static_cast<std::size_t>(i)] = shape;
        }
        Base::resize(rows, [&](index i) { return all[static_cast<std::size_t>(i)].size(); });
        this->setCommonShape(common);
        if constexpr (shapePerRow)
            std::copy(all.begin(), all.end(), this->writeRowShapes());
    }
    // Bounds were checked by the caller, which has read the row's start.
    template <class T>
    auto rowAt(index i, T *start) const {
        return Shapes::template row<align>(start, i, this->rowSizeUnchecked(i), geometryIn(MemorySpace::Host));
    }
    // The elements of `count` matrices. Throws if a row cannot have that many.
    rowsize elements(index count) const {
        const MatrixShape common = this->commonShape();
        DNDS_CHECK(common.chosen(), StateError,
                   "{}: the size of the matrices was not chosen yet; call resize(rows, m, n)", this->label());
        DNDS_CHECK(count >= 0 && count <= std::numeric_limits<rowsize>::max() / common.size(), ArgumentError,
                   "{}: a row cannot have {} matrices of {} x {}", this->label(), count, common.rows, common.cols);
        return static_cast<rowsize>(count * common.size());
    }
    void checkBatch(index i, rowsize k) const {
        const rowsize count = batchSize(i);
        DNDS_CHECK(k >= 0 && k < count, IndexError, "{}: matrix {} is outside [0, {}) of row {}", this->label(), k,
                   count, i);
    }
    // Sizes that were not chosen yet count as 0, as for arrays without rows.
    typename View::Geometry geometryIn([[maybe_unused]] MemorySpace space) const {
        if constexpr (shapePerRow)
            return {this->rowShapesIn(space)};
        else if constexpr (std::is_empty_v<typename View::Geometry>)
            return {};
        else
            return {{std::max(this->commonShape().rows, 0), std::max(this->commonShape().cols, 0)}};
    }
};

/// One matrix a row, as an Eigen map: [rows x m x n].
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
/// OneMatrix documents the choice of the row layout by m, n and their limits: without limits, rows that differ in shape
/// are CSR; with limits they are padded. The matrix of a padded row is stored without gaps at the beginning of the row.
/// If both dimensions differ between rows, each row keeps its shape, and exchanges move shapes with rows; pushes with
/// an operation throw DataError where they differ.
template <rowsize m = 1, rowsize n = 1, rowsize mMax = m, rowsize nMax = n, int align = NoAlign>
using ArrayEigenMatrix = ArrayMatrices<OneMatrix<m, n, mMax, nMax>, align>;

/// One vector a row, as an Eigen map: [rows x size]. It is a matrix array of one column, in the row layout of
/// `Array<real, size, max, align>`, and is resized like it.
///
///     ArrayEigenVector<3> velocity("velocity", comm);
///     velocity.resize(cells);
///     velocity[0] = Eigen::Vector3d::UnitX();
template <rowsize size = 1, rowsize max = size, int align = NoAlign>
using ArrayEigenVector = ArrayEigenMatrix<size, 1, max, 1, align>;

/// Any number of m x n matrices a row; m and n are positive numbers, or DynamicSize. Rows are CSR.
///
///     ArrayEigenUniMatrixBatch<DynamicSize, 5> fluxes("fluxes", comm, dofs, 5);
///     fluxes.resize(cells);
///     for (index cell = 0; cell < cells; ++cell)
///         fluxes.resizeBatch(cell, faceCount[cell]);
///     fluxes.compress();
///     fluxes(0, 2).setOnes();
template <rowsize m = DynamicSize, rowsize n = DynamicSize>
using ArrayEigenUniMatrixBatch = ArrayMatrices<EqualMatrices<m, n>>;

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
/// no matrices. For the same reason rows can be pushed with PushOp::Replace only. `rowSize`, `row` and `data` refer to
/// the elements with these headers.
using ArrayEigenMatrixBatch = ArrayMatrices<DifferingMatrices>;

} // namespace DNDS
