/// @file BlockPattern.hpp
/// @brief The memory layout of a rank's blocks with their ghosts, and the rows that ranks exchange.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// One block of this rank in memory. Cells and ghosts form a box in C order (the last dimension is contiguous); with
/// components outside, there is one such box per component, one after the other.
struct BlockMemory {
    int block = 0;      ///< its number in the grid
    Box cells;          ///< without ghosts, in the numbers of its index space
    Box extent;         ///< with ghosts
    index firstRow = 0; ///< index of its first row among the rank's rows
    index rows = 0;
};

/// The memory layout of all fields with the same grid, ghost widths and component order, and their exchange pattern.
/// Rows are cells or, with `componentsOutside`, components of cells. Immutable; shared by fields, which can then be
/// exchanged in one message per peer (ExchangeGroup).
class BlockPattern {
  public:
    /// Collective; all ranks pass the same. `componentsOutside` is 0 for components inside cells (AoS): fields of any
    /// type and number of components can then share the pattern. Returns the existing pattern for an equal grid, widths
    /// and order if a field still uses it. Cost: O(ghosts), one message per peer. Throws on all ranks ArgumentError for
    /// widths below 0, above 2^30 or in a missing dimension, negative `componentsOutside`, and grids for more ranks
    /// than there are; StateError if ranks pass different ones.
    static std::shared_ptr<const BlockPattern> make(const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid,
                                                    const GhostWidths &ghosts, rowsize componentsOutside = 0);

    /// The arguments of `make`: the grid, the layers of ghosts around blocks, and the number of components outside
    /// cells (0: inside).
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return grid_; }
    const GhostWidths &ghosts() const noexcept { return ghosts_; }
    rowsize componentsOutside() const noexcept { return componentsOutside_; }
    /// This rank's blocks, in the order of their numbers.
    std::span<const BlockMemory> blocks() const noexcept { return blocks_; }
    /// The number of this rank's rows, ghosts included; and the rows that ranks send to each other.
    index rows() const noexcept { return rows_; }
    const std::shared_ptr<const ExchangePattern> &exchange() const noexcept { return exchange_; }

  private:
    BlockPattern() = default;

    std::shared_ptr<const BlockGrid> grid_;
    GhostWidths ghosts_;
    rowsize componentsOutside_ = 0;
    std::vector<BlockMemory> blocks_;
    index rows_ = 0;
    std::shared_ptr<const ExchangePattern> exchange_;
};

} // namespace DNDS
