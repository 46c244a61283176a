/// @file ArrayAdjacency.hpp
/// @brief A distributed array whose rows are lists of row numbers: the nodes of cells, the cells of faces.
#pragma once

#include "DNDS/Array/ParArray.hpp"

#include <concepts>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

namespace DNDS {

/// One row of an adjacency: a view of its row numbers, trivially copyable. Unlike std::span it counts in `rowsize`,
/// so that loops over rows mix no signs; it converts to std::span. `T` is a (const) integer type. Bounds are checked
/// if `DNDS_DEBUG_CHECKS` is defined.
template <class T>
class AdjacencyRow {
  public:
    /// The `size` numbers from `begin` on, which must outlive it; or a mutable row for reading. Local, O(1), as all
    /// below.
    DNDS_HOST_DEVICE constexpr AdjacencyRow(T *begin, rowsize size) : begin_(begin), size_(size) {}
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE
        constexpr AdjacencyRow(const AdjacencyRow<U> &other)
        : begin_(other.data()), size_(other.size()) {}

    /// The numbers of the row: count, address, and number `j`.
    DNDS_HOST_DEVICE constexpr rowsize size() const { return size_; }
    DNDS_HOST_DEVICE constexpr bool empty() const { return size_ == 0; }
    DNDS_HOST_DEVICE constexpr T *data() const { return begin_; }
    DNDS_HOST_DEVICE constexpr T *begin() const { return begin_; }
    DNDS_HOST_DEVICE constexpr T *end() const { return begin_ + size_; }
    DNDS_HOST_DEVICE constexpr T &operator[](rowsize j) const {
        DNDS_DEBUG_CHECK(j >= 0 && j < size_, IndexError, "adjacency: entry {} is outside [0, {})", j, size_);
        return begin_[j];
    }

  private:
    T *begin_;
    rowsize size_;
};

} // namespace DNDS

/// @cond
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<DNDS::AdjacencyRow<T>> = true;
/// @endcond

namespace DNDS {

/// View of an adjacency for kernels; taken and used as `ArrayView`, except that `operator[]` returns an AdjacencyRow.
template <class T, rowsize rowSizeParam, rowsize rowMaxParam>
class ArrayAdjacencyView : public ArrayView<T, rowSizeParam, rowMaxParam> {
  public:
    using Base = ArrayView<T, rowSizeParam, rowMaxParam>;

    ArrayAdjacencyView() = default;
    /// The same rows as lists of row numbers.
    DNDS_HOST_DEVICE constexpr ArrayAdjacencyView(const Base &rows) : Base(rows) {} // NOLINT: implicit on purpose
    /// A mutable view is also a const view.
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE
        constexpr ArrayAdjacencyView(const ArrayAdjacencyView<U, rowSizeParam, rowMaxParam> &other)
        : Base(static_cast<const ArrayView<U, rowSizeParam, rowMaxParam> &>(other)) {}

    /// Row `i`. O(1).
    DNDS_HOST_DEVICE constexpr AdjacencyRow<T> operator[](index i) const {
        return {Base::operator[](i), this->rowSize(i)};
    }
};

/// Lists of row numbers, CSR unless a width is given; `Index` is `index` for global rows, `LocalIndex` for rows of this
/// rank.
///
///     ArrayAdjacency<> cellNodes("cell nodes", comm);
///     cellNodes.resize(cells, [&](index cell) { return nodeCount[cell]; });
///     for (index &node : cellNodes[0])
///         node = next++;
///     auto nodes = std::as_const(cellNodes).view();            // for loops
///     for (const index node : nodes[0]) ...
///
/// Rows, resizing, residency and copies are as for `Array`. All functions are Local.
template <rowsize rowSizeParam = NonUniformSize, rowsize rowMaxParam = rowSizeParam, std::signed_integral Index = index>
class ArrayAdjacency : public ParArray<Index, rowSizeParam, rowMaxParam> {
  public:
    using Base = ParArray<Index, rowSizeParam, rowMaxParam>;
    using View = ArrayAdjacencyView<Index, rowSizeParam, rowMaxParam>;
    using ConstView = ArrayAdjacencyView<const Index, rowSizeParam, rowMaxParam>;

    /// No rows, on the ranks of `comm`. The name is for messages.
    explicit ArrayAdjacency(CommunicatorView comm) : Base(comm) {}
    ArrayAdjacency(std::string name, CommunicatorView comm) : Base(std::move(name), comm) {}
    /// Chooses the run-time width of the Fixed and Max layouts.
    ArrayAdjacency(std::string name, CommunicatorView comm, rowsize width) requires(hasRunTimeWidth(Base::layout))
        : Base(std::move(name), comm) {
        this->resize(0, width);
    }

    /// The entries of row `i`. @throws IndexError, StaleError.
    AdjacencyRow<Index> operator[](index i) { return {Base::operator[](i), this->rowSizeUnchecked(i)}; }
    AdjacencyRow<const Index> operator[](index i) const { return {Base::operator[](i), this->rowSizeUnchecked(i)}; }

    /// A view of the rows in the memory of `backend`; as Array::deviceView.
    template <DeviceBackend backend>
    View deviceView() {
        return Base::template deviceView<backend>();
    }
    template <DeviceBackend backend>
    ConstView deviceView() const {
        return Base::template deviceView<backend>();
    }
    View view() { return deviceView<DeviceBackend::Host>(); }
    ConstView view() const { return deviceView<DeviceBackend::Host>(); }
};

} // namespace DNDS
