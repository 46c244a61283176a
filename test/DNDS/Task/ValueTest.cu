// Numbers that change between runs of a plan, on the host, in threads, and in captured graphs of a device.

#include "DNDS/Task/Graph.hpp"

#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Task/GraphWorld.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;
using Pair = ArrayPair<ParArray<real, 1>>;

struct Growth {
    real step = 0, offset = 0;
};

struct Grow {
    template <class Rate, class U>
    DNDS_HOST_DEVICE void operator()(index row, const Rate &rate, const ReadValue<real> &dt,
                                     const ReadValue<Growth> &growth, const U &u) const {
        u(row) += dt() * rate(row) * growth().step + growth().offset;
    }
};

void compareSteps(const Executor &executor, bool recompute) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    GraphWorld world(comm, 5, 80, 1);
    Pair u, rate;
    for (Pair *pair : {&u, &rate}) {
        pair->initPair(pair == &u ? "u" : "rate", comm);
        pair->father->resize(world.cells.owned);
        pair->transAttach();
        pair->trans.usePattern(world.cells.pattern);
        pair->trans.createMPITypes();
        for (index row = 0; row < world.cells.owned; ++row)
            (*pair->father)(row, 0) = static_cast<real>(world.cells.global[toSize(row)] + 1);
    }
    std::vector<real> all(80);
    for (std::size_t cell = 0; cell < all.size(); ++cell)
        all[cell] = static_cast<real>(cell + 1);

    Value<real> dt("dt", 0.25);
    const Value<Growth> growth("growth", {.step = 2, .offset = 1});
    Graph graph("steps", comm);
    auto task = graph.task("grow", world.cells).reads(rate, dt, growth);
    if (recompute)
        task = std::move(task).recomputeGhosts();
    std::move(task).readsWrites(u).run(Grow{});
    real seen = 0;
    graph.call("look").reads(whole(u), dt).run([&](const auto &rows, const ReadValue<real> &step) {
        seen = step();
        for (index row = 0; row < rows.size(); ++row)
            ASSERT_EQ(rows(row), all[toSize(world.cells.global[toSize(row)])]) << "row " << row;
    });
    Plan plan = graph.compile(executor);
    for (int run = 0; run < 6; ++run) {
        if (run % 2 == 1)
            dt.set(0.5 * run);
        for (std::size_t cell = 0; cell < all.size(); ++cell)
            all[cell] += dt.get() * static_cast<real>(cell + 1) * 2 + 1;
        plan.run();
        EXPECT_EQ(seen, dt.get()) << "run " << run;
        if (testing::Test::HasFatalFailure())
            return;
    }
    if (recompute) {
        EXPECT_TRUE(plan.model().recomputes[0]) << "it is the same on all ranks\n" << plan.describe();
    }
}

/// Without calls: a device replays the step from a captured graph.
void replaySteps(const Executor &executor) {
    const CommunicatorView comm(MPI_COMM_SELF);
    ParArray<real, 1> u("u", comm), rate("rate", comm);
    for (ParArray<real, 1> *array : {&u, &rate}) {
        array->resize(10);
        for (index row = 0; row < 10; ++row)
            (*array)(row, 0) = static_cast<real>(row);
    }
    Value<real> dt("dt");
    const Value<Growth> growth("growth", {.step = 1, .offset = 0});
    Graph graph("replayed", comm);
    graph.task("grow", RowSpace("rows", 10)).reads(rate, dt, growth).readsWrites(u).run(Grow{});
    Plan plan = graph.compile(executor);
    real sum = 1;
    for (int run = 1; run < 6; ++run) {
        dt.set(run);
        sum += run;
        plan.run();
    }
    u.toHost();
    for (index row = 0; row < 10; ++row)
        EXPECT_EQ(std::as_const(u)(row, 0), sum * static_cast<real>(row));
    if (executor.onDevice()) {
        EXPECT_GT(plan.graphs()->launches, 0) << plan.graphs()->whyNot;
    }
}

struct Fill {
    DNDS_HOST_DEVICE void operator()(const BlockCell &cell, const BlockView<real> &u, const ReadValue<real> &dt) const {
        u(cell[0], cell[1]) += dt();
    }
};

void fillBlocks(const Executor &executor) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto grid = BlockGrid::blocksOf(comm, {"box", Box({0, 0}, {13, 10}), {false, false}}, {4, 3});
    BlockField<real> u("u", comm, BlockPattern::make(comm, grid, {1, 1}));
    const BlockRows cells("cells", u.blockPattern());
    Value<real> dt("dt");
    Graph graph("fill", comm);
    graph.task("fill", cells.cells()).readsWrites(u).reads(dt).run(Fill{});
    Plan plan = graph.compile(executor);
    for (int run = 1; run < 5; ++run) {
        dt.set(run);
        plan.run();
    }
    u.toHost();
    for (int b = 0; b < u.blocks(); ++b) {
        const auto view = std::as_const(u).view(b);
        for (index i = 0; i < view.extent(0); ++i)
            for (index j = 0; j < view.extent(1); ++j)
                ASSERT_EQ(view(i, j), 10);
    }
}

TEST(PlanValues, ChangeBetweenRuns) {
    for (const bool recompute : {false, true})
        compareSteps(Executor::host(), recompute);
    replaySteps(Executor::host());
    fillBlocks(Executor::host());
}

TEST(PlanValuesOnDevice, ChangeBetweenRuns) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    for (const bool recompute : {false, true})
        compareSteps(Executor::device(stream), recompute);
    replaySteps(Executor::device(stream));
    fillBlocks(Executor::device(stream));
}

struct FromGhosts {
    template <class In, class Out>
    DNDS_HOST_DEVICE void operator()(index row, const In &in, const Out &out) const {
        out(row) = in(4 + row % 2);
    }
};

struct AddOne {
    template <class U>
    DNDS_HOST_DEVICE void operator()(index row, const U &u) const {
        u(row) += 1;
    }
};

/// Pulls within the rank, as of periodic images, are captured with the kernels. They find arrays that changed places.
TEST(PlanGraphsOnDevice, PullWithinTheRankWhatWasSwapped) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto pattern = ExchangePattern::fromLists(CommunicatorContext::of(comm.handle()), [&] {
        ExchangePattern::Rows rows{4, 2, {}, {}};
        rows.given.append(comm.rank(), std::vector<index>{0, 3});
        rows.received.append(comm.rank(), std::vector<index>{0, 1});
        return rows;
    });
    for (const index period : {1, 2, 4}) {
        Pair u, v, w;
        std::array<real, 4> inU{1, 2, 3, 4}, inV{1000, 2000, 3000, 4000};
        for (Pair *pair : {&u, &v, &w}) {
            pair->initPair(pair == &u ? "u" : pair == &v ? "v" : "w", comm);
            pair->father->resize(4);
            pair->transAttach();
            pair->trans.usePattern(pattern);
            pair->trans.createMPITypes();
            for (index row = 0; row < 4; ++row)
                (*pair->father)(row, 0) = pair == &u ? inU[toSize(row)] : inV[toSize(row)];
        }
        const RowSpace cells("cells", 4, 2, pattern);
        Graph graph("periodic", comm);
        graph.task("spread", cells).reads(whole(u)).writes(w).run(FromGhosts{});
        graph.task("add", cells).readsWrites(u).run(AddOne{});
        Plan plan = graph.compile(Executor::device(stream));
        for (index run = 0; run < 16; ++run) {
            if (run == 10) {
                comm.barrier(); // no rank is in a run when one recovers
                plan.recover();
            }
            plan.run();
            w.toHost();
            for (index row = 0; row < 4; ++row)
                ASSERT_EQ(std::as_const(*w.father)(row, 0), inU[row % 2 == 0 ? 0 : 3])
                    << "run " << run << ", row " << row << ", swapped every " << period;
            for (real &value : inU)
                value += 1;
            if (run % period == period - 1) {
                u.swapData(v);
                std::swap(inU, inV);
            }
        }
        EXPECT_TRUE(plan.graphs()->wholeRuns);
        EXPECT_EQ(plan.graphs()->launches > 0, period > 1) << plan.graphs()->whyNot;
    }
}

TEST(PlanValues, AsyncCallsGetCopies) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    Value<real> dt("dt", 1);
    Graph graph("aside", comm);
    std::vector<real> seen;
    graph.asyncCall("keep").reads(dt).run([&](const ReadValue<real> &step) { seen.push_back(step()); });
    Plan plan = graph.compile();
    for (int run = 0; run < 3; ++run) {
        dt.set(run);
        plan.run();
    }
    plan.finish();
    EXPECT_EQ(seen, (std::vector<real>{0, 1, 2}));
}

} // namespace
} // namespace DNDS::Task
