#include "DNDS/Blocks/BlockBoundary.hpp"

#include <algorithm>

namespace DNDS {

namespace {

/// The ghosts of a block beyond a face of its index space, as wide as the block with all other ghosts; empty if the
/// block does not reach the face.
Box beyond(const Box &extent, const Box &space, const BlockFace &face) {
    Box ghosts = extent;
    const std::size_t d = toSize(face.dim);
    if (face.high)
        ghosts.lower[d] = std::max(extent.lower[d], space.upper[d]);
    else
        ghosts.upper[d] = std::min(extent.upper[d], space.lower[d]);
    return ghosts;
}

} // namespace

namespace BoundaryGeometry {

// For each face, the ghosts beyond it minus all that are copies of cells, and minus all beyond its connections: these
// are ghosts of the neighbour's walls, or beyond a neighbour that is thinner than the ghosts. Copies are found once for
// a block and serve its faces in all dimensions.
// Slabs ascend by dimension, the order in which rules are applied: a slab spans the block's ghosts in the other
// dimensions, so rules of later dimensions read corners that earlier ones have filled. O(dims x blocks x regions)
// subtractions of boxes.
std::vector<BoundarySlab> slabsOf(const BlockPattern &pattern) {
    const BlockGrid &grid = *pattern.grid();
    GhostWidths all = pattern.ghosts();
    all.shape = GhostShape::Box; // corners that a star leaves out are no walls
    std::vector<std::vector<GhostRegion>> copies;
    for (const BlockMemory &block : pattern.blocks())
        copies.push_back(grid.ghostRegions(block.block, all, pattern.centring()));
    std::vector<BoundarySlab> slabs;
    for (int d = 0; d < grid.dims(); ++d)
        for (std::size_t b = 0; b < copies.size(); ++b)
            for (const bool high : {false, true}) {
                const BlockMemory &block = pattern.blocks()[b];
                const BlockFace face{d, high, grid.block(block.block).space};
                const IndexSpace &space = grid.spaces()[toSize(face.space)];
                if (space.periodic[toSize(d)])
                    continue;
                std::vector<Box> left{beyond(block.extent, pattern.centring().pointsOf(space.cells), face)};
                for (const GhostRegion &region : copies[b])
                    left = subtractBox(left, region.ghosts);
                for (const Box &continued : grid.continuedBeyond(face.space, d, high, pattern.centring()))
                    left = subtractBox(left, continued);
                for (const Box &piece : left)
                    if (!piece.empty())
                        slabs.push_back({static_cast<int>(b), face, piece});
            }
    return slabs;
}

// A face of all spaces is a face of those in which the dimension is not periodic; one such space must exist.
std::vector<int> spacesOf(const BlockGrid &grid, const BlockFace &face) {
    const int count = static_cast<int>(grid.spaces().size());
    DNDS_CHECK(face.dim >= 0 && face.dim < grid.dims() && face.space >= -1 && face.space < count, ArgumentError,
               "a face of dimension {} of index space {} gets a rule: there are {} dimensions and {} spaces (-1: all)",
               face.dim, face.space, grid.dims(), count);
    std::vector<int> spaces;
    for (int space = 0; space < count; ++space)
        if ((face.space < 0 || face.space == space) && !grid.spaces()[toSize(space)].periodic[toSize(face.dim)])
            spaces.push_back(space);
    DNDS_CHECK(!spaces.empty(), ArgumentError,
               "a face of dimension {} of {} gets a rule, but the dimension is periodic: it has no faces", face.dim,
               face.space < 0 ? "all index spaces" : fmt::format("index space {}", face.space));
    return spaces;
}

// Layer k of ghosts mirrors layer k of the block's memory on the other side of the face (for nodes, not counting the
// node on it): the block, with its ghosts there, needs an equal number of layers.
// Looks at blocks of all ranks, so that all ranks throw alike without a message. O(blocks of the grid).
void requireMirrored(const BlockPattern &pattern, const BlockFace &face) {
    const BlockGrid &grid = *pattern.grid();
    const Centring &centring = pattern.centring();
    const std::size_t d = toSize(face.dim);
    const index onFace = centring.nodal[d] ? 1 : 0; // not mirrored
    for (const int space : spacesOf(grid, face)) {
        const Box cells = centring.pointsOf(grid.spaces()[toSize(space)].cells);
        for (const Block &block : grid.blocks()) {
            if (block.space != space || block.cells.empty())
                continue;
            const Box extent = centring.pointsOf(block.cells).grow(pattern.ghosts());
            const index layers = beyond(extent, cells, face).extent(face.dim);
            const index reached = (face.high ? cells.upper[d] - std::max(extent.lower[d], cells.lower[d])
                                             : std::min(extent.upper[d], cells.upper[d]) - cells.lower[d]) -
                                  onFace;
            DNDS_CHECK(layers <= reached, ArgumentError,
                       "{} layers of ghosts mirror cells at the {} face of dimension {} of index space '{}', but the "
                       "block with cells {} has {} layers there, ghosts included: use larger blocks or fewer ghosts",
                       layers, face.high ? "high" : "low", face.dim, grid.spaces()[toSize(space)].name,
                       toString(block.cells), reached);
        }
    }
}

// Components inside cells are `width` apart and one follows the other; outside, each has a box of the extent's size.
ElementBox elementsOf(const BlockMemory &block, const Box &box, index width, rowsize component) {
    ElementBox elements;
    index row = 0;
    index stride = 1;
    for (int d = box.dims - 1; d >= 0; --d) {
        const int to = d + maxBlockDims - box.dims;
        elements.counts[to] = box.extent(d);
        elements.strides[to] = stride * width;
        row += stride * (box.lower[toSize(d)] - block.extent.lower[toSize(d)]);
        stride *= block.extent.extent(d);
    }
    elements.first = (block.firstRow + row) * width + component * (width > 1 ? 1 : block.extent.size());
    return elements;
}

} // namespace BoundaryGeometry

} // namespace DNDS
