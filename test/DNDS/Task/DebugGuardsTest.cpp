// Rows that a task did not declare are told in builds with debug checks.

#include "DNDS/Task/PlanFields.hpp"

#include <gtest/gtest.h>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

#if defined(DNDS_DEBUG_CHECKS)

/// Runs `functor` for the cells; the text that ranks with such a row throw.
template <class Declare>
std::string refusedBy(const PlanWorld &world, bool here, Declare &&declare) {
    Graph graph("guards", world.comm);
    declare(graph);
    Plan plan = graph.compile();
    std::string text;
    try {
        plan.run();
        EXPECT_FALSE(here);
    } catch (const Error &error) { // its own, or that of the first rank that threw
        text = error.what();
    }
    world.comm.barrier();
    plan.recover();
    return text;
}

TEST(DebugGuards, RowsThatWereNotDeclared) {
    const PlanWorld world;
    auto u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2);
    const index rows = world.cells.owned;
    const bool two = rows > 1, ghosts = rows > 0 && world.cells.ghosts > 0;

    std::string text = refusedBy(world, two, [&](Graph &graph) {
        graph.task("shift", world.cells).reads(*u).writes(*v).run([=](index row, const auto &in, const auto &out) {
            out(row) = in((row + 1) % rows);
        });
    });
    if (two) {
        expectContains(text, "in task 'shift'");
        expectContains(text, "task 'shift' reads row");
        expectContains(text, "of 'u', which it did not declare");
    }
    text = refusedBy(world, two, [&](Graph &graph) {
        graph.task("write", world.cells).writes(*v).run([=](index row, const auto &out) { out((row + 1) % rows) = 1; });
    });
    if (two)
        expectContains(text, "task 'write' writes row");
    text = refusedBy(world, ghosts, [&](Graph &graph) {
        graph.task("ghost", world.cells)
            .reads(owned(*u))
            .writes(*v)
            .run([=](index row, const auto &in, const auto &out) { out(row) = in(ghosts ? rows : row); });
    });
    if (ghosts) { // the row is this rank's, or that of the rank that failed first
        expectContains(text, "task 'ghost' reads row");
        expectContains(text, "of 'u' (a ghost), which it did not declare");
    }
    text = refusedBy(world, rows > 0, [&](Graph &graph) {
        graph.task("far", world.cells)
            .reads(whole(*u))
            .writes(*v)
            .run([size = world.cells.size()](index row, const auto &in, const auto &out) { out(row) = in[size][0]; });
    });
    if (rows > 0) {
        expectContains(text, "task 'far' reads row");
        expectContains(text, " rows), which it did not declare");
    }
    text = refusedBy(world, ghosts, [&](Graph &graph) {
        graph.task("sum", world.cells).adds(*v).run([=](index row, const auto &out) {
            out.add(ghosts ? rows : row, 1);
        });
    });
    if (ghosts)
        expectContains(text, "task 'sum' adds to row");
}

TEST(DebugGuards, ElementsThatRowsDoNotHave) {
    const PlanWorld world;
    auto u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2);
    const bool any = world.cells.owned > 0;
    std::string text = refusedBy(world, any, [&](Graph &graph) {
        graph.task("read", world.cells).reads(*u).writes(*v).run([](index row, const auto &in, const auto &out) {
            out(row) = in(row, 1);
        });
    });
    if (any)
        expectContains(text, "task 'read' reads element 1 of row 0 of 'u', which has 1");
    text = refusedBy(world, any, [&](Graph &graph) {
        graph.task("add", world.cells).adds(*v).run([](index row, const auto &out) { out.add(row, -1, 1.0); });
    });
    if (any)
        expectContains(text, "task 'add' adds to element -1 of row 0 of 'v', which has 1");
}

#else

TEST(DebugGuards, CostNothingInOtherBuilds) {
    const PlanWorld world;
    auto u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2);
    Graph graph("guards", world.comm);
    graph.task("mean", world.cells)
        .reads(through(*u, world.cellCells))
        .writes(*v)
        .run(MeanKernel{world.viewOf(world.cellCells)});
    const Plan plan = graph.compile();
    for (const Part &part : plan.model().parts)
        EXPECT_TRUE(part.guards.empty());
}

#endif

} // namespace
} // namespace DNDS::Task
