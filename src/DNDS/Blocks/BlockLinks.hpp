/// @file BlockLinks.hpp
/// @brief Which ghosts of which block are copies of which cells of which other block, by rank.
#pragma once

#include "DNDS/Blocks/BlockPattern.hpp"

#include <vector>

namespace DNDS {

/// Ghosts of one block that are copies of cells of one other block (or of itself), as one end sees them.
struct BlockLink {
    int block = 0; ///< the number in the grid of the block at this end
    int other = 0; ///< that at the other end
    RowBox rows;   ///< in the memory of this rank
};

/// Those with one rank.
struct PeerLinks {
    int rank = 0;
    std::vector<BlockLink> links;
};

/// The blocks of one rank and all that links them to others. Link k that rank s receives from rank r is link k that r
/// gives to s, row by row. A rank may be its own peer.
struct BlockLinks {
    std::vector<BlockMemory> blocks;
    std::vector<PeerLinks> received; ///< ghosts, by the rank that owns their cells, ascending
    std::vector<PeerLinks> given;    ///< cells, by the rank that has ghosts of them, ascending
};

/// Checks what a pattern is made of, and that all ranks give the same: a number that tells it from others. Collective,
/// within `failTogether`. Throws as BlockPattern::make.
std::uint64_t agreeOnBlocks(const CommunicatorView &comm, const BlockGrid *grid, const GhostWidths &ghosts,
                            rowsize componentsOutside);

/// Finds links, and tells owners which of their cells are ghosts here. Collective, within `failTogether`; one sparse
/// exchange. Cost O(links).
BlockLinks blockLinksOf(CommunicatorContext &context, const BlockGrid &grid, const GhostWidths &ghosts,
                        rowsize componentsOutside);

} // namespace DNDS
