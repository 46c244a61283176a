/// @file BlockCopy.hpp
/// @brief Copies of cells between fields on different blocks: transposes, gathers, subarrays.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"

#include <memory>
#include <vector>

namespace DNDS {

/// Options of copies between fields on blocks.
struct BlockCopyOptions {
    /// Dimension d of `from` runs along dimension `axes[d]` of `to`; {}: the same dimensions. Of two dimensions, {1, 0}
    /// transposes.
    std::vector<int> axes = {};
    /// Also fills ghosts of `to`, each with the cell that a ghost of `from` at this place would copy, through the
    /// periods and connections of the grid of `from`. Exchanges of `to` decide about corners. For PushOp::Replace only.
    bool ghosts = false;
    PushOp op = PushOp::Replace;                   ///< combination of a copied value with the value in `to`
    TransportKind transport = TransportKind::Auto; ///< the same on all ranks
};

/// A copy of the cells of `from` to the cells of `to` with the same index, to be run often. AMReX calls it
/// ParallelCopy. The fields are on one communicator and have equal index spaces (numbers of cells; after `axes`, if
/// given), components and type of values. Blocks, ranks, ghost widths, orders of components and periods may differ.
/// Cells of `to` that no block of `from` has keep their values. Fields at nodes, faces or edges have equal centrings.
/// If blocks of `to` share points, Replace writes all copies; another `op` changes the owner's copy alone, which
/// `exchangeGhosts` brings to the others.
///
///     const auto transpose = makeBlockCopy(u, v, {.axes = {1, 0}});    // v(j, i) = u(i, j)
///     transpose->start();  transpose->wait();
///
/// Collective; cost O(values received + pairs of blocks that meet), one sparse exchange. The copy is an Exchange: a
/// pull, or with another `op` a push. It moves the copies of the side (`side()`) on which both fields are now, and
/// makes the other side of `to` stale; it keeps the fields' memory alive. Throws on all ranks ArgumentError (different
/// communicators, index spaces or components, wrong `axes`, a field to itself, ghosts with another `op` than Replace),
/// LayoutError (different types), StateError (one field on the device and one on the host; ranks pass different fields
/// or options), and as Exchange.
std::shared_ptr<Exchange> makeBlockCopy(const BlockFieldCore &from, BlockFieldCore &to,
                                        const BlockCopyOptions &options = {});

/// Makes such a copy, runs it once, and drops it. Collective.
void copyBlocks(const BlockFieldCore &from, BlockFieldCore &to, const BlockCopyOptions &options = {});

} // namespace DNDS
