// A restart continues as if nothing had happened; elements, fingerprints, recycled blocks.

#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseRows.hpp"

#include "support/World.hpp"

#include <limits>
#include <memory>

namespace DNDS::test {
namespace {

const SparseGrid circle{"circle", {{"circle", Box({0}, {64}), {true}}}, {4}, {1}};

/// A plane between walls, with old and new state.
struct Walled {
    SparseGrid grid{"walls", {{"walls", Box({0, 0}, {12, 9}), {true, false}}}, {4, 3}, {1, 1}};
    std::shared_ptr<const SparsePattern> pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
    SparseField<real> whole = make();

    SparseField<real> make() const {
        return {"u",
                pattern,
                {.stages = 2, .allocationThreshold = 0.5, .deallocationThreshold = 0.1, .deallocationCount = 1}};
    }
};

TEST(SparseRestart, OtherStagesAndWallsKeepNoBlock) {
    Walled run;
    for (int b = 0; b < run.whole.blocks(); ++b) {
        run.whole.allocate(b);
        const auto old = run.whole.view(b, 1);
        const auto now = run.whole.view(b);
        old(1, 1) = 7;
        for (const index j : {index(-1), now.extent(1)}) // at a wall no exchange writes these ghosts
            if (now.global(j, 1) < 0 || now.global(j, 1) >= 9)
                now(2, j) = 5;
        if (run.whole.block(b).block % 3 == 1)
            now(1, 1) = 0.3;
    }
    SparseField<real> restarted = run.make();
    setBlocks(restarted, sparseRows(run.whole));
    for (int k = 0; k < 3; ++k) {
        run.whole.exchangeGhosts();
        restarted.exchangeGhosts();
        for (int b = 0; b < run.whole.blocks(); ++b) {
            EXPECT_EQ(run.whole.isAllocated(b), run.whole.block(b).block % 3 == 1);
            EXPECT_EQ(restarted.isAllocated(b), run.whole.isAllocated(b)) << "block " << run.whole.block(b).block;
            EXPECT_EQ(restarted.emptyExchanges(b), run.whole.emptyExchanges(b));
        }
    }
}

TEST(SparseRestart, GhostsThatCameKeepABlock) {
    const auto pattern = SparsePattern::make(world(), circle.on(world()), circle.ghosts);
    SparseField<real> u("u", pattern,
                        {.allocationThreshold = 0.5, .deallocationThreshold = 0.1, .deallocationCount = 1});
    if (const int b = pattern->localOf(3); b >= 0) {
        u.allocate(b);
        u.view(b)(3) = 1;
    }
    for (int k = 0; k < 4; ++k)
        u.exchangeGhosts();
    if (const int b = pattern->localOf(4); b >= 0) {
        EXPECT_TRUE(u.isAllocated(b));
    }
}

TEST(SparseElements, IntegersBeyondDoubles) {
    const auto isAbove = [](auto background, auto value, real threshold) {
        const SparseElementsOf<decltype(background)> elements(background);
        return elements.firstAbove(reinterpret_cast<const std::byte *>(&value), 1, threshold) == 0;
    };
    constexpr std::int64_t large = std::int64_t{1} << 53;
    EXPECT_TRUE(isAbove(large, large + 1, 0.5));
    EXPECT_FALSE(isAbove(large, large + 1, 1));
    EXPECT_TRUE(isAbove(large + 1, large - 1, 1.5));
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(isAbove(least, most, 1e19));
    EXPECT_FALSE(isAbove(least, most, 1e20));
    EXPECT_TRUE(isAbove(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), 1e19));
    EXPECT_FALSE(isAbove(std::int8_t{-100}, std::int8_t{100}, 200));
    EXPECT_TRUE(isAbove(std::int8_t{-100}, std::int8_t{100}, 199.5));
}

TEST(SparseRestart, FingerprintsKnowPeriods) {
    const auto of = [](bool periodic) {
        const SparseGrid grid{"line", {{"line", Box({0}, {12}), {periodic}}}, {4}, {1}};
        return blocksFingerprint(*grid.on(world()));
    };
    EXPECT_NE(of(true), of(false));
    EXPECT_EQ(of(true), of(true));
}

TEST(SparseRestart, BlocksOfAlmostOneSizeAreRecycled) {
    SparseGrid uneven{"uneven", {}, {2000}, {1}};
    for (index k = 0; k < 24; ++k)
        uneven.spaces.push_back({fmt::format("piece {}", k), Box({0}, {1000 + (k * 7) % 11}), {true}});
    const auto pattern = SparsePattern::make(world(), uneven.on(world()), uneven.ghosts);
    SparseField<real> u("u", pattern);
    for (int b = 0; b < u.blocks(); ++b) {
        u.allocate(b);
        u.free(b);
    }
    EXPECT_LE(pattern->pool().use().pooledObjects, u.blocks() > 0 ? 1U : 0U);
    EXPECT_EQ(u.memoryBytes(), 0U);
}

} // namespace
} // namespace DNDS::test
