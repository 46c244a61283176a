#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/World.hpp"

#include <chrono>
#include <thread>

namespace DNDS::test {
namespace {

/// A shape, what is periodic, ghosts, and how it is cut.
struct Config {
    const char *name;
    std::vector<index> shape;
    std::array<bool, maxBlockDims> periodic{};
    GhostWidths ghosts;
    std::vector<index> blocks; ///< empty: one a rank
    std::vector<index> parts;
};

IndexSpace spaceOf(const Config &config) {
    IndexSpace space{config.name, Box::ofShape(config.shape), config.periodic};
    IndexVector origin{};
    for (std::size_t d = 0; d < config.shape.size(); ++d)
        origin[d] = static_cast<index>(d) * 3 - 2; // numbers need not begin at 0
    space.cells = space.cells.shift(origin);
    return space;
}

std::shared_ptr<const BlockGrid> gridOf(const Config &config) {
    const IndexSpace space = spaceOf(config);
    return config.blocks.empty() ? BlockGrid::cut(world(), space, {.parts = config.parts, .ghosts = config.ghosts})
                                 : BlockGrid::blocksOf(world(), space, config.blocks);
}

std::vector<Config> configs() {
    const std::array<bool, 4> all{true, true, true, true};
    return {
        {"line", {40}, {}, {2}, {}, {}},
        {"ring", {40}, all, {1}, {}, {}},
        {"ring of many blocks", {41}, all, {2}, {3}, {}},
        {"ghosts wider than parts", {9}, {}, {5}, {}, {}},
        {"ghosts wider than the period", {3}, all, {7}, {}, {}},
        {"plane", {17, 13}, {}, {1, 1}, {}, {}},
        {"torus", {17, 13}, all, {2, 1}, {}, {}},
        {"cylinder, a corner where the period meets a wall", {11, 12}, {false, true}, {2, 2}, {}, {}},
        {"asymmetric", {14, 9}, {true, false}, GhostWidths::of({1, 0}, {3, 2}), {}, {}},
        {"one side only, cut in the last dimension", {5, 30}, all, GhostWidths::of({0, 2}, {0, 0}), {}, {0, -1}},
        {"no ghosts", {6, 30}, all, {}, {}, {}},
        {"no ghosts in time, which is not cut", {3, 16, 10}, {false, true}, {0, 1, 1}, {}, {0, -1, -1}},
        {"more ranks than cells", {2, 1}, all, {1, 2}, {}, {}},
        {"one cell", {1, 1, 1}, all, {1, 1, 1}, {}, {}},
        {"uneven blocks, many a rank", {19, 22}, all, {3, 2}, {4, 5}, {}},
        {"blocks thinner than ghosts", {13, 8}, {true, false}, {4, 3}, {2, 3}, {}},
        {"box", {9, 8, 11}, {}, {1, 2, 1}, {}, {}},
        {"all periodic box", {8, 9, 10}, all, {1, 1, 1}, {}, {}},
        {"small blocks in a box", {9, 8, 7}, {true, false, true}, {1, 1, 2}, {4, 4, 4}, {}},
        {"four dimensions", {4, 5, 3, 6}, {true, false, true, true}, {1, 1, 1, 1}, {}, {}},
        {"four dimensions in blocks", {4, 5, 3, 6}, all, GhostWidths::of({1, 0, 2, 1}, {0, 1, 1, 1}), {2, 3, 2, 4}, {}},
    };
}

TEST(BlockField, EveryCellHasTheValueOfItsGlobalIndex) {
    for (const Config &config : configs()) {
        SCOPED_TRACE(config.name);
        const auto grid = gridOf(config);
        EXPECT_EQ(grid->totalCells(), spaceOf(config).cells.size());
        for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside})
            for (const GhostWidths &ghosts : {config.ghosts, config.ghosts.star()}) {
                SCOPED_TRACE(order == ComponentOrder::Inside ? "AoS" : "SoA");
                SCOPED_TRACE(ghosts.shape == GhostShape::Star ? "star" : "box");
                BlockField<real> u("u", world(), grid, {.ghosts = ghosts, .components = 3, .order = order});
                expectExchanges(u, modulo(spaceOf(config)));
            }
    }
}

TEST(BlockField, RowsOfAnyWidthAndType) {
    const Config config{"rows", {12, 11}, {true, false}, {2, 3}, {5, 4}, {}};
    const auto grid = gridOf(config);
    const auto pattern = BlockPattern::make(world(), grid, config.ghosts);
    for (const rowsize components : {1, 5, 8, 9}) { // 8, 40, 64, 72 bytes
        SCOPED_TRACE(components);
        BlockField<real> u("u", world(), pattern, components);
        expectExchanges(u, modulo(spaceOf(config)));
        BlockField<std::uint8_t> flags("flags", world(), pattern, components);
        expectExchanges(flags, modulo(spaceOf(config)));
        BlockField<std::int32_t> numbers("numbers", world(), pattern, components);
        expectExchanges(numbers, modulo(spaceOf(config)));
    }
}

TEST(BlockField, RanksMayHaveNoBlocksAndBlocksMayHaveHoles) {
    const int size = world().size();
    const IndexSpace space{"holes", Box({0, 0}, {20, 12}), {true, true}};
    std::vector<Block> blocks;
    const int last = size - 1; // none in the middle
    blocks.push_back({Box({0, 0}, {5, 12}), last, 0});
    blocks.push_back({Box({5, 0}, {13, 4}), 0, 0});
    blocks.push_back({Box({5, 7}, {13, 12}), 0, 0}); // [5, 13) x [4, 7) is a hole
    blocks.push_back({Box({13, 0}, {20, 12}), last, 0});
    const auto grid = BlockGrid::make({space}, blocks);
    BlockField<real> u("u", world(), grid, {.ghosts = {3, 2}, .components = 2});
    const Meaning wrapped = modulo(space);
    expectExchanges(u, [&](const CellOf &cell) -> std::optional<CellOf> {
        const auto same = wrapped(cell);
        return same && Box({5, 4}, {13, 7}).contains(same->cell) ? std::nullopt : same;
    });
    if (world().rank() != 0 && world().rank() != last) {
        EXPECT_EQ(u.blocks(), 0);
    }
}

TEST(BlockField, AStarStaysOneOnOtherRanks) {
    const Config config{"torus", {12, 9}, {true, true}, GhostWidths{2, 1}.star(), {4, 3}, {}};
    const auto grid = gridOf(config);
    const BlockField<real> u("u", world(), grid, {.ghosts = config.ghosts});
    std::vector<real> costs(toSize(u.blocks()), world().rank() == 0 ? 5 : 1);
    BlockField<real> v = u.moved(grid->rebalanced(world(), costs));
    EXPECT_EQ(v.blockPattern()->ghosts(), config.ghosts);
    expectExchanges(v, modulo(spaceOf(config)));
}

TEST(BlockField, StartsComputesAndFinishes) {
    const Config config{"flight", {24, 10}, {true, true}, {1, 1}, {}, {}};
    BlockField<real> u("u", world(), gridOf(config), {.ghosts = config.ghosts, .components = 2});
    fillField(u, 1);
    u.startExchangeGhosts();
    index inner = 0;
    const BlockField<real> &reader = u;
    for (int b = 0; b < u.blocks(); ++b)
        inner += reader.view(b).size(); // owned cells may be read meanwhile
    u.finishExchangeGhosts();
    EXPECT_EQ(world().allReduce(inner, MPI_SUM), 240);
    checkField(u, 1, modulo(spaceOf(config)));
    world().barrier();
    EXPECT_THROW(u.finishExchangeGhosts(), Error) << "nothing is under way";
    recover(world());
    BlockField<real> moved = std::move(u);
    fillField(moved, 3);
    moved.exchangeGhosts();
    checkField(moved, 3, modulo(spaceOf(config)));
    EXPECT_THROW(u.exchangeGhosts(), StateError); // NOLINT: what a moved-from field says
}

TEST(BlockField, SeveralExchangesAreInFlightAndReadersMayBeLate) {
    const Config config{"late", {18, 10}, {true, true}, {2, 1}, {6, 5}, {}};
    const auto pattern = BlockPattern::make(world(), gridOf(config), config.ghosts);
    forEachTransport([&](const ExchangeOptions &options) {
        BlockField<real> u("u", world(), pattern, 2);
        BlockField<real> v("v", world(), pattern);
        u.initExchangeGhosts(options);
        v.initExchangeGhosts(options);
        for (int version = 1; version < 6; ++version) {
            fillField(u, version);
            fillField(v, version);
            const bool late = world().rank() == version % world().size();
            if (late)
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            (late ? u : v).startExchangeGhosts(); // in another order than elsewhere
            (late ? v : u).startExchangeGhosts();
            u.finishExchangeGhosts();
            v.finishExchangeGhosts();
            checkField(u, version, modulo(spaceOf(config)));
            checkField(v, version, modulo(spaceOf(config)));
        }
    });
}

TEST(BlockField, ExchangesMoveNoMemory) {
    std::vector<Config> all = configs();
    all.push_back({"upwind, the first rank reads nobody", {40}, {}, GhostWidths::of({1}, {0}), {}, {}});
    all.push_back({"upwind, the last rank reads nobody", {6, 40}, {}, GhostWidths::of({0, 0}, {0, 2}), {}, {}});
    for (const Config &config : all) {
        SCOPED_TRACE(config.name);
        BlockField<real> u("u", world(), gridOf(config), {.ghosts = config.ghosts, .components = 2});
        const real *before = std::as_const(u.array()).data();
        const std::uint64_t generation = u.array().generation();
        u.exchangeGhosts();
        u.initExchangeGhosts();
        u.exchangeGhosts();
        EXPECT_EQ(std::as_const(u.array()).data(), before) << "views that were taken before dangle";
        EXPECT_EQ(u.array().generation(), generation);
    }
}

TEST(BlockField, FieldsOfOnePatternTravelTogether) {
    const Config config{"group", {16, 10, 6}, {true, false, true}, {1, 2, 1}, {4, 5, 3}, {}};
    const auto pattern = BlockPattern::make(world(), gridOf(config), config.ghosts);
    BlockField<real> u("u", world(), pattern, 5);
    BlockField<std::int32_t> flags("flags", world(), pattern);
    ExchangeGroup group;
    group.add(u);
    group.add(flags);
    group.initPersistentPull();
    for (int version = 1; version < 4; ++version) {
        fillField(u, version);
        fillField(flags, version);
        group.startPersistentPull();
        group.waitPersistentPull();
        checkField(u, version, modulo(spaceOf(config)));
        checkField(flags, version, modulo(spaceOf(config)));
    }
}

TEST(BlockField, SaysHowGhostsArrive) {
    const Config config{"paths", {16, 10}, {true, true}, {1, 1}, {4, 5}, {}};
    BlockField<real> u("u", world(), gridOf(config), {.ghosts = config.ghosts, .components = 2});
    EXPECT_THROW((void)u.ghostPaths(), StateError);
    u.exchangeGhosts();
    index rows = 0;
    std::vector<int> peers;
    for (const PeerPath &path : u.ghostPaths()) {
        rows += path.rowsReceived;
        peers.push_back(path.peer);
    }
    EXPECT_EQ(std::ranges::adjacent_find(peers), peers.end()) << "one message a peer, for all blocks";
    index ghosts = 0;
    for (int b = 0; b < u.blocks(); ++b)
        ghosts += u.block(b).extent.size() - u.block(b).cells.size();
    EXPECT_EQ(rows, ghosts) << "all of them stand for cells on a torus";
    expectContains(u.describeExchange(), "u");
}

TEST(BlockField, ErrorsAreThrownOnAllRanks) {
    const auto grid = gridOf({"errors", {16, 10}, {}, {1, 1}, {}, {}});
    const bool odd = world().rank() == world().size() - 1; // what is wrong on one rank only
    const auto make = [&](const BlockFieldOptions &options) { BlockField<real>("u", world(), grid, options); };
    expectContains(messageOnAll<ArgumentError>([&] {
                       make({.ghosts = odd ? GhostWidths{-1, 1} : GhostWidths{1, 1}});
                   }),
                   "-1 ghost layers in dimension 0");
    messageOnAll<ArgumentError>([&] { make({.ghosts = {1, 1, 1}}); });
    messageOnAll<ArgumentError>([&] { make({.ghosts = {1, 1}, .components = odd ? 0 : 1}); });
    messageOnAll<ArgumentError>([&] { BlockField<real>("u", world(), odd ? nullptr : grid, {}); });
    messageOnAll<ArgumentError>([&] {
        BlockField<real>("u", world(), BlockGrid::make(grid->spaces(), {{grid->spaces()[0].cells, 99, 0}}), {});
    });
    if (world().size() > 1)
        expectContains(messageOnAll<StateError>([&] {
                           make({.ghosts = odd ? GhostWidths{2, 1} : GhostWidths{1, 1}});
                       }),
                       "ranks give different grids, ghost widths or shapes");
    const auto outside = BlockPattern::make(world(), grid, {1, 1}, 3);
    messageOnAll<ArgumentError>([&] { BlockField<real>("u", world(), outside, 2); });
    BlockField<real> u("u", world(), grid, {.ghosts = {1, 1}});
    EXPECT_THROW((void)u.view(u.blocks()), IndexError);
    EXPECT_THROW((void)BlockField<real>().blocks(), StateError);
}

} // namespace
} // namespace DNDS::test
