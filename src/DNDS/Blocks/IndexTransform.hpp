/// @file IndexTransform.hpp
/// @brief The mapping of cell numbers between two index spaces: shifted, turned and mirrored.
#pragma once

#include "DNDS/Blocks/Box.hpp"

#include <span>

namespace DNDS {

/// A map of cells: dimension d of one space is dimension `axis[d]` of the other, forwards or backwards: a signed
/// permutation of the dimensions and a shift, so that boxes are mapped to boxes. Trivially copyable. All is Local and
/// O(1).
///
///     other[axis[d]] = sign[d] * cell[d] + offset[axis[d]]
struct IndexTransform {
    int dims = 0;
    std::array<int, maxBlockDims> axis{0, 1, 2, 3}; ///< indexed by dimensions of this space, as is `sign`
    std::array<int, maxBlockDims> sign{1, 1, 1, 1};
    IndexVector offset{}; ///< indexed by dimensions of the other space

    /// A shift.
    static IndexTransform translation(int dims, const IndexVector &by) {
        return {dims, {0, 1, 2, 3}, {1, 1, 1, 1}, by};
    }
    /// The transform of a CGNS 1-to-1 connection: vertex v of this space is T(v - begin) + otherBegin of the other.
    /// Entry d of `transform` is +-(a + 1) where dimension d runs along dimension a of the other, forwards or
    /// backwards. Cells lie between vertices: the cell from v to v + 1 is mapped to the cell between the images of
    /// these two vertices.
    /// Throws ArgumentError unless `transform` names each dimension once.
    static IndexTransform ofVertices(std::span<const int> transform, const IndexVector &begin,
                                     const IndexVector &otherBegin);

    /// The cell of the other space that coincides with `cell`.
    IndexVector operator()(const IndexVector &cell) const noexcept {
        IndexVector other{};
        for (int d = 0; d < dims; ++d)
            other[toSize(axis[toSize(d)])] = sign[toSize(d)] * cell[toSize(d)] + offset[toSize(axis[toSize(d)])];
        return other;
    }
    /// The map of points that belongs to this map of cells. Node p is the lower end of cell p, and in a mirrored
    /// dimension the upper end of the cell's image, so that its offset is larger by one.
    IndexTransform ofPoints(const Centring &centring) const noexcept;
    /// Whether the images of points have the same centring: a turn maps faces of one dimension to faces of another.
    bool mapsToItself(const Centring &centring) const noexcept;
    /// The image of `box`: all images of its cells.
    Box operator()(const Box &box) const noexcept;
    /// The inverse map.
    IndexTransform inverse() const noexcept;
    /// This map followed by `next`: `next(this(cell))`.
    IndexTransform then(const IndexTransform &next) const noexcept;

    friend bool operator==(const IndexTransform &, const IndexTransform &) = default;
};

} // namespace DNDS
