/// @file BlockRows.hpp
/// @brief The cells of blocks as rows for tasks, and the rows that stencils reach.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Blocks/BlockPattern.hpp"
#include "DNDS/Task/GraphModel.hpp"
#include "DNDS/Task/Region.hpp"

#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// The current cell of a task: this rank's block, and local indices as in its BlockView.
struct BlockCell {
    int block = 0;               ///< counts this rank's blocks
    index at[maxBlockDims] = {}; // NOLINT: plain, for kernels
    /// The local index along dimension `d`.
    DNDS_HOST_DEVICE index operator[](int d) const { return at[d]; }
};

/// The place of one block's cells among the rows of its rank. Trivially copyable, for kernels.
struct BlockPlace {
    index firstRow = 0; ///< first memory row of the block, ghosts included
    int block = 0;      ///< counts this rank's blocks
    int dims = 0;
    index extents[maxBlockDims] = {}; // NOLINT: with ghosts
    index low[maxBlockDims] = {};     // NOLINT: layers of ghosts
    index inner[maxBlockDims] = {};   // NOLINT: extents without ghosts

    /// The cell in memory row `row` of the rank.
    DNDS_HOST_DEVICE BlockCell cellOf(index row) const {
        BlockCell cell;
        cell.block = block;
        index left = row - firstRow;
        for (int d = dims - 1; d >= 0; --d) {
            cell.at[d] = left % extents[d] - low[d];
            left /= extents[d];
        }
        return cell;
    }
};

/// The block of a memory row: the last of `count` places that begins at or before it. Binary search, O(log count);
/// places ascend.
DNDS_HOST_DEVICE inline int blockOfRow(const BlockPlace *places, int count, index row) {
    int first = 0;
    while (count > 1) {
        const int half = count / 2;
        if (places[first + half].firstRow <= row) {
            first += half;
            count -= half;
        } else {
            count = half;
        }
    }
    return first;
}

/// The cells of the blocks of a rank as rows of tasks:
///
///     const BlockRows cells("cells", u.blockPattern());
///     Task::Graph step("step", comm);
///     step.task("diffuse", cells.cells()).reads(stencil(u, {1, 1})).writes(v).run(
///         [](const BlockCell &c, const BlockView<const real> &old, const BlockView<real> &now) {
///             now(c[0], c[1]) = 0.25 * (old(c[0] - 1, c[1]) + old(c[0] + 1, c[1]) + ...);
///         });
///
/// The owned rows of the space are the rows of the rank's memory, of which loops visit cells only; the same rows appear
/// once more after them as ghosts: memory row r is ghost `rows + r`. Graphs, which know owned rows and ghosts as two
/// arrays, can thus order exchanges of one array that has both. Local, O(rows); one bit per row.
class BlockRows {
  public:
    /// Throws ArgumentError if the rank has more than 2^30 rows, and for patterns of nodes, faces or edges.
    BlockRows(std::string name, std::shared_ptr<const BlockPattern> pattern);

    /// The region of all cells of this rank's blocks, without ghosts.
    const Task::Region &cells() const noexcept { return cells_; }
    /// A named region: "inner" (cells whose stencils of the pattern's ghost widths read no ghosts) or "rim" (the other
    /// cells). Throws ArgumentError for other names.
    const Task::Region &region(const std::string &name) const;
    const std::shared_ptr<const BlockPattern> &pattern() const noexcept { return pattern_; }

    /// The rows of cells and ghosts within `widths`, in all directions or along one dimension at a time (a star).
    /// Throws ArgumentError if the fields have fewer ghosts, or a star of them where the stencil reads corners. Omits
    /// ghosts that are copies of no cell: they belong to the program. With `boundaryFilled`, ghosts beyond the ends of
    /// index spaces are filled after pulls, and only ghosts of holes are omitted. Local. O(rows), one byte per row;
    /// then O(cells of the stencil) per row asked for.
    static Task::Adjacency stencil(const std::shared_ptr<const BlockPattern> &pattern, const GhostWidths &widths,
                                   bool boundaryFilled = false);
    /// The ghosts beyond the ends of index spaces that are copies of no cell.
    static Task::Region boundaryGhosts(const std::shared_ptr<const BlockPattern> &pattern);

    /// The memory rows of the cells in `cells` (null: of all cells): one list, or one per component if components are
    /// outside. Local.
    static Task::ReducedLists rowsOfComponents(const BlockPattern &pattern, const Task::RowMask *cells);

    /// The places of this rank's blocks, ascending, for kernels and `blockOfRow`. Local.
    static std::vector<BlockPlace> placesOf(const BlockPattern &pattern);

  private:
    std::shared_ptr<const BlockPattern> pattern_;
    Task::RowSpace space_;
    Task::Region cells_, inner_, rim_;
};

} // namespace DNDS
