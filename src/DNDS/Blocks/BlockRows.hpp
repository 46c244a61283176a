/// @file BlockRows.hpp
/// @brief The cells of blocks as rows that tasks loop over, and the rows that stencils reach.
#pragma once

#include "DNDS/Base/MemorySpace.hpp"
#include "DNDS/Blocks/BlockPattern.hpp"
#include "DNDS/Task/GraphModel.hpp"
#include "DNDS/Task/Region.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// A cell that a task is at: the rank's block, and local indices as those of its BlockView.
struct BlockCell {
    int block = 0;               ///< of this rank
    index at[maxBlockDims] = {}; // NOLINT: plain, for kernels
    /// The local index along dimension `d`.
    DNDS_HOST_DEVICE index operator[](int d) const { return at[d]; }
};

/// Where the cells of one block are among the rows of its rank. Trivially copyable, for kernels.
struct BlockPlace {
    index firstRow = 0;
    int dims = 0;
    index extents[maxBlockDims] = {}; // NOLINT: with ghosts
    index low[maxBlockDims] = {};     // NOLINT: layers of ghosts
    index inner[maxBlockDims] = {};   // NOLINT: extents without ghosts

    /// The cell in memory row `row` of the rank.
    DNDS_HOST_DEVICE BlockCell cellOf(index row, int block) const {
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

/// The block of a memory row: that of the last place that begins at or before it.
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
/// The rows of the rank's memory are the owned rows of the space, of which only those of cells are looped over; once
/// more, after them, they stand for ghosts. Local, O(rows); a bit a row.
class BlockRows {
  public:
    /// Throws ArgumentError where the rank has more than 2^30 rows.
    BlockRows(std::string name, std::shared_ptr<const BlockPattern> pattern);

    /// What tasks loop over: all cells of this rank's blocks, no ghosts.
    const Task::Region &cells() const noexcept { return cells_; }
    /// The same by other names: "inner" (cells whose stencils of the pattern's ghost widths read no ghosts), "rim" (the
    /// other cells). Throws ArgumentError for other names.
    const Task::Region &region(const std::string &name) const;
    const std::shared_ptr<const BlockPattern> &pattern() const noexcept { return pattern_; }

    /// The rows of cells and ghosts up to `widths` away, in all directions. Throws ArgumentError where the fields have
    /// fewer ghosts. Ghosts that stand for no cell are left out: they are the program's own.
    static Task::Adjacency stencil(const std::shared_ptr<const BlockPattern> &pattern, const GhostWidths &widths);

    /// The memory rows of cells (of those in `cells`; null: of all): one list, or one for each component where
    /// components are outside. Local.
    static Task::ReducedLists rowsOfComponents(const BlockPattern &pattern, const Task::RowMask *cells);

    /// Where the blocks of this rank are.
    static std::vector<BlockPlace> placesOf(const BlockPattern &pattern);

  private:
    std::shared_ptr<const BlockPattern> pattern_;
    Task::RowSpace space_;
    Task::Region cells_, inner_, rim_;
};

} // namespace DNDS
