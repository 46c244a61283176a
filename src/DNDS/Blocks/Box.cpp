#include "DNDS/Blocks/Box.hpp"

namespace DNDS {

IndexVector indexVector(std::span<const index> list) {
    DNDS_CHECK(!list.empty() && list.size() <= maxBlockDims, ArgumentError,
               "{} numbers are given, one a dimension: blocks have 1 to {} dimensions", list.size(), maxBlockDims);
    IndexVector vector{};
    std::ranges::copy(list, vector.begin());
    return vector;
}

void GhostWidths::requireFor(int dims) const {
    for (int d = 0; d < maxBlockDims; ++d)
        for (const index width : {low[toSize(d)], high[toSize(d)]})
            DNDS_CHECK(width >= 0 && width <= index{1} << 30 && (d < dims || width == 0), ArgumentError,
                       "{} ghost layers in dimension {} of {}: give 0 to 2^30, and none in dimensions that there are "
                       "not",
                       width, d, dims);
}

Centring Centring::faces(int dim) {
    DNDS_CHECK(dim >= 0 && dim < maxBlockDims, ArgumentError, "dimension {} has no faces: give 0 to {}", dim,
               maxBlockDims - 1);
    Centring centring;
    centring.nodal[toSize(dim)] = true;
    return centring;
}

Centring Centring::edges(int dim) {
    Centring centring = faces(dim);
    for (bool &nodal : centring.nodal)
        nodal = !nodal;
    return centring;
}

// In a star the slabs of a dimension are as wide as the block in the other dimensions, so that no two slabs overlap and
// no corner is in any of them.
std::vector<Box> withGhosts(const Box &cells, const GhostWidths &widths) {
    const Box extent = cells.grow(widths);
    if (widths.shape == GhostShape::Box)
        return {extent};
    std::vector<Box> boxes{cells};
    for (int d = 0; d < cells.dims; ++d) {
        const std::size_t k = toSize(d);
        Box along = cells;
        along.lower[k] = extent.lower[k];
        along.upper[k] = extent.upper[k];
        subtractBox(along, cells, boxes);
    }
    return boxes;
}

std::string toString(const Box &box) {
    std::string text;
    for (int d = 0; d < box.dims; ++d)
        text += fmt::format("{}[{}, {})", d > 0 ? " x " : "", box.lower[toSize(d)], box.upper[toSize(d)]);
    return text.empty() ? "no box" : text;
}

// Cuts off the slab below and the slab above the hole, dimension by dimension. Invariant: `left` contains the hole and
// has its extent in all dimensions that are done, so that later slabs are narrower and none overlap.
// At most 2 x dims pieces, disjoint, whose union is the box without the hole. O(dims).
void subtractBox(const Box &box, const Box &hole, std::vector<Box> &into) {
    const Box common = box.intersect(hole);
    if (common.empty()) {
        if (!box.empty())
            into.push_back(box);
        return;
    }
    Box left = box; // the remaining box; slabs are cut off, dimension by dimension
    for (int d = 0; d < box.dims; ++d) {
        const std::size_t k = toSize(d);
        if (left.lower[k] < common.lower[k]) {
            into.push_back(left);
            into.back().upper[k] = common.lower[k];
        }
        if (common.upper[k] < left.upper[k]) {
            into.push_back(left);
            into.back().lower[k] = common.upper[k];
        }
        left.lower[k] = common.lower[k];
        left.upper[k] = common.upper[k];
    }
}

// O(boxes). Repeated holes may cut each box into up to 2 x dims parts again: meant for a few holes.
std::vector<Box> subtractBox(std::span<const Box> boxes, const Box &hole) {
    std::vector<Box> left;
    for (const Box &box : boxes)
        subtractBox(box, hole, left);
    return left;
}

} // namespace DNDS
