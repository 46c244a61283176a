// Plans that are used as they must not be, or beside others that know less than they do.

#include "DNDS/Task/PlanFields.hpp"

#include "DNDS/Mpi/FailTogether.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <utility>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

struct PlanMisuse : testing::Test {
    PlanWorld world;
    std::unique_ptr<PlanPair> u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2);
    RowSpace cells{"cells", world.cells};

    /// Runs that throw stop all ranks of the communicator.
    void TearDown() override {
        world.comm.barrier();
        recover(world.comm);
    }

    Graph adding(const std::string &name, PlanPair &field) {
        Graph graph(name, world.comm);
        graph.task("add", cells).readsWrites(field).run([](index row, const auto &values) { values(row) += 1; });
        return graph;
    }
};

TEST_F(PlanMisuse, GhostsThatOnePlanFinishedArePulledByOthers) {
    // The graphs' names differ, their reads do not: only the first graph changes its pulled ghosts.
    const auto sums = [&](Graph &graph, real &sum) {
        graph.call("look").reads(*u).run([&](const auto &rows) {
            sum = 0;
            for (index row = world.cells.owned; row < rows.size(); ++row)
                sum += rows(row);
        });
    };
    real finished = 0, plain = 0;
    Graph one("finishing", world.comm), other("plain", world.comm);
    one.finishPulls(*u, cells.region("ghosts"), [](index row, const auto &ghosts) { ghosts(row) += 1000; });
    sums(one, finished);
    sums(other, plain);
    Plan finishing = one.compile(), reading = other.compile();
    reading.run();
    const real alone = plain;
    for (int run = 0; run < 3; ++run) {
        finishing.run();
        EXPECT_NEAR(finished, alone + 1000 * static_cast<real>(world.cells.ghosts), 1e-9 * std::abs(finished));
        finishing.run(); // finds its own, and does not finish them again
        EXPECT_NEAR(finished, alone + 1000 * static_cast<real>(world.cells.ghosts), 1e-9 * std::abs(finished));
        reading.run();
        EXPECT_EQ(plain, alone);
    }
}

TEST_F(PlanMisuse, ReductionsOfArraysThatChanged) {
    ParArray<real, DynamicSize> rows("rows", world.comm);
    rows.resize(20, 2);
    for (index row = 0; row < 20; ++row)
        for (rowsize k = 0; k < 2; ++k)
            rows(row, k) = 1;
    Graph graph("sums", world.comm);
    const Reduction sum = graph.reduce("sum", ReduceOp::Sum, rows, 15);
    Plan plan = graph.compile();
    plan.run();
    EXPECT_EQ(plan.result(sum)[1], 15.0 * world.comm.size());
    rows.resize(10, 2);
    expectContains(messageOnAll<ArgumentError>([&] { (void)graph.compile(); }),
                   "'sum' is of 15 rows, but 'rows' has 10");
    rows.resize(20, 4);
    expectContains(messageOnAll<ArgumentError>([&] { (void)graph.compile(); }), "2 columns, but rows of 'rows' have 4");
    expectContains(messageOnAll<Error>([&] { plan.run(); }), "'rows'");
}

TEST_F(PlanMisuse, ArraysThatGrewBeforeTheyWereCompiled) {
    PlanLocal a("a", world.comm);
    a.resize(10);
    Graph graph("grown", world.comm);
    graph.task("set", RowSpace("ten", 10)).writes(a).run([](index row, const auto &out) { out(row) = 1; });
    a.resize(20);
    expectContains(messageOnAll<ArgumentError>([&] { (void)graph.compile(); }), "'a'");
}

TEST_F(PlanMisuse, ChunksOfAllRows) {
    CompileOptions options;
    options.rowsPerChunk = std::numeric_limits<index>::max();
    Graph graph = adding("all at once", *u);
    graph.task("scatter", world.faces)
        .adds(through(*v, world.faceCells))
        .run([view = world.viewOf(world.faceCells)](index face, const auto &sums) {
            for (const LocalIndex cell : view[face])
                if (cell >= 0)
                    sums.add(cell, 1);
        });
    for (index row = 0; row < world.cells.owned; ++row)
        (*v->father)(row, 0) = 0;
    const auto total = [&] {
        real sum = 0;
        for (index row = 0; row < world.cells.owned; ++row)
            sum += std::as_const(*v->father)(row, 0);
        return world.comm.allReduce(sum, MPI_SUM);
    };
    graph.compile(Executor::hostThreads(3), options).run();
    const real threads = total();
    graph.compile().run();
    EXPECT_EQ(total(), 2 * threads);
    EXPECT_GT(threads, 0);
}

TEST_F(PlanMisuse, AFreedCommunicator) {
    MPI_Comm freed = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    {
        const PlanWorld there(3, 60, 1, freed);
        const auto w = PlanWorld::pair("w", there.cells, 1, freed);
        Graph graph("late", freed);
        graph.task("add", there.cells).readsWrites(*w).run([](index row, const auto &values) { values(row) += 1; });
        const Reduction sum = graph.reduce("sum", ReduceOp::Sum, *w);
        Plan plan = graph.compile();
        plan.run();
        MPI_Comm_free(&freed);
        for (const std::function<void()> &use :
             std::vector<std::function<void()>>{[&] { (void)plan.result(sum); }, [&] { plan.run(); },
                                                [&] { plan.recover(); }, [&] { (void)graph.compile(); }})
            expectContains(messageOnAll<StateError>(use), "was freed");
    }
}

TEST_F(PlanMisuse, AGraphOnAnotherCommunicator) {
    Graph graph("alone", MPI_COMM_SELF);
    graph.task("add", cells).readsWrites(*u).run([](index row, const auto &values) { values(row) += 1; });
    if (worldSize() == 1)
        EXPECT_NO_THROW((void)graph.compile()) << "the same processes";
    else
        expectContains(messageOnAll<ArgumentError>([&] { (void)graph.compile(); }), "another communicator than 'u'");
}

TEST_F(PlanMisuse, RecoveredByItsOwnTask) {
    for (const int threads : {1, 3}) {
        std::optional<Plan> plan;
        Graph graph = adding("recovers", *u);
        graph.call("recover").run([&] { plan->recover(); });
        plan.emplace(graph.compile(Executor::hostThreads(threads)));
        EXPECT_THROW(plan->run(), Error);
        world.comm.barrier();
        plan->recover();
    }
}

TEST_F(PlanMisuse, MovedFrom) {
    Plan plan = adding("moved", *u).compile();
    const Plan there = std::move(plan);
    // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
    for (const std::function<void()> &use : std::vector<std::function<void()>>{
             [&] { plan.run(); }, [&] { plan.recover(); }, [&] { (void)plan.paths(); }, [&] { (void)plan.describe(); },
             [&] { (void)plan.dot(); }, [&] { (void)plan.model(); }, [&] { (void)plan.statistics(); },
             [&] { (void)plan.graphs(); }})
        EXPECT_THROW(use(), StateError);
    // NOLINTEND(bugprone-use-after-move)
}

TEST_F(PlanMisuse, ArraysThatWereDestroyed) {
    for (const bool pair : {false, true})
        for (int rank = -1; rank < world.comm.size(); ++rank) {
            std::optional<PlanLocal> flux(std::in_place, "flux", world.comm);
            flux->resize(world.faces.size());
            auto field = PlanWorld::pair("field", world.cells, 1);
            Graph graph("graph", world.comm);
            graph.task("mean", world.cells)
                .reads(through(*flux, world.cellFaces), through(*field, world.cellCells))
                .writes(*v)
                .run([](index row, const auto &, const auto &, const auto &out) { out(row) = 1; });
            graph.task("ones", world.cells).writes(*field).run([](index row, const auto &out) { out(row) = 1; });
            const Reduction sum = graph.reduce("sum", ReduceOp::Sum, *v);
            Plan plan = graph.compile();
            plan.run();
            EXPECT_EQ(plan.result(sum)[0], static_cast<real>(world.allCellCells.size()));
            world.comm.barrier(); // before a rank fails
            const bool here = rank < 0 || rank == world.comm.rank();
            if (here && pair)
                field.reset();
            if (here && !pair)
                flux.reset();
            const std::string text = fmt::format("'{}' was destroyed", pair ? "field" : "flux");
            expectContains(messageOnAll<Error>([&] {
                               plan.run();
                               (void)plan.result(sum);
                           }),
                           text);
            recover(world.comm);
            if (rank < 0) {
                expectContains(messageOnAll<StateError>([&] { (void)graph.compile(); }), text);
                expectContains(plan.describe(), world.exchanges ? "'field'" : "plan 'graph'");
            }
        }
}

TEST_F(PlanMisuse, ArraysThatWereMovedAwayAndBack) {
    auto field = PlanWorld::pair("field", world.cells, 1);
    Graph graph("graph", world.comm);
    graph.call("look").reads(whole(*field)).run([](const auto &) {});
    Plan plan = graph.compile();
    plan.run();
    world.comm.barrier(); // before ranks fail
    PlanPair elsewhere = std::move(*field);
    messageOnAll<Error>([&] { plan.run(); });
    *field = std::move(elsewhere);
    plan.recover();
    plan.run();
    Graph other("other", world.comm);
    other.call("look").reads(*v).run([](const auto &) {});
    EXPECT_NO_THROW(other.compile().run());
}

TEST_F(PlanMisuse, ExceptionsThatAreNoStdExceptions) {
    Graph graph("odd", world.comm);
    graph.call("seven").run([] { throw 7; }); // NOLINT
    Plan plan = graph.compile();
    EXPECT_ANY_THROW(plan.run());
}

} // namespace
} // namespace DNDS::Task
