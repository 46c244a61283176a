/// @file Box.hpp
/// @brief Boxes of cells in an index space, points of cells, ghost widths, and maps between index spaces.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// The largest number of dimensions of structured blocks.
inline constexpr int maxBlockDims = 4;
/// One integer per dimension: a cell, a vertex, extents. Unused dimensions are 0.
using IndexVector = std::array<index, maxBlockDims>;

/// The list as an IndexVector. Local. Throws ArgumentError unless there are 1 to 4 entries.
IndexVector indexVector(std::span<const index> list);

/// The ghosts that exchanges fill, and the cells that stencils read.
enum class GhostShape : unsigned char {
    Box, ///< all, those at edges and corners included (PETSc: DMDA_STENCIL_BOX)
    Star ///< those beyond the block in exactly one dimension (PETSc: DMDA_STENCIL_STAR)
};

/// The number of ghost layers below a block's lower and above its upper end, in each dimension, and their shape. Memory
/// has all ghosts, whatever the shape.
///
///     GhostWidths{1, 1}                     // one on each side of two dimensions
///     GhostWidths::of({1, 0}, {2, 0})       // one below and two above in the first, none in the second
///     GhostWidths{1, 1}.star()              // none at corners
struct GhostWidths {
    IndexVector low{};
    IndexVector high{};
    GhostShape shape = GhostShape::Box;

    GhostWidths() = default;
    /// The same width below and above, one number per dimension; 0 in dimensions that are not named.
    GhostWidths(std::initializer_list<index> both) : GhostWidths(std::span(both.begin(), both.size())) {}
    explicit GhostWidths(std::span<const index> both) {
        if (!both.empty())
            low = high = indexVector(both);
    }
    static GhostWidths of(std::span<const index> low, std::span<const index> high) {
        GhostWidths widths(low);
        widths.high = GhostWidths(high).high;
        return widths;
    }
    static GhostWidths of(std::initializer_list<index> low, std::initializer_list<index> high) {
        return of(std::span(low.begin(), low.size()), std::span(high.begin(), high.size()));
    }
    /// The same width on both sides of `dims` dimensions.
    static GhostWidths uniform(int dims, index width) {
        GhostWidths widths;
        std::fill_n(widths.low.begin(), dims, width);
        widths.high = widths.low;
        return widths;
    }

    /// The same layers in the shape of a star.
    GhostWidths star() const {
        GhostWidths widths = *this;
        widths.shape = GhostShape::Star;
        return widths;
    }

    /// Throws ArgumentError for widths below 0 or above 2^30, and in dimensions from `dims` on. Local.
    void requireFor(int dims) const;

    friend bool operator==(const GhostWidths &, const GhostWidths &) = default;
};

/// The cells from `lower` to `upper`, excluding `upper`, in `dims` dimensions. Trivially copyable. Everything is Local
/// and O(1). The first dimension is the slowest in memory and files (C order). AMReX's Box, but half-open. A box is
/// empty if an upper end is not above its lower end; empty boxes with different ends are not equal.
///
///     Box cells({0, 0}, {1000, 800});
///     cells.grow(GhostWidths{1, 1}).intersect(other)
struct Box {
    int dims = 0;
    IndexVector lower{}; ///< 0 in unused dimensions
    IndexVector upper{}; ///< 1 in unused dimensions, so that sizes are products

    /// An empty box without dimensions.
    Box() = default;
    Box(int dimensions, const IndexVector &from, const IndexVector &to) : dims(dimensions), lower(from), upper(to) {
        for (int d = dims; d < maxBlockDims; ++d) {
            lower[toSize(d)] = 0;
            upper[toSize(d)] = 1;
        }
    }
    /// Throws ArgumentError unless both have the same number of entries, 1 to 4.
    Box(std::span<const index> from, std::span<const index> to)
        : Box(static_cast<int>(from.size()), indexVector(from), indexVector(to)) {
        DNDS_CHECK(from.size() == to.size(), ArgumentError, "a box from {} to {} numbers: give one a dimension",
                   from.size(), to.size());
    }
    Box(std::initializer_list<index> from, std::initializer_list<index> to)
        : Box(std::span(from.begin(), from.size()), std::span(to.begin(), to.size())) {}
    /// The box of this shape at the origin.
    static Box ofShape(std::span<const index> shape) {
        return {static_cast<int>(shape.size()), IndexVector{}, indexVector(shape)};
    }

    /// The number of cells along dimension `d`.
    index extent(int d) const noexcept { return std::max<index>(0, upper[toSize(d)] - lower[toSize(d)]); }
    /// The number of cells.
    index size() const noexcept {
        index cells = dims > 0 ? 1 : 0;
        for (int d = 0; d < dims; ++d)
            cells *= extent(d);
        return cells;
    }
    bool empty() const noexcept { return size() == 0; }

    /// Whether the cell is in this box.
    bool contains(const IndexVector &cell) const noexcept {
        for (int d = 0; d < dims; ++d)
            if (cell[toSize(d)] < lower[toSize(d)] || cell[toSize(d)] >= upper[toSize(d)])
                return false;
        return dims > 0;
    }
    /// Whether all cells of `other` are in this box; true for an empty box.
    bool contains(const Box &other) const noexcept { return other.empty() || intersect(other) == other; }

    /// The cells in both boxes; empty if the boxes do not meet.
    Box intersect(const Box &other) const noexcept {
        Box common = *this;
        for (int d = 0; d < dims; ++d) {
            const std::size_t k = toSize(d);
            common.lower[k] = std::max(lower[k], other.lower[k]);
            common.upper[k] = std::max(common.lower[k], std::min(upper[k], other.upper[k]));
        }
        return common;
    }
    bool intersects(const Box &other) const noexcept { return !intersect(other).empty(); }

    /// This box with `widths` more layers of cells, whatever their shape.
    Box grow(const GhostWidths &widths) const noexcept {
        Box grown = *this;
        for (int d = 0; d < dims; ++d) {
            grown.lower[toSize(d)] -= widths.low[toSize(d)];
            grown.upper[toSize(d)] += widths.high[toSize(d)];
        }
        return grown;
    }
    /// This box moved by `by` cells.
    Box shift(const IndexVector &by) const noexcept {
        Box shifted = *this;
        for (int d = 0; d < dims; ++d) {
            shifted.lower[toSize(d)] += by[toSize(d)];
            shifted.upper[toSize(d)] += by[toSize(d)];
        }
        return shifted;
    }

    friend bool operator==(const Box &, const Box &) = default;
};

/// The points of cells at which a field has its values. In each dimension these are the cells' middles or the nodes
/// between them (AMReX: IndexType): node p is the lower end of cell p, and n cells have n + 1 nodes. Trivially
/// copyable. Dimensions that a grid lacks do not count: in two dimensions `faces(0)` and `edges(1)` are the same
/// points.
struct Centring {
    std::array<bool, maxBlockDims> nodal{}; ///< whether points are nodes in this dimension
    /// The cells' middles, and the nodes of all dimensions.
    static Centring cells() { return {}; }
    static Centring nodes() { return {{true, true, true, true}}; }
    /// The faces normal to dimension `dim`. Local. Throws ArgumentError for other dimensions than 0 to 3.
    static Centring faces(int dim);
    /// The edges along dimension `dim`. Local. Throws as `faces`.
    static Centring edges(int dim);

    /// Whether all values are at the cells' middles.
    bool ofCells() const noexcept { return nodal == Centring{}.nodal; }
    /// This centring in `dims` dimensions.
    Centring in(int dims) const noexcept {
        Centring centring = *this;
        std::fill(centring.nodal.begin() + dims, centring.nodal.end(), false);
        return centring;
    }
    /// The points of the cells of a box, those on its boundary included.
    Box pointsOf(Box cells) const noexcept {
        for (int d = 0; d < cells.dims; ++d)
            cells.upper[toSize(d)] += nodal[toSize(d)] ? 1 : 0;
        return cells;
    }
    /// All cells that have points in a box of points: node p is a point of the cells p - 1 and p.
    Box cellsAt(Box points) const noexcept {
        for (int d = 0; d < points.dims; ++d)
            points.lower[toSize(d)] -= nodal[toSize(d)] ? 1 : 0;
        return points;
    }
};

/// Calls `function(cell)` for all cells, the last dimension fastest, which is the order of memory. Local. O(cells).
template <class Function>
void forEachCell(const Box &box, Function &&function) {
    if (box.empty())
        return;
    IndexVector cell = box.lower;
    for (;;) {
        function(cell);
        int d = box.dims - 1;
        for (; d >= 0 && ++cell[toSize(d)] == box.upper[toSize(d)]; --d)
            cell[toSize(d)] = box.lower[toSize(d)];
        if (d < 0)
            return;
    }
}

/// Calls `function(cell, count)` for the first cell and the number of cells of each line along the last dimension, in
/// the order of memory. Local. O(lines).
template <class Function>
void forEachLine(const Box &box, Function &&function) {
    if (box.empty())
        return;
    Box firsts = box;
    const std::size_t last = toSize(box.dims - 1);
    firsts.upper[last] = firsts.lower[last] + 1;
    forEachCell(firsts, [&](const IndexVector &cell) { function(cell, box.upper[last] - box.lower[last]); });
}

/// The cells of a box and its ghosts of the shape of `widths`, as boxes that do not overlap: one box, or for a star the
/// cells and up to two slabs per dimension. Local.
std::vector<Box> withGhosts(const Box &cells, const GhostWidths &widths);

/// For messages: "[0, 10) x [4, 8)".
std::string toString(const Box &box);

/// The parts of `box` outside `hole`, at most two per dimension. They do not overlap. AMReX calls this boxDiff. Local;
/// appends to `into`.
void subtractBox(const Box &box, const Box &hole, std::vector<Box> &into);
/// The same of several boxes.
std::vector<Box> subtractBox(std::span<const Box> boxes, const Box &hole);

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
