/// @file ArrayView.hpp
/// @brief The view of an array for kernels: raw pointers with the array's indexing.
///
/// Starts and lengths of rows are a small trivially copyable type for each layout (`RowGeometry`), which `WithGeometry`
/// lays out next to a member alike by host and device compilers.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Storage/ArrayLayout.hpp"

#include <cstddef>
#include <span>
#include <type_traits>

namespace DNDS {

/// The start and the size of rows in elements, without access to the elements. Values known at compile time (static
/// widths) take no memory and are constants in address arithmetic. Specialised for each layout.
template <ArrayLayout layout, rowsize rowSize, rowsize rowMax, int align, std::size_t elementBytes>
struct RowGeometry;

template <rowsize rowSizeParam, rowsize rowMax, int align, std::size_t elementBytes>
struct RowGeometry<ArrayLayout::StaticFixed, rowSizeParam, rowMax, align, elementBytes> {
    static constexpr index stride = rowStrideOf(rowSizeParam, elementBytes, align);

    /// Rows start `stride` elements apart, padding included; all have the static width.
    DNDS_HOST_DEVICE constexpr index rowStart(index row) const { return row * stride; }
    DNDS_HOST_DEVICE constexpr rowsize rowSize(index /*row*/) const { return rowSizeParam; }
};

template <rowsize rowSizeParam, rowsize rowMax, int align, std::size_t elementBytes>
struct RowGeometry<ArrayLayout::Fixed, rowSizeParam, rowMax, align, elementBytes> {
    index stride = 0;
    rowsize width = 0;

    /// Rows start `stride` elements apart, padding included; all have `width` elements.
    DNDS_HOST_DEVICE constexpr index rowStart(index row) const { return row * stride; }
    DNDS_HOST_DEVICE constexpr rowsize rowSize(index /*row*/) const { return width; }
};

template <rowsize rowSizeParam, rowsize rowMax, int align, std::size_t elementBytes>
struct RowGeometry<ArrayLayout::StaticMax, rowSizeParam, rowMax, align, elementBytes> {
    static constexpr index stride = rowStrideOf(rowMax, elementBytes, align);
    const rowsize *sizes = nullptr;

    /// Rows start `stride` elements apart, room for the longest included; each has its own size.
    DNDS_HOST_DEVICE constexpr index rowStart(index row) const { return row * stride; }
    DNDS_HOST_DEVICE constexpr rowsize rowSize(index row) const { return sizes[row]; }
};

template <rowsize rowSizeParam, rowsize rowMax, int align, std::size_t elementBytes>
struct RowGeometry<ArrayLayout::Max, rowSizeParam, rowMax, align, elementBytes> {
    const rowsize *sizes = nullptr;
    index stride = 0;

    /// Rows start `stride` elements apart, room for the longest included; each has its own size.
    DNDS_HOST_DEVICE constexpr index rowStart(index row) const { return row * stride; }
    DNDS_HOST_DEVICE constexpr rowsize rowSize(index row) const { return sizes[row]; }
};

template <rowsize rowSizeParam, rowsize rowMax, int align, std::size_t elementBytes>
struct RowGeometry<ArrayLayout::CSR, rowSizeParam, rowMax, align, elementBytes> {
    const index *offsets = nullptr; ///< rows + 1 starts; null only without rows

    /// Rows follow each other without gaps; `offsets` has their starts.
    DNDS_HOST_DEVICE constexpr index rowStart(index row) const { return offsets[row]; }
    DNDS_HOST_DEVICE constexpr rowsize rowSize(index row) const {
        return static_cast<rowsize>(offsets[row + 1] - offsets[row]);
    }
};

/// `Member` followed by `Geometry`, which takes no memory where it is empty. For views that kernels take by value.
///
/// It replaces `[[no_unique_address]]`: nvcc lays out a class with such an empty member larger in device code than on
/// the host, so that kernels read everything after it at wrong offsets. scripts/compile-cuda.sh compares the layouts.
template <class Member, class Geometry, bool isEmpty = std::is_empty_v<Geometry>>
class WithGeometry {
  public:
    WithGeometry() = default;
    DNDS_HOST_DEVICE constexpr WithGeometry(const Member &member, const Geometry &geometry)
        : member_(member), geometry_(geometry) {} ///< Takes both.

    DNDS_HOST_DEVICE constexpr const Member &member() const { return member_; } ///< The first.
    DNDS_HOST_DEVICE constexpr Geometry geometry() const { return geometry_; }  ///< The second.

  private:
    Member member_{};
    Geometry geometry_{};
};

template <class Member, class Geometry>
class WithGeometry<Member, Geometry, true> {
  public:
    WithGeometry() = default;
    DNDS_HOST_DEVICE constexpr WithGeometry(const Member &member, const Geometry &) : member_(member) {} ///< Both.

    DNDS_HOST_DEVICE constexpr const Member &member() const { return member_; } ///< The first.
    DNDS_HOST_DEVICE constexpr Geometry geometry() const { return {}; }         ///< The second.

  private:
    Member member_{};
};

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
