#include "DNDS/Blocks/BlockPattern.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RequireSame.hpp"

#include <cstring>
#include <map>
#include <utility>

namespace DNDS {

namespace {

/// The rows of a box in the memory of a rank, in the order of nested loops of which the last one runs fastest.
struct BoxRows {
    static constexpr int loops = maxBlockDims + 1; ///< components outside, then the dimensions
    index first = 0;
    std::array<index, loops> counts{1, 1, 1, 1, 1};
    std::array<index, loops> strides{};
    static constexpr std::size_t words = 1 + std::size_t{2} * loops;

    index size() const {
        index rows = 1;
        for (const index count : counts)
            rows *= count;
        return rows;
    }
};

/// As numbers for messages, and back.
std::array<index, BoxRows::words> boxWordsOf(const BoxRows &rows) {
    std::array<index, BoxRows::words> words{rows.first};
    std::ranges::copy(rows.counts, words.begin() + 1);
    std::ranges::copy(rows.strides, words.begin() + 1 + BoxRows::loops);
    return words;
}
BoxRows boxFromWords(std::span<const index> words) {
    BoxRows rows;
    rows.first = words[0];
    std::copy_n(words.begin() + 1, BoxRows::loops, rows.counts.begin());
    std::copy_n(words.begin() + 1 + BoxRows::loops, BoxRows::loops, rows.strides.begin());
    return rows;
}

/// Appends the rows to a list: the one place where boxes become what ExchangePattern takes.
void appendBoxRows(const BoxRows &rows, std::vector<index> &into) {
    const auto &[n0, n1, n2, n3, n4] = rows.counts;
    const auto &[s0, s1, s2, s3, s4] = rows.strides;
    for (index a = 0; a < n0; ++a)
        for (index b = 0; b < n1; ++b)
            for (index c = 0; c < n2; ++c)
                for (index d = 0; d < n3; ++d) {
                    const index start = rows.first + a * s0 + b * s1 + c * s2 + d * s3;
                    for (index e = 0; e < n4; ++e)
                        into.push_back(start + e * s4);
                }
}

/// The rows of what `toBlock` makes of `box`, in the order of the cells of `box`.
BoxRows boxRowsOf(const Box &box, const IndexTransform &toBlock, const BlockMemory &memory, rowsize componentsOutside) {
    IndexVector strides{};
    index stride = 1;
    for (int d = box.dims - 1; d >= 0; --d) {
        strides[toSize(d)] = stride;
        stride *= memory.extent.extent(d);
    }
    BoxRows rows;
    rows.first = memory.firstRow;
    const IndexVector corner = toBlock(box.lower);
    for (int d = 0; d < box.dims; ++d) {
        const std::size_t k = toSize(d);
        const std::size_t loop = toSize(BoxRows::loops - box.dims + d);
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
    std::vector<index> mine;
    std::vector<index> owners; ///< words of BoxRows
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
            appendBoxRows(boxRowsOf(region.ghosts, here, block, componentsOutside), rows.mine);
            const auto words = boxWordsOf(boxRowsOf(region.ghosts, region.toSource, source, componentsOutside));
            rows.owners.insert(rows.owners.end(), words.begin(), words.end());
        }
    return byOwner;
}

/// Tells owners which of their rows are ghosts here. Collective.
std::shared_ptr<const ExchangePattern> blockExchangeOf(const CommunicatorView &comm, const BlockPattern &pattern) {
    const auto context = CommunicatorContext::of(comm);
    ExchangePattern::Rows rows;
    rows.fatherSize = rows.sonSize = pattern.rows(); // cells and their ghosts are one memory
    RankLists wanted;
    for (const auto &[owner, ghosts] :
         ghostsByOwner(*pattern.grid(), pattern.blocks(), pattern.ghosts(), pattern.componentsOutside())) {
        wanted.append(owner, ghosts.owners);
        rows.received.append(owner, ghosts.mine);
    }
    const RankLists heard = sparseExchange(*context, wanted);
    for (std::size_t k = 0; k < heard.size(); ++k) {
        std::vector<index> given;
        for (std::span<const index> words = heard.list(k); !words.empty(); words = words.subspan(BoxRows::words))
            appendBoxRows(boxFromWords(words.first(BoxRows::words)), given);
        rows.given.append(heard.ranks[k], given);
    }
    return ExchangePattern::fromLists(context, [&] { return std::move(rows); });
}

std::uint64_t blockKeyOf(const BlockGrid &grid, const GhostWidths &ghosts, rowsize componentsOutside) {
    ContentHash key;
    key.add(grid.signature());
    key.addBytes(&ghosts, sizeof ghosts);
    key.add(static_cast<std::uint64_t>(componentsOutside));
    return key.value();
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
        const std::shared_ptr<BlockPattern> made(new BlockPattern);
        made->grid_ = grid;
        made->ghosts_ = ghosts;
        made->componentsOutside_ = componentsOutside;
        made->blocks_ = memoryOfRank(*grid, comm.rank(), ghosts, componentsOutside);
        made->rows_ = made->blocks_.empty() ? 0 : made->blocks_.back().firstRow + made->blocks_.back().rows;
        made->exchange_ = blockExchangeOf(comm, *made);
        return std::shared_ptr<const BlockPattern>(made);
    });
}

} // namespace DNDS
