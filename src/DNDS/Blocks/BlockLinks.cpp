#include "DNDS/Blocks/BlockLinks.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/RequireSame.hpp"
#include "DNDS/Mpi/SparseExchange.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace DNDS {

namespace {

static_assert(RowBox::loops == maxBlockDims + 1, "components outside, then the dimensions");
constexpr std::size_t wordsOfRowBox = 1 + 2 * RowBox::loops;
constexpr std::size_t wordsOfLink = 1 + wordsOfRowBox; ///< the block of the cells, then the rows

/// Converts boxes of rows to numbers for messages, and back.
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

/// The rows of the image of `box` under `toBlock`, in the order of the cells of `box`.
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

/// The memory of one rank's blocks.
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

/// The ghosts of this rank by owner: as links, and as words for the owner.
struct GhostLinks {
    std::vector<BlockLink> links;
    std::vector<index> words;
};

std::map<int, GhostLinks> ghostsByOwner(const BlockGrid &grid, std::span<const BlockMemory> blocks,
                                        const GhostWidths &ghosts, rowsize componentsOutside) {
    std::map<int, GhostLinks> byOwner;
    std::map<int, std::map<int, BlockMemory>> known; // memory of each owner's blocks
    const IndexTransform here = IndexTransform::translation(grid.dims(), {});
    for (const BlockMemory &block : blocks)
        for (const GhostRegion &region : grid.ghostRegions(block.block, ghosts)) {
            const int owner = grid.block(region.source).rank;
            auto [memories, isNew] = known.try_emplace(owner);
            if (isNew)
                for (const BlockMemory &memory : memoryOfRank(grid, owner, ghosts, componentsOutside))
                    memories->second.emplace(memory.block, memory);
            const BlockMemory &source = memories->second.at(region.source);
            GhostLinks &found = byOwner[owner];
            found.links.push_back({block.block, boxRowsOf(region.ghosts, here, block, componentsOutside)});
            const auto rows = boxWordsOf(boxRowsOf(region.ghosts, region.toSource, source, componentsOutside));
            found.words.push_back(region.source);
            found.words.insert(found.words.end(), rows.begin(), rows.end());
        }
    return byOwner;
}

} // namespace

std::uint64_t agreeOnBlocks(const CommunicatorView &comm, const BlockGrid *grid, const GhostWidths &ghosts,
                            rowsize componentsOutside) {
    DNDS_CHECK(grid != nullptr, ArgumentError, "fields on blocks need a grid: make one first");
    DNDS_CHECK(grid->ranks() <= comm.size(), ArgumentError, "the grid has blocks on {} ranks, there are {}",
               grid->ranks(), comm.size());
    DNDS_CHECK(componentsOutside >= 0, ArgumentError, "{} components outside: give 0 (inside) or more",
               componentsOutside);
    ghosts.requireFor(grid->dims());
    ContentHash key;
    key.add(grid->signature());
    key.addBytes(&ghosts, sizeof ghosts);
    key.add(static_cast<std::uint64_t>(componentsOutside));
    DNDS_CHECK(isSameOnAll(comm, key.value()), StateError,
               "ranks give different grids, ghost widths or components outside: all have to give the same");
    return key.value();
}

BlockLinks blockLinksOf(CommunicatorContext &context, const BlockGrid &grid, const GhostWidths &ghosts,
                        rowsize componentsOutside) {
    BlockLinks links;
    links.blocks = memoryOfRank(grid, context.comm().rank(), ghosts, componentsOutside);
    RankLists wanted;
    for (auto &[owner, found] : ghostsByOwner(grid, links.blocks, ghosts, componentsOutside)) {
        wanted.append(owner, found.words);
        links.received.push_back({owner, std::move(found.links)});
    }
    const RankLists heard = sparseExchange(context, wanted);
    for (std::size_t k = 0; k < heard.size(); ++k) {
        PeerLinks &reader = links.given.emplace_back(PeerLinks{heard.ranks[k], {}});
        for (std::span<const index> words = heard.list(k); !words.empty(); words = words.subspan(wordsOfLink))
            reader.links.push_back({static_cast<int>(words[0]), boxFromWords(words.subspan(1, wordsOfRowBox))});
    }
    return links;
}

} // namespace DNDS
