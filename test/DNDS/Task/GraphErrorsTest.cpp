// Contradictions are told when they are declared; what ranks can only find out together, when the graph is compiled.

#include "DNDS/Task/PlanFields.hpp"

#include <gtest/gtest.h>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

constexpr auto nothing = [](index /*row*/, const auto &.../*views*/) {};
constexpr auto nothingAtAll = [](const auto &.../*views*/) {};

struct GraphErrors : testing::Test {
    PlanWorld world;
    std::unique_ptr<PlanPair> u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2),
                              f = PlanWorld::pair("f", world.faces, 3);
    Graph graph{"graph", world.comm};

    /// The message of the exception of `declare`, which must name the task and each of `parts`.
    template <class Declare>
    void refuses(Declare &&declare, const std::vector<std::string> &parts) {
        const std::string text = messageOnAll<ArgumentError>(std::forward<Declare>(declare));
        for (const std::string &part : parts)
            expectContains(text, part);
    }
};

TEST_F(GraphErrors, RowsOfAnotherSpace) {
    // cells and faces may be as many by chance: one row more
    PlanLocal other("other", world.comm);
    other.resize(world.cells.size() + 1);
    refuses([&] { graph.task("copy", world.cells).reads(other).writes(*v).run(nothing); },
            {"'copy'", "'other'", "through(other, adjacency)"});
    refuses([&] { graph.task("copy", world.cells).writes(other).run(nothing); }, {"'copy'", "'other'", "writes"});
    // As many rows, but of another mesh
    const PlanWorld twin;
    refuses([&] { graph.task("copy", twin.cells).reads(*u).run(nothing); }, {"'copy'", "'u'", "their patterns differ"});
}

TEST_F(GraphErrors, AdjacenciesWithAnotherNumberOfRows) {
    GraphWorld::Adjacency shorter("shorter", world.comm);
    shorter.resize(world.cells.size() + 1, [](index) { return 1; });
    refuses([&] { graph.task("mean", world.cells).reads(through(*u, shorter)).writes(*v).run(nothing); },
            {"'mean'", "'shorter'", "'u'", fmt::format("has {} rows", world.cells.size() + 1)});
}

TEST_F(GraphErrors, RowsOfOthersAreNotWritten) {
    refuses([&] { graph.task("scatter", world.faces).writes(through(*u, world.faceCells)).run(nothing); },
            {"'scatter'", "'u'", "'face cells'"});
    refuses([&] { graph.task("scatter", world.faces).readsWrites(through(*u, world.faceCells)).run(nothing); },
            {"'scatter'", "'u'", "'face cells'"});
    refuses([&] { graph.task("all", world.cells).writes(whole(*u)).run(nothing); }, {"'all'", "'u'"});
    refuses([&] { graph.task("all", world.cells).adds(owned(*u)).run(nothing); }, {"'all'", "'u'"});
}

TEST_F(GraphErrors, TheSameArrayReadAndWritten) {
    refuses([&] { graph.task("mean", world.cells).reads(through(*u, world.cellCells)).writes(*u).run(nothing); },
            {"'mean'", "'u'"});
    refuses([&] { graph.task("twice", world.cells).writes(*u).writes(*u).run(nothing); }, {"'twice'", "'u'"});
    refuses(
        [&] {
            graph.task("sum", world.faces)
                .reads(through(*u, world.faceCells))
                .adds(through(*u, world.faceCells))
                .run(nothing);
        },
        {"'sum'", "'u'"});
    refuses([&] { graph.swap(*u, *u); }, {"'u'"});
    EXPECT_NO_THROW(graph.task("twice", world.cells).reads(*u, through(*u, world.cellCells)).writes(*v).run(nothing));
}

TEST_F(GraphErrors, AddingAndWriting) {
    refuses([&] { graph.task("both", world.cells).adds(*u).writes(*v).run(nothing); }, {"'both'", "adds", "two tasks"});
    // The same rows, but of mappings that are not the same
    const PlanWorld twin;
    auto t = PlanWorld::pair("t", twin.cells, 1);
    refuses(
        [&] {
            graph.task("both", world.faces)
                .adds(through(*u, world.faceCells), through(*t, world.faceCells))
                .run(nothing);
        },
        {"'both'", "'u'", "'t'"});
    PlanLocal local("local", world.comm);
    local.resize(world.cells.size());
    refuses(
        [&] {
            graph.task("both", world.faces)
                .adds(through(*u, world.faceCells), through(local, world.faceCells))
                .run(nothing);
        },
        {"'both'", "'u'", "'local'"});
}

TEST_F(GraphErrors, ConstArraysAreRead) {
    const PlanPair &constant = *u;
    EXPECT_NO_THROW(graph.task("copy", world.cells).reads(constant).writes(*v).run(nothing));
    // That writing a const array does not compile is said by its view; a graph that knows both is asked for both.
    EXPECT_NO_THROW(graph.task("write", world.cells).writes(*u).run(nothing));
    Graph other("other", world.comm);
    other.task("copy", world.cells).reads(constant).writes(*v).run(nothing);
    other.task("write", world.cells).writes(*u).run(nothing);
    Plan plan = other.compile();
    plan.run();
    EXPECT_EQ(plan.model().outcome.size(), 2U) << "one array, whether const or not";
}

TEST_F(GraphErrors, APairAndItsFather) {
    graph.task("copy", world.cells).reads(*u).writes(*v).run(nothing);
    refuses([&] { graph.task("father", world.cells).reads(*u->father).run(nothing); }, {"'graph'", "'u'", "pair"});
    Graph other("other", world.comm);
    other.task("father", world.cells).reads(*u->father).run(nothing);
    refuses([&] { other.task("copy", world.cells).reads(*u).run(nothing); }, {"'other'", "'u'"});
}

TEST_F(GraphErrors, RegionsOfOtherArrays) {
    RowSpace other("other", world.cells.owned + 1, world.cells.ghosts);
    refuses([&] { graph.task("look", world.cells).reads(rowsOf(*u, other.rows())).run(nothing); },
            {"'look'", "'other'", "'u'"});
    refuses([&] { graph.call("look").reads(rowsOf(*u, other.region("all"))).run(nothingAtAll); },
            {"'look'", "'all'", "'u'"});
    // An array of the owned rows only has no ghosts that a region could name.
    PlanLocal local("local", world.comm);
    local.resize(world.cells.owned);
    RowSpace cells("cells", world.cells);
    EXPECT_NO_THROW(graph.call("look").reads(rowsOf(local, cells.region("boundary"))).run(nothingAtAll));
    if (world.cells.ghosts > 0)
        expectContains(messageOf<ArgumentError>(
                           [&] { graph.call("look").reads(rowsOf(local, cells.region("ghosts"))).run(nothingAtAll); }),
                       "'ghosts'");
}

TEST_F(GraphErrors, Calls) {
    refuses([&] { graph.call("library").reads(through(*u, world.cellCells)).run(nothingAtAll); },
            {"'library'", "'u'", "'cell cells'", "loops over no rows"});
    refuses([&] { graph.call("library").adds(*u).run(nothingAtAll); }, {"'library'", "'u'", "adds"});
    refuses([&] { graph.call("library").reads(*u).run([](index, const auto &, int = 0) {}); }, {"'library'"});
    refuses([&] { graph.task("loop", world.cells).run([] {}); }, {"'loop'", "row"});
    refuses([&] { graph.call("").run([] {}); }, {"'graph'", "no name"});
}

TEST_F(GraphErrors, SwapsOfOtherRows) {
    refuses([&] { graph.swap(*u, *f); }, {"'u'", "'f'"});
    const PlanWorld twin;
    auto t = PlanWorld::pair("t", twin.cells, 1);
    refuses([&] { graph.swap(*u, *t); }, {"'u'", "'t'", "mappings"});
    PlanLocal a("a", world.comm), b("b", world.comm);
    a.resize(3);
    b.resize(4);
    refuses([&] { graph.swap(a, b); }, {"'a'", "'b'", "3", "4"});
}

TEST_F(GraphErrors, Finishes) {
    RowSpace cells("cells", world.cells), faces("faces", world.faces.owned + 1, world.faces.ghosts);
    PlanLocal local("local", world.comm);
    local.resize(world.cells.size());
    const auto finish = [](index, const auto &) {};
    refuses([&] { graph.finishPulls(local, cells.region("ghosts"), finish); }, {"'local'", "never pulled"});
    refuses([&] { graph.finishPulls(*u, faces.region("ghosts"), finish); }, {"'u'", "'ghosts'"});
    refuses([&] { graph.finishPulls(*u, cells.rows(), finish); }, {"'u'", "'cells'"});
    const PlanWorld twin; // as many rows, but of another mesh
    refuses([&] { graph.finishPulls(*u, RowSpace("cells", twin.cells).region("ghosts"), finish); },
            {"'u'", "'ghosts'", "give both the same mapping"});
    if (world.comm.allReduce(world.cells.owned, MPI_MIN) > 0) { // of ranks without rows it cannot be said
        refuses([&] { graph.finishPulls(*u, RowSpace(cells).define("some", std::vector<index>{0}), finish); }, {"'u'"});
    }
}

TEST_F(GraphErrors, AdjacenciesThatNameRowsWhichAreNotThere) {
    for (int rank = 0; rank < worldSize(); ++rank) {
        GraphWorld::Adjacency wrong("wrong", world.comm);
        wrong.resize(world.cells.owned, [](index) { return 1; });
        for (index row = 0; row < world.cells.owned; ++row)
            wrong[row].begin()[0] = -1;
        index rows = world.cells.owned;
        world.comm.broadcast(rows, rank);
        if (rows == 0)
            continue;
        if (worldRank() == rank)
            wrong[rows - 1].begin()[0] = static_cast<LocalIndex>(world.cells.size());
        Graph other("other", world.comm);
        other.task("mean", world.cells).reads(through(*u, wrong)).writes(*v).run(nothing);
        const std::string text = messageOnAll<IndexError>([&] { (void)other.compile(); });
        if (worldRank() == rank)
            for (const std::string &part :
                 {std::string("'mean'"), std::string("'wrong'"), std::string("'u'"), fmt::format("row {}", rows - 1)})
                expectContains(text, part);
        if (worldRank() == rank)
            wrong[rows - 1].begin()[0] = -2; // another rank has it
        Graph beyond("beyond", world.comm);
        beyond.task("mean", world.cells).reads(through(*u, wrong)).writes(*v).run(nothing);
        const std::string lacking = messageOnAll<ArgumentError>([&] { (void)beyond.compile(); });
        if (worldRank() == rank)
            expectContains(lacking, "not on this rank");
    }
}

TEST_F(GraphErrors, RanksThatDeclareDifferentGraphs) {
    if (worldSize() == 1)
        GTEST_SKIP() << "there is one rank";
    RowSpace cells("cells", world.cells);
    using Declare = std::function<void(Graph &, bool)>;
    const std::vector<std::pair<const char *, Declare>> differences{
        {"names", [&](Graph &g, bool odd) { g.task(odd ? "one" : "other", cells).writes(*u).run(nothing); }},
        {"number",
         [&](Graph &g, bool odd) {
             g.task("one", cells).writes(*u).run(nothing);
             if (odd)
                 g.task("two", world.cells).writes(*v).run(nothing);
         }},
        {"arrays", [&](Graph &g, bool odd) { g.task("one", cells).writes(odd ? *u : *v).run(nothing); }},
        {"modes",
         [&](Graph &g, bool odd) {
             odd ? g.task("one", cells).writes(*u).run(nothing) : g.task("one", cells).readsWrites(*u).run(nothing);
         }},
        {"reach",
         [&](Graph &g, bool odd) {
             odd ? g.task("one", cells).reads(*u).run(nothing) : g.task("one", cells).reads(whole(*u)).run(nothing);
         }},
        {"regions",
         [&](Graph &g, bool odd) { g.task("one", cells.region(odd ? "owned" : "all")).reads(*u).run(nothing); }},
        {"recompute",
         [&](Graph &g, bool odd) {
             odd ? g.task("one", cells).recomputeGhosts().writes(*u).run(nothing)
                 : g.task("one", cells).writes(*u).run(nothing);
         }},
        {"kinds", [&](Graph &g, bool odd) { odd ? g.call("one").run([] {}) : g.task("one", cells).run(nothing); }},
        {"finishes", [&](Graph &g, bool odd) {
             g.task("one", cells).reads(whole(*u)).run(nothing);
             if (odd)
                 g.finishPulls(*u, cells.region("ghosts"), nothing);
         }}};
    for (const auto &[what, declare] : differences)
        for (int odd = 1; odd < worldSize(); ++odd) {
            SCOPED_TRACE(what);
            Graph different("different", world.comm);
            declare(different, worldRank() == odd);
            const std::string text = messageOnAll<StateError>([&] { (void)different.compile(); });
            if (worldRank() == odd)
                expectContains(text, "'different'");
            if (worldRank() == odd && std::string_view(what) == "reach")
                expectContains(text, "row by row");
            if (worldRank() == odd && std::string_view(what) == "number")
                expectContains(text, "task 'two' over 'rows of two', writes 'v'");
        }
    Graph other(worldRank() == 1 ? "one" : "other", world.comm);
    (void)messageOnAll<StateError>([&] { (void)other.compile(); });
    CompileOptions options;
    options.dropPulls = worldRank() == 1;
    Graph same("same", world.comm);
    (void)messageOnAll<StateError>([&] { (void)same.compile(Executor::host(), options); });
    EXPECT_NO_THROW((void)same.compile());
}

TEST_F(GraphErrors, ChunksOfNegativeSize) {
    graph.task("one", world.cells).writes(*u).run(nothing);
    CompileOptions options;
    options.rowsPerChunk = -1;
    refuses([&] { (void)graph.compile(Executor::host(), options); }, {"'graph'", "rowsPerChunk is -1"});
}

TEST_F(GraphErrors, GraphsGoOnAfterWhatTheyRefused) {
    EXPECT_THROW(graph.swap(*u, *f), ArgumentError);
    EXPECT_THROW(graph.task("scatter", world.faces).writes(through(*u, world.faceCells)).run(nothing), ArgumentError);
    graph.task("mean", world.cells)
        .reads(through(*u, world.cellCells))
        .writes(*v)
        .run(MeanKernel{world.viewOf(world.cellCells)});
    Plan plan = graph.compile();
    plan.run();
    EXPECT_EQ(PlanWorld::wrong(*v, world.cells, meanOf(world.allCellCells, world.all(true, 1))), 0);
}

} // namespace
} // namespace DNDS::Task
