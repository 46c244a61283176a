// Pulls, fusion, dropping and recomputation in plans.

#include "DNDS/Task/PlanFields.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

index pullsOf(const Plan &plan) {
    return static_cast<index>(std::ranges::count(plan.model().transfers, Direction::Pull, &Transfer::direction));
}

/// u, v, w on cells and f on faces.
struct Fields {
    explicit Fields(unsigned seed = 3, index count = 60, int layers = 1) : world(seed, count, layers) {}

    Graph graph(const std::string &name = "graph") const { return {name, world.comm}; }
    /// out = mean of the neighbours of `in`
    void mean(Graph &graph, const std::string &name, PlanPair &in, PlanPair &out, bool recompute = false) {
        auto task = graph.task(name, world.cells).reads(through(in, world.cellCells)).writes(out);
        if (recompute)
            task = std::move(task).recomputeGhosts();
        std::move(task).run(MeanKernel{world.viewOf(world.cellCells)});
    }
    AllRows meanOfAll(const AllRows &in) const { return meanOf(world.allCellCells, in); }
    void expectCells(const PlanPair &field, const AllRows &expected, const std::string &what) {
        EXPECT_EQ(PlanWorld::wrong(field, world.cells, expected), 0) << what;
    }

    PlanWorld world;
    std::unique_ptr<PlanPair> u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2),
                              w = PlanWorld::pair("w", world.cells, 3), f = PlanWorld::pair("f", world.faces, 4);
    AllRows allU = world.all(true, 1), allV = world.all(true, 2), allW = world.all(true, 3), allF = world.all(false, 4);
};

struct PlanTest : testing::Test, Fields {};

TEST_F(PlanTest, TwoAdjacenciesOfOneArrayNeedOnePull) {
    Graph graph = this->graph();
    const auto cells = world.viewOf(world.cellCells);
    GraphWorld::Adjacency other("other", world.comm);
    other.resize(world.cells.size(), [&](index row) { return cells.rowSize(row); });
    for (index row = 0; row < world.cells.size(); ++row)
        std::ranges::copy(cells[row], other[row].begin());
    graph.task("both", world.cells)
        .reads(through(*u, world.cellCells), through(*u, other))
        .writes(*v)
        .run([=](index row, const auto &a, const auto &b, const auto &out) {
            out(row) = 0;
            for (const LocalIndex cell : cells[row])
                if (cell >= 0)
                    out(row) += a(cell) - b(cell) + 1;
        });
    Plan plan = graph.compile();
    EXPECT_EQ(pullsOf(plan), world.times(1));
    plan.run();
    EXPECT_EQ(plan.statistics().transfers, world.times(1));
    for (index row = 0; row < world.cells.owned; ++row)
        EXPECT_EQ((*v)(row, 0),
                  static_cast<real>(std::ranges::count_if(cells[row], [](LocalIndex k) { return k >= 0; })));
}

/// Counts calls: 1 a prefetch, which comes first and once, 100 a computation.
struct PrefetchingKernel : MeanKernel {
    std::vector<index> *calls; ///< [rows]

    template <class In, class Out>
    void operator()(index row, const In &in, const Out &out) const {
        MeanKernel::operator()(row, in, out);
        (*calls)[toSize(row)] += 100;
    }
    template <class In, class Out>
    void prefetch(index row, const In &in, const Out & /*out*/) const {
        EXPECT_EQ((*calls)[toSize(row)]++, 0) << row;
        for (const LocalIndex cell : adjacency[row])
            if (cell >= 0)
                prefetchRow(in, cell);
    }
};

TEST_F(PlanTest, FunctorsPrefetchRowsAhead) {
    Graph graph = this->graph();
    std::vector<index> calls(toSize(world.cells.size()));
    graph.task("mean", world.cells)
        .reads(through(*u, world.cellCells))
        .writes(*v)
        .run(PrefetchingKernel{{world.viewOf(world.cellCells)}, &calls});
    Plan plan = graph.compile();
    plan.run();
    expectCells(*v, meanOfAll(allU), "with prefetches");
    EXPECT_EQ(std::ranges::count(calls, 100) + std::ranges::count(calls, 101), world.cells.owned);
    if (world.comm.size() == 1) {
        EXPECT_EQ(std::ranges::count(calls, 100), 16); // the first rows
    }
}

TEST_F(PlanTest, PullsOfOnePatternTravelTogether) {
    Graph graph = this->graph();
    const auto cellCells = world.viewOf(world.cellCells), cellFaces = world.viewOf(world.cellFaces);
    graph.task("all", world.cells)
        .reads(through(*u, world.cellCells), through(*f, world.cellFaces), through(*v, world.cellCells))
        .writes(*w)
        .run([=](index row, const auto &a, const auto &faces, const auto &b, const auto &out) {
            real sum = 0;
            for (const LocalIndex other : cellCells[row])
                if (other >= 0)
                    sum = 0.5 * (sum + a(other)) - b(other);
            for (const LocalIndex face : cellFaces[row])
                sum = 0.5 * (sum + faces(face));
            out(row) = sum;
        });
    std::vector<real> results;
    for (const bool fuse : {true, false}) {
        CompileOptions options;
        options.fuse = fuse;
        Plan plan = graph.compile(Executor::host(), options);
        EXPECT_EQ(pullsOf(plan), world.times(fuse ? 2 : 3));
        changed(*u), changed(*v), changed(*f);
        plan.run();
        EXPECT_EQ(plan.statistics().transfers, world.times(fuse ? 2 : 3));
        EXPECT_EQ(plan.describe().find("together in one message") != std::string::npos, fuse && world.exchanges);
        for (index row = 0; row < world.cells.owned; ++row)
            results.push_back((*w)(row, 0));
    }
    for (std::size_t row = 0; row < results.size() / 2; ++row)
        EXPECT_EQ(results[row], results[row + results.size() / 2]);
}

TEST_F(PlanTest, PullsOfCurrentGhostsAreDropped) {
    Graph graph = this->graph();
    mean(graph, "mean", *u, *v);
    Plan plan = graph.compile();
    const auto expect = [&](index transfers, index dropped, const char *what) {
        plan.run();
        expectCells(*v, meanOfAll(allU), what);
        EXPECT_EQ(plan.statistics().transfers, world.times(transfers)) << what;
        EXPECT_EQ(plan.statistics().dropped, world.times(dropped)) << what;
    };
    expect(1, 0, "never pulled");
    expect(1, 1, "again");
    (void)std::as_const(*u).view();
    expect(1, 2, "looked at");
    PlanWorld::set(*u, world.cells, 5);
    allU = world.all(true, 5);
    expect(2, 2, "written on all ranks");
    PlanWorld::set(*u, world.cells, 6);
    allU = world.all(true, 6);
    u->trans.pullOnce();
    expect(2, 3, "pulled by hand");
    changed(*u);
    expect(3, 3, "changed() on all ranks");

    CompileOptions options;
    options.dropPulls = false;
    Plan always = graph.compile(Executor::host(), options);
    always.run();
    always.run();
    EXPECT_EQ(always.statistics().transfers, world.times(2));
    EXPECT_EQ(always.statistics().dropped, 0);
    Plan other = graph.compile();
    other.run();
    EXPECT_EQ(other.statistics().dropped, world.times(1)) << "pulled by another plan";
    EXPECT_NE(plan.describe().find(world.exchanges ? "left out in runs that begin with current ghosts" : "1 tasks"),
              std::string::npos);
}

TEST_F(PlanTest, FinishedPullsAreFinishedOnceEach) {
    RowSpace cells("cells", world.cells);
    Graph graph = this->graph();
    std::vector<index> all;
    for (index row = world.cells.owned; row < world.cells.size(); ++row)
        all.push_back(row);
    graph.finishPulls(*u, cells.define("turned", all), [](index row, const auto &ghosts) { ghosts(row) *= -2; });
    const auto adjacency = world.viewOf(world.cellCells);
    const index owned = world.cells.owned;
    graph.task("sum", world.cells)
        .reads(through(*u, world.cellCells), through(*w, world.cellCells))
        .writes(*v)
        .run([=](index row, const auto &in, const auto &other, const auto &out) {
            out(row) = 0;
            for (const LocalIndex next : adjacency[row])
                if (next >= 0)
                    out(row) += (next < owned ? in(next) : -0.5 * in(next)) - other(next);
        });
    Plan plan = graph.compile();
    const auto check = [&](index transfers, const std::string &what) {
        plan.run();
        EXPECT_EQ(plan.statistics().transfers, world.times(transfers)) << what;
        for (index row = 0; row < world.cells.ghosts; ++row)
            EXPECT_EQ(std::as_const(*u->son)(row, 0), -2 * allU[toSize(world.cells.global[toSize(row + owned)])])
                << what;
        for (index row = 0; row < owned; ++row) {
            real sum = 0;
            for (const index next : world.allCellCells[toSize(world.cells.global[toSize(row)])])
                sum += next < 0 ? 0 : allU[toSize(next)] - allW[toSize(next)];
            EXPECT_NEAR((*v)(row, 0), sum, 1e-9) << what;
        }
    };
    check(1, "first");
    check(1, "dropped: not turned twice");
    check(1, "dropped again");
    changed(*w);
    check(2, "the other array is pulled again, and this one with it");
    u->trans.pullOnce();
    check(3, "pulled by hand, which finishes nothing");
    check(3, "dropped");
    PlanWorld::set(*u, world.cells, 8);
    allU = world.all(true, 8);
    check(4, "written");
}

TEST_F(PlanTest, GhostsThatAreFinishedAreNotComputedAgain) {
    RowSpace cells("cells", world.cells);
    Graph graph = this->graph();
    graph.finishPulls(*v, cells.region("ghosts"), [](index row, const auto &ghosts) { ghosts(row) = -ghosts(row); });
    graph.task("copy", world.cells)
        .reads(*u)
        .writes(*v)
        .recomputeGhosts()
        .run([](index row, const auto &in, const auto &out) { out(row) = in(row); });
    mean(graph, "mean", *v, *w);
    Plan plan = graph.compile();
    plan.run();
    for (index row = 0; row < world.cells.ghosts && world.exchanges; ++row)
        EXPECT_EQ((*v->son)(row, 0), -allU[toSize(world.cells.global[toSize(row + world.cells.owned)])]);
}

/// Rows of a mesh some of whose ghosts are images.
struct RowsWithImages {
    index owned, ghosts;
    std::shared_ptr<const ExchangePattern> pattern;
    std::vector<int> images;
};

TEST_F(PlanTest, ImagesAreNotComputedAgain) {
    for (const bool images : {false, true}) {
        RowsWithImages rows{world.cells.owned, world.cells.ghosts, world.cells.pattern, {}};
        rows.images.assign(toSize(world.cells.size()), 0);
        if (images && rows.ghosts > 0)
            rows.images.back() = 2;
        Graph graph = this->graph();
        graph.task("copy", rows)
            .reads(*u)
            .writes(*v)
            .recomputeGhosts()
            .run([](index row, const auto &in, const auto &out) { out(row) = in(row); });
        mean(graph, "mean", *v, *w);
        Plan plan = graph.compile();
        ASSERT_EQ(plan.model().transfers.size(), static_cast<std::size_t>(world.times(1)));
        if (world.exchanges) {
            EXPECT_EQ(plan.model().transfers[0].task, images ? 1 : 0) << "v is pulled, or u";
            EXPECT_EQ(plan.describe().find("periodic images") != std::string::npos, images);
        }
        plan.run();
        expectCells(*w, meanOfAll(allU), "w");
    }
}

/// Contents that a run begins with, of which one layer of ghosts is current, are read two layers deep after a swap.
TEST_F(PlanTest, SwapsKnowWhatWasPulledIfPullsAreDropped) {
    Fields deep(5, 80, 2);
    Graph graph("deep", deep.world.comm);
    deep.mean(graph, "near", *deep.u, *deep.w);
    graph.swap(*deep.u, *deep.v);
    std::vector<real> sums;
    graph.call("far").reads(*deep.v).run([&](const auto &in) {
        sums.assign(1, 0);
        for (index row = 0; row < in.size(); ++row)
            sums.push_back(in(row));
    });
    // u is written, and computed for the ghosts of the first layer only
    graph.task("update", deep.world.cells)
        .reads(*deep.w)
        .writes(*deep.u)
        .recomputeGhosts()
        .run([](index row, const auto &in, const auto &out) { out(row) = in(row); });
    deep.mean(graph, "again", *deep.u, *deep.v);
    Plan plan = graph.compile();
    for (int run = 0; run < 3; ++run) {
        plan.run();
        const AllRows before = deep.allU;
        deep.allW = deep.meanOfAll(deep.allU);
        for (index row = 0; row < deep.world.cells.size(); ++row)
            ASSERT_EQ(sums[toSize(row + 1)], before[toSize(deep.world.cells.global[toSize(row)])])
                << "run " << run << ", row " << row << " of " << deep.world.cells.owned << "\n"
                << plan.describe();
        deep.allU = deep.allW;
    }
}

TEST_F(PlanTest, CallsKeepRowsThatTheyDoNotWrite) {
    // An array without ghosts, whose rows of neighbours are computed here; a call sets some of its rows in between.
    PlanLocal flags("flags", world.comm);
    flags.resize(world.cells.size());
    RowSpace cells("cells", world.cells);
    const std::vector<index> first(world.cells.owned > 0 ? 1 : 0, 0);
    Graph graph = this->graph();
    graph.task("copy", world.cells).reads(*u).writes(flags).run([](index row, const auto &in, const auto &out) {
        out(row) = in(row);
    });
    graph.call("first").writes(rowsOf(flags, cells.define("first", first))).run([&](const auto &out) {
        if (!first.empty())
            out(0) = out(0); // NOLINT: keeps it
    });
    graph.task("mean", world.cells)
        .reads(through(flags, world.cellCells))
        .writes(*v)
        .run(MeanKernel{world.viewOf(world.cellCells)});
    Plan plan = graph.compile();
    plan.run();
    expectCells(*v, meanOfAll(allU), "v");
    PlanWorld::set(*u, world.cells, 8);
    plan.run();
    expectCells(*v, meanOfAll(world.all(true, 8)), "v");
}

TEST_F(PlanTest, TasksAndGraphsOfNothing) {
    Graph empty = graph("nothing");
    Plan nothing = empty.compile();
    nothing.run();
    nothing.run();
    EXPECT_EQ(nothing.statistics().runs, 2);
    EXPECT_NE(nothing.describe().find("plan 'nothing' on the host: 0 tasks"), std::string::npos);
    EXPECT_NE(nothing.dot().find("digraph \"nothing\""), std::string::npos);

    Graph graph = this->graph("with \"quotes\"");
    index rows = 0, calls = 0;
    std::vector<index> order;
    graph.task("count", world.cells).run([&](index row) {
        EXPECT_EQ(row, rows);
        ++rows;
    });
    graph.call("call").run([&] { ++calls; });
    RowSpace cells("cells", world.cells);
    graph.task("none", cells.define("none", {})).readsWrites(*u).run([](index /*row*/, const auto & /*out*/) {
        FAIL();
    });
    Plan plan = graph.compile();
    plan.run();
    EXPECT_EQ(rows, world.cells.owned);
    EXPECT_EQ(calls, 1);
    EXPECT_NE(plan.dot().find("digraph \"with \\\"quotes\\\"\""), std::string::npos);
    expectCells(*u, allU, "u");
}

TEST_F(PlanTest, MeshesWithoutRows) {
    Fields none(1, 0, 1);
    Graph graph("none", none.world.comm);
    none.mean(graph, "mean", *none.u, *none.v);
    graph.swap(*none.u, *none.v);
    graph.task("sums", none.world.faces)
        .reads(*none.f)
        .adds(through(*none.w, none.world.faceCells))
        .run([](index row, const auto &in, const auto &sums) { sums.add(row, in(row)); });
    Plan plan = graph.compile();
    plan.run();
    plan.run();
    EXPECT_EQ(plan.statistics().runs, 2);
}

TEST_F(PlanTest, SaysWhatItDoes) {
    Graph graph = this->graph("stage");
    mean(graph, "gradient", *u, *v);
    graph.task("update", world.cells).reads(*v).readsWrites(*u).run(AddHalf{});
    Plan plan = graph.compile();
    plan.run();
    const std::string text = plan.describe(), dot = plan.dot();
    expectContains(text, "plan 'stage' on the host: 2 tasks");
    EXPECT_NE(dot.find("digraph \"stage\""), std::string::npos);
    if (world.exchanges) {
        expectContains(text, "start pull of 'u'");
        expectContains(text, "wait for pull of 'u'");
        expectContains(text, "pull of 'u': for 'gradient' reads ghosts older than their owners' rows");
        expectContains(text, "1 runs: 1 transfers, 0 left out");
        expectContains(dot, "start pull of 'u'");
    }
    index parts = 0;
    for (const Part &part : plan.model().parts)
        parts += part.rows.count;
    EXPECT_EQ(parts, 2 * world.cells.owned) << "each row of each task once";
    const auto &steps = plan.model().steps;
    for (std::size_t k = 0; k < steps.size(); ++k)
        for (const std::size_t before : steps[k].after)
            EXPECT_LT(before, k);
}

} // namespace
} // namespace DNDS::Task
