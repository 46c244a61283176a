#include "DNDS/Blocks/BlockGrid.hpp"

#include "DNDS/Blocks/BlockLinks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <map>
#include <memory>

namespace DNDS {

namespace {

/// The patterns of a communicator that are in use, by the hash of their ingredients (`agreeOnBlocks`). Fields own
/// patterns, the communicator's context only watches them: a pattern ends with its last field.
struct KnownPatterns {
    std::map<std::uint64_t, std::weak_ptr<const BlockPattern>> byKey;
};

/// The entry for the pattern of `key`. Drops the entries of ended patterns, so that the map does not grow. The
/// reference stays valid, as entries of a std::map do not move. Collective at the first call.
/// O(patterns in use). A hash of 64 bits stands for the ingredients.
std::weak_ptr<const BlockPattern> &knownPattern(CommunicatorContext &context, std::uint64_t key) {
    auto &known = context.attach<KnownPatterns>([] { return std::make_shared<KnownPatterns>(); });
    std::erase_if(known.byKey, [](const auto &entry) { return entry.second.expired(); });
    return known.byKey[key];
}

/// The points that a block owns: all of its points except copies, the ghosts of width 0. Local.
/// Invariant: owned boxes of all blocks on all ranks are disjoint and cover all points of blocks, so sums count each
/// point once.
std::vector<Box> ownedBy(const BlockGrid &grid, const BlockMemory &block, const Centring &centring) {
    std::vector<Box> owned{block.cells};
    if (!centring.ofCells())
        for (const GhostRegion &copies : grid.ghostRegions(block.block, {}, centring))
            owned = subtractBox(owned, copies.ghosts);
    return owned;
}

} // namespace

// First the ranks agree on the ingredients. Then each looks for a living pattern, and they reuse it only if all have
// one: a program may drop its last field earlier on some ranks, as Python's collector does. Only then are ghosts
// searched and messages sent. Within `failTogether`, so an error in any step ends it on all ranks.
std::shared_ptr<const BlockPattern> BlockPattern::make(const CommunicatorView &comm,
                                                       std::shared_ptr<const BlockGrid> grid, const GhostWidths &ghosts,
                                                       rowsize componentsOutside, const Centring &centring) {
    return failTogether(comm, [&] {
        const std::uint64_t key = agreeOnBlocks(comm, grid.get(), ghosts, componentsOutside, centring);
        const auto context = CommunicatorContext::of(comm);
        std::weak_ptr<const BlockPattern> &place = knownPattern(*context, key);
        if (auto known = place.lock(); comm.allReduce(known != nullptr ? 1 : 0, MPI_MIN) == 1)
            return known;
        const Centring points = centring.in(grid->dims());
        const BlockLinks links = blockLinksOf(*context, *grid, ghosts, componentsOutside, points);
        const std::shared_ptr<BlockPattern> made(new BlockPattern);
        made->grid_ = grid;
        made->ghosts_ = ghosts;
        made->componentsOutside_ = componentsOutside;
        made->centring_ = points;
        made->blocks_ = links.blocks;
        for (const BlockMemory &block : made->blocks_)
            made->owned_.push_back(ownedBy(*grid, block, points));
        made->rows_ = made->blocks_.empty() ? 0 : made->blocks_.back().firstRow + made->blocks_.back().rows;
        made->exchange_ = ExchangePattern::fromBoxes(context, [&] {
            // Cells and their ghosts lie in one allocation.
            return ExchangePattern::Boxes{made->rows_, made->rows_, rowsOf(links.given), rowsOf(links.received),
                                          pushOrderOf(links.given)};
        });
        place = made;
        return std::shared_ptr<const BlockPattern>(made);
    });
}

// The last node of a period is the first one again: files have it once.
std::string_view BlockPattern::differenceFrom(const BlockPattern &other) const noexcept {
    return grid_->signature() != other.grid_->signature()   ? "grid"
           : ghosts_ != other.ghosts_                       ? "ghosts"
           : componentsOutside_ != other.componentsOutside_ ? "order of components"
           : centring_.nodal != other.centring_.nodal       ? "centring"
                                                            : "communicator";
}

Box BlockPattern::filePoints(int space) const {
    DNDS_CHECK(space >= 0 && toSize(space) < grid_->spaces().size(), IndexError, "there is no index space {}, but {}",
               space, grid_->spaces().size());
    const IndexSpace &all = grid_->spaces()[toSize(space)];
    Box points = centring_.pointsOf(all.cells);
    for (int d = 0; d < points.dims; ++d)
        points.upper[toSize(d)] -= centring_.nodal[toSize(d)] && all.periodic[toSize(d)] ? 1 : 0;
    return points;
}

// Every block that shares a point has a copy that exchanges keep equal, so any of them may write it. The lowest number
// is a rule that all ranks know without messages.
// O(blocks nearby). File boxes of all ranks are disjoint: writers need no locks and no order.
std::vector<Box> BlockPattern::fileBoxes(int local) const {
    const std::span<const Box> mine = owned(local);
    const BlockMemory &block = blocks_[toSize(local)];
    const int space = grid_->block(block.block).space;
    const Box points = filePoints(space);
    for (const Box &box : mine)
        DNDS_CHECK(points.contains(box), ArgumentError,
                   "block {} has the points {}, of which files have {}: no block is at the lower end of the period",
                   block.block, toString(box), toString(points));
    std::vector<Box> boxes{block.cells.intersect(points)};
    grid_->visitBlocks(space, centring_.cellsAt(block.cells), [&](int other, const Box &) {
        if (other < block.block)
            boxes = subtractBox(boxes, centring_.pointsOf(grid_->block(other).cells));
    });
    return boxes;
}

} // namespace DNDS
