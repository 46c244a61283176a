/// @file IndexTransform.hpp
/// @brief How the cells of one index space are numbered in another: shifted, turned and mirrored.
#pragma once

#include "DNDS/Blocks/Box.hpp"

#include <span>

namespace DNDS {

/// A map of cells: dimension d of one space is dimension `axis[d]` of the other, forwards or backwards. Trivially
/// copyable. All is Local and O(1).
///
///     other[axis[d]] = sign[d] * cell[d] + offset[axis[d]]
struct IndexTransform {
    int dims = 0;
    std::array<int, maxBlockDims> axis{0, 1, 2, 3};
    std::array<int, maxBlockDims> sign{1, 1, 1, 1};
    IndexVector offset{};

    /// A shift.
    static IndexTransform translation(int dims, const IndexVector &by) {
        return {dims, {0, 1, 2, 3}, {1, 1, 1, 1}, by};
    }
    /// That of a CGNS 1-to-1 connection: vertex v of this space is T(v - begin) + otherBegin of the other. Entry d of
    /// `transform` is +-(a + 1) where dimension d runs along dimension a of the other, forwards or backwards. Cells lie
    /// between vertices: the cell from v to v + 1 is the one from the lower to the higher of the two vertices that
    /// these are mapped to.
    /// Throws ArgumentError unless `transform` names each dimension once.
    static IndexTransform ofVertices(std::span<const int> transform, const IndexVector &begin,
                                     const IndexVector &otherBegin);

    /// The cell of the other space that is `cell` in this one.
    IndexVector operator()(const IndexVector &cell) const noexcept {
        IndexVector other{};
        for (int d = 0; d < dims; ++d)
            other[toSize(axis[toSize(d)])] = sign[toSize(d)] * cell[toSize(d)] + offset[toSize(axis[toSize(d)])];
        return other;
    }
    /// The box of the cells that the cells of `box` are mapped to.
    Box operator()(const Box &box) const noexcept;
    /// From the cells that it maps to, back.
    IndexTransform inverse() const noexcept;
    /// First this, then `next`.
    IndexTransform then(const IndexTransform &next) const noexcept;

    friend bool operator==(const IndexTransform &, const IndexTransform &) = default;
};

} // namespace DNDS
