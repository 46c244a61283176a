/// @file ArrayDof.hpp
/// @brief Degrees of freedom: an array of matrices with ghosts that is a vector of a vector space.
#pragma once

#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

namespace DNDS {

/// A pair of `ArrayEigenMatrix<m, n>` with the operations of iterative solvers: [(owned rows + ghosts) x m x n]. m and
/// n are numbers, or DynamicSize.
///
///     ArrayDof<5, 1> u, rhs;
///     u.initPair("u", comm);                                  // a size chosen at run time: initPair("u", comm, 5, 1)
///     u.father->resize(cells);
///     ...                                                     // mapping and ghosts, as for ArrayPair
///     u.addTo(rhs, timeStep);                                 // u += timeStep * rhs, ghosts included
///     const real residual = rhs.norm2();
///
/// Operations that change the array act on owned rows and ghosts: ghosts that were copies of their owners stay so
/// without communication, and `ghostState` reports that as long as all ranks call them with the same numbers. They are
/// Local, O(array), and throw LayoutError if the arrays differ in rows or matrix size, and StateError if their
/// ghosts belong to different mappings; then nothing was changed. Reductions are over owned rows of all ranks and
/// Collective: O(array) and one reduction (two if a size is chosen at run time and the result is a matrix). Errors
/// of one rank are thrown on all ranks. Results do not depend on the order of messages, but on the number of
/// ranks.
///
/// Operations run on the host until `runOn` selects the device, and throw StaleError if that side is not current. The
/// device gives the same results to the bit; see DofKernels.hpp.
///
///     u.toDevice();
///     u.runOn(Executor::device(stream));
///     u.addTo(rhs, timeStep);                                 // queued; rhs has to be on the device, too
///     const real norm = u.norm2();                            // waits for the stream
template <rowsize m = 1, rowsize n = 1>
class ArrayDof : public ArrayPair<ArrayEigenMatrix<m, n>> {
    static_assert(m != NonUniformSize && n != NonUniformSize, "all rows of an ArrayDof have one size");
    using Component = DofKernels::Component;
    using Operation = DofKernels::Operation;
    using Reduction = DofKernels::Reduction;

  public:
    using Base = ArrayPair<ArrayEigenMatrix<m, n>>;
    using typename Base::ArrayType;
    using Matrix = typename ArrayType::Matrix;
    using Base::father;
    using Base::son;

    using Base::Base;
    ArrayDof() = default;
    ArrayDof(ArrayDof &&) noexcept = default;
    ArrayDof &operator=(ArrayDof &&) noexcept = default;
    ~ArrayDof() = default;
    ArrayDof(const ArrayDof &) = delete;            // clone makes a deep copy with ghosts of its own (collective)
    ArrayDof &operator=(const ArrayDof &) = delete; // copyFrom takes the values, clone makes a deep copy (collective)

    /// Sets the executor of the operations below, whatever the other arrays are set to. On the device changes are
    /// queued, and reductions wait for the stream. Local.
    void runOn(const Executor &executor) { executor_ = executor; }
    const Executor &executor() const noexcept { return executor_; }

    /// As ArrayPair; work queued here runs before.
    void toHost() {
        executor_.synchronize();
        Base::toHost();
    }

    /// Sets every element, or every row.
    void setConstant(real value) {
        change(true, [&](std::span<real> part) { DofKernels::fill(part, value, executor_); });
    }
    template <class Derived>
    void setConstant(const Eigen::MatrixBase<Derived> &value) {
        const Matrix row = fitted(value);
        change(true, [&](std::span<real> part) { DofKernels::fillRows(part, elementsOfRow(row), executor_); });
    }
    /// Copies the values of `other`, without changes of allocations, mappings and persistent exchanges.
    void copyFrom(const ArrayDof &other) {
        const bool current = other.hasPulledGhosts();
        forEachPart(other, [this](std::span<real> to, std::span<const real> from) {
            if (to.data() != from.data())
                DofKernels::copy(to, from, executor_);
        });
        keepGhosts(current);
    }

    /// With a number, another array, a matrix for every row or, unless rows are numbers, a
    /// number for each row, `ArrayDof<1, 1>`. All are component-wise: `*=` is no matrix product.
    template <class Other>
    ArrayDof &operator+=(const Other &other) {
        return combine(Operation::Add, other);
    }
    template <class Other>
    ArrayDof &operator-=(const Other &other) {
        return combine(Operation::Subtract, other);
    }
    template <class Other>
    ArrayDof &operator*=(const Other &other) {
        return combine(Operation::Multiply, other);
    }
    template <class Other>
    ArrayDof &operator/=(const Other &other) {
        return combine(Operation::Divide, other);
    }

    /// this += alpha * x
    ArrayDof &addTo(const ArrayDof &x, real alpha) {
        forEachPart(x, [this, alpha](std::span<real> to, std::span<const real> from) {
            DofKernels::addTo(to, alpha, from, executor_);
        });
        return *this;
    }
    /// The same in BLAS argument order.
    ArrayDof &axpy(real alpha, const ArrayDof &x) { return addTo(x, alpha); }

    /// The sum of the products of all elements with their partners. Collective, as all below.
    real dot(const ArrayDof &other) const {
        return reduced(Reduction::Sum, [&] { return DofKernels::dot(owned(), ownedOf(other), executor_); });
    }
    /// The Euclidean norm of all elements: the square root of `dot(*this)`.
    real norm2() const {
        return std::sqrt(reduced(Reduction::Sum, [&] { return DofKernels::dot(owned(), owned(), executor_); }));
    }
    /// The Euclidean norm of the difference.
    real norm2(const ArrayDof &other) const {
        return std::sqrt(
            reduced(Reduction::Sum, [&] { return DofKernels::squaredDistance(owned(), ownedOf(other), executor_); }));
    }
    /// The sum of all elements.
    real sum() const {
        return reduced(Reduction::Sum, [&] { return DofKernels::sum(owned(), executor_); });
    }
    /// The smallest and the largest element: NaN if an element is NaN, +infinity and -infinity if no rank has
    /// elements.
    real min() const {
        return -reduced(Reduction::Max, [&] { return -DofKernels::extremes(owned(), executor_).min; });
    }
    real max() const {
        return reduced(Reduction::Max, [&] { return DofKernels::extremes(owned(), executor_).max; });
    }
    /// For each of the m x n components the sum of magnitudes, the Euclidean norm or the largest magnitude over all
    /// rows; 0 if no rank has rows. Run-time sizes that no rank chose count as 0; ranks without rows get the
    /// others'.
    Matrix componentNorm1() const { return components(Component::AbsoluteSum, Reduction::Sum); }
    Matrix componentNorm2() const { return components(Component::SquareSum, Reduction::Sum).cwiseSqrt(); }
    Matrix componentNormInf() const { return components(Component::AbsoluteMax, Reduction::Max); }
    /// The same of the difference.
    Matrix componentNorm1(const ArrayDof &other) const {
        return components(Component::AbsoluteSum, Reduction::Sum, &other);
    }
    Matrix componentNorm2(const ArrayDof &other) const {
        return components(Component::SquareSum, Reduction::Sum, &other).cwiseSqrt();
    }
    Matrix componentNormInf(const ArrayDof &other) const {
        return components(Component::AbsoluteMax, Reduction::Max, &other);
    }

  private:
    template <rowsize, rowsize>
    friend class ArrayDof;

    /// The elements on the side of the executor. Write access makes the other side stale.
    template <class A>
    std::span<std::conditional_t<std::is_const_v<A>, const real, real>> elementsOf(A &array) const {
        const auto count = static_cast<std::size_t>(array.dataSize());
        if (executor_.onDevice())
            return {array.template deviceView<DeviceBackend::CUDA>().rows().data(), count};
        return {array.data(), count};
    }

    /// The elements of a row of this array on the host.
    static std::span<const real> elementsOfRow(const Matrix &row) {
        return {row.data(), static_cast<std::size_t>(row.size())};
    }
    /// Owned elements and ghosts' elements of `other` on the side where this array's operations run.
    template <class Other>
    std::array<std::span<const real>, 2> readParts(const Other &other) const {
        return {elementsOf(std::as_const(*other.father)), elementsOf(std::as_const(*other.son))};
    }
    std::array<std::span<real>, 2> writeParts() {
        (void)readParts(*this); // both are checked before either makes its device side stale
        return {elementsOf(*father), elementsOf(*son)};
    }
    std::span<const real> owned() const { return elementsOf(std::as_const(*father)); }
    /// The owned elements of an array, checked to have the same number.
    std::span<const real> ownedOf(const ArrayDof &other) const {
        requireShape(other);
        requireRows(*father, *other.father);
        return elementsOf(std::as_const(*other.father));
    }

    void requireShape(const ArrayDof &other) const {
        const MatrixShape mine = father->commonShape();
        const MatrixShape its = other.father->commonShape();
        DNDS_CHECK(mine == its || father->size() + son->size() == 0, LayoutError,
                   "'{}' has matrices of {} x {}, but '{}' of {} x {}", father->label(), mine.rows, mine.cols,
                   other.father->label(), its.rows, its.cols);
    }
    // Both counts are of this rank: other ranks may find a difference, or none.
    template <class A, class B>
    static void requireRows(const A &mine, const B &its) {
        DNDS_CHECK(mine.size() == its.size(), LayoutError, "'{}' has {} rows, but '{}' has {}", mine.label(),
                   mine.size(), its.label(), its.size());
    }
    /// Throws unless owned rows and ghosts correspond to those of `other`.
    template <class Other>
    void requirePartner(const Other &other) const {
        requireRows(*father, *other.father);
        requireRows(*son, *other.son);
        DNDS_CHECK(son->size() == 0 || this->trans.pattern() == other.trans.pattern(), StateError,
                   "the ghosts of '{}' and '{}' belong to different mappings: use borrowGGIndexing", father->label(),
                   other.father->label());
    }

    /// Whether ghosts are copies of their owners, and were not finished after the pull (`Task::Graph::finishPulls`).
    bool hasPulledGhosts() const { return !this->ghostsAreStale() && son->finishedBy() == 0; }
    /// After the same change of owned rows and ghosts: ghosts that were copies of their owners still are.
    void keepGhosts(bool current) {
        if (current)
            son->setPulledFrom(father->version());
    }

    /// Calls `function` for owned elements and ghosts' elements. `current`: ghosts were copies of their owners before,
    /// or become ones.
    template <class Function>
    ArrayDof &change(bool current, const Function &function) {
        for (const std::span<real> part : writeParts())
            function(part);
        keepGhosts(current);
        return *this;
    }
    /// The same with the elements of `other`.
    template <class Other, class Function>
    void forEachPart(const Other &other, const Function &function) {
        requirePartner(other);
        if constexpr (std::is_same_v<Other, ArrayDof>)
            requireShape(other);
        const bool current = hasPulledGhosts() && other.hasPulledGhosts();
        const auto from = readParts(other);
        const auto to = writeParts();
        for (std::size_t part = 0; part < to.size(); ++part)
            function(to[part], from[part]);
        keepGhosts(current);
    }
    ArrayDof &combine(Operation operation, real a) {
        return change(hasPulledGhosts(),
                      [&](std::span<real> part) { DofKernels::combine(operation, part, a, executor_); });
    }
    ArrayDof &combine(Operation operation, const ArrayDof &other) {
        forEachPart(other, [this, operation](std::span<real> to, std::span<const real> from) {
            DofKernels::combine(operation, to, from, executor_);
        });
        return *this;
    }
    template <class Derived>
    ArrayDof &combine(Operation operation, const Eigen::MatrixBase<Derived> &value) {
        const Matrix row = fitted(value);
        return change(hasPulledGhosts(), [&](std::span<real> part) {
            DofKernels::combineRows(operation, part, elementsOfRow(row), executor_);
        });
    }
    template <std::derived_from<ArrayDof<1, 1>> Scalars>
    requires(m != 1 || n != 1) ArrayDof &combine(Operation operation, const Scalars &scalars) {
        const ArrayDof<1, 1> &numbers = scalars;
        forEachPart(numbers, [this, operation](std::span<real> to, std::span<const real> from) {
            DofKernels::combineScalars(operation, to, from, executor_);
        });
        return *this;
    }
    /// `value` as one row of this array.
    /// Any value fits an array without rows, which may not know its size yet.
    template <class Derived>
    Matrix fitted(const Eigen::MatrixBase<Derived> &value) const {
        const MatrixShape shape = father->commonShape();
        DNDS_CHECK(father->size() + son->size() == 0 || (value.rows() == shape.rows && value.cols() == shape.cols),
                   LayoutError, "'{}' has matrices of {} x {}, not {} x {}", father->label(), shape.rows, shape.cols,
                   value.rows(), value.cols());
        return value;
    }

    template <class Body>
    real reduced(Reduction reduction, const Body &body) const {
        return DofKernels::reduced(father->comm(), reduction, body);
    }
    // Sizes chosen at run time are agreed on first: the reduction needs equally many numbers on all ranks.
    Matrix components(Component component, Reduction reduction, const ArrayDof *other = nullptr) const {
        father->agreeShape();
        const MatrixShape shape = father->commonShape();
        Matrix result = Matrix::Zero(std::max(shape.rows, 0), std::max(shape.cols, 0));
        const std::span<real> values(result.data(), static_cast<std::size_t>(result.size()));
        const std::exception_ptr failure = attempt([&] {
            const std::span<const real> theirs = other != nullptr ? ownedOf(*other) : std::span<const real>();
            DofKernels::accumulate(component, owned(), theirs, values, executor_);
        });
        DofKernels::reduceOrThrow(father->comm(), values, reduction, failure);
        return result;
    }

    Executor executor_ = Executor::host();
};

} // namespace DNDS
