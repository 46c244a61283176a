/// @file BlockPattern.hpp
/// @brief How the blocks of a rank lie in one allocation with their ghosts, and who sends which of their rows to whom.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// One block of this rank in memory. Its cells and ghosts are a box in C order (the last dimension is contiguous); with
/// components outside, one such box a component, behind each other.
struct BlockMemory {
    int block = 0;      ///< its number in the grid
    Box cells;          ///< without ghosts, in the numbers of its index space
    Box extent;         ///< with ghosts
    index firstRow = 0; ///< of the rank's rows
    index rows = 0;
};

/// The memory of all fields with the same grid, ghost widths and order of components, and their exchange pattern. Rows
/// are cells, or with `componentsOutside` components of cells. Immutable; shared by fields, which may then travel in
/// one message a peer (ExchangeGroup).
class BlockPattern {
  public:
    /// Collective; all ranks give the same. `componentsOutside` is 0 for components inside cells (AoS): then fields of
    /// any number of components and any type share this. Where equal grids, widths and orders were given before, and a
    /// field still has what was made of them, it is that one. Cost: O(ghosts), one message a peer. Throws on all ranks
    /// ArgumentError for widths below 0 or above 2^30, or in a dimension that there is not, negative
    /// `componentsOutside`, grids for more ranks than there are; StateError where ranks give different ones.
    static std::shared_ptr<const BlockPattern> make(const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid,
                                                    const GhostWidths &ghosts, rowsize componentsOutside = 0);

    /// What this was made for: the grid, the layers of ghosts around blocks, and the components outside cells (0:
    /// inside).
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return grid_; }
    const GhostWidths &ghosts() const noexcept { return ghosts_; }
    rowsize componentsOutside() const noexcept { return componentsOutside_; }
    /// This rank's blocks, in the order of their numbers.
    std::span<const BlockMemory> blocks() const noexcept { return blocks_; }
    /// The number of this rank's rows, ghosts included; and who sends which of them to whom.
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
