#include "DNDS/Blocks/BlockGrid.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Blocks/Passages.hpp"

#include <cmath>
#include <utility>

namespace DNDS {

/// Locates the blocks of one index space: equal bins, each with the blocks that have cells in it. The number of bins is
/// about that of blocks, so that finding the neighbours of all blocks costs O(blocks). AMReX's BoxArray hashes its
/// boxes into bins in the same way; here bins are an array, bounded even if blocks lie far apart.
struct BlockGrid::Bins {
    Box bounds;                      ///< bounds of all blocks
    IndexVector counts{1, 1, 1, 1};  ///< bins per dimension
    IndexVector sizes{1, 1, 1, 1};   ///< cells per bin and dimension
    std::vector<std::size_t> starts; ///< [bins + 1] start of each bin in `blocks`, in C order
    std::vector<int> blocks;         ///< numbers in the grid, bin by bin; a block is in every bin that it touches
    index cells = 0;                 ///< cells of all blocks of the space

    Bins(std::span<const Block> all, int space, int dims);
    /// The numbers of the bins with cells in `box`.
    Box binsOf(const Box &box) const;
    /// The position of a bin in `starts`.
    std::size_t numberOf(const IndexVector &bin) const noexcept;
};

// Bins of the mean size of blocks, enlarged until there are at most 8 per block and 64 more, also if blocks are sparse.
// The lists are made by counting, in two passes over the blocks: O(blocks + entries).
// Invariant: a block is listed in every bin that its box touches, so a query looks at the bins of its own box only.
BlockGrid::Bins::Bins(std::span<const Block> all, int space, int dims) {
    double inBins = 0;
    std::array<double, maxBlockDims> mean{};
    for (const Block &block : all) {
        if (block.space != space)
            continue;
        bounds = inBins == 0 ? block.cells : bounds;
        for (int d = 0; d < dims; ++d) {
            const std::size_t k = toSize(d);
            bounds.lower[k] = std::min(bounds.lower[k], block.cells.lower[k]);
            bounds.upper[k] = std::max(bounds.upper[k], block.cells.upper[k]);
            mean[k] += static_cast<double>(block.cells.extent(d));
        }
        inBins += 1;
        cells += block.cells.size();
    }
    bounds.dims = dims;
    double bins = 1;
    for (int d = 0; d < dims && inBins > 0; ++d)
        bins *= std::max(1.0, static_cast<double>(bounds.extent(d)) * inBins / mean[toSize(d)]);
    const double coarser = std::pow(std::max(1.0, bins / (2 * inBins)), 1.0 / dims); // blocks may lie far apart
    for (int d = 0; d < dims && inBins > 0; ++d) {
        const std::size_t k = toSize(d);
        sizes[k] = std::max<index>(1, static_cast<index>(std::ceil(mean[k] / inBins * coarser)));
        counts[k] = (bounds.extent(d) + sizes[k] - 1) / sizes[k];
    }
    // Spaces that are thin in some dimensions get coarser bins in the others.
    while (inBins > 0 && static_cast<double>(Box(dims, {}, counts).size()) > 8 * inBins + 64) {
        const auto most = static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin());
        sizes[most] *= 2;
        counts[most] = (bounds.extent(static_cast<int>(most)) + sizes[most] - 1) / sizes[most];
    }
    const Box bin = Box(dims, {}, counts);
    starts.assign(toSize(bin.size()) + 1, 0);
    const auto eachBin = [&](auto &&function) {
        for (std::size_t b = 0; b < all.size(); ++b)
            if (all[b].space == space)
                forEachCell(binsOf(all[b].cells), [&](const IndexVector &at) { function(numberOf(at), b); });
    };
    eachBin([&](std::size_t at, std::size_t) { ++starts[at + 1]; });
    for (std::size_t at = 1; at < starts.size(); ++at)
        starts[at] += starts[at - 1];
    blocks.resize(starts.back());
    std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
    eachBin([&](std::size_t at, std::size_t b) { blocks[next[at]++] = static_cast<int>(b); });
}

// A box outside the bounds touches no bin: blocks have no cells there.
Box BlockGrid::Bins::binsOf(const Box &box) const {
    Box touched = box.intersect(bounds);
    for (int d = 0; d < touched.dims && !touched.empty(); ++d) {
        const std::size_t k = toSize(d);
        touched.lower[k] = (touched.lower[k] - bounds.lower[k]) / sizes[k];
        touched.upper[k] = (touched.upper[k] - 1 - bounds.lower[k]) / sizes[k] + 1;
    }
    return touched;
}

std::size_t BlockGrid::Bins::numberOf(const IndexVector &bin) const noexcept {
    index number = 0;
    for (int d = 0; d < bounds.dims; ++d)
        number = number * counts[toSize(d)] + bin[toSize(d)];
    return toSize(number);
}

// The order matters: bins divide by the extents of blocks and rely on the checks before them; overlaps are found
// through bins. O(blocks x blocks nearby + ranks).
BlockGrid::BlockGrid(std::vector<IndexSpace> spaces, std::vector<Block> blocks, std::vector<Connection> connections,
                     std::string how)
    : spaces_(std::move(spaces)), blocks_(std::move(blocks)), connections_(std::move(connections)),
      how_(std::move(how)) {
    checkSpaces();
    checkBlocks();
    for (std::size_t space = 0; space < spaces_.size(); ++space)
        bins_.emplace_back(blocks_, static_cast<int>(space), dims());
    checkOverlaps();
    addRanks();
    passages_.resize(spaces_.size());
    addPeriods();
    for (std::size_t c = 0; c < connections_.size(); ++c)
        addPassages(connections_[c], c);
    sign();
}

BlockGrid::~BlockGrid() = default;

std::shared_ptr<const BlockGrid> BlockGrid::make(std::vector<IndexSpace> spaces, std::vector<Block> blocks,
                                                 std::vector<Connection> connections) {
    return std::shared_ptr<const BlockGrid>(
        new BlockGrid(std::move(spaces), std::move(blocks), std::move(connections), "blocks as given"));
}

// The limits keep all later arithmetic in 64 bits: sums of bounds, ghosts (up to 2^30) and passages (2^61, see
// Passages.cpp) do not overflow, and neither do numbers of cells.
void BlockGrid::checkSpaces() const {
    DNDS_CHECK(!spaces_.empty(), ArgumentError, "a grid needs an index space: give one at least");
    for (const IndexSpace &space : spaces_) {
        const Box &cells = space.cells;
        DNDS_CHECK(cells.dims >= 1 && cells.dims <= maxBlockDims && cells.dims == dims(), ArgumentError,
                   "index space '{}' has {} dimensions, the first one {}: all have the same, 1 to {}", space.name,
                   cells.dims, dims(), maxBlockDims);
        index cellsSoFar = 1;
        for (int d = 0; d < cells.dims; ++d) {
            const index extent = cells.upper[toSize(d)] - cells.lower[toSize(d)];
            constexpr index most = index{1} << 60; // sums of bounds and ghosts stay below 2^63
            DNDS_CHECK(extent >= 0 && cells.lower[toSize(d)] > -most && cells.upper[toSize(d)] < most, ArgumentError,
                       "dimension {} of index space '{}' is [{}, {}): give extents from 0 to 2^60", d, space.name,
                       cells.lower[toSize(d)], cells.upper[toSize(d)]);
            DNDS_CHECK(extent == 0 || cellsSoFar <= most / extent, ArgumentError,
                       "index space '{}' has more than 2^60 cells", space.name);
            cellsSoFar *= std::max<index>(1, extent);
        }
    }
}

// O(blocks). The limit on ranks bounds `rankStarts_`, which has an entry for each, with or without blocks.
void BlockGrid::checkBlocks() const {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const Block &block = blocks_[b];
        DNDS_CHECK(block.space >= 0 && toSize(block.space) < spaces_.size(), ArgumentError,
                   "block {} is in index space {}, of which there are {}", b, block.space, spaces_.size());
        const IndexSpace &space = spaces_[toSize(block.space)];
        DNDS_CHECK(block.cells.dims == dims() && !block.cells.empty() && space.cells.contains(block.cells),
                   ArgumentError, "block {}, {}, is not in index space '{}', {}, or has no cells", b,
                   toString(block.cells), space.name, toString(space.cells));
        constexpr int maxRanks = 1 << 24; // each takes a few bytes
        DNDS_CHECK(block.rank >= 0 && block.rank < maxRanks, ArgumentError,
                   "block {} is on rank {}: ranks are numbered from 0 to {}", b, block.rank, maxRanks - 1);
    }
}

// A block always finds itself; any other block found in its box overlaps it.
// O(blocks x blocks nearby): bins replace the comparison of all pairs.
void BlockGrid::checkOverlaps() const {
    for (std::size_t b = 0; b < blocks_.size(); ++b)
        visitBlocks(blocks_[b].space, blocks_[b].cells, [&](int other, const Box &common) {
            DNDS_CHECK(toSize(other) == b, ArgumentError,
                       "blocks {} and {} both have the cells {}: a cell has one block", b, other, toString(common));
        });
}

// Sorts blocks by rank, by counting: O(blocks + ranks). Stable, so that the blocks of a rank ascend.
void BlockGrid::addRanks() {
    int most = -1;
    for (const Block &block : blocks_) {
        most = std::max(most, block.rank);
        totalCells_ += block.cells.size();
    }
    rankStarts_.assign(toSize(most) + 2, 0);
    for (const Block &block : blocks_)
        ++rankStarts_[toSize(block.rank) + 1];
    for (std::size_t rank = 1; rank < rankStarts_.size(); ++rank)
        rankStarts_[rank] += rankStarts_[rank - 1];
    ofRank_.resize(blocks_.size());
    std::vector<std::size_t> next = rankStarts_;
    for (std::size_t b = 0; b < blocks_.size(); ++b)
        ofRank_[next[toSize(blocks_[b].rank)]++] = static_cast<int>(b);
}

index BlockGrid::cellsOfBlocks(int space) const { return bins_[toSize(space)].cells; }

bool BlockGrid::hasBlocksOf(const BlockGrid &other) const noexcept {
    return std::ranges::equal(blocks_, other.blocks_,
                              [](const Block &a, const Block &b) { return a.cells == b.cells && a.space == b.space; });
}

// Leaves out names, periods and connections: a checkpoint of cells remains readable if the program changes only these.
std::uint64_t BlockGrid::cellsSignature() const {
    ContentHash hash;
    hash.addText("cells of index spaces");
    for (const IndexSpace &space : spaces_)
        for (int d = 0; d < space.cells.dims; ++d) {
            hash.add(static_cast<std::uint64_t>(space.cells.lower[toSize(d)]));
            hash.add(static_cast<std::uint64_t>(space.cells.upper[toSize(d)]));
        }
    hash.add(static_cast<std::uint64_t>(dims()));
    return hash.value();
}

// Hashes everything that two ranks must agree on, ranks of blocks included. Patterns are shared by this number: grids
// of equal signatures are taken for equal.
// O(blocks) once; a comparison of grids between ranks is one reduction afterwards.
void BlockGrid::sign() {
    ContentHash hash;
    const auto addVector = [&](const IndexVector &vector) { hash.addBytes(vector.data(), sizeof vector); };
    hash.add(static_cast<std::uint64_t>(dims())); // a plane of 6 x 5 cells is no box of 6 x 5 x 1
    for (const IndexSpace &space : spaces_) {
        hash.addText(space.name);
        addVector(space.cells.lower);
        addVector(space.cells.upper);
        for (const bool periodic : space.periodic)
            hash.add(periodic ? 1 : 0);
    }
    for (const Block &block : blocks_) {
        addVector(block.cells.lower);
        addVector(block.cells.upper);
        hash.add(static_cast<std::uint64_t>(block.rank));
        hash.add(static_cast<std::uint64_t>(block.space));
    }
    for (const Connection &connection : connections_) {
        for (const IndexVector &vector : {connection.begin, connection.end, connection.otherBegin})
            addVector(vector);
        for (const int number : {connection.space, connection.other})
            hash.add(static_cast<std::uint64_t>(number));
        for (const int axis : connection.transform)
            hash.add(static_cast<std::uint64_t>(axis));
    }
    signature_ = hash.value();
}

const Block &BlockGrid::block(int number) const {
    DNDS_CHECK(number >= 0 && toSize(number) < blocks_.size(), IndexError, "there is no block {}, but {}", number,
               blocks_.size());
    return blocks_[toSize(number)];
}

std::span<const int> BlockGrid::blocksOfRank(int rank) const {
    if (rank < 0 || rank >= ranks())
        return {};
    const std::size_t start = rankStarts_[toSize(rank)];
    return std::span(ofRank_).subspan(start, rankStarts_[toSize(rank) + 1] - start);
}

// At most one block has the cell, as blocks do not overlap.
int BlockGrid::blockOf(const IndexVector &cell, int space) const {
    Box one(dims(), cell, cell);
    for (int d = 0; d < dims(); ++d)
        ++one.upper[toSize(d)];
    int owner = -1;
    visitBlocks(space, one, [&](int block, const Box &) { owner = block; });
    return owner;
}

// O(bins that the box touches + blocks listed in them). Bins are visited in C order and lists ascend: the order depends
// on the grid alone, and is equal on all ranks.
void BlockGrid::visitBlocks(int space, const Box &box, const std::function<void(int, const Box &)> &visit) const {
    DNDS_CHECK(space >= 0 && toSize(space) < spaces_.size(), IndexError, "there is no index space {}, but {}", space,
               spaces_.size());
    const Bins &bins = bins_[toSize(space)];
    if (bins.blocks.empty() || box.empty())
        return;
    const Box touched = bins.binsOf(box);
    forEachCell(touched, [&](const IndexVector &bin) {
        const std::size_t at = bins.numberOf(bin);
        for (std::size_t k = bins.starts[at]; k < bins.starts[at + 1]; ++k) {
            const Box common = blocks_[toSize(bins.blocks[k])].cells.intersect(box);
            if (common.empty())
                continue;
            // A block may be in several of the bins that are searched; it is visited in the first one that it touches.
            // That bin follows from `common` alone: no set of visited blocks is needed.
            const Box first = bins.binsOf(common);
            if (first.lower == bin)
                visit(bins.blocks[k], common);
        }
    });
}

std::string BlockGrid::describe() const {
    index most = 0;
    int empty = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
        index cells = 0;
        for (const int block : blocksOfRank(rank))
            cells += blocks_[toSize(block)].cells.size();
        most = std::max(most, cells);
        empty += cells == 0 ? 1 : 0;
    }
    return fmt::format("{} cells in {} block{} on {} rank{}, at most {} on one; {}", totalCells_, blocks_.size(),
                       blocks_.size() == 1 ? "" : "s", ranks() - empty, ranks() - empty == 1 ? "" : "s", most, how_);
}

} // namespace DNDS
