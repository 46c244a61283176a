/// @file BlockRows.hpp
/// @brief The cells of blocks as rows for tasks, and the rows that stencils reach; and tables of views and the like
/// that kernels read, kept until what they refer to has changed.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Blocks/BlockGrid.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Task/GraphModel.hpp"
#include "DNDS/Task/KernelRows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
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

/// A few tables of values, each made for one key: numbers that change when the values would (generations, addresses).
///
///     const auto &table = tables.get(space, {u.array().generation()}, [&] { return viewsOf(u); });
///     parallelFor(executor, n, Kernel{table.data(space)});
///
/// The latest 16 are kept, so that stages that are swapped in turn find theirs. A captured graph reads that of its
/// capture, and is valid as long as it.
template <class Value>
class KernelTables {
    static_assert(std::is_trivially_copyable_v<Value>);

  public:
    using Key = std::vector<std::uint64_t>;

    /// Values for one key, on the host, and on the device if they were made for it.
    struct Table {
        MemorySpace space;
        Key key;
        std::size_t size;
        HostDeviceBuffer bytes;

        /// The first value; null in an empty table. O(1).
        const Value *data(MemorySpace in) const {
            return reinterpret_cast<const Value *>(bytes.read(in, "a table for kernels"));
        }
    };

    /// The table for `key` and `space`: found, or made of the values that `make()` returns as a vector. It stays valid
    /// for 15 more keys. Local; a new one for the device waits for its copy, and for all kernels if it replaces the
    /// oldest. Throws MemoryError.
    /// Least recently used first out, by moving hits to the front: at most 16 comparisons of short keys.
    template <class Make>
    const Table &get(MemorySpace space, Key key, const Make &make) {
        const auto found =
            std::ranges::find_if(tables_, [&](const Table &one) { return one.space == space && one.key == key; });
        if (found != tables_.end()) {
            tables_.splice(tables_.begin(), tables_, found);
            return tables_.front();
        }
        const std::vector<Value> values = make();
        const std::size_t bytes = values.size() * sizeof(Value);
        Table table{space, std::move(key), values.size(), HostDeviceBuffer(bytes)};
        if (bytes > 0)
            std::memcpy(table.bytes.write(MemorySpace::Host, "a table for kernels"), values.data(), bytes);
        if (space == MemorySpace::Device)
            table.bytes.toDevice();
        if (tables_.size() == most) {
            if (tables_.back().space == MemorySpace::Device)
                Device::synchronizeAll();
            tables_.pop_back();
        }
        tables_.push_front(std::move(table));
        return tables_.front();
    }

  private:
    static constexpr std::size_t most = 16;

    std::list<Table> tables_; ///< the last used in front
};

} // namespace DNDS
