#include "DNDS/Blocks/BlockGrid.hpp"

#include "DNDS/Blocks/CutBox.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/World.hpp"

#include <gtest/gtest.h>

namespace DNDS::test {
namespace {

std::shared_ptr<const BlockGrid> torus() {
    return BlockGrid::blocksOf(world(), {"torus", Box({0, 0}, {12, 10}), {true, true}}, {4, 5});
}

TEST(BlockPattern, BlocksFollowEachOtherInMemory) {
    const auto grid = torus();
    for (const rowsize outside : {0, 3}) {
        const auto pattern = BlockPattern::make(world(), grid, GhostWidths::of({1, 2}, {0, 1}), outside);
        index next = 0;
        std::size_t k = 0;
        for (const BlockMemory &block : pattern->blocks()) {
            EXPECT_EQ(block.block, grid->blocksOfRank(world().rank())[k++]);
            EXPECT_EQ(block.cells, grid->block(block.block).cells);
            EXPECT_EQ(block.extent, block.cells.grow(pattern->ghosts()));
            EXPECT_EQ(block.firstRow, next);
            EXPECT_EQ(block.rows, 5 * 8 * (outside == 0 ? 1 : outside));
            next += block.rows;
        }
        EXPECT_EQ(pattern->rows(), next);
        EXPECT_EQ(pattern->exchange()->fatherSize(), next) << "cells and ghosts are rows of one array";
        EXPECT_EQ(pattern->exchange()->sonSize(), next);
    }
}

TEST(BlockPattern, GivesCellsAndReceivesGhosts) {
    const auto grid = torus();
    const auto pattern = BlockPattern::make(world(), grid, {1, 2});
    std::vector<bool> isCell(toSize(pattern->rows()));
    for (const BlockMemory &block : pattern->blocks()) {
        index row = block.firstRow;
        forEachCell(block.extent, [&](const IndexVector &cell) { isCell[toSize(row++)] = block.cells.contains(cell); });
    }
    index received = 0;
    for (const RowList &rows : pattern->exchange()->owners().lists)
        rows.forEach([&](index row) {
            EXPECT_FALSE(isCell[toSize(row)]);
            ++received;
        });
    for (const RowList &rows : pattern->exchange()->readers().lists)
        rows.forEach([&](index row) { EXPECT_TRUE(isCell[toSize(row)]); });
    EXPECT_EQ(received, std::ranges::count(isCell, false)) << "all ghosts of a torus stand for cells";
}

TEST(BlockPattern, IsSharedByAllThatAskForTheSame) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto cut = [&] { return BlockGrid::cut(comm, std::vector<index>{12, 10}, {}, {}); };
    auto first = BlockPattern::make(comm, cut(), {1, 1});
    EXPECT_EQ(BlockPattern::make(comm, cut(), {1, 1}), first) << "equal grids, made twice";
    EXPECT_NE(BlockPattern::make(comm, cut(), {2, 1}), first);
    const auto flat = BlockGrid::cut(comm, std::vector<index>{12, 10, 1}, {}, {});
    EXPECT_NE(BlockPattern::make(comm, flat, {1, 1}), first) << "three dimensions";
    EXPECT_NE(BlockPattern::make(comm, cut(), {1, 1}, 3), first);
    const auto star = BlockPattern::make(comm, cut(), GhostWidths{1, 1}.star());
    EXPECT_NE(star, first);
    EXPECT_EQ(star, BlockPattern::make(comm, cut(), GhostWidths{1, 1}.star()));
    const std::weak_ptr<const BlockPattern> gone = first;
    auto kept = comm.rank() == 0 ? first : nullptr; // one rank has it longer than others
    first.reset();
    EXPECT_EQ(gone.expired(), comm.rank() != 0);
    const auto second = BlockPattern::make(comm, cut(), {1, 1});
    EXPECT_EQ(BlockPattern::make(comm, cut(), {1, 1}), second);
    EXPECT_TRUE(comm.size() == 1 || second != kept);
}

TEST(BlockPattern, AStarHasFewerNeighbours) {
    const auto grid = BlockGrid::blocksOf(world(), {"torus", Box({0, 0, 0}, {6, 6, 6}), {true, true, true}}, {2, 2, 2});
    const GhostWidths all{1, 1, 1};
    for (int b = 0; b < static_cast<int>(grid->blocks().size()); ++b) {
        EXPECT_EQ(grid->ghostRegions(b, all).size(), 26U);
        EXPECT_EQ(grid->ghostRegions(b, all.star()).size(), 6U);
    }
    const Box cube({0, 0, 0}, {4, 4, 4});
    std::vector<Block> octants;
    forEachCell(Box({0, 0, 0}, {2, 2, 2}), [&](const IndexVector &part) {
        const int rank = static_cast<int>(octants.size()) % world().size();
        octants.push_back({partOf(cube, {2, 2, 2, 1}, part), rank, 0});
    });
    const auto octant = BlockGrid::make({{"cube", cube, {}}}, octants);
    const auto received = [&](const GhostWidths &ghosts) {
        const auto pattern = BlockPattern::make(world(), octant, ghosts);
        index rows = 0;
        for (const RowList &list : pattern->exchange()->owners().lists)
            rows += list.count();
        return std::pair(pattern->exchange()->owners().size(), world().allReduce(rows, MPI_SUM));
    };
    EXPECT_EQ(received(all).second, 8 * 19);
    EXPECT_EQ(received(all.star()).second, 8 * 12);
    if (world().size() == 8) {
        EXPECT_EQ(received(all).first, 7U);
        EXPECT_EQ(received(all.star()).first, 3U);
    }
}

TEST(BlockPattern, WithoutGhostsNothingMoves) {
    const auto pattern = BlockPattern::make(world(), torus(), {});
    EXPECT_EQ(pattern->exchange()->owners().size(), 0U);
    EXPECT_EQ(pattern->exchange()->readers().size(), 0U);
}

TEST(BlockPattern, ErrorsAreThrownOnAllRanks) {
    const auto grid = torus();
    messageOnAll<ArgumentError>([&] { (void)BlockPattern::make(world(), grid, {1, 1}, -1); });
    messageOnAll<ArgumentError>([&] {
        (void)BlockPattern::make(world(), world().rank() == 0 ? nullptr : grid, {1, 1});
    });
    if (world().size() > 1)
        expectContains(messageOnAll<StateError>([&] {
                           const GhostWidths ghosts{1, 1};
                           (void)BlockPattern::make(world(), grid, world().rank() == 1 ? ghosts.star() : ghosts);
                       }),
                       "ghost widths or shapes");
    const auto far = BlockGrid::make(grid->spaces(), {{grid->spaces()[0].cells, world().size(), 0}});
    expectContains(messageOnAll<ArgumentError>([&] { (void)BlockPattern::make(world(), far, {1, 1}); }), "ranks");
    const IndexSpace huge{"huge", Box({0, 0}, {index{1} << 28, index{1} << 28}), {}};
    const auto vast = BlockGrid::make({huge}, {{huge.cells, 0, 0}});
    expectContains(messageOnAll<ArgumentError>([&] {
                       (void)BlockPattern::make(world(), vast, {1, 1}, 1 << 20);
                   }),
                   "more than 2^60 rows");
}

} // namespace
} // namespace DNDS::test
