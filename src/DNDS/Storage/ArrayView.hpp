/// @file ArrayView.hpp
/// @brief The memory layout of rows, and the view of an array for kernels: raw pointers with the array's indexing.
///
/// - `ArrayLayout`: the one that the template parameters of an array select
/// - `RowLayout`: the same without the array's type: all that a transport needs to move rows
/// - `RowGeometry`: starts and lengths of rows, a small trivially copyable type for each layout, which `WithGeometry`
///   lays out next to a member alike by host and device compilers
/// - `ArrayView`: the view
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Base/Types.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace DNDS {

/// The arrangement of rows in memory.
enum class ArrayLayout : unsigned char {
    StaticFixed, ///< all rows have one width, known to the compiler
    Fixed,       ///< all rows have one width, chosen at run time
    StaticMax,   ///< every row has its own size, up to a maximum known to the compiler, and is padded to it
    Max,         ///< the same with the maximum chosen at run time
    CSR          ///< every row has its own size; rows follow each other without padding once compressed
};

/// The layout that `Array<T, rowSize, rowMax>` has:
///
/// |                            | rowSize >= 0 | rowSize == DynamicSize | rowSize == NonUniformSize |
/// |----------------------------|--------------|------------------------|---------------------------|
/// | rowMax >= 0                | StaticFixed  | Fixed                  | StaticMax                 |
/// | rowMax == DynamicSize      | StaticFixed  | Fixed                  | Max                       |
/// | rowMax == NonUniformSize   | StaticFixed  | Fixed                  | CSR                       |
constexpr ArrayLayout arrayLayoutOf(rowsize rowSize, rowsize rowMax) {
    if (rowSize >= 0)
        return ArrayLayout::StaticFixed;
    if (rowSize == DynamicSize)
        return ArrayLayout::Fixed;
    if (rowMax >= 0)
        return ArrayLayout::StaticMax;
    return rowMax == DynamicSize ? ArrayLayout::Max : ArrayLayout::CSR;
}

/// Whether all rows have one width.
constexpr bool isFixedLayout(ArrayLayout layout) {
    return layout == ArrayLayout::StaticFixed || layout == ArrayLayout::Fixed;
}

/// Whether rows have sizes of their own and are padded to a common width.
constexpr bool isPaddedLayout(ArrayLayout layout) {
    return layout == ArrayLayout::StaticMax || layout == ArrayLayout::Max;
}

/// Whether the (padded) width is chosen at run time.
constexpr bool hasRunTimeWidth(ArrayLayout layout) {
    return layout == ArrayLayout::Fixed || layout == ArrayLayout::Max;
}

/// The name used in messages and layout signatures, for example "StaticMax".
constexpr std::string_view arrayLayoutName(ArrayLayout layout) {
    constexpr std::array<std::string_view, 5> names{"StaticFixed", "Fixed", "StaticMax", "Max", "CSR"};
    return names[static_cast<std::size_t>(layout)];
}

/// The distance in elements from one row of `width` elements to the next where every row starts at a multiple of
/// `align` bytes: the row is rounded up to the least common multiple of `align` and the element size, and so to whole
/// elements.
constexpr index rowStrideOf(rowsize width, std::size_t elementBytes, int align) {
    if (align == NoAlign)
        return width;
    // the least common multiple over the element size; std::lcm is not constant for nvcc
    const std::size_t step = static_cast<std::size_t>(align) / std::gcd(static_cast<std::size_t>(align), elementBytes);
    return static_cast<index>((static_cast<std::size_t>(width) + step - 1) / step * step);
}

/// The largest `align` of an array: the alignment of host and device allocations.
inline constexpr int maxRowAlignment = 256;

/// Rows and columns of a matrix; DynamicSize where a number was not chosen yet, NonUniformSize where it has no limit.
struct MatrixShape {
    rowsize rows = 0;
    rowsize cols = 0;

    /// The number of elements, if rows and columns are known.
    DNDS_HOST_DEVICE constexpr rowsize size() const { return rows * cols; }
    /// Whether no number is left to be chosen at run time.
    constexpr bool chosen() const { return rows != DynamicSize && cols != DynamicSize; }
    friend constexpr bool operator==(const MatrixShape &, const MatrixShape &) = default;
};

/// The compile-time facts of an array type as a value, for code that is compiled once for all types.
///
/// `rowSize` and `rowMax` are normalised: parameters that do not change the layout do not distinguish shapes either.
struct ArrayShape {
    ArrayLayout layout;
    rowsize rowSize;
    rowsize rowMax;
    int align;
    std::size_t elementBytes;
    ElementKind kind;
    MatrixShape declared{};     ///< shape of the matrices in rows (`ArrayMatrices`)
    MatrixShape limit{};        ///< limit of these shapes, as far as the type tells
    bool hasRowHeaders = false; ///< elements include headers, so exchanges must not combine them

    /// Whether the shape of each row is stored, because it does not follow from the row's size.
    constexpr bool shapePerRow() const { return declared == MatrixShape{NonUniformSize, NonUniformSize}; }
    /// Readable and equal for arrays whose rows can be exchanged, up to run-time widths: kind[bytes of an
    /// element]:layout:rowSize:rowMax:align, for example "float64[8]:CSR:-2:-2:-1".
    std::string signature() const;
    /// A hash of the same facts. It costs a few multiplications, so that exchanges can compare it at every start.
    std::uint64_t hash() const;
};

/// The shape of `Array<T, rowSize, rowMax, align>`. Rejects invalid arrays at compile time.
template <class T, rowsize rowSize, rowsize rowMax, int align>
constexpr ArrayShape arrayShapeOf() {
    static_assert(std::is_same_v<T, std::remove_cv_t<std::remove_reference_t<T>>>,
                  "the element type of an array is a plain type: for read-only access use a const array or view");
    static_assert(!std::is_same_v<T, bool>,
                  "arrays of bool are not supported, as MPI and devices disagree about its size: use std::uint8_t");
    static_assert(std::is_trivially_copyable_v<T>,
                  "elements are moved between ranks and devices as bytes: their type must be trivially copyable");
    static_assert(rowSize >= NonUniformSize && rowMax >= NonUniformSize,
                  "rowSize and rowMax are a width, DynamicSize or NonUniformSize");
    constexpr ArrayLayout layout = arrayLayoutOf(rowSize, rowMax);
    static_assert(
        align == NoAlign || layout != ArrayLayout::CSR,
        "rows of a CSR array follow each other without gaps, so they cannot be aligned: leave `align` at NoAlign, "
        "or use padded rows by giving rowMax a width or DynamicSize");
    static_assert(align == NoAlign || (align > 0 && std::has_single_bit(static_cast<unsigned>(align))),
                  "align is a number of bytes and a power of two, or NoAlign");
    static_assert(align == NoAlign || align >= static_cast<int>(alignof(T)),
                  "align must be at least the alignment of the element type");
    static_assert(align <= maxRowAlignment, "align is at most 256 bytes, which is what allocations are aligned to");
    static_assert(alignof(T) <= (layout == ArrayLayout::CSR ? __STDCPP_DEFAULT_NEW_ALIGNMENT__ : maxRowAlignment),
                  "the alignment of the element type exceeds what the array's allocations guarantee");
    return {layout,
            rowSize,
            layout == ArrayLayout::StaticFixed ? rowSize : layout == ArrayLayout::Fixed ? DynamicSize : rowMax,
            align,
            sizeof(T),
            elementKindOf<T>()};
}

/// Bytes that belong to every row and lie in one allocation: the elements themselves, or the sizes of padded rows.
///
/// Row `i` starts at `base + i * stride` and is `stride` bytes long (padding included), or, where `offsets` is set
/// (CSR), it occupies `[offsets[i], offsets[i + 1])` in units of `elementBytes`.
struct RowPart {
    std::byte *base = nullptr;
    std::size_t stride = 0;         ///< bytes from one row to the next; unused with `offsets`
    const index *offsets = nullptr; ///< `rows + 1` starts in elements, in host memory, or null
    std::size_t elementBytes = 1;   ///< bytes of one element
    std::uint64_t generation = 0;   ///< changes whenever `base` may have moved; unique in the process
    ElementKind kind = ElementKind::Opaque;
    std::shared_ptr<const void> hold; ///< keeps the memory alive, so that data in flight never lands in freed memory

    /// The first byte of row `row`, relative to `base`.
    std::size_t begin(index row) const {
        return offsets ? static_cast<std::size_t>(offsets[row]) * elementBytes : static_cast<std::size_t>(row) * stride;
    }
};

/// A snapshot of an array's memory. Part 0 holds the elements; further parts describe the rows (such as their sizes)
/// and are sent with them. Valid until the array is resized, swapped, moved or destroyed, which the generations of the
/// parts reveal.
struct RowLayout {
    /// Elements, row sizes, shapes of matrices.
    static constexpr int maxParts = 3;

    std::array<RowPart, maxParts> parts{};
    int partCount = 0;
    index rows = 0;
    MemorySpace space = MemorySpace::Host;
    bool keepsMemory = true; ///< whether parts get a `hold`: set by the caller
    /// Equal for arrays whose rows can be exchanged: element type, layout, fixed widths and alignment (not row counts).
    std::uint64_t signature = 0;
};

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
