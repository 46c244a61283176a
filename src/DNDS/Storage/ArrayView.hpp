/// @file ArrayView.hpp
/// @brief The view of an array for kernels: raw pointers with the array's indexing.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Storage/RowGeometry.hpp"
#include "DNDS/Storage/WithGeometry.hpp"

#include <cstddef>
#include <span>
#include <type_traits>

namespace DNDS {

/// A non-owning window on the rows of an `Array`, trivially copyable so that kernels take it by value. `T` may be
/// const.
///
/// Take one per use from `Array::view` or `Array::deviceView`; it is valid until the array is resized, swapped, moved,
/// transferred or destroyed. Constness is shallow, as for std::span: a view of non-const `T` writes. Bounds are checked
/// where `DNDS_DEBUG_CHECKS` is defined, and on the host only. All functions are Local, O(1), and usable on host and
/// device; the pointers belong to the memory space that the view was taken for.
///
///     auto u = field.view();                                  // field: Array<real, 5>
///     for (index cell = 0; cell < u.size(); ++cell)
///         for (rowsize k = 0; k < u.rowSize(); ++k)
///             u(cell, k) *= 0.5;
template <class T, rowsize rowSizeParam = 1, rowsize rowMaxParam = rowSizeParam, int align = NoAlign>
class ArrayView {
  public:
    using Element = T;
    static constexpr ArrayShape shape = arrayShapeOf<std::remove_const_t<T>, rowSizeParam, rowMaxParam, align>();
    static constexpr ArrayLayout layout = shape.layout;
    using Geometry = RowGeometry<layout, shape.rowSize, shape.rowMax, align, sizeof(T)>;

    /// An empty view.
    ArrayView() = default;

    /// A view of `rows` rows with elements from `data` on, laid out by `geometry`.
    DNDS_HOST_DEVICE constexpr ArrayView(T *data, index rows, const Geometry &geometry)
        : parts_({data, rows}, geometry) {}

    /// A mutable view is a const view, too.
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE
        constexpr ArrayView(const ArrayView<U, rowSizeParam, rowMaxParam, align> &other)
        : parts_({other.data(), other.size()}, other.geometry()) {}

    /// The number of rows.
    DNDS_HOST_DEVICE constexpr index size() const { return parts_.member().rows; }

    /// The number of elements of row `i`.
    DNDS_HOST_DEVICE constexpr rowsize rowSize(index i) const {
        checkRow(i);
        return geometry().rowSize(i);
    }

    /// The number of elements of every row; a constant where the width is static.
    DNDS_HOST_DEVICE constexpr rowsize rowSize() const requires(isFixedLayout(layout)) { return geometry().rowSize(0); }

    /// Element `j` of row `i`.
    DNDS_HOST_DEVICE constexpr T &operator()(index i, rowsize j) const {
        checkRow(i);
        DNDS_DEBUG_CHECK(j >= 0 && j < geometry().rowSize(i), IndexError,
                         "view: element {} is outside [0, {}) of row {}", j, geometry().rowSize(i), i);
        return data()[geometry().rowStart(i) + j];
    }

    /// The first element of row `i`.
    DNDS_HOST_DEVICE constexpr T &operator()(index i) const { return (*this)(i, 0); }

    /// The start of row `i`.
    DNDS_HOST_DEVICE constexpr T *operator[](index i) const {
        checkRow(i);
        return data() + geometry().rowStart(i);
    }

    /// Row `i` as a span.
    DNDS_HOST_DEVICE constexpr std::span<T> row(index i) const {
        return {(*this)[i], static_cast<std::size_t>(geometry().rowSize(i))};
    }

    /// The start of the first row; null if there are no elements.
    DNDS_HOST_DEVICE constexpr T *data() const { return parts_.member().data; }
    DNDS_HOST_DEVICE constexpr Geometry geometry() const { return parts_.geometry(); }

  private:
    DNDS_HOST_DEVICE constexpr void checkRow([[maybe_unused]] index i) const {
        DNDS_DEBUG_CHECK(i >= 0 && i < size(), IndexError, "view: row {} is outside [0, {})", i, size());
    }

    struct Elements {
        T *data = nullptr;
        index rows = 0;
    };

    WithGeometry<Elements, Geometry> parts_;
};

} // namespace DNDS
