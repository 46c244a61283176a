#include "DNDS/Blocks/Box.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace DNDS::test {
namespace {

static_assert(std::is_trivially_copyable_v<Box>);
static_assert(std::is_trivially_copyable_v<GhostWidths>);

TEST(Box, CountsItsCells) {
    EXPECT_EQ(Box({2, -1}, {5, 3}).size(), 12);
    EXPECT_EQ(Box({2, 3}, {2, 9}).size(), 0);
    EXPECT_EQ(Box({5}, {2}).size(), 0);
    EXPECT_EQ(Box().size(), 0);
    EXPECT_TRUE(Box().empty());
}

TEST(Box, IntersectionsGrowthAndShifts) {
    const Box a({0, 0}, {4, 6});
    const Box b({3, 2}, {9, 5});
    EXPECT_EQ(a.intersect(b), Box({3, 2}, {4, 5}));
    EXPECT_TRUE(a.intersects(b));
    EXPECT_FALSE(a.intersects(b.shift({1, 0})));
    EXPECT_EQ(a.grow(GhostWidths::of({1, 0}, {2, 3})), Box({-1, 0}, {6, 9}));
    EXPECT_TRUE(a.contains(Box({1, 1}, {4, 6})));
    EXPECT_FALSE(a.contains(Box({1, 1}, {5, 6})));
    EXPECT_TRUE(a.contains(IndexVector{3, 5}));
    EXPECT_FALSE(a.contains(IndexVector{3, 6}));
}

TEST(Box, DifferencesCoverEachCellOnce) {
    const Box box({0, 0, 0}, {4, 5, 6});
    for (const Box &hole : {Box({1, 1, 1}, {2, 3, 4}), Box({-1, -1, -1}, {2, 9, 4}), Box({4, 0, 0}, {5, 5, 6}), box}) {
        std::vector<Box> parts;
        subtractBox(box, hole, parts);
        forEachCell(box, [&](const IndexVector &cell) {
            const auto count = std::ranges::count_if(parts, [&](const Box &part) { return part.contains(cell); });
            EXPECT_EQ(count, hole.contains(cell) ? 0 : 1);
        });
    }
}

TEST(Box, VisitsCellsInTheOrderOfC) {
    std::vector<IndexVector> cells;
    forEachCell(Box({1, 2}, {3, 4}), [&](const IndexVector &cell) { cells.push_back(cell); });
    EXPECT_EQ(cells, (std::vector<IndexVector>{{1, 2}, {1, 3}, {2, 2}, {2, 3}}));
}

TEST(Box, RefusesOtherDimensionsThanOneToFour) {
    EXPECT_THROW(Box({1, 2, 3, 4, 5}, {2, 3, 4, 5, 6}), ArgumentError);
    EXPECT_THROW(Box({1, 2}, {2}), ArgumentError);
    EXPECT_THROW(Box::ofShape(std::vector<index>{}), ArgumentError);
    EXPECT_THROW(GhostWidths({1, 1, 1, 1, 1}), ArgumentError);
}

TEST(Box, AStarOfGhostsHasNoCorners) {
    const Box cells({2, 5, 1}, {4, 8, 2});
    const GhostWidths widths = GhostWidths::of({1, 0, 2}, {0, 3, 1});
    EXPECT_EQ(withGhosts(cells, widths), std::vector<Box>{cells.grow(widths)});
    const std::vector<Box> star = withGhosts(cells, widths.star());
    forEachCell(cells.grow({4, 4, 4}), [&](const IndexVector &cell) {
        int beyond = 0;
        for (std::size_t d = 0; d < 3; ++d)
            beyond += cell[d] < cells.lower[d] || cell[d] >= cells.upper[d] ? 1 : 0;
        const auto boxes = std::ranges::count_if(star, [&](const Box &box) { return box.contains(cell); });
        EXPECT_EQ(boxes, cells.grow(widths).contains(cell) && beyond < 2 ? 1 : 0);
    });
}

} // namespace
} // namespace DNDS::test
