#include "DNDS/Blocks/BlockGrid.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/World.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <algorithm>
#include <set>

namespace DNDS::test {
namespace {

IndexSpace plane() { return {"plane", Box({2, -1}, {21, 14}), {false, true}}; }

/// Fails the test unless the blocks have each cell once.
void expectCovered(const BlockGrid &grid) {
    std::set<IndexVector> cells;
    index count = 0;
    for (const Block &block : grid.blocks()) {
        forEachCell(block.cells, [&](const IndexVector &cell) { cells.insert(cell); });
        count += block.cells.size();
    }
    EXPECT_EQ(count, grid.spaces().front().cells.size());
    EXPECT_EQ(static_cast<index>(cells.size()), count);
    EXPECT_EQ(grid.totalCells(), count);
}

TEST(BlockGrid, CutsOnePartARank) {
    const auto grid = BlockGrid::cut(world(), plane());
    expectCovered(*grid);
    EXPECT_EQ(static_cast<int>(grid->blocks().size()), world().size());
    for (int rank = 0; rank < world().size(); ++rank) {
        ASSERT_EQ(grid->blocksOfRank(rank).size(), 1U);
        EXPECT_EQ(grid->block(grid->blocksOfRank(rank).front()).rank, rank);
    }
    EXPECT_TRUE(grid->blocksOfRank(world().size()).empty());
    expectContains(grid->describe(), "the best cut");
}

TEST(BlockGrid, CutsForSomeRanksOnly) {
    const auto grid = BlockGrid::cut(world(), plane(), {.ranks = 1});
    expectCovered(*grid);
    EXPECT_EQ(grid->ranks(), 1);
    messageOnAll<ArgumentError>([] { (void)BlockGrid::cut(world(), plane(), {.ranks = world().size() + 1}); });
    messageOnAll<ArgumentError>([] { (void)BlockGrid::cut(world(), plane(), {.parts = {world().size(), 2}}); });
    const std::vector<index> wrong{4, world().rank() == 0 ? -1 : 4};
    messageOnAll<ArgumentError>([&] { (void)BlockGrid::cut(world(), wrong, {}, {}); });
}

TEST(BlockGrid, MakesBlocksOfAShapeInShares) {
    const auto grid = BlockGrid::blocksOf(world(), plane(), {4, 5});
    expectCovered(*grid);
    EXPECT_EQ(grid->blocks().size(), 15U);
    index least = grid->totalCells();
    index most = 0;
    for (int rank = 0; rank < world().size(); ++rank) {
        index cells = 0;
        for (const int block : grid->blocksOfRank(rank))
            cells += grid->block(block).cells.size();
        least = std::min(least, cells);
        most = std::max(most, cells);
    }
    EXPECT_LE(most - least, 40) << "two blocks";
    messageOnAll<ArgumentError>([] { (void)BlockGrid::blocksOf(world(), plane(), {4, 0}); });
    messageOnAll<ArgumentError>([] { (void)BlockGrid::blocksOf(world(), plane(), {4}); });
}

TEST(BlockGrid, RanksOfANodeHaveNeighbouringParts) {
    if (world().size() < 4)
        GTEST_SKIP() << "needs 4 ranks";
    const auto grid = BlockGrid::cut(world(), plane(), {.ranks = 4, .parts = {2, 2}});
    const auto context = CommunicatorContext::of(world());
    const int rank = world().rank();
    const int other = rank ^ 1;
    if (rank < 4 && context->node().sameNode(other) && !context->node().sameNode(rank ^ 2)) { // two nodes of two ranks
        const Box mine = grid->block(grid->blocksOfRank(rank).front()).cells;
        const Box others = grid->block(grid->blocksOfRank(other).front()).cells;
        index touching = 0;
        for (const GhostWidths &widths : {GhostWidths{1, 0}, GhostWidths{0, 1}})
            touching += mine.grow(widths).intersects(others) ? 1 : 0;
        EXPECT_EQ(touching, 1) << "a face, not a corner";
    }
}

TEST(BlockGrid, HasNoBlocksWithoutCells) {
    const auto grid = BlockGrid::cut(world(), {"nothing", Box({0, 0}, {0, 5}), {true, true}});
    EXPECT_TRUE(grid->blocks().empty());
    EXPECT_TRUE(BlockGrid::blocksOf(world(), grid->spaces()[0], {2, 2})->blocks().empty());
}

TEST(BlockGrid, FindsBlocksByCellAndBox) {
    for (const auto &grid : {BlockGrid::blocksOf(world(), plane(), {4, 5}),
                             BlockGrid::blocksOf(world(), plane(), {1, 9}), BlockGrid::cut(world(), plane())}) {
        forEachCell(plane().cells.grow(GhostWidths{1, 1}), [&](const IndexVector &cell) {
            int expected = -1;
            for (std::size_t b = 0; b < grid->blocks().size(); ++b)
                if (grid->blocks()[b].cells.contains(cell))
                    expected = static_cast<int>(b);
            EXPECT_EQ(grid->blockOf(cell), expected);
        });
        const Box box({3, 0}, {12, 8});
        index common = 0;
        std::set<int> visited;
        grid->visitBlocks(0, box, [&](int block, const Box &cells) {
            EXPECT_TRUE(visited.insert(block).second) << "each block once";
            EXPECT_EQ(cells, grid->block(block).cells.intersect(box));
            common += cells.size();
        });
        EXPECT_EQ(common, box.size());
    }
}

TEST(BlockGrid, BlocksOfAllSizesFarApartAreFound) {
    const IndexSpace space{"sparse", Box({0, 0}, {1000000000, 1000000000}), {}};
    std::vector<Block> blocks{{Box({0, 0}, {2, 2}), 0, 0},
                              {Box({999999990, 999999990}, {1000000000, 999999999}), 0, 0}};
    for (index k = 0; k < 50; ++k)
        blocks.push_back({Box({1000 * k + 10, 7 * k}, {1000 * k + 10 + k + 1, 7 * k + 3}), 0, 0});
    const auto grid = BlockGrid::make({space}, blocks);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        EXPECT_EQ(grid->blockOf(blocks[b].cells.lower), static_cast<int>(b));
        EXPECT_TRUE(grid->ghostRegions(static_cast<int>(b), {1, 1}).empty());
    }
}

TEST(BlockGrid, GhostRegionsDoNotOverlapAndLieInTheirSources) {
    const auto grid = BlockGrid::blocksOf(world(), plane(), {4, 5});
    for (int b = 0; b < static_cast<int>(grid->blocks().size()); ++b) {
        const GhostWidths widths = GhostWidths::of({2, 3}, {1, 20}); // wider than the period
        const Box extent = grid->block(b).cells.grow(widths);
        std::set<IndexVector> seen;
        for (const GhostRegion &region : grid->ghostRegions(b, widths)) {
            EXPECT_TRUE(extent.contains(region.ghosts));
            EXPECT_FALSE(region.ghosts.intersects(grid->block(b).cells));
            EXPECT_TRUE(grid->block(region.source).cells.contains(region.toSource(region.ghosts)));
            forEachCell(region.ghosts, [&](const IndexVector &cell) { EXPECT_TRUE(seen.insert(cell).second); });
        }
        Box inside = extent; // of the walls; the other direction is periodic
        inside.lower[0] = std::max(inside.lower[0], plane().cells.lower[0]);
        inside.upper[0] = std::min(inside.upper[0], plane().cells.upper[0]);
        EXPECT_EQ(static_cast<index>(seen.size()), inside.size() - grid->block(b).cells.size());
    }
    EXPECT_THROW((void)grid->ghostRegions(0, {1, -1}), ArgumentError);
    EXPECT_THROW((void)grid->ghostRegions(0, {1, 1, 1}), ArgumentError);
    EXPECT_THROW((void)grid->ghostRegions(99, {1, 1}), IndexError);
    EXPECT_THROW((void)grid->sourcesOf(99, grid->block(0).cells), IndexError);
}

TEST(BlockGrid, RefusesBlocksThatCannotBe) {
    const auto refused = [](const Block &block) {
        return messageOf<ArgumentError>([&] {
            (void)BlockGrid::make({plane()}, {{Box({4, 4}, {8, 8}), 0, 0}, block});
        });
    };
    expectContains(refused({Box({7, 7}, {9, 9}), 0, 0}), "[7, 8) x [7, 8)");
    expectContains(refused({Box({0, 7}, {4, 9}), 0, 0}), "is not in index space 'plane'");
    expectContains(refused({Box({9, 9}, {9, 10}), 0, 0}), "has no cells");
    expectContains(refused({Box({9, 9, 9}, {10, 10, 10}), 0, 0}), "is not in");
    expectContains(refused({Box({9, 9}, {10, 10}), -1, 0}), "rank -1");
    expectContains(refused({Box({9, 9}, {10, 10}), 0, 1}), "index space 1");
    messageOf<ArgumentError>([] { (void)BlockGrid::make({}, {}); });
    messageOf<ArgumentError>([] { (void)BlockGrid::make({{"bad", Box({0, 3}, {4, 2}), {}}}, {}); });
    messageOf<ArgumentError>([] { (void)BlockGrid::make({plane(), {"line", Box({0}, {4}), {}}}, {}); });
    const index huge = index{1} << 40;
    messageOf<ArgumentError>([&] { (void)BlockGrid::make({{"huge", Box({0, 0}, {huge, huge}), {}}}, {}); });
}

TEST(BlockGrid, SignaturesTellGridsApart) {
    const auto grid = BlockGrid::make({plane()}, {{Box({4, 4}, {8, 8}), 0, 0}});
    EXPECT_EQ(grid->signature(), BlockGrid::make({plane()}, {{Box({4, 4}, {8, 8}), 0, 0}})->signature());
    EXPECT_NE(grid->signature(), BlockGrid::make({plane()}, {{Box({4, 4}, {8, 9}), 0, 0}})->signature());
    EXPECT_NE(grid->signature(), BlockGrid::make({plane()}, {{Box({4, 4}, {8, 8}), 1, 0}})->signature());
    IndexSpace open = plane();
    open.periodic = {};
    EXPECT_NE(grid->signature(), BlockGrid::make({open}, {{Box({4, 4}, {8, 8}), 0, 0}})->signature());
}

TEST(BlockGrid, WhatWouldTakeForEverIsRefused) {
    const auto ring = BlockGrid::make({{"ring", Box({0}, {1}), {true}}}, {{Box({0}, {1}), 0, 0}});
    EXPECT_EQ(ring->ghostRegions(0, GhostWidths::uniform(1, 900)).size(), 1800U);
    EXPECT_THROW((void)ring->ghostRegions(0, GhostWidths::uniform(1, 30000)), ArgumentError);
    const auto hole = BlockGrid::make({{"hole", Box({0, 0}, {1, 2}), {true, true}}}, {{Box({0, 0}, {1, 1}), 0, 0}});
    EXPECT_THROW((void)hole->ghostRegions(0, GhostWidths::uniform(2, 40)), ArgumentError);
    EXPECT_THROW(
        (void)BlockGrid::make({{"a", Box({0}, {4}), {}}}, {{Box({0}, {4}), std::numeric_limits<int>::max(), 0}}),
        ArgumentError);
    const index far = index{1} << 40;
    const auto thin = BlockGrid::make({{"thin", Box({0, 0, 0}, {1, 1, far}), {}}},
                                      {{Box({0, 0, 0}, {1, 1, 1}), 0, 0}, {Box({0, 0, far - 1}, {1, 1, far}), 0, 0}});
    EXPECT_EQ(thin->blockOf({0, 0, far - 1}), 1);
    Connection odd{0, {4, 0}, {4, 4}, 1, {0, 0}, {1, std::numeric_limits<int>::min()}};
    EXPECT_THROW((void)BlockGrid::make({{"a", Box({0, 0}, {4, 4}), {}}, {"b", Box({0, 0}, {4, 4}), {}}},
                                       {{Box({0, 0}, {4, 4}), 0, 0}}, {odd}),
                 ArgumentError);
}

} // namespace
} // namespace DNDS::test
