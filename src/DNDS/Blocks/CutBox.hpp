/// @file CutBox.hpp
/// @brief Into how many parts to cut each dimension of a box.
#pragma once

#include "DNDS/Blocks/Box.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace DNDS {

/// What `BlockGrid::cut` is told. Widths and bytes weigh the faces; they do not bind the fields to come.
struct CutOptions {
    int ranks = 0;                 ///< the first so many ranks get parts; 0: all
    std::vector<index> parts = {}; ///< a dimension; {}: best ones. 0 or 1: not cut. -1: best for this dimension
    GhostWidths ghosts = GhostWidths::uniform(maxBlockDims, 1);
    std::size_t cellBytes = sizeof(real); ///< of all fields' components together
};

/// The number of parts a dimension that was chosen, and why.
struct PartsChoice {
    IndexVector parts{1, 1, 1, 1};
    std::string why; ///< for people
    /// The number of parts of the box.
    index count() const noexcept { return parts[0] * parts[1] * parts[2] * parts[3]; }
};

/// Chooses parts for `ranks` ranks. Local. Parts that are given are taken; the others are those that move least: the
/// cache lines of the ghosts of the largest part and of the cells that it has more than the average. The first
/// dimensions are cheapest to cut: their faces are contiguous, whereas faces of the last one move a line a cell. Where
/// no cut serves all ranks (more ranks than cells, primes), it is made for the most that one does.
/// Throws ArgumentError for parts of other dimensions, below -1, more than cells (where given) or together more than
/// ranks.
PartsChoice chooseParts(const Box &cells, const std::array<bool, maxBlockDims> &periodic, int ranks,
                        const CutOptions &options);

/// The box of part `part` of `parts`, whose sizes differ by at most one cell a dimension. Local.
Box partOf(const Box &cells, const IndexVector &parts, const IndexVector &part);

/// Numbers of the cells of a box of `shape` in the order of a space-filling curve: neighbours on the curve are
/// neighbours in the box, or nearly so. Entry k is the C-order number of the k-th cell. Local. O(cells log cells).
std::vector<index> curveOrder(const Box &shape);

} // namespace DNDS
