#include "DNDS/Blocks/BlockPattern.hpp"

#include "DNDS/Blocks/BlockLinks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <map>
#include <memory>
#include <utility>

namespace DNDS {

namespace {

/// The patterns of a communicator that are in use, by their ingredients.
struct KnownPatterns {
    std::map<std::uint64_t, std::weak_ptr<const BlockPattern>> byKey;
};

/// The entry for the pattern of `key`. Collective at the first call.
std::weak_ptr<const BlockPattern> &knownPattern(CommunicatorContext &context, std::uint64_t key) {
    auto &known = context.attach<KnownPatterns>([] { return std::make_shared<KnownPatterns>(); });
    std::erase_if(known.byKey, [](const auto &entry) { return entry.second.expired(); });
    return known.byKey[key];
}

} // namespace

std::shared_ptr<const BlockPattern> BlockPattern::make(const CommunicatorView &comm,
                                                       std::shared_ptr<const BlockGrid> grid, const GhostWidths &ghosts,
                                                       rowsize componentsOutside) {
    return failTogether(comm, [&] {
        const std::uint64_t key = agreeOnBlocks(comm, grid.get(), ghosts, componentsOutside);
        const auto context = CommunicatorContext::of(comm);
        std::weak_ptr<const BlockPattern> &place = knownPattern(*context, key);
        if (auto known = place.lock(); comm.allReduce(known != nullptr ? 1 : 0, MPI_MIN) == 1)
            return known;
        const BlockLinks links = blockLinksOf(*context, *grid, ghosts, componentsOutside);
        const std::shared_ptr<BlockPattern> made(new BlockPattern);
        made->grid_ = grid;
        made->ghosts_ = ghosts;
        made->componentsOutside_ = componentsOutside;
        made->blocks_ = links.blocks;
        made->rows_ = made->blocks_.empty() ? 0 : made->blocks_.back().firstRow + made->blocks_.back().rows;
        made->exchange_ = ExchangePattern::fromBoxes(context, [&] {
            // Cells and their ghosts lie in one allocation.
            return ExchangePattern::Boxes{made->rows_, made->rows_, rowsOf(links.given), rowsOf(links.received)};
        });
        place = made;
        return std::shared_ptr<const BlockPattern>(made);
    });
}

} // namespace DNDS
