/// @file BlockLinks.hpp
/// @brief Ghosts of blocks and the cells that they copy, by rank.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"

#include <functional>
#include <map>
#include <vector>

namespace DNDS {

/// Ghosts of one block that are copies of cells of one other block (or of itself), as one end sees them. In copies
/// between fields, "ghosts" are all cells of the target.
struct BlockLink {
    int block = 0; ///< the block at this end, by its number in the grid
    int other = 0; ///< the block at the other end
    RowBox rows;   ///< in the memory of this rank; its loops run in the order of the ghosts at both ends
};

/// Links, keyed by the rank at the other end.
using PeerLinks = std::map<int, std::vector<BlockLink>>;

/// The blocks of one rank and their links to others. Link k that rank s receives from rank r is link k that r gives to
/// s, row by row, so messages need no headers. A rank may be its own peer.
struct BlockLinks {
    std::vector<BlockMemory> blocks;
    PeerLinks received; ///< ghosts, by the rank that owns their cells
    PeerLinks given;    ///< cells, by the rank that has ghosts of them
};

/// Checks the ingredients of a pattern, and that all ranks pass the same; returns a number that identifies them.
/// Collective, within `failTogether`. Throws as BlockPattern::make.
std::uint64_t agreeOnBlocks(const CommunicatorView &comm, const BlockGrid *grid, const GhostWidths &ghosts,
                            rowsize componentsOutside, const Centring &centring = {});

/// Finds the links, and tells owners which of their cells are ghosts here. Collective, within `failTogether`; one
/// sparse exchange. Cost O(links + blocks of peers).
BlockLinks blockLinksOf(CommunicatorContext &context, const BlockGrid &grid, const GhostWidths &ghosts,
                        rowsize componentsOutside, const Centring &centring = {});

/// The links of a copy from cells on `from` to cells and ghosts on `to`. Rows are single values: a cell whose
/// components are inside is `components` of them. `sourcesOf` names the regions of a block of `to` and their sources
/// among the blocks of `from`. Collective, within `failTogether`; one sparse exchange. Cost O(links).
BlockLinks valueLinksOf(CommunicatorContext &context, const BlockPattern &from, const BlockPattern &to,
                        rowsize components,
                        const std::function<std::vector<GhostRegion>(const BlockMemory &)> &sourcesOf);

/// The rows of all links with each rank, for ExchangePattern. Local.
ExchangePattern::PeerBoxes rowsOf(const PeerLinks &peers);
/// The order in which pushes apply what blocks have in ghosts: by the number of the block, and for one block that of
/// its regions, so that it does not depend on ranks. Empty if that is the order of `given`. Local.
std::vector<ExchangePattern::PushedBox> pushOrderOf(const PeerLinks &given);

} // namespace DNDS
