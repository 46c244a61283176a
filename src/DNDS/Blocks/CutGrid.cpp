#include "DNDS/Blocks/CutBox.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <numeric>
#include <utility>

namespace DNDS {

namespace {

/// Ranks ordered so that those of a node are consecutive, and the number of nodes.
struct OrderedRanks {
    std::vector<int> ranks;
    int nodes = 0;
};

/// The first `count` ranks, or all for 0. A rank knows its own node only, so ranks gather the lowest rank of each one's
/// node. The sort is stable: ranks of a node ascend. Collective. O(ranks).
OrderedRanks ranksByNode(const CommunicatorView &comm, int count) {
    const auto context = CommunicatorContext::of(comm);
    int leader = 0; // the lowest rank of this node
    while (!context->node().sameNode(leader))
        ++leader;
    const std::vector<int> leaders = comm.allGather(leader);
    DNDS_CHECK(count >= 0 && count <= comm.size(), ArgumentError,
               "{} ranks are to have cells: there are {} (0: all of them)", count, comm.size());
    OrderedRanks ordered;
    ordered.ranks.resize(toSize(count == 0 ? comm.size() : count));
    std::iota(ordered.ranks.begin(), ordered.ranks.end(), 0);
    const auto nodeOf = [&](int rank) { return leaders[toSize(rank)]; };
    std::ranges::stable_sort(ordered.ranks, {}, nodeOf);
    for (std::size_t k = 0; k < ordered.ranks.size(); ++k)
        ordered.nodes += k == 0 || nodeOf(ordered.ranks[k]) != nodeOf(ordered.ranks[k - 1]) ? 1 : 0;
    return ordered;
}

/// The position of part `number`, in C order, among `parts`.
IndexVector partNumber(index number, const IndexVector &parts, int dims) {
    IndexVector part{};
    for (int d = dims - 1; d >= 0; --d) {
        part[toSize(d)] = number % parts[toSize(d)];
        number /= parts[toSize(d)];
    }
    return part;
}

/// Cuts an index space into blocks of a given shape, in the order of a space-filling curve through the lattice of
/// blocks, so that runs of blocks are compact. O(blocks log blocks) on every rank.
/// Consecutive blocks of a Hilbert curve mostly share faces, so a run of them has a small surface: few ghosts on other
/// ranks.
void appendBlocks(const IndexSpace &space, int number, std::span<const index> blockShape, std::vector<Block> &into) {
    const Box &cells = space.cells;
    const IndexVector shape = indexVector(blockShape);
    DNDS_CHECK(toSize(cells.dims) == blockShape.size(), ArgumentError,
               "blocks of {} dimensions for index space '{}' of {}", blockShape.size(), space.name, cells.dims);
    IndexVector counts{1, 1, 1, 1};
    index total = 1;
    for (int d = 0; d < cells.dims; ++d) {
        const std::size_t k = toSize(d);
        DNDS_CHECK(shape[k] >= 1, ArgumentError, "blocks of {} cells in dimension {}: give 1 at least", shape[k], d);
        counts[k] = cells.extent(d) / shape[k] + (cells.extent(d) % shape[k] != 0 ? 1 : 0);
        DNDS_CHECK(counts[k] == 0 || total <= (index{1} << 30) / counts[k], ArgumentError,
                   "index space '{}' has more than 2^30 blocks: make them larger", space.name);
        total *= counts[k];
    }
    for (const index place : curveOrder(Box(cells.dims, {}, counts))) {
        const IndexVector at = partNumber(place, counts, cells.dims);
        Block block{cells, 0, number};
        for (int d = 0; d < cells.dims; ++d) {
            const std::size_t k = toSize(d);
            block.cells.lower[k] += at[k] * shape[k];
            block.cells.upper[k] = block.cells.lower[k] + std::min(shape[k], cells.upper[k] - block.cells.lower[k]);
        }
        into.push_back(block);
    }
}

/// Assigns each block to the rank whose share of all cells contains the block's middle. Each rank thus gets a run of
/// consecutive blocks, and its cells differ from the mean by at most one block. O(blocks).
/// Every rank computes all assignments from the same integers by the same operations in double precision, and gets the
/// same ones: no messages.
void dealBlocks(std::span<const int> ranks, std::vector<Block> &blocks) {
    index total = 0;
    for (const Block &block : blocks)
        total += block.cells.size();
    index before = 0;
    for (Block &block : blocks) {
        const double middle = static_cast<double>(before) + 0.5 * static_cast<double>(block.cells.size());
        const double place = middle * static_cast<double>(ranks.size()) / static_cast<double>(total);
        block.rank = ranks[std::min(ranks.size() - 1, static_cast<std::size_t>(place))];
        before += block.cells.size();
    }
}

} // namespace

std::shared_ptr<const BlockGrid> BlockGrid::cut(const CommunicatorView &comm, const IndexSpace &space,
                                                const CutOptions &options) {
    return failTogether(comm, [&] {
        const OrderedRanks by = ranksByNode(comm, options.ranks);
        const PartsChoice choice = chooseParts(space.cells, space.periodic, static_cast<int>(by.ranks.size()), options);
        const index count = choice.count();
        // Ranks are ordered by node: along the curve, those of a node get a compact cluster of parts, with few ghosts
        // on other nodes. On one node any order is equally good, so keep the order of the parts, which surprises least.
        std::vector<index> order(toSize(count));
        std::iota(order.begin(), order.end(), index{0});
        if (by.nodes > 1)
            order = curveOrder(Box(space.cells.dims, {}, choice.parts));
        std::vector<Block> blocks;
        for (std::size_t k = 0; k < toSize(count); ++k) {
            const Box part = partOf(space.cells, choice.parts, partNumber(order[k], choice.parts, space.cells.dims));
            if (!part.empty())
                blocks.push_back({part, by.ranks[k], 0});
        }
        return std::shared_ptr<const BlockGrid>(new BlockGrid({space}, std::move(blocks), {}, choice.why));
    });
}

std::shared_ptr<const BlockGrid> BlockGrid::cut(const CommunicatorView &comm, std::span<const index> shape,
                                                const std::array<bool, maxBlockDims> &periodic,
                                                const CutOptions &options) {
    return failTogether(comm, [&] { return cut(comm, {"array", Box::ofShape(shape), periodic}, options); });
}

std::shared_ptr<const BlockGrid> BlockGrid::blocksOf(const CommunicatorView &comm, const IndexSpace &space,
                                                     std::span<const index> blockShape) {
    return failTogether(comm, [&] { return blocksOf(comm, std::vector<IndexSpace>{space}, blockShape); });
}

std::shared_ptr<const BlockGrid> BlockGrid::blocksOf(const CommunicatorView &comm,
                                                     const std::vector<IndexSpace> &spaces,
                                                     std::span<const index> blockShape,
                                                     const std::vector<Connection> &connections) {
    return failTogether(comm, [&] {
        const OrderedRanks by = ranksByNode(comm, 0);
        std::vector<Block> blocks;
        for (std::size_t s = 0; s < spaces.size(); ++s)
            appendBlocks(spaces[s], static_cast<int>(s), blockShape, blocks);
        dealBlocks(by.ranks, blocks);
        return std::shared_ptr<const BlockGrid>(
            new BlockGrid(spaces, std::move(blocks), connections,
                          fmt::format("blocks in the order of a space-filling curve, on {} nodes", by.nodes)));
    });
}

} // namespace DNDS
