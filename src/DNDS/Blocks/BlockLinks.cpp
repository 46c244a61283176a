#include "DNDS/Blocks/BlockLinks.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace DNDS {

namespace {

static_assert(RowBox::loops == maxBlockDims + 1, "components outside, then the dimensions");
constexpr std::size_t wordsOfRowBox = 1 + 2 * RowBox::loops;
constexpr std::size_t wordsOfLink = 2 + wordsOfRowBox; ///< the blocks of the cells and of the ghosts, then the rows

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

/// The rows of the image of `box` under `toBlock`, in the order of the cells of `box`: a turn permutes the strides, a
/// mirrored dimension has a negative one, so both ends of a link move rows in the order of the ghosts. Unused loops
/// come after the loop over components and count to 1.
RowBox boxRowsOf(const Box &box, const IndexTransform &toBlock, const Box &extent, index firstRow,
                 rowsize componentsOutside) {
    IndexVector strides{};
    index stride = 1;
    for (int d = box.dims - 1; d >= 0; --d) {
        strides[toSize(d)] = stride;
        stride *= extent.extent(d);
    }
    RowBox rows;
    rows.first = firstRow;
    const IndexVector corner = toBlock(box.lower);
    for (int d = 0; d < box.dims; ++d) {
        const std::size_t k = toSize(d);
        const std::size_t loop = RowBox::loops - toSize(box.dims) + k;
        const std::size_t axis = toSize(toBlock.axis[k]);
        rows.first += (corner[k] - extent.lower[k]) * strides[k]; // of the block's own dimension d
        rows.counts[loop] = box.extent(d);
        rows.strides[loop] = toBlock.sign[k] * strides[axis];
    }
    rows.counts[0] = std::max<index>(1, componentsOutside);
    rows.strides[0] = stride;
    return rows;
}

/// The layout of a field's rows in memory.
struct Layout {
    const BlockGrid &grid;
    const GhostWidths &ghosts;
    rowsize componentsOutside;
    Centring centring;

    Layout(const BlockGrid &blocks, const GhostWidths &widths, rowsize outside, const Centring &points)
        : grid(blocks), ghosts(widths), componentsOutside(outside), centring(points) {}
    explicit Layout(const BlockPattern &pattern)
        : Layout(*pattern.grid(), pattern.ghosts(), pattern.componentsOutside(), pattern.centring()) {}
    /// The points of a block and its ghosts.
    Box extentOf(int block) const { return centring.pointsOf(grid.block(block).cells).grow(ghosts); }
};

/// The memory of one rank's blocks. A function of grid and options alone, so any rank can compute it for a peer. Local.
/// O(blocks of the rank).
std::vector<BlockMemory> memoryOfRank(const Layout &layout, int rank) {
    std::vector<BlockMemory> all;
    index next = 0;
    for (const int number : layout.grid.blocksOfRank(rank)) {
        const Box cells = layout.centring.pointsOf(layout.grid.block(number).cells);
        BlockMemory memory{number, cells, layout.extentOf(number), next, 0};
        index rows = std::max<index>(1, layout.componentsOutside);
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

/// The regions of a block of `to`, and their sources among the blocks of `from`.
using Sources = std::function<std::vector<GhostRegion>(const BlockMemory &)>;
/// Changes the rows of a link here and at its owner.
using Adaptation = std::function<void(RowBox &here, RowBox &there)>;

/// The reader computes both ends of its links: the owner's memory follows from the grid, which all ranks know. Owners
/// then need no search, and both ends list links in one order: blocks ascending, for each its regions. Local.
/// O(links + blocks of the owners), up to logarithms of both.
/// The owner's block offsets are computed once an owner, by repeating its layout here: no rank asks for them.
std::map<int, GhostLinks> ghostsByOwner(const Layout &from, const Layout &to, std::span<const BlockMemory> blocks,
                                        const Sources &sourcesOf, const Adaptation &adapt) {
    std::map<int, GhostLinks> byOwner;
    std::vector<index> firstRows(from.grid.blocks().size()); // of the blocks of the owners so far
    const IndexTransform here = IndexTransform::translation(to.grid.dims(), {});
    for (const BlockMemory &block : blocks)
        for (const GhostRegion &region : sourcesOf(block)) {
            const int owner = from.grid.block(region.source).rank;
            const auto [entry, isNew] = byOwner.try_emplace(owner);
            if (isNew)
                for (const BlockMemory &memory : memoryOfRank(from, owner))
                    firstRows[toSize(memory.block)] = memory.firstRow;
            GhostLinks &found = entry->second;
            RowBox ghosts = boxRowsOf(region.ghosts, here, block.extent, block.firstRow, to.componentsOutside);
            RowBox cells = boxRowsOf(region.ghosts, region.toSource, from.extentOf(region.source),
                                     firstRows[toSize(region.source)], from.componentsOutside);
            adapt(ghosts, cells);
            found.links.push_back({block.block, region.source, ghosts});
            const auto rows = boxWordsOf(cells);
            found.words.insert(found.words.end(), {region.source, block.block});
            found.words.insert(found.words.end(), rows.begin(), rows.end());
        }
    return byOwner;
}

/// The owner's end of each link is sent to it as `wordsOfLink` words. Readers and owners are sorted by rank, by maps.
/// Collective; one sparse exchange. Cost: one list of 13 words a link to each owner. The lists on both ends are in the
/// reader's order, so that messages of exchanges carry rows without numbers.
BlockLinks linksBetween(CommunicatorContext &context, const Layout &from, const Layout &to, const Sources &sourcesOf,
                        const Adaptation &adapt) {
    BlockLinks links;
    const int me = context.comm().rank();
    links.blocks = memoryOfRank(to, me);
    RankLists wanted;
    std::vector<index> own; // what this rank wants of itself: no message
    for (auto &[owner, found] : ghostsByOwner(from, to, links.blocks, sourcesOf, adapt)) {
        if (owner == me)
            own = std::move(found.words);
        else
            wanted.append(owner, found.words);
        links.received.emplace(owner, std::move(found.links));
    }
    const RankLists heard = sparseExchange(context, wanted);
    // The words of one reader become links again.
    const auto addReader = [&](int rank, std::span<const index> words) {
        if (words.empty())
            return;
        std::vector<BlockLink> &reader = links.given[rank];
        reader.reserve(words.size() / wordsOfLink);
        for (; !words.empty(); words = words.subspan(wordsOfLink))
            reader.push_back({static_cast<int>(words[0]), static_cast<int>(words[1]),
                              boxFromWords(words.subspan(2, wordsOfRowBox))});
    };
    addReader(me, own);
    for (std::size_t k = 0; k < heard.size(); ++k)
        addReader(heard.ranks[k], heard.list(k));
    return links;
}

/// The rows of `rows` as single values. In links the loop over components is the first one. Fields with components
/// inside and outside thus have equal counts, and differ in strides only.
RowBox valuesOf(RowBox rows, rowsize componentsInside) {
    rows.first *= componentsInside;
    for (index &stride : rows.strides)
        stride *= componentsInside;
    if (componentsInside > 1) {
        rows.counts[0] = componentsInside;
        rows.strides[0] = 1;
    }
    return rows;
}

/// Orders the loops of both sides alike: by descending strides of `to`, so that it is written in runs, but with the
/// fastest loop of `from` next to the innermost one, so that a cache line is read again while it is in the cache.
/// Both boxes get the same permutation, so element k of one still corresponds to element k of the other. O(1).
void orderLoops(RowBox &to, RowBox &from) {
    std::array<std::size_t, RowBox::loops> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto stepOf = [&](const RowBox &rows) {
        return [&rows](std::size_t loop) {
            return rows.counts[loop] > 1 ? std::abs(rows.strides[loop]) : std::numeric_limits<index>::max();
        };
    };
    std::ranges::stable_sort(order, std::ranges::greater(), stepOf(to));
    const auto fastest = std::ranges::min_element(order, {}, stepOf(from));
    if (fastest != order.end() - 1)
        std::rotate(fastest, fastest + 1, order.end() - 1);
    for (RowBox *rows : {&to, &from}) {
        const RowBox before = *rows;
        for (std::size_t loop = 0; loop < RowBox::loops; ++loop) {
            rows->counts[loop] = before.counts[order[loop]];
            rows->strides[loop] = before.strides[order[loop]];
        }
    }
}

} // namespace

// Local checks come first: a rank that fails in them ends the others at the comparison (`failTogether`). Ranks compare
// hashes: one reduction, whatever the number of blocks.
std::uint64_t agreeOnBlocks(const CommunicatorView &comm, const BlockGrid *grid, const GhostWidths &ghosts,
                            rowsize componentsOutside, const Centring &centring) {
    DNDS_CHECK(grid != nullptr, ArgumentError, "fields on blocks need a grid: make one first");
    DNDS_CHECK(grid->ranks() <= comm.size(), ArgumentError, "the grid has blocks on {} ranks, there are {}",
               grid->ranks(), comm.size());
    DNDS_CHECK(componentsOutside >= 0, ArgumentError, "{} components outside: give 0 (inside) or more",
               componentsOutside);
    ghosts.requireFor(grid->dims());
    grid->requireCentring(centring);
    ContentHash key;
    key.add(grid->signature());
    key.addBytes(&ghosts.low, sizeof ghosts.low);
    key.addBytes(&ghosts.high, sizeof ghosts.high);
    key.add(static_cast<std::uint64_t>(ghosts.shape));
    key.add(static_cast<std::uint64_t>(componentsOutside));
    for (const bool nodal : centring.in(grid->dims()).nodal)
        key.add(nodal ? 1 : 0);
    DNDS_CHECK(
        isSameOnAll(comm, key.value()), StateError,
        "ranks give different grids, ghost widths or shapes, components outside or centrings: all have to give the "
        "same");
    return key.value();
}

BlockLinks blockLinksOf(CommunicatorContext &context, const BlockGrid &grid, const GhostWidths &ghosts,
                        rowsize componentsOutside, const Centring &centring) {
    const Layout layout(grid, ghosts, componentsOutside, centring);
    return linksBetween(
        context, layout, layout,
        [&](const BlockMemory &block) { return grid.ghostRegions(block.block, ghosts, centring); },
        [](RowBox &, RowBox &) {});
}

// The reader knows both sides' strides, so it also chooses the order of loops for both: owners receive it in the links.
BlockLinks valueLinksOf(CommunicatorContext &context, const BlockPattern &from, const BlockPattern &to,
                        rowsize components, const Sources &sourcesOf) {
    const auto inside = [&](const BlockPattern &pattern) { return pattern.componentsOutside() > 0 ? 1 : components; };
    return linksBetween(context, Layout(from), Layout(to), sourcesOf, [&](RowBox &here, RowBox &there) {
        here = valuesOf(here, inside(to));
        there = valuesOf(there, inside(from));
        orderLoops(here, there);
    });
}

ExchangePattern::PeerBoxes rowsOf(const PeerLinks &peers) {
    ExchangePattern::PeerBoxes boxes;
    std::vector<RowBox> rows;
    for (const auto &[rank, links] : peers) {
        rows.clear();
        rows.reserve(links.size());
        for (const BlockLink &link : links)
            rows.push_back(link.rows);
        boxes.append(rank, RowList::boxes(rows));
    }
    return boxes;
}

// `place` counts the rows of all links in the order in which they are received, which is that of ranks. The sort is
// stable: a block's links all come from one rank, in the order of its regions.
// O(links log links) where ranks and blocks are not in the same order, else O(links). Sums of floating-point numbers
// then have the same bits on any ranks, since the order of terms depends on block numbers only.
std::vector<ExchangePattern::PushedBox> pushOrderOf(const PeerLinks &given) {
    // In order where ranks ascend with blocks: nothing to sort.
    int last = 0;
    bool inOrder = true;
    for (const auto &[rank, links] : given)
        for (const BlockLink &link : links) {
            inOrder = inOrder && link.other >= last;
            last = link.other;
        }
    if (inOrder)
        return {};
    std::vector<std::pair<int, ExchangePattern::PushedBox>> byBlock;
    index place = 0;
    for (const auto &[rank, links] : given)
        for (const BlockLink &link : links) {
            byBlock.push_back({link.other, {link.rows, place}});
            place += link.rows.size();
        }
    constexpr auto block = &std::pair<int, ExchangePattern::PushedBox>::first;
    std::ranges::stable_sort(byBlock, {}, block);
    std::vector<ExchangePattern::PushedBox> order;
    for (const auto &[number, box] : byBlock)
        order.push_back(box);
    return order;
}

} // namespace DNDS
