#include "DNDS/Blocks/BlockRows.hpp"

#include "DNDS/Blocks/BlockBoundary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace DNDS {

namespace {

/// The memory row of a cell or ghost; with components outside, that of component 0.
index rowOf(const BlockMemory &memory, const IndexVector &cell) {
    index row = 0;
    for (int d = 0; d < memory.extent.dims; ++d)
        row = row * memory.extent.extent(d) + cell[toSize(d)] - memory.extent.lower[toSize(d)];
    return memory.firstRow + row;
}

/// The cells whose stencils of the given ghost widths read no ghosts.
Box innerOf(const BlockMemory &memory, const GhostWidths &ghosts) {
    Box inner = memory.cells;
    for (int d = 0; d < inner.dims; ++d) {
        const std::size_t k = toSize(d);
        inner.lower[k] = std::min(inner.upper[k], inner.lower[k] + ghosts.low[k]);
        inner.upper[k] = std::max(inner.lower[k], inner.upper[k] - ghosts.high[k]);
    }
    return inner;
}

enum class CellKind : unsigned char { Any, Inner, Rim };

/// Throws ArgumentError unless rows are cells.
std::shared_ptr<const BlockPattern> ofCells(std::shared_ptr<const BlockPattern> pattern, const std::string &name) {
    DNDS_CHECK(pattern->centring().ofCells(), ArgumentError,
               "tasks loop over cells, '{}' is given a pattern of nodes, faces or edges: use loops over views", name);
    return pattern;
}

/// Names the rows of cells of one kind, block by block. O(cells).
/// Inner and rim cells divide the cells: inner ones can be computed while ghosts are in flight.
Task::Region define(Task::RowSpace &space, const BlockPattern &pattern, const std::string &name, CellKind kind) {
    std::vector<index> rows;
    for (const BlockMemory &memory : pattern.blocks()) {
        const Box inner = innerOf(memory, pattern.ghosts());
        forEachCell(memory.cells, [&](const IndexVector &cell) {
            if (kind == CellKind::Any || inner.contains(cell) == (kind == CellKind::Inner))
                rows.push_back(rowOf(memory, cell));
        });
    }
    return space.define(name, rows);
}

/// The number of dimensions in which a stencil reaches other cells.
int dimensionsOf(const GhostWidths &widths) {
    int count = 0;
    for (std::size_t k = 0; k < maxBlockDims; ++k)
        count += widths.low[k] > 0 || widths.high[k] > 0 ? 1 : 0;
    return count;
}

/// Data for finding neighbours, shared by copies of an adjacency.
struct Reachable {
    std::vector<BlockPlace> places;
    std::vector<std::uint8_t> kinds; ///< [memory rows]
    GhostWidths widths;
    index rows = 0;

    enum Kind : std::uint8_t { Nothing, Cell, Ghost };

    /// The rows within `widths` of a cell's row: cells by their memory rows, ghosts by `rows` + theirs, so that a graph
    /// knows which ones an exchange must refresh. Stays inside of the block's memory, as stencils are at most as wide
    /// as ghosts. The result is valid until the next call in the same thread. O(cells of the stencil).
    std::span<const LocalIndex> around(index row) const {
        thread_local std::vector<LocalIndex> found;
        found.clear();
        if (row >= rows || kinds[toSize(row)] != Cell) // others are not looped over
            return found;
        const BlockPlace &place = places[toSize(blockOfRow(places.data(), static_cast<int>(places.size()), row))];
        Box reach(place.dims, {}, {});
        for (int d = 0; d < place.dims; ++d) {
            reach.lower[toSize(d)] = -widths.low[toSize(d)];
            reach.upper[toSize(d)] = widths.high[toSize(d)] + 1;
        }
        forEachCell(reach, [&](const IndexVector &by) {
            // In a star at most one offset is not 0; those of unused dimensions are 0.
            if (widths.shape == GhostShape::Star && std::ranges::count(by, 0) < maxBlockDims - 1)
                return;
            index offset = 0;
            for (int d = 0; d < place.dims; ++d)
                offset = offset * place.extents[d] + by[toSize(d)];
            const index other = row + offset;
            if (kinds[toSize(other)] != Nothing)
                found.push_back(static_cast<LocalIndex>(kinds[toSize(other)] == Cell ? other : rows + other));
        });
        return found;
    }
};

} // namespace

// `name` is moved last: `ofCells`, which initialises the first member, uses it in its error.
BlockRows::BlockRows(std::string name, std::shared_ptr<const BlockPattern> pattern)
    : pattern_(ofCells(std::move(pattern), name)),
      space_(std::move(name), pattern_->rows(), pattern_->rows(), pattern_->exchange()),
      cells_(define(space_, *pattern_, "cells", CellKind::Any)),
      inner_(define(space_, *pattern_, "inner cells", CellKind::Inner)),
      rim_(define(space_, *pattern_, "rim cells", CellKind::Rim)) {}

const Task::Region &BlockRows::region(const std::string &name) const {
    if (name == "inner")
        return inner_;
    if (name == "rim")
        return rim_;
    DNDS_CHECK(name == "cells", ArgumentError, "'{}' has no region '{}': it has cells, inner and rim", space_.name(),
               name);
    return cells_;
}

// Ghosts are numbered after the owned rows, as in `Reachable::around`.
Task::Region BlockRows::boundaryGhosts(const std::shared_ptr<const BlockPattern> &pattern) {
    std::vector<index> rows;
    for (const BoundarySlab &slab : BoundaryGeometry::slabsOf(*pattern))
        forEachCell(slab.ghosts, [&](const IndexVector &cell) {
            rows.push_back(pattern->rows() + rowOf(pattern->blocks()[toSize(slab.local)], cell));
        });
    Task::RowSpace space("blocks", pattern->rows(), pattern->rows(), pattern->exchange());
    return space.define("ghosts beyond faces", rows);
}

// Marks every memory row once: cell, ghost that an exchange fills, or neither. Lookups then need no search for sources.
// Copies of the adjacency share the marks.
// The adjacency is implicit: O(rows) bytes of marks in place of O(rows x stencil) entries.
Task::Adjacency BlockRows::stencil(const std::shared_ptr<const BlockPattern> &pattern, const GhostWidths &widths,
                                   bool boundaryFilled) {
    const int dims = pattern->grid()->dims();
    widths.requireFor(dims);
    DNDS_CHECK(pattern->centring().ofCells(), ArgumentError,
               "a stencil is of cells: this field has its values at nodes, faces or edges");
    for (int d = 0; d < dims; ++d)
        DNDS_CHECK(widths.low[toSize(d)] <= pattern->ghosts().low[toSize(d)] &&
                       widths.high[toSize(d)] <= pattern->ghosts().high[toSize(d)],
                   ArgumentError,
                   "a stencil that reaches {} below and {} above in dimension {} needs as many ghosts: there are {} "
                   "and {}",
                   widths.low[toSize(d)], widths.high[toSize(d)], d, pattern->ghosts().low[toSize(d)],
                   pattern->ghosts().high[toSize(d)]);
    const bool cornersRead = widths.shape == GhostShape::Box && dimensionsOf(widths) > 1;
    DNDS_CHECK(!cornersRead || pattern->ghosts().shape == GhostShape::Box, ArgumentError,
               "a stencil that reads cells at corners needs ghosts there, which a star lacks: make it a star, too, or "
               "the ghosts of the fields a box");
    auto reachable = std::make_shared<Reachable>();
    reachable->places = placesOf(*pattern);
    reachable->widths = widths;
    reachable->rows = pattern->rows();
    reachable->kinds.assign(toSize(pattern->rows()), Reachable::Nothing);
    const auto mark = [&](const BlockMemory &memory, const Box &box, Reachable::Kind kind) {
        forEachCell(box, [&](const IndexVector &cell) { reachable->kinds[toSize(rowOf(memory, cell))] = kind; });
    };
    for (const BlockMemory &memory : pattern->blocks()) {
        mark(memory, memory.cells, Reachable::Cell);
        for (const GhostRegion &region : pattern->grid()->ghostRegions(memory.block, pattern->ghosts()))
            mark(memory, region.ghosts, Reachable::Ghost);
    }
    if (boundaryFilled)
        for (const BoundarySlab &slab : BoundaryGeometry::slabsOf(*pattern))
            mark(pattern->blocks()[toSize(slab.local)], slab.ghosts, Reachable::Ghost);
    std::string name = widths.shape == GhostShape::Star ? "the star" : "the stencil";
    for (int d = 0; d < dims; ++d)
        name += fmt::format(" -{}..{}", widths.low[toSize(d)], widths.high[toSize(d)]);
    return {std::move(name), pattern->rows(), [reachable](index row) { return reachable->around(row); }};
}

// Points that blocks share are in the list of their owner alone: reductions count them once.
Task::ReducedLists BlockRows::rowsOfComponents(const BlockPattern &pattern, const Task::RowMask *cells) {
    Task::ReducedLists lists(toSize(std::max<rowsize>(1, pattern.componentsOutside())));
    for (std::size_t b = 0; b < pattern.blocks().size(); ++b) {
        const BlockMemory &memory = pattern.blocks()[b];
        for (const Box &box : pattern.owned(static_cast<int>(b)))
            forEachCell(box, [&](const IndexVector &cell) {
                const index row = rowOf(memory, cell);
                if (cells == nullptr || cells->test(row))
                    for (std::size_t k = 0; k < lists.size(); ++k)
                        lists[k].push_back(static_cast<LocalIndex>(row + static_cast<index>(k) * memory.extent.size()));
            });
    }
    return lists;
}

std::vector<BlockPlace> BlockRows::placesOf(const BlockPattern &pattern) {
    std::vector<BlockPlace> places;
    for (const BlockMemory &memory : pattern.blocks()) {
        BlockPlace &place = places.emplace_back();
        place.firstRow = memory.firstRow;
        place.block = static_cast<int>(places.size()) - 1;
        place.dims = memory.cells.dims;
        for (int d = 0; d < place.dims; ++d) {
            place.extents[d] = memory.extent.extent(d);
            place.low[d] = memory.cells.lower[toSize(d)] - memory.extent.lower[toSize(d)];
            place.inner[d] = memory.cells.extent(d);
        }
    }
    return places;
}

} // namespace DNDS
