/// @file GridParts.hpp
/// @brief What a BlockGrid keeps besides its blocks: where they are, and how one leaves an index space.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"

#include <functional>
#include <vector>

namespace DNDS {

/// Which blocks of one index space are where: bins of equal boxes, each with the blocks that have cells in it. About as
/// many bins as blocks, so that finding the neighbours of all blocks costs O(blocks).
struct BlockGrid::Bins {
    Box bounds; ///< of all blocks
    IndexVector counts{1, 1, 1, 1};
    IndexVector sizes{1, 1, 1, 1};
    std::vector<std::size_t> starts; ///< of each bin, in C order
    std::vector<int> blocks;
    index cells = 0; ///< of all blocks of the space

    Bins(std::span<const Block> all, int space, int dims);
    /// The numbers of the bins that have cells in `box`.
    Box binsOf(const Box &box) const;
    std::size_t numberOf(const IndexVector &bin) const noexcept;
};

/// One way out of an index space: cells that lie beyond one of its faces are cells of another.
struct BlockGrid::Passage {
    int axis = 0;
    bool upper = false; ///< beyond the upper end of `axis`
    Box face;           ///< the first layer of cells beyond the face
    Box beyond;         ///< all cells beyond it; beside the space, too, where the face reaches its edges
    int other = 0;
    IndexTransform toOther;
};

} // namespace DNDS
