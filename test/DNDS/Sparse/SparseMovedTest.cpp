// Sparse fields on blocks that move to other ranks: the same blocks, counters and bits as without.

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

#include "support/World.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::test {
namespace {

/// Two species that drift through a grid, spread, and vanish.
template <class T>
struct Drifting {
    SparseGrid grid;
    T background;
    std::shared_ptr<const SparsePattern> pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
    SparseField<T> dust = make("dust", 2, {.allocationThreshold = 0.01, .deallocationThreshold = 0.005});
    SparseField<T> soot = make("soot", 1, {.deallocationCount = 3});
    std::vector<DroppedSums<T>> dropped;
    std::optional<SparseFields> species;

    Drifting(SparseGrid of, T value) : grid(std::move(of)), background(value) {
        dropped.emplace_back(dust);
        dropped.emplace_back(soot);
        species.emplace("species", std::initializer_list<SparseFieldCore *>{&dust, &soot});
    }
    SparseField<T> make(std::string name, rowsize components, SparseFieldOptions options) const {
        options.components = components;
        options.stages = 3;
        return {std::move(name), pattern, options, background};
    }
    void disturb(std::uint64_t round) {
        for (auto *field : {&dust, &soot})
            for (int b = 0; b < field->blocks(); ++b) {
                const auto number = static_cast<std::uint64_t>(field->block(b).block);
                const std::uint64_t draw = drawn(12, {number, round, field == &dust ? 0U : 1U});
                if (draw > 1)
                    continue;
                field->allocate(b);
                const auto u = field->view(b);
                for (index n = 0; n < u.size(); ++n) {
                    index offset = 0;
                    for (int d = 0; d < u.dims(); ++d)
                        offset += u.indexOf(n, d) * u.stride(d);
                    u.data()[offset] = background + static_cast<T>(draw == 0 && n % 3 == 0 ? 0.25 : 0);
                }
            }
    }
    void step() {
        species->exchangeGhosts();
        for (auto *field : {&dust, &soot}) {
            for (const int b : field->allocatedBlocks())
                diffuse(std::as_const(*field).view(b), field->view(b, 1), background, grid.ghosts);
            field->swapStages(1, 2);
            field->swapStages(0, 2);
        }
    }
    void moveTo(const std::shared_ptr<const BlockGrid> &to) {
        pattern = SparsePattern::make(world(), to, grid.ghosts);
        dust = dust.moved(pattern);
        soot = soot.moved(pattern);
        dropped[0].follow(dust);
        dropped[1].follow(soot);
        species.emplace("species", std::initializer_list<SparseFieldCore *>{&dust, &soot});
    }
    /// Costs by what is there.
    std::shared_ptr<const BlockGrid> rebalanced(std::uint64_t round) const {
        std::vector<real> costs;
        for (int b = 0; b < dust.blocks(); ++b)
            costs.push_back(static_cast<real>((dust.isAllocated(b) ? 2 : 0) + (soot.isAllocated(b) ? 1 : 0) +
                                              static_cast<int>(drawn(3, {round, 77}))));
        return pattern->grid()->rebalanced(world(), costs);
    }
};

template <class T>
void expectSameBlocks(const SparseField<T> &moved, const SparseField<T> &still) {
    ASSERT_EQ(moved.allocatedBlocks(), still.allocatedBlocks()) << still.name();
    EXPECT_EQ(moved.defaultValue(), still.defaultValue());
    for (const int b : still.allocatedBlocks()) {
        EXPECT_EQ(moved.emptyExchanges(b), still.emptyExchanges(b));
        for (int stage = 0; stage < still.options().stages; ++stage)
            EXPECT_TRUE(sameBits(elementsOf(moved.view(b, stage)), elementsOf(still.view(b, stage))))
                << still.name() << ", stage " << stage << " of block " << still.block(b).block;
    }
}

template <class T>
void expectSameRuns(T background) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        Drifting<T> still(grid, background);
        Drifting<T> moving(grid, background);
        for (std::uint64_t round = 0; round < 14; ++round) {
            for (auto *run : {&still, &moving}) {
                if (round % 5 == 0)
                    run->disturb(round);
                if (run == &moving && drawn(3, {round}) == 0)
                    run->moveTo(run->rebalanced(round));
                run->step();
            }
            EXPECT_EQ(sums(moving.dust), sums(still.dust)) << round;
        }
        for (std::size_t k = 0; k < 2; ++k)
            EXPECT_EQ(moving.dropped[k].sums(), still.dropped[k].sums());
        expectSameBlocks(moving.dust.moved(still.pattern), still.dust);
        expectSameBlocks(moving.soot.moved(still.pattern), still.soot);
    }
}

TEST(SparseMoved, RunsHaveTheBitsOfRunsThatNeverMoved) {
    expectSameRuns<real>(0);
    expectSameRuns<float>(0.1F);
}

TEST(SparseMoved, WhatIsThereIsBalanced) {
    const SparseGrid grid{"plane", {{"plane", Box({0, 0}, {96, 96}), {true, true}}}, {4, 4}, {1, 1}};
    Drifting<real> run(grid, 0);
    for (int b = 0; b < run.dust.blocks(); ++b)
        if (run.dust.block(b).cells.lower[0] < 40 && run.dust.block(b).cells.lower[1] < 40)
            run.dust.allocate(b);
    const real all = world().allReduce(static_cast<real>(run.dust.allocatedBlocks().size()), MPI_SUM);
    std::vector<real> costs;
    for (int b = 0; b < run.dust.blocks(); ++b)
        costs.push_back(run.dust.isAllocated(b) ? 1 : 0);
    run.moveTo(run.pattern->grid()->rebalanced(world(), costs));
    const auto mine = static_cast<real>(run.dust.allocatedBlocks().size());
    EXPECT_EQ(world().allReduce(mine, MPI_SUM), all);
    EXPECT_LE(mine, std::ceil(1.1 * all / world().size()));
}

TEST(SparseMoved, WhatIsDroppedIsCountedOfTheLatestFieldOnly) {
    const auto grid = BlockGrid::blocksOf(world(), {"ring", Box({0}, {40}), {true}}, {4});
    const auto pattern = SparsePattern::make(world(), grid, {1});
    const SparseFieldOptions options{.allocationThreshold = 1, .deallocationThreshold = 1, .deallocationCount = 1};
    SparseField<real> before("before", pattern, options);
    DroppedSums<real> dropped(before);
    for (int b = 0; b < before.blocks(); ++b) {
        before.allocate(b);
        for (index i = 0; i < 4; ++i)
            before.view(b)(i) = 0.25;
    }
    std::vector<real> costs(toSize(before.blocks()), world().rank() == 0 ? 0 : 1);
    SparseField<real> after = before.moved(SparsePattern::make(world(), grid->rebalanced(world(), costs), {1}));
    dropped.follow(after);
    before.exchangeGhosts();
    EXPECT_EQ(dropped.sums()[0], 0);
    after.exchangeGhosts();
    EXPECT_EQ(dropped.sums()[0], 10);
}

TEST(SparseMoved, MovesBetweenPatternsOfTheSameBlocksOnly) {
    const SparseGrid grid{"ring", {{"ring", Box({0}, {40}), {true}}}, {4}, {2}};
    Drifting<real> run(grid, 0);
    const auto blocks = run.pattern->grid();
    messageOnAll<ArgumentError>([&] { (void)run.dust.moved(SparsePattern::make(world(), blocks, {1})); });
    messageOnAll<ArgumentError>([&] { (void)run.dust.moved(nullptr); });
    const auto coarser = BlockGrid::blocksOf(world(), blocks->spaces(), std::vector<index>{5});
    messageOnAll<ArgumentError>([&] { (void)run.dust.moved(SparsePattern::make(world(), coarser, {2})); });
    run.species->startExchangeGhosts();
    messageOnAll<StateError>([&] { (void)run.dust.moved(run.pattern); });
    run.species->finishExchangeGhosts();
    run.disturb(0);
    const auto small =
        SparsePattern::make(world(), blocks->rebalanced(world(), std::vector<real>(toSize(run.dust.blocks()), 1)), {2});
    small->pool().setLimit(8);
    if (world().allReduce(run.dust.allocatedBlocks().size(), MPI_MAX) > 0)
        messageOnAll<MemoryError>([&] { (void)run.dust.moved(small); });
    run.step(); // as if nothing had happened
}

} // namespace
} // namespace DNDS::test
