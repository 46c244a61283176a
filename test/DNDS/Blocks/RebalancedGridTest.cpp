// Grids whose blocks follow their costs, and fields that move with them.

#include "DNDS/Blocks/BlockCase.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include "support/World.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace DNDS::test {
namespace {

std::shared_ptr<const BlockGrid> lineOf(int blocks) {
    return BlockGrid::blocksOf(world(), {"line", Box({0}, {blocks}), {true}}, {1});
}

std::shared_ptr<const BlockGrid> cubeOf(index blocks) {
    const Box cells({0, 0, 0}, {2 * blocks, 2 * blocks, 2 * blocks});
    return BlockGrid::blocksOf(world(), {"cube", cells, {true, true, true}}, {2, 2, 2});
}

/// This rank's part of the costs of all blocks.
std::vector<real> ownOf(const BlockGrid &grid, const std::vector<real> &costs) {
    std::vector<real> own;
    for (const int block : grid.blocksOfRank(world().rank()))
        own.push_back(costs[toSize(block)]);
    return own;
}

std::shared_ptr<const BlockGrid> rebalanced(const BlockGrid &grid, const std::vector<real> &costs,
                                            real imbalance = 0.1) {
    return grid.rebalanced(world(), ownOf(grid, costs), imbalance);
}

real busiestOf(const BlockGrid &grid, const std::vector<real> &costs) {
    real busiest = 0;
    for (int rank = 0; rank < grid.ranks(); ++rank) {
        real sum = 0;
        for (const int block : grid.blocksOfRank(rank))
            sum += costs[toSize(block)];
        busiest = std::max(busiest, sum);
    }
    return busiest;
}

int movedBlocks(const BlockGrid &before, const BlockGrid &after) {
    int moved = 0;
    for (std::size_t b = 0; b < before.blocks().size(); ++b)
        moved += before.blocks()[b].rank != after.blocks()[b].rank ? 1 : 0;
    return moved;
}

/// Fails the test unless each rank has a run of blocks, of at least one block where there are enough.
void expectRuns(const BlockGrid &grid) {
    int changes = 0;
    for (std::size_t b = 1; b < grid.blocks().size(); ++b)
        changes += grid.blocks()[b].rank != grid.blocks()[b - 1].rank ? 1 : 0;
    EXPECT_EQ(changes + 1, std::min(world().size(), static_cast<int>(grid.blocks().size())));
    for (int rank = 0; rank < world().size() && toSize(world().size()) <= grid.blocks().size(); ++rank)
        EXPECT_FALSE(grid.blocksOfRank(rank).empty()) << rank;
}

/// Calls `visit` for all ways to cut `blocks` into runs of the ranks in order.
void forEachCut(int blocks, std::vector<int> &owners, int rank, const std::function<void()> &visit) {
    const int begin = static_cast<int>(owners.size());
    const int left = world().size() - 1 - rank;
    if (left == 0) {
        owners.resize(toSize(blocks), rank);
        visit();
        owners.resize(toSize(begin));
        return;
    }
    for (int end = begin + 1; end <= blocks - left; ++end) {
        owners.resize(toSize(end), rank);
        forEachCut(blocks, owners, rank + 1, visit);
        owners.resize(toSize(begin));
    }
}

real busiestOf(const std::vector<int> &owners, const std::vector<real> &costs) {
    std::vector<real> sums(toSize(world().size()));
    for (std::size_t b = 0; b < owners.size(); ++b)
        sums[toSize(owners[b])] += costs[b];
    return std::ranges::max(sums);
}

std::vector<real> drawCosts(std::mt19937_64 &random, std::size_t blocks) {
    std::vector<real> costs(blocks);
    const auto kind = random() % 4;
    for (real &cost : costs)
        cost = kind == 0   ? 1
               : kind == 1 ? static_cast<real>(random() % 100)
               : kind == 2 ? (random() % 8 == 0 ? 5 : 0) // most blocks are absent
                           : std::exp2(static_cast<real>(random() % 8));
    return costs;
}

TEST(RebalancedGrid, MovesTheFewestBlocksThatTheBoundNeeds) {
    std::mt19937_64 random(seed());
    const int blocks = world().size() > 3 ? 11 : 14;
    auto grid = lineOf(blocks);
    for (int round = 0; round < 30; ++round) {
        SCOPED_TRACE(round);
        const std::vector<real> costs = drawCosts(random, toSize(blocks));
        const auto after = rebalanced(*grid, costs);
        EXPECT_TRUE(after->hasBlocksOf(*grid));
        expectRuns(*after);
        const real mean = std::accumulate(costs.begin(), costs.end(), real{0}) / world().size();
        real best = std::numeric_limits<real>::infinity();
        std::vector<int> owners;
        forEachCut(blocks, owners, 0, [&] { best = std::min(best, busiestOf(owners, costs)); });
        const real limit = busiestOf(*after, costs);
        EXPECT_LE(limit, std::max(1.1 * mean, 1.01 * best) * (1 + 1e-12));
        int fewest = blocks;
        forEachCut(blocks, owners, 0, [&] {
            if (busiestOf(owners, costs) > std::max({1.1 * mean, best, limit}))
                return;
            int moved = 0;
            for (std::size_t b = 0; b < owners.size(); ++b)
                moved += owners[b] != grid->blocks()[b].rank ? 1 : 0;
            fewest = std::min(fewest, moved);
        });
        EXPECT_EQ(movedBlocks(*grid, *after), fewest);
        grid = after;
    }
}

TEST(RebalancedGrid, BalancesManyBlocks) {
    std::mt19937_64 random(seed());
    auto grid = cubeOf(12);
    EXPECT_EQ(movedBlocks(*grid, *rebalanced(*grid, std::vector<real>(grid->blocks().size(), 3))), 0);
    for (int round = 0; round < 6; ++round) { // something heavy passes through
        std::vector<real> costs;
        for (const Block &block : grid->blocks())
            costs.push_back(std::abs(block.cells.lower[0] - 4 * round) < 6 ? 40 : 1 + static_cast<real>(random() % 3));
        const auto after = rebalanced(*grid, costs);
        expectRuns(*after);
        const real mean = std::accumulate(costs.begin(), costs.end(), real{0}) / world().size();
        EXPECT_LE(busiestOf(*after, costs), 1.1 * mean * (1 + 1e-12));
        EXPECT_EQ(movedBlocks(*after, *rebalanced(*after, costs)), 0) << "nothing is left to be done";
        EXPECT_LE(busiestOf(*rebalanced(*grid, costs, 0.5), costs), 1.5 * mean * (1 + 1e-12));
        grid = after;
    }
}

TEST(RebalancedGrid, AnyGrid) {
    const IndexSpace space{"line", Box({0}, {40}), {false}};
    std::vector<Block> scattered;
    std::vector<Block> together;
    for (index b = 0; b < 40; ++b) {
        const Box cells(1, {b}, {b + 1});
        scattered.push_back({cells, static_cast<int>(b * 7) % world().size(), 0});
        together.push_back({cells, world().size() - 1, 0});
    }
    const std::vector<real> equal(40, 1);
    for (const auto &blocks : {scattered, together}) {
        const auto after = rebalanced(*BlockGrid::make({space}, blocks), equal);
        expectRuns(*after);
        EXPECT_LE(busiestOf(*after, equal), std::ceil(44.0 / world().size()));
    }
    const auto none = BlockGrid::make({space}, {});
    EXPECT_TRUE(none->rebalanced(world(), {})->blocks().empty());
    const auto two = rebalanced(*BlockGrid::make({space}, {together[0], together[1]}), {1, 1});
    expectRuns(*two);
    EXPECT_EQ(movedBlocks(*lineOf(9), *rebalanced(*lineOf(9), std::vector<real>(9, 0))), 0) << "nothing costs anything";
}

TEST(RebalancedGrid, RefusesCosts) {
    const auto grid = cubeOf(3);
    const auto with = [&](auto &&change) {
        std::vector<real> own(grid->blocksOfRank(world().rank()).size(), 1);
        if (world().rank() == 0)
            change(own);
        return messageOnAll<ArgumentError>([&] { (void)grid->rebalanced(world(), own); });
    };
    expectContains(with([](auto &own) { own.push_back(1); }), "give one each");
    expectContains(with([](auto &own) { own.front() = -1; }), "block 0 is to cost -1");
    expectContains(with([](auto &own) { own.front() = std::numeric_limits<real>::quiet_NaN(); }), "0 or more");
    messageOnAll<ArgumentError>([&] { (void)rebalanced(*grid, std::vector<real>(27, 1), -0.1); });
    messageOnAll<ArgumentError>(
        [&] { (void)rebalanced(*grid, std::vector<real>(27, 1), std::numeric_limits<real>::infinity()); });
    std::vector<real> least(27, std::numeric_limits<real>::denorm_min());
    least[1] *= 2;
    EXPECT_EQ(rebalanced(*grid, least, 0)->blocks().size(), 27U); // ends
}

/// Old and new state on blocks, with values at walls that the program has set.
struct Diffusing {
    std::shared_ptr<const BlockGrid> grid;
    BlockField<real> now, next;

    Diffusing(std::shared_ptr<const BlockGrid> on, const BlockFieldOptions &options)
        : grid(std::move(on)), now("now", world(), grid, options), next("next", world(), grid, options) {
        for (auto *field : {&now, &next}) {
            fillField(*field, field == &now ? 1 : 2);
            for (int b = 0; b < field->blocks(); ++b)
                forEachIn(field->block(b), field->block(b).extent, [&](const IndexVector &local, const IndexVector &) {
                    for (rowsize c = 0; c < field->components(); ++c)
                        at(field->view(b), local, c) += field->block(b).block; // ghosts, too
                });
        }
    }
    void step() {
        now.exchangeGhosts();
        for (int b = 0; b < now.blocks(); ++b)
            forEachIn(now.block(b), now.block(b).cells, [&](const IndexVector &local, const IndexVector &) {
                for (rowsize c = 0; c < now.components(); ++c) {
                    real sum = 0.3 * at(now.view(b), local, c);
                    for (int d = 0; d < grid->dims(); ++d)
                        for (const index by : {-1, 1}) {
                            IndexVector other = local;
                            other[toSize(d)] += by;
                            sum += 0.1 * at(now.view(b), other, c);
                        }
                    at(next.view(b), local, c) = sum;
                }
            });
        now.swapData(next);
    }
    void moveTo(const std::shared_ptr<const BlockGrid> &to) {
        now = now.moved(to);
        next = next.moved(to);
        grid = to;
    }
};

void expectSameBits(const BlockField<real> &a, const BlockField<real> &b) {
    ASSERT_EQ(a.array().size(), b.array().size());
    EXPECT_EQ(a.name(), b.name());
    const auto bytes = toSize(a.array().size() * a.array().width()) * sizeof(real);
    EXPECT_TRUE(bytes == 0 || std::memcmp(a.array().data(), b.array().data(), bytes) == 0) << a.name();
}

TEST(RebalancedGrid, RunsHaveTheBitsOfRunsThatNeverMoved) {
    std::mt19937_64 random(seed());
    const Connection turned{
        .space = 0, .begin = {8, 0}, .end = {8, 8}, .other = 1, .otherBegin = {8, 0}, .transform = {2, -1}};
    const std::vector<IndexSpace> zones{{"left", Box({0, 0}, {8, 8}), {}}, {"right", Box({0, 0}, {8, 8}), {}}};
    const std::vector<index> shapes[] = {{4, 2}, {3, 2, 5}};
    const std::shared_ptr<const BlockGrid> grids[] = {
        BlockGrid::blocksOf(world(), zones, shapes[0], {turned}),
        BlockGrid::blocksOf(world(), {"box", Box({0, -2, 0}, {9, 5, 11}), {true, false, true}}, shapes[1])};
    for (const auto &grid : grids)
        for (const ComponentOrder order : {ComponentOrder::Inside, ComponentOrder::Outside}) {
            const BlockFieldOptions options{
                .ghosts = GhostWidths::uniform(grid->dims(), 1), .components = 3, .order = order};
            Diffusing still(grid, options);
            Diffusing moving(grid, options);
            for (int step = 0; step < 8; ++step) {
                still.step();
                if (random() % 3 == 0)
                    moving.moveTo(rebalanced(*moving.grid, drawCosts(random, grid->blocks().size())));
                moving.step();
            }
            moving.moveTo(grid);
            EXPECT_EQ(moving.now.blockPattern(), still.now.blockPattern()) << "one pattern for one grid";
            expectSameBits(moving.now, still.now);
            expectSameBits(moving.next, still.next);
        }
}

TEST(RebalancedGrid, FieldsOfAnyType) {
    const auto grid = cubeOf(4);
    BlockField<std::int8_t> small("small", world(), grid, {.ghosts = {2, 0, 1}, .components = 3});
    fillField(small, 1);
    small.exchangeGhosts();
    std::vector<real> costs(grid->blocks().size(), 1);
    costs.front() = 30;
    const auto after = rebalanced(*grid, costs);
    auto moved = small.moved(after);
    checkField(moved, 1, modulo(grid->spaces().front()));
    fillField(moved, 2);
    moved.exchangeGhosts();
    checkField(moved, 2, modulo(grid->spaces().front()));
    messageOnAll<ArgumentError>([&] { (void)small.moved(cubeOf(3)); });
    messageOnAll<ArgumentError>([&] { (void)small.moved(nullptr); });
    small.startExchangeGhosts();
    messageOnAll<StateError>([&] { (void)small.moved(after); });
    small.finishExchangeGhosts();
}

} // namespace
} // namespace DNDS::test
