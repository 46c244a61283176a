// Pushes of ghosts: what is deposited into them against sums over all blocks, and against additions one by one.

#include "DNDS/Blocks/NdArray.hpp"
#include "DNDS/Blocks/PointCase.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <cmath>

namespace DNDS::test {
namespace {

TEST(BlockPush, AllOperationsOnAllTransports) {
    Random random(seed());
    for (int round = 0; round < 8; ++round) {
        const int dims = 1 + round % 4;
        const auto grid = randomGrid(dims, round % 3 == 0, random);
        const GhostWidths ghosts = randomWidths(dims, random);
        const auto order = round % 2 == 0 ? ComponentOrder::Inside : ComponentOrder::Outside;
        SCOPED_TRACE(fmt::format("round {}: {}", round, grid->describe()));
        BlockField<real> u("u", here(), grid, {.ghosts = ghosts, .components = 3, .order = order});
        BlockField<std::int32_t> n("n", here(), grid, {.ghosts = ghosts, .components = 2, .order = order});
        const KeyOf keyOf = moduloPeriods(grid->spaces()[0]);
        forEachTransport([&](const ExchangeOptions &options) {
            for (const PushOp op : {PushOp::Sum, PushOp::Min, PushOp::Max}) {
                u.initPushGhosts(op, options);
                expectPush(u, keyOf, op);
                n.initPushGhosts(op, options);
                expectPush(n, keyOf, op);
            }
        });
    }
}

TEST(BlockPush, WallsAndHolesKeepTheirGhosts) {
    const IndexSpace space{"holes", Box({0, 0}, {20, 12}), {true, false}};
    const int last = here().size() - 1;
    const auto grid = BlockGrid::make({space}, {{Box({0, 0}, {5, 12}), last, 0},
                                                {Box({5, 0}, {13, 4}), 0, 0},
                                                {Box({5, 7}, {13, 12}), 0, 0}, // [5, 13) x [4, 7) is a hole
                                                {Box({13, 0}, {20, 12}), last, 0}});
    BlockField<real> u("u", here(), grid, {.ghosts = {3, 2}});
    expectPush(u, moduloPeriods(space), PushOp::Sum);
}

/// A real number whose sums depend on the order.
real unevenOf(int block, const IndexVector &point, rowsize c) {
    const auto number = mix({static_cast<std::uint64_t>(block), static_cast<std::uint64_t>(point[0]),
                             static_cast<std::uint64_t>(point[1]), static_cast<std::uint64_t>(point[2]),
                             static_cast<std::uint64_t>(point[3]), static_cast<std::uint64_t>(c)});
    return std::ldexp(static_cast<real>(number % 1000003) / 3, static_cast<int>(number >> 32U & 15U));
}

std::span<const real> valuesOf(const BlockField<real> &u) {
    return {u.array().data(), toSize(u.array().size() * u.array().rowSize())};
}

/// Pushes, and brings the field to one rank.
BlockField<real> pushedOn(const std::shared_ptr<const BlockGrid> &grid, const BlockFieldOptions &options, PushOp op,
                          const std::shared_ptr<const BlockGrid> &onOne) {
    BlockField<real> u("u", here(), grid, options);
    for (int b = 0; b < u.blocks(); ++b)
        forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &at, const IndexVector &point) {
            for (rowsize c = 0; c < u.components(); ++c)
                test::at(u.view(b), at, c) = unevenOf(u.block(b).block, point, c);
        });
    u.pushGhosts(op);
    return u.moved(onOne);
}

TEST(BlockPush, BitsDoNotDependOnRanks) {
    Random random(seed());
    for (int round = 0; round < 12; ++round) {
        const int dims = 1 + round % 3;
        const auto grid = randomGrid(dims, false, random); // on random ranks
        std::vector<Block> blocks = grid->blocks();
        for (Block &block : blocks)
            block.rank = 0;
        const auto onOne = BlockGrid::make(grid->spaces(), blocks);
        BlockFieldOptions options{.ghosts = GhostWidths::uniform(dims, 2), .components = 2};
        options.order = round % 2 == 0 ? ComponentOrder::Inside : ComponentOrder::Outside;
        options.centring = centringsOf(dims)[random() % centringsOf(dims).size()];
        for (const PushOp op : {PushOp::Sum, PushOp::Replace}) {
            const auto one = pushedOn(onOne, options, op, onOne);
            const auto some = pushedOn(grid, options, op, onOne);
            EXPECT_TRUE(std::ranges::equal(valuesOf(one), valuesOf(some)));
            // Additions one by one: by the number of the block, and for one block by region.
            BlockField<real> sums("sums", here(), onOne, options);
            for (const bool own : {true, false})
                for (int b = 0; b < sums.blocks(); ++b)
                    for (const GhostRegion &region :
                         own ? std::vector<GhostRegion>{{sums.block(b).cells, b, IndexTransform::translation(dims, {})}}
                             : onOne->ghostRegions(b, options.ghosts, options.centring))
                        forEachCell(region.ghosts, [&](const IndexVector &point) {
                            IndexVector at = region.toSource(point);
                            for (int d = 0; d < dims; ++d)
                                at[toSize(d)] -= sums.block(region.source).cells.lower[toSize(d)];
                            for (rowsize c = 0; c < sums.components(); ++c) {
                                real &sum = test::at(sums.view(region.source), at, c);
                                sum = (op == PushOp::Sum ? sum : 0) + unevenOf(b, point, c);
                            }
                        });
            index wrong = 0;
            for (int b = 0; b < sums.blocks(); ++b)
                for (const Box &box : sums.blockPattern()->owned(b))
                    forEachIn(sums.block(b), box, [&](const IndexVector &at, const IndexVector &) {
                        for (rowsize c = 0; c < sums.components(); ++c)
                            wrong += test::at(sums.view(b), at, c) == test::at(some.view(b), at, c) ? 0 : 1;
                    });
            EXPECT_EQ(wrong, 0);
        }
    }
}

TEST(BlockPush, GhostsAreZeroAfterSumsAndReadyForMore) {
    const IndexSpace torus{"torus", Box({0, 0}, {17, 13}), {true, true}};
    BlockField<real> u("u", here(), BlockGrid::cut(here(), torus), {.ghosts = {1, 2}});
    const auto deposit = [&](real value) {
        for (int b = 0; b < u.blocks(); ++b)
            forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &at, const IndexVector &cell) {
                if (!u.block(b).cells.contains(cell))
                    test::at(u.view(b), at, 0) += value;
            });
    };
    const auto total = [&] {
        real sum = 0;
        for (int b = 0; b < u.blocks(); ++b)
            forEachIn(u.block(b), u.block(b).extent,
                      [&](const IndexVector &at, const IndexVector &) { sum += test::at(u.view(b), at, 0); });
        return here().allReduce(sum, MPI_SUM);
    };
    deposit(1);
    const real ghosts = total();
    u.pushGhosts();
    EXPECT_EQ(total(), ghosts);
    u.pushGhosts();
    EXPECT_EQ(total(), ghosts) << "nothing is added twice";
    deposit(2);
    u.startPushGhosts();
    EXPECT_TRUE(u.pushInFlight());
    while (!u.pushReady()) {
    }
    u.finishPushGhosts();
    EXPECT_FALSE(u.pushInFlight());
    EXPECT_EQ(total(), 3 * ghosts);
    u.pushGhosts(PushOp::Max);
    EXPECT_EQ(total(), 3 * ghosts) << "zeros are no maximum of what is positive";
}

TEST(BlockPush, SharedNodesAreAddedAndMadeEqual) {
    const auto grid = BlockGrid::blocksOf(here(), {"box", Box({0, 0}, {12, 8}), {true, false}}, {3, 4});
    BlockField<real> rho("rho", here(), grid, {.centring = Centring::nodes()});
    for (int b = 0; b < rho.blocks(); ++b) // each cell gives a quarter to each of its nodes
        for (index i = 0; i < 3; ++i)
            for (index j = 0; j < 4; ++j)
                for (const auto &[k, l] : {std::pair{i, j}, {i + 1, j}, {i, j + 1}, {i + 1, j + 1}})
                    rho.view(b)(k, l) += 0.25;
    rho.pushGhosts();
    rho.exchangeGhosts();
    index wrong = 0;
    for (int b = 0; b < rho.blocks(); ++b)
        forEachIn(rho.block(b), rho.block(b).cells, [&](const IndexVector &at, const IndexVector &node) {
            wrong += test::at(rho.view(b), at, 0) == (node[1] == 0 || node[1] == 8 ? 0.5 : 1) ? 0 : 1;
        });
    EXPECT_EQ(wrong, 0);
}

TEST(BlockPush, FieldsOfOnePatternTravelTogether) {
    const auto grid = BlockGrid::blocksOf(here(), {"ring", Box({0, 0}, {12, 9}), {true, true}}, {4, 3});
    const auto pattern = BlockPattern::make(here(), grid, {1, 1});
    BlockField<real> u("u", here(), pattern, 2);
    BlockField<std::int32_t> n("n", here(), pattern);
    ExchangeGroup group;
    group.add(u);
    group.add(n);
    group.initPersistentPush(PushOp::Sum, {.ghosts = GhostsAfterPush::Zero});
    for (int b = 0; b < u.blocks(); ++b)
        forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &at, const IndexVector &) {
            test::at(u.view(b), at, 0) = test::at(u.view(b), at, 1) = 1;
            test::at(n.view(b), at, 0) = 1;
        });
    group.startPersistentPush();
    group.waitPersistentPush();
    index wrong = 0;
    for (int b = 0; b < u.blocks(); ++b)
        forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &at, const IndexVector &cell) {
            const bool ghost = !u.block(b).cells.contains(cell);
            const auto ends = [&](std::size_t d) { // of the block, and so depositors along a dimension
                const Box &cells = u.block(b).cells;
                return 1 + (cell[d] == cells.lower[d] ? 1 : 0) + (cell[d] == cells.upper[d] - 1 ? 1 : 0);
            };
            const int expected = ghost ? 0 : ends(0) * ends(1);
            wrong += test::at(u.view(b), at, 0) == expected && test::at(u.view(b), at, 1) == expected &&
                             test::at(n.view(b), at, 0) == expected
                         ? 0
                         : 1;
        });
    EXPECT_EQ(wrong, 0);
}

TEST(BlockPush, OfAnNdArray) {
    NdArray<std::int64_t> counts("counts");
    EXPECT_THROW(counts.pushGhosts(), StateError);
    counts.decompose(here(), {10, 6}, 0, {}, {1, 1}, {true, true});
    const auto all = counts.view();
    for (index i = -1; i <= all.extent(0) && !counts.localCore().empty(); ++i)
        for (index j = -1; j <= all.extent(1); ++j)
            all(i, j) = 1;
    counts.startPushGhosts();
    counts.finishPushGhosts();
    std::int64_t sum = 0;
    for (index i = 0; i < all.extent(0); ++i)
        for (index j = 0; j < all.extent(1); ++j)
            sum += all(i, j);
    const Box extent = counts.localExtent();
    EXPECT_EQ(here().allReduce(sum, MPI_SUM), here().allReduce(std::int64_t{extent.size()}, MPI_SUM));
}

TEST(BlockPush, ErrorsSayWhatToDo) {
    struct Pair {
        int a;
        int b;
    };
    const auto grid = BlockGrid::cut(here(), {"line", Box({0}, {40}), {}});
    BlockField<real> u("u", here(), grid, {.ghosts = {1}});
    BlockField<Pair> pairs("pairs", here(), grid, {.ghosts = {1}});
    expectContains(messageOnAll<LayoutError>([&] { pairs.pushGhosts(); }), "PushOp::Replace");
    pairs.pushGhosts(PushOp::Replace);
    u.startPushGhosts();
    expectContains(messageOnAll<StateError>([&] { (void)u.moved(grid); }), "finish it before the field moves");
    u.finishPushGhosts();
    here().barrier();
    EXPECT_THROW(u.finishPushGhosts(), StateError) << "none is under way";
    EXPECT_THROW(BlockField<real>().pushGhosts(), StateError);
}

} // namespace
} // namespace DNDS::test
