#include "DNDS/Blocks/BlockView.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <type_traits>
#include <vector>

namespace DNDS::test {
namespace {

static_assert(std::is_trivially_copyable_v<BlockView<double>>);
static_assert(std::is_convertible_v<BlockView<double>, BlockView<const double>>);
static_assert(!std::is_convertible_v<BlockView<const double>, BlockView<double>>);

/// A block of 3 x 4 cells at (10, 20), with one ghost below, two above in the first dimension, three in the second.
struct Fixture {
    Box cells{{10, 20}, {13, 24}};
    Box extent = cells.grow(GhostWidths::of({1, 3}, {2, 3})); // 6 x 10
    std::vector<int> memory = std::vector<int>(toSize(extent.size()) * 2);

    Fixture() { std::iota(memory.begin(), memory.end(), 0); }
    BlockView<int> inside() { return {memory.data(), cells, extent, 2, 2, 1}; }
    BlockView<int> outside() { return {memory.data(), cells, extent, 1, 2, extent.size()}; }
};

TEST(BlockView, IndicesBeginAtTheFirstCellAndGhostsAreAround) {
    Fixture block;
    const BlockView<int> v = block.inside();
    EXPECT_EQ(v(0, 0), (1 * 10 + 3) * 2);
    EXPECT_EQ(&v(-1, -3), block.memory.data());
    EXPECT_EQ(&v(4, 6, 1), &block.memory.back());
    EXPECT_EQ(v(2, 1, 1) - v(2, 1), 1) << "components are inside";
    EXPECT_EQ(v(2, 1) - v(2, 0), 2);
    EXPECT_EQ(block.outside()(2, 1, 1) - block.outside()(2, 1, 0), 60) << "components are outside";
    EXPECT_EQ(block.outside()(2, 1) - block.outside()(2, 0), 1);
    EXPECT_EQ(v.extent(0), 3);
    EXPECT_EQ(v.extent(1), 4);
    EXPECT_EQ(v.size(), 12);
    EXPECT_EQ(v.ghostsLow(0), 1);
    EXPECT_EQ(v.ghostsHigh(0), 2);
    EXPECT_EQ(v.stride(0), 20);
    EXPECT_EQ(v.stride(2), 1);
    EXPECT_EQ(v.components(), 2);
}

TEST(BlockView, KnowsTheIndexSpace) {
    Fixture block;
    const BlockView<int> v = block.inside();
    EXPECT_EQ(v.global(-1, 0), 9);
    EXPECT_EQ(v.global(2, 1), 22);
    EXPECT_EQ(v.local(22, 1), 2);
}

TEST(BlockView, TheOrderOfFortranHasTheSameCells) {
    Fixture block;
    for (const BlockView<int> &c : {block.inside(), block.outside()}) {
        const BlockView<int> f = c.fortran();
        for (index i = -1; i < 5; ++i)
            for (index j = -3; j < 7; ++j)
                for (int k = 0; k < 2; ++k)
                    EXPECT_EQ(&f(j, i, k), &c(i, j, k));
        EXPECT_EQ(f.extent(0), c.extent(1));
        EXPECT_EQ(f.global(2, 0), c.global(2, 1));
        EXPECT_EQ(f.ghostsHigh(1), c.ghostsHigh(0));
        EXPECT_EQ(&f.fortran()(2, 3), &c(2, 3));
    }
}

TEST(BlockView, NumbersCellsForKernels) {
    Fixture block;
    const BlockView<const int> v = block.inside();
    index n = 0;
    for (index i = 0; i < v.extent(0); ++i)
        for (index j = 0; j < v.extent(1); ++j, ++n) {
            EXPECT_EQ(v.indexOf(n, 0), i);
            EXPECT_EQ(v.indexOf(n, 1), j);
        }
    EXPECT_EQ(n, v.size());
}

TEST(BlockView, OneToFourDimensions) {
    std::vector<double> memory(5 * 5 * 5 * 5);
    std::iota(memory.begin(), memory.end(), 0.0);
    const auto viewOf = [&](std::initializer_list<index> shape) {
        const Box cells = Box::ofShape(std::span(shape.begin(), shape.size()));
        GhostWidths widths = GhostWidths::uniform(cells.dims, 1);
        return BlockView<double>(memory.data(), cells, cells.grow(widths), 1, 1, 1);
    };
    EXPECT_EQ(viewOf({3})(-1), 0);
    EXPECT_EQ(viewOf({3})(3), 4);
    EXPECT_EQ(viewOf({3, 3})(1, 2), 2 * 5 + 3);
    EXPECT_EQ(viewOf({3, 3, 3})(1, 2, -1), 2 * 25 + 3 * 5);
    EXPECT_EQ(viewOf({3, 3, 3, 3})(3, 3, 3, 3), 624);
    EXPECT_EQ(viewOf({3, 3, 3, 3})(3, 3, 3, 3, 0), 624);
    EXPECT_EQ(BlockView<double>().size(), 0);
}

TEST(BlockView, BoundsAreCheckedInDebugBuilds) {
#if defined(DNDS_DEBUG_CHECKS)
    Fixture block;
    const BlockView<int> v = block.inside();
    EXPECT_THROW((void)v(-2, 0), IndexError);
    EXPECT_THROW((void)v(5, 0), IndexError);
    EXPECT_THROW((void)v(0, 7), IndexError);
    EXPECT_THROW((void)v(0, 0, 2), IndexError);
    EXPECT_THROW((void)v(0), IndexError);
    EXPECT_THROW((void)v(0, 0, 0, 0), IndexError);
    EXPECT_NO_THROW((void)v(4, 6, 1));
#else
    GTEST_SKIP() << "views are checked where DNDS_DEBUG_CHECKS is defined";
#endif
}

} // namespace
} // namespace DNDS::test
