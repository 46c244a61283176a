#include "DNDS/Blocks/BlockPattern.hpp"

#include "DNDS/Blocks/BlockLinks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <utility>

namespace DNDS {

namespace {

ExchangePattern::PeerBoxes boxesOf(std::span<const PeerLinks> peers) {
    ExchangePattern::PeerBoxes boxes;
    std::vector<RowBox> rows;
    for (const PeerLinks &peer : peers) {
        rows.clear();
        for (const BlockLink &link : peer.links)
            rows.push_back(link.rows);
        boxes.append(peer.rank, RowList::boxes(rows));
    }
    return boxes;
}

} // namespace

std::shared_ptr<const BlockPattern> BlockPattern::make(const CommunicatorView &comm,
                                                       std::shared_ptr<const BlockGrid> grid, const GhostWidths &ghosts,
                                                       rowsize componentsOutside) {
    return failTogether(comm, [&] {
        const auto context = CommunicatorContext::of(comm);
        const BlockLinks links = blockLinksOf(*context, grid.get(), ghosts, componentsOutside);
        const std::shared_ptr<BlockPattern> made(new BlockPattern);
        made->grid_ = grid;
        made->ghosts_ = ghosts;
        made->componentsOutside_ = componentsOutside;
        made->blocks_ = links.blocks;
        made->rows_ = made->blocks_.empty() ? 0 : made->blocks_.back().firstRow + made->blocks_.back().rows;
        made->exchange_ = ExchangePattern::fromBoxes(context, [&] {
            // Cells and their ghosts are one memory.
            return ExchangePattern::Boxes{made->rows_, made->rows_, boxesOf(links.given), boxesOf(links.received)};
        });
        return std::shared_ptr<const BlockPattern>(made);
    });
}

} // namespace DNDS
