#include "DNDS/Blocks/CutBox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace DNDS::test {
namespace {

Box shaped(std::initializer_list<index> shape) { return Box::ofShape(std::span(shape.begin(), shape.size())); }

IndexVector parts(const Box &cells, int ranks, const CutOptions &options = {}) {
    return chooseParts(cells, {}, ranks, options).parts;
}

TEST(CutBox, CutsTheSlowestDimensionFirst) {
    EXPECT_EQ(parts(shaped({128, 128, 128}), 2), (IndexVector{2, 1, 1, 1}));
    EXPECT_EQ(parts(shaped({1000, 800}), 4), (IndexVector{4, 1, 1, 1}));
    EXPECT_EQ(parts(shaped({128, 128, 128}), 8), (IndexVector{4, 2, 1, 1})) << "the last one moves a line a cell";
}

TEST(CutBox, CutsWhatIsLong) {
    EXPECT_EQ(parts(shaped({4, 100000}), 4), (IndexVector{1, 4, 1, 1}));
    EXPECT_EQ(parts(shaped({1, 64, 64}), 4)[0], 1);
}

TEST(CutBox, TakesThePartsThatAreGiven) {
    EXPECT_EQ(parts(shaped({64, 64, 64}), 4, {.parts = {0, 1, 4}}), (IndexVector{1, 1, 4, 1}));
    EXPECT_EQ(parts(shaped({64, 64, 64}), 6, {.parts = {-1, 3, 0}}), (IndexVector{2, 3, 1, 1}));
    EXPECT_EQ(parts(shaped({64, 64}), 4, {.parts = {0, 0}}), (IndexVector{1, 1, 1, 1}));
    EXPECT_THROW(parts(shaped({64, 64}), 4, {.parts = {5, 1}}), ArgumentError);
    EXPECT_THROW(parts(shaped({64, 3}), 4, {.parts = {1, 4}}), ArgumentError);
    EXPECT_THROW(parts(shaped({64, 64}), 4, {.parts = {2}}), ArgumentError);
    EXPECT_THROW(parts(shaped({64, 64}), 4, {.parts = {-2, 1}}), ArgumentError);
}

TEST(CutBox, LeavesRanksWithoutCellsWhereThereAreMoreThanCells) {
    const PartsChoice choice = chooseParts(shaped({2, 2}), {}, 7, {});
    EXPECT_EQ(choice.count(), 4);
    EXPECT_NE(choice.why.find("3 of 7 ranks have no part"), std::string::npos) << choice.why;
    EXPECT_EQ(chooseParts(shaped({0, 3}), {}, 3, {}).parts[0], 1);
}

TEST(CutBox, PartsCoverEachCellOnceAndDifferByOneCell) {
    const Box cells({3, -2, 0}, {10, 9, 4});
    const IndexVector three{3, 4, 1, 1};
    index covered = 0;
    forEachCell(Box(3, {}, three), [&](const IndexVector &part) {
        const Box mine = partOf(cells, three, part);
        covered += mine.size();
        EXPECT_TRUE(cells.contains(mine));
        EXPECT_TRUE(mine.extent(0) == 2 || mine.extent(0) == 3);
        EXPECT_TRUE(mine.extent(1) == 2 || mine.extent(1) == 3);
    });
    EXPECT_EQ(covered, cells.size());
}

TEST(CutBox, NeighboursOnTheCurveTouch) {
    for (const Box &shape : {shaped({8, 8}), shaped({4, 4, 4}), shaped({4, 4, 4, 4}), shaped({16})}) {
        const std::vector<index> order = curveOrder(shape);
        std::vector<IndexVector> cells;
        forEachCell(shape, [&](const IndexVector &cell) { cells.push_back(cell); });
        ASSERT_EQ(order.size(), cells.size());
        for (std::size_t k = 1; k < order.size(); ++k) {
            index steps = 0;
            for (std::size_t d = 0; d < maxBlockDims; ++d)
                steps += std::abs(cells[toSize(order[k])][d] - cells[toSize(order[k - 1])][d]);
            EXPECT_EQ(steps, 1);
        }
    }
    std::vector<index> uneven = curveOrder(shaped({3, 5, 2}));
    std::ranges::sort(uneven);
    for (std::size_t k = 0; k < 30; ++k)
        EXPECT_EQ(uneven[k], static_cast<index>(k));
}

} // namespace
} // namespace DNDS::test
