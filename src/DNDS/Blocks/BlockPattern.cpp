#include "DNDS/Blocks/BlockPattern.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RequireSame.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

namespace DNDS {

namespace {

static_assert(RowBox::loops == maxBlockDims + 1, "components outside, then the dimensions");
constexpr std::size_t wordsOfRowBox = 1 + 2 * RowBox::loops;

/// As numbers for messages, and back.
std::array<index, wordsOfRowBox> boxWordsOf(const RowBox &rows) {
    std::array<index, wordsOfRowBox> words{rows.first};
    std::ranges::copy(rows.counts, words.begin() + 1);
    std::ranges::copy(rows.strides, words.begin() + 1 + RowBox::loops);
    return words;
}
RowBox boxFromWords(std::span<const index> words) {
    RowBox rows;
    rows.first = words[0];
    std::copy_n(words.begin() + 1, RowBox::loops, rows.counts.begin());
    std::copy_n(words.begin() + 1 + RowBox::loops, RowBox::loops, rows.strides.begin());
    return rows;
}

/// The rows of what `toBlock` makes of `box`, in the order of the cells of `box`.
RowBox boxRowsOf(const Box &box, const IndexTransform &toBlock, const BlockMemory &memory, rowsize componentsOutside) {
    IndexVector strides{};
    index stride = 1;
    for (int d = box.dims - 1; d >= 0; --d) {
        strides[toSize(d)] = stride;
        stride *= memory.extent.extent(d);
    }
    RowBox rows;
    rows.first = memory.firstRow;
    const IndexVector corner = toBlock(box.lower);
    for (int d = 0; d < box.dims; ++d) {
        const std::size_t k = toSize(d);
        const std::size_t loop = RowBox::loops - toSize(box.dims) + k;
        const std::size_t axis = toSize(toBlock.axis[k]);
        rows.first += (corner[k] - memory.extent.lower[k]) * strides[k]; // of the block's own dimension d
        rows.counts[loop] = box.extent(d);
        rows.strides[loop] = toBlock.sign[k] * strides[axis];
    }
    rows.counts[0] = std::max<index>(1, componentsOutside);
    rows.strides[0] = stride;
    return rows;
}

/// The blocks of one rank in its memory.
std::vector<BlockMemory> memoryOfRank(const BlockGrid &grid, int rank, const GhostWidths &ghosts,
                                      rowsize componentsOutside) {
    std::vector<BlockMemory> all;
    index next = 0;
    for (const int number : grid.blocksOfRank(rank)) {
        const Box &cells = grid.block(number).cells;
        BlockMemory memory{number, cells, cells.grow(ghosts), next, 0};
        index rows = std::max<index>(1, componentsOutside);
        for (int d = 0; d < cells.dims; ++d) {
            const index extent = memory.extent.extent(d);
            DNDS_CHECK(rows <= (index{1} << 60) / extent, ArgumentError,
                       "block {} with its ghosts, {}, has more than 2^60 rows", number, toString(memory.extent));
            rows *= extent;
        }
        memory.rows = rows;
        next += rows;
        all.push_back(memory);
    }
    return all;
}

/// The ghosts of this rank by owner: its own rows, and what they are in the memory of the owner.
struct GhostRows {
    std::vector<RowBox> mine;
    std::vector<index> owners; ///< words of RowBox
};

std::map<int, GhostRows> ghostsByOwner(const BlockGrid &grid, std::span<const BlockMemory> blocks,
                                       const GhostWidths &ghosts, rowsize componentsOutside) {
    std::map<int, GhostRows> byOwner;
    std::map<int, std::map<int, BlockMemory>> known; // of each owner, by block
    const IndexTransform here = IndexTransform::translation(grid.dims(), {});
    for (const BlockMemory &block : blocks)
        for (const GhostRegion &region : grid.ghostRegions(block.block, ghosts)) {
            const int owner = grid.block(region.source).rank;
            auto [memories, isNew] = known.try_emplace(owner);
            if (isNew)
                for (const BlockMemory &memory : memoryOfRank(grid, owner, ghosts, componentsOutside))
                    memories->second.emplace(memory.block, memory);
            const BlockMemory &source = memories->second.at(region.source);
            GhostRows &rows = byOwner[owner];
            rows.mine.push_back(boxRowsOf(region.ghosts, here, block, componentsOutside));
            const auto words = boxWordsOf(boxRowsOf(region.ghosts, region.toSource, source, componentsOutside));
            rows.owners.insert(rows.owners.end(), words.begin(), words.end());
        }
    return byOwner;
}

/// Tells owners which of their rows are ghosts here. Collective.
std::shared_ptr<const ExchangePattern> blockExchangeOf(const CommunicatorView &comm, const BlockPattern &pattern) {
    const auto context = CommunicatorContext::of(comm);
    ExchangePattern::Boxes rows;
    rows.fatherSize = rows.sonSize = pattern.rows(); // cells and their ghosts are one memory
    RankLists wanted;
    for (const auto &[owner, ghosts] :
         ghostsByOwner(*pattern.grid(), pattern.blocks(), pattern.ghosts(), pattern.componentsOutside())) {
        wanted.append(owner, ghosts.owners);
        rows.received.append(owner, RowList::boxes(ghosts.mine));
    }
    const RankLists heard = sparseExchange(*context, wanted);
    for (std::size_t k = 0; k < heard.size(); ++k) {
        std::vector<RowBox> given;
        for (std::span<const index> words = heard.list(k); !words.empty(); words = words.subspan(wordsOfRowBox))
            given.push_back(boxFromWords(words.first(wordsOfRowBox)));
        rows.given.append(heard.ranks[k], RowList::boxes(given));
    }
    return ExchangePattern::fromBoxes(context, [&] { return std::move(rows); });
}

std::uint64_t blockKeyOf(const BlockGrid &grid, const GhostWidths &ghosts, rowsize componentsOutside) {
    ContentHash key;
    key.add(grid.signature());
    key.addBytes(&ghosts, sizeof ghosts);
    key.add(static_cast<std::uint64_t>(componentsOutside));
    return key.value();
}

/// Patterns of a communicator by what they are made of, as long as somebody has them.
struct KnownPatterns {
    std::map<std::uint64_t, std::weak_ptr<const BlockPattern>> byKey;
};

/// Where the pattern of `key` is or belongs. Collective the first time.
std::weak_ptr<const BlockPattern> &knownPattern(const CommunicatorView &comm, std::uint64_t key) {
    auto &known =
        CommunicatorContext::of(comm)->attach<KnownPatterns>([] { return std::make_shared<KnownPatterns>(); });
    std::erase_if(known.byKey, [](const auto &entry) { return entry.second.expired(); });
    return known.byKey[key];
}

} // namespace

std::shared_ptr<const BlockPattern> BlockPattern::make(const CommunicatorView &comm,
                                                       std::shared_ptr<const BlockGrid> grid, const GhostWidths &ghosts,
                                                       rowsize componentsOutside) {
    return failTogether(comm, [&] {
        DNDS_CHECK(grid != nullptr, ArgumentError, "fields on blocks need a grid: make one first");
        DNDS_CHECK(grid->ranks() <= comm.size(), ArgumentError, "the grid has blocks on {} ranks, there are {}",
                   grid->ranks(), comm.size());
        DNDS_CHECK(componentsOutside >= 0, ArgumentError, "{} components outside: give 0 (inside) or more",
                   componentsOutside);
        ghosts.requireFor(grid->dims());
        DNDS_CHECK(isSameOnAll(comm, blockKeyOf(*grid, ghosts, componentsOutside)), StateError,
                   "ranks give different grids, ghost widths or components outside: all have to give the same");
        std::weak_ptr<const BlockPattern> &place = knownPattern(comm, blockKeyOf(*grid, ghosts, componentsOutside));
        if (const auto known = place.lock(); comm.allReduce(known != nullptr ? 1 : 0, MPI_MIN) == 1)
            return known;
        const std::shared_ptr<BlockPattern> made(new BlockPattern);
        made->grid_ = grid;
        made->ghosts_ = ghosts;
        made->componentsOutside_ = componentsOutside;
        made->blocks_ = memoryOfRank(*grid, comm.rank(), ghosts, componentsOutside);
        made->rows_ = made->blocks_.empty() ? 0 : made->blocks_.back().firstRow + made->blocks_.back().rows;
        made->exchange_ = blockExchangeOf(comm, *made);
        place = made;
        return std::shared_ptr<const BlockPattern>(made);
    });
}

} // namespace DNDS
