/// @file RowGeometry.hpp
/// @brief Starts and lengths of rows: one small trivially copyable type for each layout.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Storage/ArrayLayout.hpp"

#include <cstddef>

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

} // namespace DNDS
