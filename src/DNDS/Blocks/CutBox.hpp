/// @file CutBox.hpp
/// @brief The number of parts into which each dimension of a box is cut.
#pragma once

#include "DNDS/Blocks/BlockGrid.hpp"

#include <array>
#include <string>
#include <vector>

namespace DNDS {

/// The chosen number of parts per dimension, and the reason.
struct PartsChoice {
    IndexVector parts{1, 1, 1, 1};
    std::string why; ///< the reason, as text
    /// The number of parts of the box.
    index count() const noexcept { return parts[0] * parts[1] * parts[2] * parts[3]; }
};

/// Chooses parts for `ranks` ranks: MPI_Dims_create with knowledge of the cells. Local. Keeps given parts; chooses the
/// others to minimise the cache lines of the ghosts of the largest part and of its cells in excess of the average. The
/// first dimensions are cheapest to cut: their faces are contiguous, whereas faces of the last one move a line per
/// cell. If no cut uses all ranks (more ranks than cells, primes), uses the largest possible number. Throws
/// ArgumentError for parts of other dimensions, below -1, more parts than cells (if given) or, in total, more than
/// ranks.
PartsChoice chooseParts(const Box &cells, const std::array<bool, maxBlockDims> &periodic, int ranks,
                        const CutOptions &options);

/// The box of part `part` of `parts`, whose sizes differ by at most one cell per dimension; the larger ones are first,
/// as in PETSc's DMDA. Local. O(1).
Box partOf(const Box &cells, const IndexVector &parts, const IndexVector &part);

/// The cells of a box of `shape` in the order of a space-filling curve, along which consecutive cells are neighbours in
/// the box, or nearly so. Entry k is the C-order number of the k-th cell. Local. O(cells log cells).
std::vector<index> curveOrder(const Box &shape);

} // namespace DNDS
