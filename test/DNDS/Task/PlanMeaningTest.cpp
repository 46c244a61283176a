// Plans compute the same as their tasks one after another, each after a pull of everything: where ranks see different
// rows, where contents change places, where arrays have no ghosts.

#include "DNDS/Task/PlanFields.hpp"

#include "DNDS/Array/ArrayDof.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

struct PlanMeaning : testing::Test {
    PlanWorld world{5, 70, 2};
    RowSpace cells{"cells", world.cells}, faces{"faces", world.faces};
    std::unique_ptr<PlanPair> u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2),
                              w = PlanWorld::pair("w", world.cells, 3);
    AllRows allU = world.all(true, 1);

    void mean(Graph &graph, PlanPair &in, PlanPair &out) {
        graph.task("mean", world.cells)
            .reads(through(in, world.cellCells))
            .writes(out)
            .run(MeanKernel{world.viewOf(world.cellCells)});
    }
    /// The rank that owns each row of all.
    std::vector<int> ownersOf(const WorldRows &rows) const {
        std::vector<int> owners;
        const std::vector<index> counts = world.comm.allGather(rows.owned);
        for (std::size_t rank = 0; rank < counts.size(); ++rank)
            owners.insert(owners.end(), toSize(counts[rank]), static_cast<int>(rank));
        return owners;
    }
    /// Whether any rank has copies of faces between its cells and those of others.
    bool sharesFaces() const {
        int shares = 0;
        for (index cell = 0; cell < world.cells.owned; ++cell)
            for (const LocalIndex face : world.viewOf(world.cellFaces)[cell])
                shares = std::max(shares, face >= world.faces.owned ? 1 : 0);
        return world.comm.allReduce(shares, MPI_MAX) > 0;
    }
    /// Own faces, and those of other ranks all of whose cells are here.
    Region knownFaces() const {
        std::vector<index> known;
        for (index face = 0; face < world.faces.size(); ++face)
            if (std::ranges::none_of(world.viewOf(world.faceCells)[face], [](LocalIndex cell) { return cell < -1; }))
                known.push_back(face);
        return RowSpace(faces).define("known", known);
    }
    PlanLocal local(const std::string &name, const WorldRows &rows, int version) const {
        PlanLocal made(name, world.comm);
        made.resize(rows.size());
        for (index row = 0; row < rows.size(); ++row)
            made(row, 0) = fieldValue(rows.global[toSize(row)], version);
        return made;
    }
};

/// Of all that a rank sees.
constexpr auto addSum = [](index row, const auto &own, const auto &seen, index count, const auto &out) {
    out(row) = own(row);
    for (index other = 0; other < count; ++other)
        out(row) += seen(other);
};

TEST_F(PlanMeaning, GhostsAreNotComputedAgainFromRowsThatRanksSeeDifferently) {
    std::vector<index> first(world.cells.owned > 0 ? 1 : 0, 0);
    const Region one = cells.define("the first", first);
    for (const auto range : {AccessRange::Whole, AccessRange::Owned, AccessRange::Region})
        for (const auto recompute : {CompileOptions::Recompute::AsDeclared, CompileOptions::Recompute::WherePossible}) {
            const index count = range == AccessRange::Whole   ? world.cells.size()
                                : range == AccessRange::Owned ? world.cells.owned
                                                              : static_cast<index>(first.size());
            Graph graph("sees", world.comm);
            const auto finish = [&](auto &&builder) {
                std::move(builder).writes(*v).recomputeGhosts().run(
                    [count](index row, const auto &own, const auto &seen, const auto &out) {
                        addSum(row, own, seen, count, out);
                    });
            };
            auto builder = graph.task("sum", world.cells).reads(*u);
            if (range == AccessRange::Whole)
                finish(std::move(builder).reads(whole(*w)));
            else if (range == AccessRange::Owned)
                finish(std::move(builder).reads(owned(*w)));
            else
                finish(std::move(builder).reads(rowsOf(*w, one)));
            mean(graph, *v, *u);
            CompileOptions options;
            options.recompute = recompute;
            Plan plan = graph.compile(Executor::host(), options);
            PlanWorld::set(*u, world.cells, 1);
            plan.run();
            // Rows that each rank sees, summed to its own rows
            const AllRows allW = world.all(true, 3);
            std::vector<real> seen;
            for (index row = 0; row < count; ++row)
                seen.push_back(allW[toSize(world.cells.global[toSize(row)])]);
            AllRows allV = allU;
            const std::vector<int> owners = ownersOf(world.cells);
            const std::vector<index> counts = world.comm.allGather(static_cast<index>(seen.size()));
            for (int rank = 0; rank < world.comm.size(); ++rank) {
                std::vector<real> theirs(toSize(counts[toSize(rank)]));
                if (rank == world.comm.rank())
                    theirs = seen;
                for (real &value : theirs)
                    world.comm.broadcast(value, rank);
                for (std::size_t row = 0; row < allV.size(); ++row)
                    if (owners[row] == rank)
                        for (const real value : theirs)
                            allV[row] += value;
            }
            EXPECT_EQ(PlanWorld::wrong(*v, world.cells, allV), 0);
            EXPECT_EQ(PlanWorld::wrong(*u, world.cells, meanOf(world.allCellCells, allV)), 0) << plan.describe();
        }
}

TEST_F(PlanMeaning, CopiesAreNotComputedFromRowsThatRanksSeeDifferently) {
    PlanLocal flux = local("flux", world.faces, 4), table = local("table", world.faces, 5);
    table.resize(3);
    for (index row = 0; row < 3; ++row)
        table(row, 0) = static_cast<real>(row + 1);
    const auto declare = [&](Graph &graph, auto &&seen, index count) {
        graph.task("flux", world.faces)
            .reads(seen)
            .writes(flux)
            .run([count](index row, const auto &in, const auto &out) {
                out(row) = 1;
                for (index other = 0; other < count; ++other)
                    out(row) += in(other);
            });
        graph.task("mean", world.cells)
            .reads(through(flux, world.cellFaces))
            .writes(*v)
            .run(MeanKernel{world.viewOf(world.cellFaces)});
    };
    Graph own("own", world.comm), all("all", world.comm), same("same", world.comm);
    declare(own, owned(*u), world.cells.owned);
    declare(all, whole(*u), world.cells.size());
    declare(same, whole(table), 3);
    for (Graph *graph : {&own, &all})
        if (sharesFaces())
            expectContains(messageOnAll<ArgumentError>([&] { (void)graph->compile(); }), "'flux'");
        else
            EXPECT_NO_THROW((void)graph->compile());
    Plan plan = same.compile();
    plan.run();
    EXPECT_EQ(PlanWorld::wrong(*v, world.cells, meanOf(world.allCellFaces, AllRows(world.allFaceCells.size(), 7))), 0);
}

/// Random programs of three arrays, some of which are finished after pulls, each in its own way.
TEST_F(PlanMeaning, FinishedGhostsStayWithTheirArrayWhenContentsChangePlaces) {
    struct Step {
        enum { Look, Swap, Bump, Copy } kind = Look;
        std::size_t a = 0, b = 0;
        bool recompute = false;
    };
    const std::array<real, 3> factors{-2, 1, 3}; // 1: not finished
    for (unsigned seed = 1; seed <= 30; ++seed) {
        std::mt19937 random(seed);
        const auto draw = [&](unsigned below) { return static_cast<std::size_t>(random() % below); };
        std::array<std::unique_ptr<PlanPair>, 3> fields{PlanWorld::pair("a", world.cells, 1),
                                                        PlanWorld::pair("b", world.cells, 2),
                                                        PlanWorld::pair("c", world.cells, 3)};
        std::array<AllRows, 3> all{world.all(true, 1), world.all(true, 2), world.all(true, 3)};
        std::vector<Step> program;
        for (std::size_t k = 3 + draw(6); k > 0; --k) {
            Step step;
            step.kind = std::array{Step::Look, Step::Look, Step::Swap, Step::Swap, Step::Bump, Step::Copy}[draw(6)];
            step.a = draw(3);
            step.b = (step.a + 1 + draw(2)) % 3;
            step.recompute = draw(2) == 0;
            program.push_back(step);
        }
        std::vector<std::vector<real>> seen(program.size());
        Graph graph("finished", world.comm);
        for (std::size_t k = 0; k < 3; ++k)
            if (factors[k] != 1)
                graph.finishPulls(*fields[k], cells.region("ghosts"),
                                  [factor = factors[k]](index row, const auto &ghosts) { ghosts(row) *= factor; });
        for (std::size_t k = 0; k < program.size(); ++k) {
            const Step &step = program[k];
            PlanPair &a = *fields[step.a], &b = *fields[step.b];
            if (step.kind == Step::Swap) {
                graph.swap(a, b);
            } else if (step.kind == Step::Look) {
                graph.call(fmt::format("look {}", k)).reads(a).run([&seen, k](const auto &rows) {
                    seen[k].clear();
                    for (index row = 0; row < rows.size(); ++row)
                        seen[k].push_back(rows(row));
                });
            } else {
                auto task = graph.task(fmt::format("task {}", k), world.cells);
                if (step.recompute)
                    task = std::move(task).recomputeGhosts();
                if (step.kind == Step::Bump)
                    std::move(task).readsWrites(a).run([](index row, const auto &out) { out(row) += 1; });
                else
                    std::move(task).reads(b).writes(a).run(
                        [](index row, const auto &in, const auto &out) { out(row) = in(row); });
            }
        }
        Plan plan = graph.compile();
        for (int run = 0; run < 4; ++run) {
            plan.run();
            for (std::size_t k = 0; k < program.size(); ++k) {
                const Step &step = program[k];
                if (step.kind == Step::Swap)
                    std::swap(all[step.a], all[step.b]);
                else if (step.kind == Step::Bump)
                    for (real &value : all[step.a])
                        value += 1;
                else if (step.kind == Step::Copy)
                    all[step.a] = all[step.b];
                else
                    for (index row = 0; row < world.cells.size(); ++row)
                        ASSERT_EQ(seen[k][toSize(row)], all[step.a][toSize(world.cells.global[toSize(row)])] *
                                                            (row < world.cells.owned ? 1 : factors[step.a]))
                            << "seed " << seed << ", run " << run << ", step " << k << ", row " << row << " of "
                            << world.cells.owned << "\n"
                            << plan.describe();
            }
            if (run == 1) { // between runs, too
                fields[0]->swapData(*fields[2]);
                std::swap(all[0], all[2]);
            }
        }
    }
}

TEST_F(PlanMeaning, RegionsAreWrittenInArraysWithoutGhostsOnAllRanksThatReadThem) {
    for (const index salt : {0, 1, 2}) {
        PlanLocal flux = local("flux", world.faces, 4);
        AllRows allFlux = world.all(false, 4);
        std::vector<index> some;
        for (index row = 0; row < world.faces.owned; ++row)
            if ((world.faces.global[toSize(row)] + salt) % 3 == 0)
                some.push_back(row);
        const Region region = RowSpace(faces).define("some", some);
        Graph graph("regions", world.comm);
        graph.task("some", region)
            .reads(through(*u, world.faceCells))
            .writes(flux)
            .run(MeanKernel{world.viewOf(world.faceCells)});
        graph.task("more", region).readsWrites(flux).run([](index row, const auto &out) { out(row) *= 1.5; });
        graph.task("mean", world.cells)
            .reads(through(flux, world.cellFaces))
            .writes(*u)
            .run(MeanKernel{world.viewOf(world.cellFaces)});
        Plan plan = graph.compile();
        PlanWorld::set(*u, world.cells, 1);
        AllRows all = allU;
        for (int run = 0; run < 3; ++run) {
            plan.run();
            const AllRows means = meanOf(world.allFaceCells, all);
            for (std::size_t face = 0; face < allFlux.size(); ++face)
                if ((static_cast<index>(face) + salt) % 3 == 0)
                    allFlux[face] = 1.5 * means[face];
            all = meanOf(world.allCellFaces, allFlux);
            EXPECT_EQ(PlanWorld::wrong(*u, world.cells, all), 0) << "salt " << salt << ", run " << run;
        }
    }
    // Without a pattern, no rank knows which rows their owners write.
    PlanLocal flux = local("flux", world.faces, 4);
    RowSpace bare("bare faces", world.faces.owned, world.faces.ghosts);
    Graph graph("bare", world.comm);
    graph.task("own", bare.region("owned")).writes(flux).run([](index row, const auto &out) { out(row) = 1; });
    graph.task("mean", world.cells)
        .reads(through(flux, world.cellFaces))
        .writes(*u)
        .run(MeanKernel{world.viewOf(world.cellFaces)});
    if (sharesFaces())
        expectContains(messageOnAll<ArgumentError>([&] { (void)graph.compile(); }), "'bare faces'");
    else
        EXPECT_NO_THROW((void)graph.compile());
}

TEST_F(PlanMeaning, ReductionsOfArraysWithoutGhostsCountOwnRows) {
    PlanLocal flux = local("flux", world.faces, 4), given = local("given", world.faces, 6);
    std::vector<index> wall;
    for (index row = 0; row < world.faces.owned; ++row)
        if (world.faces.global[toSize(row)] % 4 == 1)
            wall.push_back(row);
    Graph graph("sums", world.comm);
    const Reduction count = graph.reduce("faces", ReduceOp::Sum, flux), // before the tasks that tell its rows
        least = graph.reduce("least", ReduceOp::Min, owned(flux)),
                    lift = graph.reduce("lift", ReduceOp::Sum, rowsOf(flux, RowSpace(faces).define("wall", wall))),
                    all = graph.reduce("all", ReduceOp::Sum, rowsOf(flux, faces.rows())),
                    told = graph.reduce("told", ReduceOp::Sum, given, world.faces.owned);
    graph.task("ones", world.faces)
        .reads(through(*u, world.faceCells))
        .writes(flux)
        .run([](index row, const auto &, const auto &out) { out(row) = 1; });
    graph.task("mean", world.cells)
        .reads(through(flux, world.cellFaces), through(given, world.cellFaces))
        .writes(*v)
        .run([](index row, const auto &, const auto &, const auto &out) { out(row) = 0; });
    Plan plan = graph.compile();
    plan.run();
    const auto number = static_cast<real>(world.allFaceCells.size());
    EXPECT_EQ(plan.result(count)[0], number);
    EXPECT_EQ(plan.result(all)[0], number);
    EXPECT_EQ(plan.result(lift)[0], world.comm.allReduce(static_cast<real>(wall.size()), MPI_SUM));
    EXPECT_EQ(plan.result(least)[0], 1);
    WideExactAccumulator sum;
    for (const real value : world.all(false, 6))
        sum += value;
    EXPECT_EQ(plan.result(told)[0], sum.value());
    (void)graph.reduce("untold", ReduceOp::Sum, given);
    expectContains(messageOnAll<ArgumentError>([&] { (void)graph.compile(); }), "'untold' is of 'given'");
}

TEST_F(PlanMeaning, AddsOverRegionsWithGhosts) {
    const auto adjacency = world.viewOf(world.faceCells);
    const auto kernel = [adjacency](index row, const auto &sums) {
        for (const LocalIndex cell : adjacency[row])
            if (cell >= 0)
                sums.add(cell, 1);
    };
    Graph twice("twice", world.comm), once("once", world.comm);
    twice.task("add", knownFaces()).adds(through(*v, world.faceCells)).run(kernel);
    once.task("add", faces.region("owned")).adds(through(*v, world.faceCells)).run(kernel);
    const auto ghosts = static_cast<int>(
        knownFaces().rows()->intersects(RowMask(world.faces.size(), world.faces.owned, world.faces.size())));
    if (world.comm.allReduce(ghosts, MPI_MAX) > 0)
        expectContains(messageOnAll<ArgumentError>([&] { (void)twice.compile(); }), "would count twice");
    else
        EXPECT_NO_THROW((void)twice.compile());
    Plan plan = once.compile();
    plan.run();
    AllRows expected = world.all(true, 2);
    for (index row = 0; row < world.cells.owned; ++row) {
        const index cell = world.cells.global[toSize(row)];
        EXPECT_NEAR((*v)(row, 0), expected[toSize(cell)] + static_cast<real>(world.allCellFaces[toSize(cell)].size()),
                    1e-9 * (1 + std::abs(expected[toSize(cell)])));
    }
}

/// Counts the faces of each cell in an array without ghosts: each rank over the faces that it knows.
void countFaces(Graph &graph, const PlanWorld &world, const Region &faces, PlanLocal &sums) {
    graph.task("zero", world.cells).writes(sums).run([](index row, const auto &out) { out(row) = 0; });
    graph.task("add", faces)
        .adds(through(sums, world.faceCells))
        .run([adjacency = world.viewOf(world.faceCells)](index row, const auto &out) {
            for (const LocalIndex cell : adjacency[row])
                if (cell >= 0)
                    out.add(cell, 1);
        });
}

TEST_F(PlanMeaning, SumsInArraysWithoutGhostsAreReadByTheirRankAlone) {
    PlanLocal sums = local("sums", world.cells, 4);
    Graph graph("sums", world.comm);
    countFaces(graph, world, knownFaces(), sums);
    graph.task("mean", world.cells)
        .reads(through(sums, world.cellCells))
        .writes(*v)
        .run(MeanKernel{world.viewOf(world.cellCells)});
    if (world.exchanges)
        expectContains(messageOnAll<ArgumentError>([&] { (void)graph.compile(); }), "what other ranks add");
    else
        EXPECT_NO_THROW((void)graph.compile());
}

constexpr auto copyRow = [](index row, const auto &in, const auto &out) { out(row) = in(row); };

/// Finished ghosts reach a task through arrays without ghosts, in any order of declaration.
TEST_F(PlanMeaning, GhostsAreNotComputedAgainFromCopiesOfFinishedOnes) {
    for (const bool later : {false, true})
        for (const auto recompute : {CompileOptions::Recompute::AsDeclared, CompileOptions::Recompute::WherePossible}) {
            PlanLocal first = local("first", world.cells, 4), second = local("second", world.cells, 5);
            Graph graph("copies", world.comm);
            graph.finishPulls(*u, cells.region("ghosts"), [](index row, const auto &ghosts) { ghosts(row) *= 2; });
            if (later) // what the run before has left there
                graph.task("again", world.cells).reads(first).writes(second).run(copyRow);
            graph.task("first", world.cells).reads(*u).writes(first).run(copyRow);
            if (!later)
                graph.task("second", world.cells).reads(first).writes(second).run(copyRow);
            graph.task("copy", world.cells).reads(second).writes(*v).recomputeGhosts().run(copyRow);
            mean(graph, *v, *w);
            CompileOptions options;
            options.recompute = recompute;
            Plan plan = graph.compile(Executor::host(), options);
            for (int run = 0; run < 3; ++run)
                plan.run();
            EXPECT_EQ(PlanWorld::wrong(*w, world.cells, meanOf(world.allCellCells, allU)), 0) << plan.describe();
            EXPECT_EQ(plan.describe().find("'copy' does not compute ghosts") != std::string::npos, world.exchanges);
        }
}

/// Copies in an array without ghosts that no rank can compute do not prevent a plan: the result's ghosts are pulled.
TEST_F(PlanMeaning, GhostsArePulledWhereCopiesOfTheirInputsCannotBeComputed) {
    for (const bool adds : {false, true}) {
        PlanLocal sums = local("sums", world.cells, 4);
        Graph graph("sums", world.comm);
        if (adds) {
            countFaces(graph, world, knownFaces(), sums);
        } else {
            graph.task("rank", world.cells)
                .reads(*u, whole(*w))
                .writes(sums)
                .run([](index row, const auto &own, const auto & /*all*/, const auto &out) { out(row) = own(row); });
        }
        graph.task("copy", world.cells).reads(sums).writes(*v).recomputeGhosts().run(copyRow);
        mean(graph, *v, *w);
        std::optional<Plan> plan;
        ASSERT_NO_THROW(plan.emplace(graph.compile()));
        plan->run();
        AllRows expected = allU;
        for (std::size_t cell = 0; adds && cell < expected.size(); ++cell)
            expected[cell] = static_cast<real>(std::ranges::count_if(
                world.allFaceCells, [&](const auto &sides) { return std::ranges::count(sides, index(cell)) > 0; }));
        EXPECT_EQ(PlanWorld::wrong(*w, world.cells, meanOf(world.allCellCells, expected)), 0) << plan->describe();
    }
}

/// Copies of finished ghosts, and values computed from them outside tasks, do not count as pulled ghosts.
TEST_F(PlanMeaning, FinishedGhostsDoNotPassForPulledOnes) {
    const auto dof = [&](const std::string &name) {
        auto made = std::make_unique<ArrayDof<1, 1>>();
        made->initPair(name, world.comm);
        made->father->resize(world.cells.owned);
        made->transAttach();
        made->trans.usePattern(world.cells.pattern);
        made->trans.createMPITypes();
        for (index row = 0; row < world.cells.owned; ++row)
            (*made->father)(row, 0) = allU[toSize(world.cells.global[toSize(row)])];
        return made;
    };
    const auto expectGhostsOf = [&](auto &field, real factor) {
        index wrong = 0;
        Graph graph("look", world.comm);
        graph.call("look").reads(whole(field)).run([&](const auto &rows) {
            for (index row = 0; row < rows.size(); ++row)
                if (rows(row, 0) != factor * allU[toSize(world.cells.global[toSize(row)])])
                    ++wrong;
        });
        Plan plan = graph.compile();
        plan.run();
        EXPECT_EQ(wrong, 0);
    };
    const auto finished = dof("finished"), copied = dof("copied"), added = dof("added");
    ArrayDof<1, 1> cloned;
    Graph graph("finish", world.comm);
    graph.finishPulls(*finished, cells.region("ghosts"), [](index row, const auto &ghosts) { ghosts(row, 0) += 1000; });
    graph.call("read").reads(whole(*finished)).run([](const auto &) {});
    Plan plan = graph.compile();
    plan.run();
    copied->copyFrom(*finished);
    added->setConstant(0.);
    *added += *finished;
    cloned.clone(*finished);
    expectGhostsOf(*copied, 1);
    expectGhostsOf(*added, 1);
    expectGhostsOf(cloned, 1);
    plan.run();
    *finished *= 2;
    expectGhostsOf(*finished, 2);
}

} // namespace
} // namespace DNDS::Task
