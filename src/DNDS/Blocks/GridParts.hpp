/// @file GridParts.hpp
/// @brief Search structures of a BlockGrid: bins of blocks, and passages between index spaces.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"

#include <vector>

namespace DNDS {

/// Locates the blocks of one index space: equal bins, each with the blocks that have cells in it. The number of bins is
/// about that of blocks, so that finding the neighbours of all blocks costs O(blocks). AMReX's BoxArray hashes its
/// boxes into bins in the same way; here bins are an array, bounded even if blocks lie far apart.
struct BlockGrid::Bins {
    Box bounds;                      ///< bounds of all blocks
    IndexVector counts{1, 1, 1, 1};  ///< bins per dimension
    IndexVector sizes{1, 1, 1, 1};   ///< cells per bin and dimension
    std::vector<std::size_t> starts; ///< [bins + 1] start of each bin in `blocks`, in C order
    std::vector<int> blocks;         ///< numbers in the grid, bin by bin; a block is in every bin that it touches
    index cells = 0;                 ///< cells of all blocks of the space

    Bins(std::span<const Block> all, int space, int dims);
    /// The numbers of the bins with cells in `box`.
    Box binsOf(const Box &box) const;
    /// The position of a bin in `starts`.
    std::size_t numberOf(const IndexVector &bin) const noexcept;
};

/// A passage out of an index space: the cells beyond one of its faces are cells of another space. A periodic dimension
/// is two passages into the space itself, a connection one passage out of each side.
struct BlockGrid::Passage {
    int axis = 0;           ///< the dimension normal to the face
    bool upper = false;     ///< beyond the upper end of `axis`
    Box face;               ///< the first layer of cells beyond the face
    Box beyond;             ///< all cells beyond it, also beside the space if the face reaches its edges
    int other = 0;          ///< the index space that it leads to
    IndexTransform toOther; ///< maps cells

    /// The points on the face, which both spaces have: none if points are middles of cells along `axis`.
    Box pointsOfFace(const Centring &centring) const noexcept;
    /// All points beyond the face.
    Box pointsBeyond(const Centring &centring) const noexcept;
};

} // namespace DNDS
