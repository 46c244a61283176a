#include "DNDS/Sparse/SparseTasks.hpp"

#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/Survival.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "support/World.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace DNDS::test {
namespace {

constexpr SparseFieldOptions options{
    .stages = 2, .allocationThreshold = 1e-3, .deallocationThreshold = 1e-4, .deallocationCount = 2};

/// Two species, and a wind that all blocks have.
struct Case {
    const SparseGrid &grid;
    std::shared_ptr<const BlockGrid> blocks = grid.on(world());
    std::shared_ptr<const SparsePattern> pattern = SparsePattern::make(world(), blocks, grid.ghosts);
    SparseField<real> dust{"dust", pattern, options};
    SparseField<real> soot{"soot", pattern, options};
    SparseFields species{"species", {&dust, &soot}};
    BlockField<real> wind{"wind", world(), BlockPattern::make(world(), blocks, grid.ghosts)};

    explicit Case(const SparseGrid &of) : grid(of) {
        for (auto *field : {&dust, &soot})
            for (int b = 0; b < field->blocks(); ++b)
                if (drawn(4, {static_cast<std::uint64_t>(field->block(b).block), field == &dust ? 1U : 2U}) == 0)
                    light(*field, b);
        for (int b = 0; b < wind.blocks(); ++b)
            each(wind.view(b), [&](const IndexVector &cell) {
                at(wind.view(b), cell, 0) = 0.01 * static_cast<real>((cell[0] + wind.block(b).block) % 3);
            });
    }
    static void light(SparseField<real> &field, int block) {
        field.allocate(block);
        const IndexVector first{};
        at(field.view(block), first, 0) = 1;
    }
    template <class Visit>
    static void each(const BlockView<real> &view, Visit &&visit) {
        Box cells(view.dims(), {}, {});
        for (int d = 0; d < view.dims(); ++d)
            cells.upper[toSize(d)] = view.extent(d);
        forEachCell(cells, visit);
    }
    /// Allocated contents of this rank, to the bit, by field and block.
    std::map<std::pair<std::string, int>, std::vector<real>> contents() const {
        std::map<std::pair<std::string, int>, std::vector<real>> all;
        for (const auto *field : {&dust, &soot})
            for (const int b : field->allocatedBlocks())
                all[{field->name(), field->block(b).block}] = elementsOf(field->view(b));
        return all;
    }
};

/// Dust diffuses, decays with the wind, and soot comes to where both are.
void advanceDust(const SparseBlock<real> &dust, const BlockView<const real> &wind, const GhostWidths &ghosts) {
    diffuse(dust.readView(), dust.view(1), real{0}, ghosts);
    Case::each(dust.view(1), [&](const IndexVector &cell) { at(dust.view(1), cell, 0) *= 0.7 - at(wind, cell, 0); });
}
void advanceSoot(const SparseBlock<real> &soot, const SparseBlock<const real> &dust, const GhostWidths &ghosts) {
    diffuse(soot.readView(), soot.view(1), real{0}, ghosts);
    if (dust.isAllocated())
        Case::each(soot.view(1), [&](const IndexVector &cell) {
            at(soot.view(1), cell, 0) = 0.8 * at(soot.view(1), cell, 0) + 0.01 * at(dust.view(), cell, 0);
        });
}

void stepByHand(Case &now) {
    now.species.exchangeGhosts();
    for (const int b : now.soot.allocatedBlocks())
        advanceSoot({now.soot, b}, {now.dust, b}, now.grid.ghosts);
    for (const int b : now.dust.allocatedBlocks())
        advanceDust({now.dust, b}, std::as_const(now.wind).view(b), now.grid.ghosts);
    now.soot.swapStages(0, 1);
    now.dust.swapStages(0, 1);
}

void declareStep(Task::Graph &step, Case &of) {
    const GhostWidths ghosts = of.grid.ghosts;
    exchangeGhosts(step, of.species);
    step.task("soot", blocksOf(of.soot))
        .readsWrites(of.soot)
        .reads(of.dust)
        .run([ghosts](int /*block*/, const SparseBlock<real> &soot, const SparseBlock<const real> &dust) {
            advanceSoot(soot, dust, ghosts);
        });
    step.task("dust", blocksOf(of.dust))
        .readsWrites(of.dust)
        .reads(Task::whole(of.wind))
        .run([ghosts](int /*block*/, const SparseBlock<real> &dust, const BlockView<const real> &wind) {
            advanceDust(dust, wind, ghosts);
        });
    swapStages(step, of.soot, 0, 1);
    swapStages(step, of.dust, 0, 1);
}

std::vector<Executor> executors() { return {Executor::host(), Executor::hostThreads(3)}; }

TEST(SparseTasks, PlansDoWhatLoopsByHandDo) {
    for (const SparseGrid &grid : sparseGrids())
        for (const Executor &executor : executors()) {
            SCOPED_TRACE(grid.name);
            Case byHand(grid);
            Case byPlan(grid);
            Task::Graph step("step", world());
            declareStep(step, byPlan);
            Task::Plan plan = step.compile(executor);
            for (int k = 0; k < 12; ++k) {
                SCOPED_TRACE(k);
                stepByHand(byHand);
                plan.run();
                EXPECT_EQ(byHand.contents(), byPlan.contents());
            }
            const SparseTraffic one = byHand.species.traffic();
            const SparseTraffic other = byPlan.species.traffic();
            EXPECT_EQ(one.allocations, other.allocations);
            EXPECT_EQ(one.frees, other.frees);
            EXPECT_EQ(one.exchanges, other.exchanges);
        }
}

/// Each block of dust leaves a part of itself in its neighbours' cells, by tasks and by hand.
TEST(SparseTasks, PushesAreTasks) {
    const std::vector<SparseGrid> grids = sparseGrids();
    for (const SparseGrid &grid : {grids[1], grids[5]}) // walls, and turned zones
        for (const Executor &executor : executors()) {
            SCOPED_TRACE(grid.name);
            Case byHand(grid);
            Case byPlan(grid);
            const auto shed = [](const BlockView<real> &u) {
                Box all(u.dims(), {}, {});
                for (int d = 0; d < u.dims(); ++d) {
                    all.lower[toSize(d)] = -u.ghostsLow(d);
                    all.upper[toSize(d)] = u.extent(d) + u.ghostsHigh(d);
                }
                const real most = 0.125 * at(u, {}, 0);
                forEachCell(all, [&](const IndexVector &cell) { at(u, cell, 0) += most; });
            };
            Task::Graph step("step", world());
            step.task("shed", blocksOf(byPlan.dust))
                .readsWrites(byPlan.dust)
                .run([shed](int /*block*/, const SparseBlock<real> &dust) { shed(dust.view()); });
            std::size_t seen = 0;
            startPushGhosts(step, byPlan.species);
            step.call("look").reads(byPlan.dust).run([&](const SparseField<real> &dust) {
                seen += dust.allocatedBlocks().size();
            });
            finishPushGhosts(step, byPlan.species);
            pushGhosts(step, byPlan.species); // of nothing
            Task::Plan plan = step.compile(executor);
            for (int k = 0; k < 4; ++k) {
                for (const int b : byHand.dust.allocatedBlocks())
                    shed(byHand.dust.view(b));
                byHand.species.pushGhosts();
                plan.run();
                EXPECT_EQ(byHand.contents(), byPlan.contents());
            }
            EXPECT_EQ(byPlan.species.traffic().exchanges, 8U);
        }
}

SparseGrid ring() { return sparseGrids().front(); }

/// A loop runs over what is allocated at that moment, not over what was when the plan was made.
TEST(SparseTasks, LoopsAskEachTimeWhichBlocksAreThere) {
    const SparseGrid grid = ring();
    Case now(grid);
    for (const int b : now.dust.allocatedBlocks())
        now.dust.free(b);
    std::mutex mutex;
    std::set<int> seen;
    Task::Graph graph("count", world());
    graph.task("see", blocksOf(now.dust)).reads(now.dust).run([&](int block, const SparseBlock<const real> &dust) {
        EXPECT_TRUE(dust.isAllocated());
        const std::scoped_lock lock(mutex);
        EXPECT_TRUE(seen.insert(block).second);
    });
    Task::Plan plan = graph.compile();
    plan.run();
    EXPECT_TRUE(seen.empty());
    for (int b = 0; b < now.dust.blocks(); b += 2)
        now.dust.allocate(b);
    plan.run();
    const std::vector<int> there = now.dust.allocatedBlocks();
    EXPECT_EQ(seen, std::set<int>(there.begin(), there.end()));
}

TEST(SparseTasks, TasksBetweenTheHalvesRunWhileMessagesAreOnTheirWay) {
    const SparseGrid grid = ring();
    Case now(grid);
    int inFlight = 0;
    Task::Graph graph("overlap", world());
    startExchangeGhosts(graph, now.species);
    graph.task("meanwhile", blocksOf(now.dust))
        .reads(now.dust)
        .run([&](int /*block*/, const SparseBlock<const real> &) { inFlight += now.species.inFlight() ? 1 : 0; });
    finishExchangeGhosts(graph, now.species);
    const auto blocks = static_cast<int>(now.dust.allocatedBlocks().size());
    graph.compile().run();
    EXPECT_EQ(inFlight, blocks);
    EXPECT_FALSE(now.species.inFlight());
    EXPECT_EQ(now.species.traffic().exchanges, 1U);
}

TEST(SparseTasks, TasksThatWriteBetweenTheHalvesAreRefused) {
    const SparseGrid grid = ring();
    Case now(grid);
    for (const bool pushes : {false, true}) {
        Task::Graph graph("written between", world());
        pushes ? startPushGhosts(graph, now.species) : startExchangeGhosts(graph, now.species);
        graph.task("late", blocksOf(now.soot)).readsWrites(now.soot).run([](int, const SparseBlock<real> &) {});
        const std::string said = messageOf<ArgumentError>(
            [&] { pushes ? finishPushGhosts(graph, now.species) : finishExchangeGhosts(graph, now.species); });
        EXPECT_NE(said.find(pushes ? "finish of their push" : "finish of their exchange"), std::string::npos) << said;
        EXPECT_NE(said.find("task 'late'"), std::string::npos) << said;
    }
}

TEST(SparseTasks, EachBlockIsAChunkForThreads) {
    const SparseGrid grid{"line", {{"line", Box({0}, {64}), {true}}}, {1}, {1}};
    Case now(grid);
    for (int b = 0; b < now.dust.blocks(); ++b)
        now.dust.allocate(b);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::atomic<int> calls{0};
    Task::Graph graph("threads", world());
    graph.task("who", blocksOf(now.dust)).reads(now.dust).run([&](int /*block*/, const SparseBlock<const real> &) {
        ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::scoped_lock lock(mutex);
        threads.insert(std::this_thread::get_id());
    });
    Task::Plan plan = graph.compile(Executor::hostThreads(2));
    for (int k = 0; k < 50 && threads.size() < 2; ++k)
        plan.run();
    EXPECT_EQ(calls % std::max(1, now.dust.blocks()), 0);
    if (now.dust.blocks() > 4) {
        EXPECT_EQ(threads.size(), 2U);
    }
}

TEST(SparseTasks, CallsGetTheFieldAndAsyncOnesACopy) {
    const SparseGrid grid = ring();
    Case now(grid);
    std::map<int, std::vector<real>> picture;
    Task::Graph graph("picture", world());
    graph.asyncCall("picture").reads(now.dust).run([&](const SparseField<real> &dust) {
        picture.clear();
        for (const int b : dust.allocatedBlocks())
            picture[b] = elementsOf(dust.view(b));
    });
    graph.call("clear").readsWrites(now.dust).run([](SparseField<real> &dust) {
        for (const int b : dust.allocatedBlocks())
            dust.free(b);
        if (dust.blocks() > 1)
            Case::light(dust, 1);
    });
    Task::Plan plan = graph.compile();
    for (int k = 0; k < 2; ++k) {
        std::map<int, std::vector<real>> before;
        for (const int b : now.dust.allocatedBlocks())
            before[b] = elementsOf(std::as_const(now.dust).view(b));
        plan.run();
        plan.finish();
        EXPECT_EQ(picture, before);
        EXPECT_EQ(now.dust.allocatedBlocks(), now.dust.blocks() > 1 ? std::vector{1} : std::vector<int>{});
    }
}

/// A run fails on one rank before an exchange, or within one; all recover, and the next one works.
TEST(SparseTasks, ARunThatFailsIsRecoveredFrom) {
    const SparseGrid grid = ring();
    Case now(grid);
    bool before = false, within = false;
    Task::Graph graph("failing", world());
    const auto throwIf = [](bool &fails) {
        if (fails)
            throw DataError("this rank has no wish to go on");
    };
    graph.call("first").run([&] { throwIf(before); });
    startExchangeGhosts(graph, now.species);
    graph.call("meanwhile").run([&] { throwIf(within); });
    finishExchangeGhosts(graph, now.species);
    Task::Plan plan = graph.compile();
    for (bool *fails : {&before, &within}) {
        const bool here = world().rank() == world().size() - 1;
        *fails = here;
        survive(world(), {.rank = world().size() - 1,
                          .told = "no wish to go on",
                          .happens = [&] { plan.run(); },
                          .call = [&] { plan.run(); },
                          .repair = [&] { *fails = false; },
                          .recover =
                              [&] {
                                  recover(world());
                                  EXPECT_FALSE(now.species.inFlight());
                                  plan.recover();
                              }});
        Task::changed(now.dust);
        Task::changed(now.soot);
        plan.run();
    }
}

TEST(SparseTasks, PlansOnADeviceSayThatFieldsAreOnTheHost) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const SparseGrid grid = ring();
    Case now(grid);
    Device::Stream stream;
    Task::Graph exchange("exchange", world());
    exchangeGhosts(exchange, now.species);
    swapStages(exchange, now.dust, 0, 1);
    Task::Plan calls = exchange.compile(Executor::device(stream)); // calls run on the host
    calls.run();
    EXPECT_EQ(now.species.traffic().exchanges, 1U);
    Task::Graph loop("loop", world());
    loop.task("loop", blocksOf(now.dust)).reads(now.dust).run([](int /*block*/, const SparseBlock<const real> &) {});
    Task::Plan plan = loop.compile(Executor::device(stream));
    expectContains(messageOf<Error>([&] { plan.run(); }), "on the host");
    world().barrier();
    recover(world());
}

TEST(SparseTasks, FieldsOnOtherBlocksAreRefused) {
    const SparseGrid grid = ring();
    Case now(grid);
    const SparseField<real> other("other", SparsePattern::make(world(), now.blocks, grid.ghosts), options);
    Task::Graph graph("refused", world());
    try {
        graph.task("mixed", blocksOf(now.dust))
            .reads(now.dust, other)
            .run([](int /*block*/, const SparseBlock<const real> &, const SparseBlock<const real> &) {});
        ADD_FAILURE() << "fields on different patterns were taken";
    } catch (const ArgumentError &error) {
        expectContains(error.what(), "other blocks");
    }
}

} // namespace
} // namespace DNDS::test
