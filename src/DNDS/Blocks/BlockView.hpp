/// @file BlockView.hpp
/// @brief The view of one block for loops and kernels: local indices, ghosts at -1 and n.
#pragma once

#include "DNDS/Blocks/Box.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace DNDS {

/// A non-owning, trivially copyable window on one block of a field. `T` may be const. Index 0 is the block's first cell
/// in each dimension, ghosts have -1, -2, ... and n, n + 1, ...; one index more is the component:
///
///     for (index i = 0; i < v.extent(0); ++i)
///         for (index j = 0; j < v.extent(1); ++j)
///             out(i, j) = v(i - 1, j) + v(i + 1, j) + v(i, j - 1) + v(i, j + 1) - 4 * v(i, j);
///
/// The last dimension is contiguous (C order, as in files); `fortran()` has the same cells with the dimensions
/// reversed, so that the first is contiguous. Take a new view for each use, as with ArrayView: it is valid until the
/// field is moved, transferred or destroyed. Bounds are checked where `DNDS_DEBUG_CHECKS` is defined, on the host only.
/// All functions are Local, O(1), and usable on host and device.
template <class T>
class BlockView {
  public:
    using Element = T;

    /// An empty view.
    BlockView() = default;
    /// A block at `memory` with ghosts in `extent` around `cells`. `componentStride` counts elements; cells are
    /// `cellStride` elements apart.
    BlockView(T *memory, const Box &cells, const Box &extent, index cellStride, rowsize components,
              index componentStride)
        : dims_(cells.dims), components_(components) {
        strides_[dims_] = componentStride;
        index stride = cellStride;
        index toFirst = 0;
        for (int d = dims_ - 1; d >= 0; --d) {
            const std::size_t k = toSize(d);
            strides_[d] = stride;
            extents_[d] = cells.extent(d);
            lower_[d] = cells.lower[k];
            low_[d] = static_cast<std::int32_t>(cells.lower[k] - extent.lower[k]);
            high_[d] = static_cast<std::int32_t>(extent.upper[k] - cells.upper[k]);
            toFirst += stride * low_[d];
            stride *= extent.extent(d);
        }
        first_ = memory == nullptr ? nullptr : memory + toFirst;
    }
    /// A mutable view converts to a const view.
    template <class U>
    requires(std::is_const_v<T> &&std::is_same_v<const U, T>) DNDS_HOST_DEVICE BlockView(const BlockView<U> &other)
        : first_(other.first_), dims_(other.dims_), components_(other.components_) {
        for (int d = 0; d <= maxBlockDims; ++d)
            strides_[d] = other.strides_[d];
        for (int d = 0; d < maxBlockDims; ++d) {
            extents_[d] = other.extents_[d];
            lower_[d] = other.lower_[d];
            low_[d] = other.low_[d];
            high_[d] = other.high_[d];
        }
    }

    /// The number of dimensions, and of elements per cell.
    DNDS_HOST_DEVICE int dims() const { return dims_; }
    DNDS_HOST_DEVICE rowsize components() const { return components_; }
    /// The number of cells along dimension `d`, without ghosts.
    DNDS_HOST_DEVICE index extent(int d) const { return extents_[d]; }
    /// Layers of ghosts below the first and above the last cell of dimension `d`.
    DNDS_HOST_DEVICE index ghostsLow(int d) const { return low_[d]; }
    DNDS_HOST_DEVICE index ghostsHigh(int d) const { return high_[d]; }
    /// Elements from one cell to the next in dimension `d`; for `dims()`, from one component to the next.
    DNDS_HOST_DEVICE index stride(int d) const { return strides_[d]; }
    /// The number of cells without ghosts.
    DNDS_HOST_DEVICE index size() const {
        index cells = dims_ > 0 ? 1 : 0;
        for (int d = 0; d < dims_; ++d)
            cells *= extents_[d];
        return cells;
    }
    /// The address of cell (0, 0, ...); null if there is no memory.
    DNDS_HOST_DEVICE T *data() const { return first_; }

    /// The element at local indices, one per dimension, and a component, 0 by default.
    template <class... Indices>
    DNDS_HOST_DEVICE T &operator()(Indices... indices) const {
        static_assert(sizeof...(Indices) >= 1 && sizeof...(Indices) <= maxBlockDims + 1);
        static_assert((std::is_convertible_v<Indices, index> && ...));
        const index at[] = {static_cast<index>(indices)...};
        constexpr int count = static_cast<int>(sizeof...(Indices));
        check(at, count);
        index offset = 0;
        for (int d = 0; d < count; ++d)
            offset += at[d] * strides_[d];
        return first_[offset];
    }
    /// The first component of the cell with these numbers in the index space. On the host; bounds are not checked.
    T *addressOf(const IndexVector &cell) const {
        index offset = 0;
        for (int d = 0; d < dims_; ++d)
            offset += local(cell[toSize(d)], d) * strides_[d];
        return first_ + offset;
    }
    /// The cells without ghosts, in the index space. On the host.
    Box cells() const {
        Box box(dims_, {}, {});
        for (int d = 0; d < dims_; ++d) {
            box.lower[toSize(d)] = lower_[d];
            box.upper[toSize(d)] = lower_[d] + extents_[d];
        }
        return box;
    }
    /// The number in the index space of the cell with local index `i` of dimension `d`; beyond its ends for ghosts
    /// there.
    DNDS_HOST_DEVICE index global(index i, int d) const { return lower_[d] + i; }
    /// The local index of cell `g` of the index space.
    DNDS_HOST_DEVICE index local(index g, int d) const { return g - lower_[d]; }

    /// Local indices of the cells without ghosts, for kernels over [0, size()): of dimension `d` of cell `n` in C
    /// order.
    DNDS_HOST_DEVICE index indexOf(index n, int d) const {
        for (int k = dims_ - 1; k > d; --k)
            n /= extents_[k];
        return n % extents_[d];
    }

    /// The same cells with the dimensions reversed: `v.fortran()(k, j, i)` is `v(i, j, k)`. The component stays last.
    DNDS_HOST_DEVICE BlockView fortran() const {
        BlockView reversed = *this;
        for (int d = 0; d < dims_; ++d) {
            const int from = dims_ - 1 - d;
            reversed.strides_[d] = strides_[from];
            reversed.extents_[d] = extents_[from];
            reversed.lower_[d] = lower_[from];
            reversed.low_[d] = low_[from];
            reversed.high_[d] = high_[from];
        }
        return reversed;
    }

  private:
    template <class U>
    friend class BlockView;

    DNDS_HOST_DEVICE void check([[maybe_unused]] const index *at, [[maybe_unused]] int count) const {
        DNDS_DEBUG_CHECK(count == dims_ || count == dims_ + 1, IndexError,
                         "block view: {} indices for {} dimensions (and a component, if any)", count, dims_);
#if defined(DNDS_DEBUG_CHECKS) && !defined(__CUDA_ARCH__)
        for (int d = 0; d < dims_; ++d)
            DNDS_CHECK(at[d] >= -low_[d] && at[d] < extents_[d] + high_[d], IndexError,
                       "block view: index {} of dimension {} is outside [{}, {})", at[d], d, -low_[d],
                       extents_[d] + high_[d]);
        DNDS_CHECK(count == dims_ || (at[dims_] >= 0 && at[dims_] < components_), IndexError,
                   "block view: component {} is outside [0, {})", at[dims_], components_);
#endif
    }

    // Members fill 152 bytes, which kernels get in their arguments or read from tables. 32 bits hold ghost widths,
    // which are at most 2^30. `first_` is the first cell, not the first ghost, so that indexing needs no shift.
    T *first_ = nullptr;
    index strides_[maxBlockDims + 1] = {}; // NOLINT: plain arrays, for kernels; entry dims_ is that of components
    index extents_[maxBlockDims] = {};     // NOLINT
    index lower_[maxBlockDims] = {};       // NOLINT: the first cell's number in the index space
    std::int32_t low_[maxBlockDims] = {};  // NOLINT: layers of ghosts
    std::int32_t high_[maxBlockDims] = {}; // NOLINT
    std::int32_t dims_ = 0;
    rowsize components_ = 0;
};

} // namespace DNDS
