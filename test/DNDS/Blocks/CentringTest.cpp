// Fields on nodes, faces and edges: every copy and ghost against a list of all points, made cell by cell.

#include "DNDS/Blocks/BlockBoundary.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/BlockPack.hpp"
#include "DNDS/Blocks/BlockRows.hpp"
#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Blocks/RandomBlocks.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

namespace DNDS::test {
namespace {

TEST(Centring, RandomGridsOfOneIndexSpace) {
    Random random(seed());
    for (int round = 0; round < 32; ++round) {
        const int dims = 1 + round % 4;
        const auto grid = randomGrid(dims, round % 3 == 0, random);
        const auto centrings = centringsOf(dims);
        BlockFieldOptions options{.ghosts = randomWidths(dims, random), .components = 2};
        options.order = round % 2 == 0 ? ComponentOrder::Inside : ComponentOrder::Outside;
        options.centring = centrings[random() % centrings.size()];
        SCOPED_TRACE(
            fmt::format("round {}: {}, nodal [{}]", round, grid->describe(), fmt::join(options.centring.nodal, " ")));
        BlockField<real> u("u", here(), grid, options);
        expectPoints(u, moduloPeriods(grid->spaces()[0]));
    }
}

TEST(Centring, CellsAreTheDefault) {
    const auto grid = BlockGrid::blocksOf(here(), {"box", Box({0, 0}, {6, 5}), {true, false}}, {2, 3});
    const auto cells = BlockPattern::make(here(), grid, {1, 1});
    EXPECT_EQ(BlockPattern::make(here(), grid, {1, 1}, 0, Centring::faces(2)), cells) << "two dimensions";
    EXPECT_NE(BlockPattern::make(here(), grid, {1, 1}, 0, Centring::faces(0)), cells);
    EXPECT_EQ(Centring::faces(0).in(2).nodal, Centring::edges(1).in(2).nodal);
    EXPECT_EQ(Centring::edges(2).in(2).nodal, Centring::nodes().in(2).nodal);
    for (int b = 0; b < static_cast<int>(cells->blocks().size()); ++b) {
        ASSERT_EQ(cells->owned(b).size(), 1U);
        EXPECT_EQ(cells->owned(b)[0], cells->blocks()[toSize(b)].cells);
        EXPECT_EQ(cells->fileBoxes(b), std::vector<Box>{cells->blocks()[toSize(b)].cells});
    }
    EXPECT_THROW(Centring::faces(4), ArgumentError);
    EXPECT_THROW(Centring::edges(-1), ArgumentError);
}

TEST(Centring, TwoZonesInAllOrientations) {
    Random random(seed());
    int fitting = 0;
    int refused = 0;
    for (const int dims : {2, 3}) {
        const Box box = dims == 2 ? Box({0, 0}, {4, 3}) : Box({0, 0, 0}, {4, 3, 2});
        Box left = box;
        Box right = box;
        left.upper[0] = right.lower[0] = 2;
        for (const auto &turn : orientations(dims)) {
            std::vector<Centring> some = centringsOf(dims);
            if (dims == 3)
                some = {some[random() % 8], some[7]};
            for (const Centring &centring : some) {
                SCOPED_TRACE(
                    fmt::format("turn [{}], nodal [{}]", fmt::join(turn, " "), fmt::join(centring.nodal, " ")));
                const std::vector<Zone> zones{{left, orientations(dims)[0], 1}, {right, turn, -2}};
                const auto grid = gridOfZones(zones, random);
                BlockFieldOptions options{.ghosts = GhostWidths::uniform(dims, 1), .centring = centring};
                if (random() % 2 == 0)
                    options.ghosts = options.ghosts.star();
                if (turnFits(turn, centring)) {
                    BlockField<real> u("u", here(), grid, options);
                    expectPoints(u, inBoxOf(zones, centring));
                    ++fitting;
                } else {
                    expectContains(messageOnAll<ArgumentError>([&] { BlockField<real>("u", here(), grid, options); }),
                                   "turned");
                    ++refused;
                }
            }
        }
        EXPECT_TRUE(dims == 3 || (fitting == 24 && refused == 8));
    }
    EXPECT_EQ(fitting + refused, 8 * 4 + 48 * 2);
}

TEST(Centring, EightZonesTurnedAtRandom) {
    Random random(seed());
    for (int round = 0; round < 6; ++round) {
        const auto centrings = centringsOf(3);
        const Centring centring = round % 3 == 0 ? Centring::nodes().in(3) : centrings[random() % centrings.size()];
        SCOPED_TRACE(fmt::format("round {}, nodal [{}]", round, fmt::join(centring.nodal, " ")));
        std::vector<std::vector<int>> turns;
        for (const auto &turn : orientations(3))
            if (turnFits(turn, centring))
                turns.push_back(turn);
        const Box box({0, 0, 0}, {4, 5, 3});
        const IndexVector cuts{2, 3, 1};
        std::vector<Zone> zones;
        forEachCell(Box({0, 0, 0}, {2, 2, 2}), [&](const IndexVector &side) {
            Zone zone{box, turns[random() % turns.size()], static_cast<index>(random() % 7) - 3};
            for (std::size_t d = 0; d < 3; ++d)
                (side[d] == 0 ? zone.part.upper[d] : zone.part.lower[d]) = cuts[d];
            zones.push_back(zone);
        });
        std::ranges::shuffle(zones, random);
        BlockField<real> u("u", here(), gridOfZones(zones, random),
                           {.ghosts = randomWidths(3, random), .centring = centring});
        expectPoints(u, inBoxOf(zones, centring));
    }
}

TEST(Centring, OneSideMayBeLongerThanTheOther) {
    Random random(seed());
    const std::vector<Zone> zones{
        {Box({0, 0}, {4, 9}), {1, 2}, 0}, {Box({4, 2}, {7, 5}), {-2, 1}, 0}, {Box({4, 5}, {7, 7}), {2, -1}, 0}};
    for (int round = 0; round < 5; ++round) {
        BlockField<real> u("u", here(), gridOfZones(zones, random), {.ghosts = {2, 2}, .centring = Centring::nodes()});
        expectPoints(u, inBoxOf(zones, Centring::nodes()));
    }
}

TEST(Centring, AnyNumberOfSpacesMeetAtANode) {
    Random random(seed());
    for (const int squares : {3, 4, 5, 7}) {
        SCOPED_TRACE(squares);
        std::vector<int> names(toSize(squares)); // so that several are lower than their neighbours
        std::iota(names.begin(), names.end(), 0);
        std::ranges::shuffle(names, random);
        std::vector<IndexSpace> spaces(toSize(squares), {"square", Box({0, 0}, {4, 4}), {}});
        std::vector<Block> blocks;
        std::vector<Connection> connections;
        for (std::size_t k = 0; k < names.size(); ++k) {
            cutAtRandom(spaces[k].cells, static_cast<int>(k), false, random, blocks);
            const int next = names[(k + 1) % names.size()];
            connections.push_back({names[k], {0, 0}, {4, 0}, next, {0, 0}, {2, 0}}); // (0, j) of the next is (j, 0)
        }
        BlockField<real> u("u", here(), BlockGrid::make(spaces, blocks, connections), {.centring = Centring::nodes()});
        expectPoints(u, [&](const CellOf &at) -> PointKey {
            const auto place = toSize(std::ranges::find(names, at.space) - names.begin());
            if (at.cell[0] == 0 && at.cell[1] == 0)
                return {-1};
            if (at.cell[0] == 0)
                return {names[(place + names.size() - 1) % names.size()], at.cell[1], 0};
            return {at.space, at.cell[0], at.cell[1]};
        });
    }
}

TEST(Centring, TheNorthernFoldOfAnOceanHasOneRowOfNodes) {
    Random random(seed());
    const IndexSpace ocean{"tripolar", Box({0, 0}, {5, 8}), {false, true}};
    const Connection fold{0, {5, 0}, {5, 8}, 0, {5, 8}, {-1, -2}};
    for (const Centring &centring : centringsOf(2)) {
        std::vector<Block> blocks;
        cutAtRandom(ocean.cells, 0, false, random, blocks);
        BlockField<real> u("u", here(), BlockGrid::make({ocean}, blocks, {fold}),
                           {.ghosts = {3, 2}, .centring = centring});
        expectPoints(u, [&](const CellOf &at) -> PointKey {
            index i = 2 * at.cell[0] + (centring.nodal[0] ? 0 : 1); // half cells
            index j = 2 * at.cell[1] + (centring.nodal[1] ? 0 : 1);
            if (i > 10 || (i == 10 && (j + 16) % 16 > 8)) {
                i = 20 - i;
                j = 16 - j;
            }
            return {i, (j + 16) % 16};
        });
    }
}

TEST(Centring, ReductionsCountSharedPointsOnce) {
    Random random(seed());
    for (int round = 0; round < 12; ++round) {
        const int dims = 1 + round % 4;
        const auto grid = randomGrid(dims, false, random);
        const auto centrings = centringsOf(dims);
        BlockField<real> u("u", here(), grid,
                           {.ghosts = GhostWidths::uniform(dims, 1),
                            .components = 2,
                            .order = round % 2 == 0 ? ComponentOrder::Inside : ComponentOrder::Outside,
                            .centring = centrings[random() % centrings.size()]});
        const auto points = static_cast<real>(u.blockPattern()->filePoints().size());
        setConstant(u, 3);
        EXPECT_EQ(sum(u), 6 * points);
        EXPECT_EQ(sum(u, {.component = 1, .exact = true}), 3 * points);
        EXPECT_EQ(dot(u, u), 18 * points);
        EXPECT_EQ(norm1(u, {.component = 0}), 3 * points);
        setConstant(u, -5, {.component = 1, .ghosts = false});
        EXPECT_EQ(sum(u), -2 * points);
        EXPECT_EQ(min(u), -5);
    }
}

TEST(Centring, TasksReduceSharedPointsOnce) {
    const auto grid = BlockGrid::blocksOf(here(), {"box", Box({0, 0}, {48, 32}), {true, false}}, {16, 16});
    BlockField<real> u("u", here(), grid, {.centring = Centring::nodes()});
    setConstant(u, 1);
    Task::Graph graph("count", here());
    const Task::Reduction count = graph.reduce("sum", ReduceOp::Sum, u);
    Task::Plan plan = graph.compile(Executor::host());
    plan.run();
    EXPECT_EQ(plan.result(count)[0], 48 * 33);
}

TEST(Centring, FieldsOfAPackAreAtTheSamePoints) {
    const auto grid = BlockGrid::blocksOf(here(), {"box", Box({0, 0}, {8, 8}), {}}, {4, 4});
    BlockField<real> faces("faces", here(), grid, {.centring = Centring::faces(0)});
    BlockField<real> cells("cells", here(), grid, {});
    BlockPack<real> pack(faces, cells);
    if (faces.blocks() > 0)
        expectContains(messageOf<ArgumentError>([&] { (void)pack.view(); }), "one centring");
}

/// The three centrings of a kind.
template <class T>
std::vector<BlockField<T>> threeOf(const std::shared_ptr<const BlockGrid> &grid, Centring (*kind)(int)) {
    std::vector<BlockField<T>> fields;
    for (int d = 0; d < 3; ++d)
        fields.emplace_back("field", here(), grid, BlockFieldOptions{.centring = kind(d)});
    return fields;
}

TEST(Centring, TheDivergenceOfACurlIsZero) {
    Random random(seed());
    index nonzero = 0;
    for (int round = 0; round < 8; ++round) {
        const auto grid = randomGrid(3, round % 2 == 0, random);
        Random other(rankSeed(static_cast<std::uint64_t>(round)));
        auto potential = threeOf<std::int64_t>(grid, Centring::edges);
        auto flux = threeOf<std::int64_t>(grid, Centring::faces);
        for (auto &a : potential) {
            for (int b = 0; b < a.blocks(); ++b) // what blocks share differs until the exchange
                forEachIn(a.block(b), a.block(b).cells, [&](const IndexVector &at, const IndexVector &) {
                    test::at(a.view(b), at, 0) = static_cast<std::int64_t>(other() >> 20U);
                });
            a.exchangeGhosts();
        }
        for (int b = 0; b < flux[0].blocks(); ++b) {
            const BlockView<std::int64_t> a[] = {potential[0].view(b), potential[1].view(b), potential[2].view(b)};
            for (std::size_t d = 0; d < 3; ++d) {
                const std::size_t e = (d + 1) % 3;
                const std::size_t f = (d + 2) % 3;
                const auto to = flux[d].view(b);
                forEachIn(flux[d].block(b), flux[d].block(b).cells, [&](IndexVector at, const IndexVector &) {
                    std::int64_t curl = -test::at(a[f], at, 0) + test::at(a[e], at, 0);
                    ++at[e];
                    curl += test::at(a[f], at, 0);
                    --at[e];
                    ++at[f];
                    curl -= test::at(a[e], at, 0);
                    --at[f];
                    test::at(to, at, 0) = curl;
                    nonzero += curl != 0 ? 1 : 0;
                });
            }
        }
        index wrong = 0;
        for (int b = 0; b < flux[0].blocks(); ++b)
            forEachCell(Box::ofShape(std::vector<index>{flux[1].view(b).extent(0), flux[0].view(b).extent(1),
                                                        flux[0].view(b).extent(2)}),
                        [&](IndexVector at) {
                            std::int64_t divergence = 0;
                            for (std::size_t d = 0; d < 3; ++d) {
                                divergence -= test::at(flux[d].view(b), at, 0);
                                ++at[d];
                                divergence += test::at(flux[d].view(b), at, 0);
                                --at[d];
                            }
                            wrong += divergence == 0 ? 0 : 1;
                        });
        EXPECT_EQ(wrong, 0);
        for (auto &b : flux) { // blocks computed the same on the faces that they share
            std::vector<std::int64_t> before(b.array().view().data(), b.array().view().data() + b.array().size());
            b.exchangeGhosts();
            EXPECT_TRUE(std::ranges::equal(before, std::span(b.array().view().data(), before.size())));
        }
    }
    EXPECT_GT(here().allReduce(nonzero, MPI_SUM), 0);
}

TEST(Centring, StaggeredGradientsOfCells) {
    Random random(seed());
    const auto grid = randomGrid(2, false, random);
    const IndexSpace &space = grid->spaces()[0];
    BlockField<real> pressure("p", here(), grid, {.ghosts = {1, 1}});
    fillField(pressure, 1);
    pressure.exchangeGhosts();
    for (std::size_t d = 0; d < 2; ++d) {
        BlockField<real> u("u", here(), grid, {.centring = Centring::faces(static_cast<int>(d))});
        index wrong = 0;
        for (int b = 0; b < u.blocks(); ++b)
            forEachIn(u.block(b), u.block(b).cells, [&](IndexVector at, IndexVector face) {
                if (!space.periodic[d] && (face[d] == space.cells.lower[d] || face[d] == space.cells.upper[d]))
                    return; // a wall
                const auto p = pressure.view(b);
                const real above = test::at(p, at, 0);
                --at[d];
                const real gradient = above - test::at(p, at, 0);
                const real expected = contents<real>(*modulo(space)({0, face}), 0, 1);
                --face[d];
                wrong += gradient == expected - contents<real>(*modulo(space)({0, face}), 0, 1) ? 0 : 1;
            });
        EXPECT_EQ(wrong, 0);
    }
}

TEST(Centring, CopiesToOtherCutsFillAllPoints) {
    Random random(seed());
    for (int round = 0; round < 8; ++round) {
        const auto from = randomGrid(3, false, random);
        IndexSpace turned = from->spaces()[0];
        const std::vector<int> axes = round % 2 == 0 ? std::vector<int>{} : std::vector<int>{1, 2, 0};
        const auto axisOf = [&](std::size_t d) { return axes.empty() ? d : toSize(axes[d]); };
        const Centring centring = centringsOf(3)[random() % 8];
        Centring there;
        for (std::size_t d = 0; d < 3; ++d) {
            turned.cells.lower[axisOf(d)] = from->spaces()[0].cells.lower[d];
            turned.cells.upper[axisOf(d)] = from->spaces()[0].cells.upper[d];
            turned.periodic[axisOf(d)] = from->spaces()[0].periodic[d];
            there.nodal[axisOf(d)] = centring.nodal[d];
        }
        std::vector<Block> blocks;
        cutAtRandom(turned.cells, 0, false, random, blocks);
        BlockField<real> u("u", here(), from, {.centring = centring});
        BlockField<real> v("v", here(), BlockGrid::make({turned}, blocks), {.ghosts = {1, 2, 1}, .centring = there});
        expectPoints(u, moduloPeriods(from->spaces()[0]), false);
        const bool ghosts = round % 4 < 2;
        copyBlocks(u, v, {.axes = axes, .ghosts = ghosts});
        const auto keyOf = moduloPeriods(from->spaces()[0]);
        const auto owners = ownersOf(*from, centring, keyOf);
        const auto expectTimes = [&](real factor, bool all) {
            index wrong = 0;
            for (int b = 0; b < v.blocks(); ++b)
                forEachIn(v.block(b), v.block(b).extent, [&](const IndexVector &at, const IndexVector &point) {
                    IndexVector source{};
                    for (std::size_t d = 0; d < 3; ++d)
                        source[d] = point[axisOf(d)];
                    const auto owner = owners.find(keyOf({0, source}));
                    const bool copied = owner != owners.end() && (all || v.block(b).cells.contains(point));
                    const real value = copied ? contents<real>({0, std::get<1>(owner->second)}, 0, 1) : 0;
                    wrong += test::at(v.view(b), at, 0) == factor * value ? 0 : 1;
                });
            EXPECT_EQ(wrong, 0);
        };
        expectTimes(1, ghosts);
        copyBlocks(u, v, {.axes = axes, .op = PushOp::Sum});
        v.exchangeGhosts();
        expectTimes(2, true);
        if (centring.ofCells())
            continue;
        EXPECT_THROW(BlockRows::stencil(v.blockPattern(), GhostWidths::uniform(v.grid()->dims(), 0)), ArgumentError);
        BlockField<real> cells("cells", here(), v.grid(), {});
        expectContains(messageOnAll<ArgumentError>([&] { copyBlocks(u, cells, {.axes = axes}); }), "one centring");
    }
}

TEST(Centring, NodesThatAPeriodJoinsAreNotAddedTwice) {
    BlockField<real> ring("ring", here(), BlockGrid::cut(here(), {"ring", Box({0}, {9}), {true}}),
                          {.centring = Centring::nodes()});
    BlockField<real> line("line", here(), BlockGrid::cut(here(), {"line", Box({0}, {9}), {}}),
                          {.centring = Centring::nodes()});
    expectContains(messageOnAll<ArgumentError>([&] { copyBlocks(ring, line, {.op = PushOp::Sum}); }), "periodic");
    setConstant(ring, 2);
    copyBlocks(ring, line);
    copyBlocks(line, ring, {.op = PushOp::Sum});
    EXPECT_EQ(sum(line), 20);
    EXPECT_EQ(sum(ring), 36);
}

TEST(Centring, FieldsMoveWithTheirBlocks) {
    const auto grid = BlockGrid::blocksOf(here(), {"box", Box({0, 0}, {9, 8}), {true, false}}, {3, 2});
    BlockField<real> u("u", here(), grid, {.ghosts = {1, 2}, .centring = Centring::nodes()});
    std::vector<real> costs(grid->blocksOfRank(here().rank()).size(), here().rank() == 0 ? 5 : 1);
    u = u.moved(grid->rebalanced(here(), costs));
    EXPECT_EQ(u.blockPattern()->centring().in(2).nodal, Centring::nodes().in(2).nodal);
    expectPoints(u, moduloPeriods(grid->spaces()[0]));
}

TEST(Centring, RulesMirrorAtTheNodesOfWalls) {
    const auto grid = BlockGrid::blocksOf(here(), {"box", Box({0, 0}, {9, 8}), {false, true}}, {3, 4});
    BlockField<real> u("u", here(), grid, {.ghosts = {2, 1}, .centring = Centring::faces(0)});
    const auto valueOf = [](index i, index j) { return static_cast<real>(100 * i * i + (j + 8) % 8); };
    for (int b = 0; b < u.blocks(); ++b)
        forEachIn(u.block(b), u.block(b).cells, [&](const IndexVector &at, const IndexVector &face) {
            test::at(u.view(b), at, 0) = valueOf(face[0], face[1]);
        });
    BlockBoundary walls(u);
    walls.mirror(lowFace(0), -1);
    walls.dirichlet(highFace(0), 7);
    exchangeAndFill(u, walls);
    index wrong = 0;
    const auto check = [&](const auto &expected) {
        for (int b = 0; b < u.blocks(); ++b)
            forEachIn(u.block(b), u.block(b).extent, [&](const IndexVector &at, const IndexVector &face) {
                wrong += test::at(u.view(b), at, 0) == expected(face[0], face[1]) ? 0 : 1;
            });
    };
    check([&](index i, index j) { return i < 0 ? -valueOf(-i, j) : i > 9 ? 14 - valueOf(18 - i, j) : valueOf(i, j); });
    walls.nearest(lowFace(0));
    walls.constant(highFace(0), 4);
    exchangeAndFill(u, walls);
    check([&](index i, index j) { return i < 0 ? valueOf(0, j) : i > 9 ? 4 : valueOf(i, j); });
    EXPECT_EQ(wrong, 0);
    const BlockField<real> wide("wide", here(), grid, {.ghosts = {4, 0}, .centring = Centring::nodes()});
    BlockBoundary<real> thin(wide);
    EXPECT_NO_THROW(thin.nearest(lowFace(0)));
    EXPECT_NO_THROW(thin.mirror(lowFace(0), 1)) << "ghosts of the block reach the next one";
    const auto slabs = BlockGrid::make({{"thin", Box({0, 0}, {2, 8}), {}}}, {{Box({0, 0}, {2, 8}), 0, 0}});
    const BlockField<real> all("all", here(), slabs, {.ghosts = {3, 0}, .centring = Centring::nodes()});
    EXPECT_THROW(BlockBoundary<real>(all).mirror(lowFace(0), 1), ArgumentError);
}

TEST(Centring, WhatIsMadeForCellsSaysSo) {
    const auto grid = BlockGrid::blocksOf(here(), {"box", Box({0, 0}, {6, 5}), {}}, {2, 3});
    const BlockField<real> u("u", here(), grid, {.ghosts = {1, 1}, .centring = Centring::nodes()});
    expectContains(messageOf<ArgumentError>([&] { BlockRows("nodes", u.blockPattern()); }), "loop over cells");
    EXPECT_THROW((void)u.blockPattern()->owned(u.blocks()), IndexError);
    EXPECT_THROW((void)u.blockPattern()->filePoints(1), IndexError);
}

} // namespace
} // namespace DNDS::test
