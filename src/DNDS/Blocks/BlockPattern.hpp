/// @file BlockPattern.hpp
/// @brief The memory layout of a rank's blocks with their ghosts, and the rows that ranks exchange.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

/// One block of this rank in memory. Cells and ghosts form a box in C order (the last dimension is contiguous); with
/// components outside, there is one such box per component, one after the other.
struct BlockMemory {
    int block = 0;      ///< its number in the grid
    Box cells;          ///< without ghosts, in the numbers of its index space; all points of the block's cells
    Box extent;         ///< with ghosts
    index firstRow = 0; ///< index of its first row among the rank's rows
    index rows = 0;     ///< number of its rows, ghosts and components outside included
};

/// The memory layout of all fields with the same grid, ghost widths, component order and centring, and their exchange
/// pattern. Rows are cells or, with `componentsOutside`, components of cells. Immutable; shared by fields, which can
/// then be exchanged in one message per peer (ExchangeGroup).
///
/// With another centring, points take the place of cells everywhere. A block has all points of its cells, and ghosts
/// around them. Points that it shares with other blocks are `owned` by one of them (see BlockGrid) and refreshed in the
/// others by exchanges of ghosts.
class BlockPattern {
  public:
    /// Collective; all ranks pass the same. `componentsOutside` is 0 for components inside cells (AoS): fields of any
    /// type and number of components can then share the pattern. Returns the existing pattern for an equal grid, widths
    /// and order if a field still uses it. Cost: O(ghosts), one message per peer. Throws on all ranks ArgumentError for
    /// widths below 0, above 2^30 or in a missing dimension, negative `componentsOutside`, grids for more ranks than
    /// there are, and as BlockGrid::requireCentring; StateError if ranks pass different ones.
    static std::shared_ptr<const BlockPattern> make(const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid,
                                                    const GhostWidths &ghosts, rowsize componentsOutside = 0,
                                                    const Centring &centring = {});

    /// The arguments of `make`: the grid, the layers of ghosts around blocks, the number of components outside cells
    /// (0: inside), and the points of cells.
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return grid_; }
    const GhostWidths &ghosts() const noexcept { return ghosts_; }
    rowsize componentsOutside() const noexcept { return componentsOutside_; }
    const Centring &centring() const noexcept { return centring_; }
    /// This rank's blocks, in the order of their numbers.
    std::span<const BlockMemory> blocks() const noexcept { return blocks_; }
    /// The cells or points that the rank's block `local` owns: its `cells` without copies, as boxes that do not
    /// overlap. Throws IndexError for missing blocks.
    std::span<const Box> owned(int local) const {
        DNDS_CHECK(local >= 0 && toSize(local) < owned_.size(), IndexError, "this rank has {} blocks, none {}",
                   owned_.size(), local);
        return owned_[toSize(local)];
    }
    /// The difference of another pattern: "grid", "ghosts", "order of components" or "centring"; "communicator" if none
    /// of these. Local.
    std::string_view differenceFrom(const BlockPattern &other) const noexcept;
    /// The points of an index space that files have: nodes that a period repeats are there once. Local. Throws
    /// IndexError for missing spaces.
    Box filePoints(int space = 0) const;
    /// The points of `filePoints` that the rank's block `local` reads and writes, as boxes that do not overlap. Of the
    /// blocks of one index space that share a point, it is the one with the lowest number. Unlike `owned`, this does
    /// not follow connections: the file of each index space has all of the space's points. Local. O(blocks nearby).
    /// Throws IndexError for missing blocks; ArgumentError if an owner is at the upper end of a periodic dimension,
    /// because no block is at its lower end.
    std::vector<Box> fileBoxes(int local) const;
    /// The number of this rank's rows, ghosts included; and the rows that ranks send to each other.
    index rows() const noexcept { return rows_; }
    const std::shared_ptr<const ExchangePattern> &exchange() const noexcept { return exchange_; }

  private:
    BlockPattern() = default;

    std::shared_ptr<const BlockGrid> grid_;
    GhostWidths ghosts_;
    rowsize componentsOutside_ = 0;
    Centring centring_;
    std::vector<BlockMemory> blocks_;     ///< this rank's only
    std::vector<std::vector<Box>> owned_; ///< [blocks]
    index rows_ = 0;
    std::shared_ptr<const ExchangePattern> exchange_;
};

} // namespace DNDS
