// Runs that fail: nobody hangs, arrays that were not written stay as they are, and the plan can be used again.

#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Task/Crew.hpp"
#include "DNDS/Task/PlanFields.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

struct Injected : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Where a task throws.
struct Fault {
    std::string task; ///< empty: nowhere
    int rank = 0;
    index row = 0;

    void check(const char *where, index at) const {
        if (task == where && worldRank() == rank && row == at)
            throw Injected("injected");
    }
};

/// gradient, flux, sums, update and old: pulls, a push, a call and a swap.
struct Stepper {
    explicit Stepper(unsigned seed, CommunicatorView comm = MPI_COMM_WORLD)
        : world(seed, 50, 1, comm), u(PlanWorld::pair("u", world.cells, 1, comm)),
          old(PlanWorld::pair("old", world.cells, 2, comm)),
          gradient(PlanWorld::pair("gradient", world.cells, 3, comm)),
          flux(PlanWorld::pair("flux", world.faces, 4, comm)), sums(PlanWorld::pair("sums", world.cells, 5, comm)),
          constant(PlanWorld::pair("constant", world.cells, 6, comm)) {}

    void fill() {
        int version = 1;
        for (PlanPair *pair : {u.get(), old.get(), gradient.get()})
            PlanWorld::set(*pair, world.cells, version++);
        PlanWorld::set(*flux, world.faces, version++);
        PlanWorld::set(*sums, world.cells, version++);
    }
    Graph graph() {
        Graph graph("step", world.comm);
        const auto cellCells = world.viewOf(world.cellCells), cellFaces = world.viewOf(world.cellFaces),
                   faceCells = world.viewOf(world.faceCells);
        graph.task("gradient", world.cells)
            .reads(through(*u, world.cellCells), through(std::as_const(*constant), world.cellCells))
            .writes(*gradient)
            .run([=, this](index row, const auto &in, const auto &factor, const auto &out) {
                fault.check("gradient", row);
                out(row) = 0.1;
                for (const LocalIndex other : cellCells[row])
                    if (other >= 0)
                        out(row) += 0.3 * in(other)*factor(other);
            });
        graph.task("flux", world.faces)
            .reads(through(*gradient, world.faceCells))
            .writes(*flux)
            .run([=, this](index row, const auto &in, const auto &out) {
                fault.check("flux", row);
                out(row) = 0;
                for (const LocalIndex other : faceCells[row])
                    if (other >= 0)
                        out(row) = 0.25 * in(other)-out(row);
            });
        graph.task("sums", world.faces)
            .reads(*flux)
            .adds(through(*sums, world.faceCells))
            .run([=, this](index row, const auto &in, const auto &out) {
                fault.check("sums", row);
                for (const LocalIndex other : faceCells[row])
                    if (other >= 0)
                        out.add(other, 0, 0.01 * in(row));
            });
        graph.call("look").reads(owned(*sums)).run([=, this](const auto & /*in*/) { fault.check("look", 0); });
        graph.task("update", world.cells)
            .reads(*sums, through(*flux, world.cellFaces))
            .readsWrites(*old)
            .run([=, this](index row, const auto &add, const auto &faces, const auto &out) {
                fault.check("update", row);
                out(row) = 0.5 * out(row) + 0.001 * add(row);
                for (const LocalIndex face : cellFaces[row])
                    out(row) -= 0.002 * faces(face);
            });
        graph.swap(*u, *old);
        return graph;
    }
    std::vector<PlanPair *> all() const {
        return {u.get(), old.get(), gradient.get(), flux.get(), sums.get(), constant.get()};
    }
    std::vector<std::uint64_t> hashes() const {
        std::vector<std::uint64_t> found;
        for (const PlanPair *pair : all())
            found.push_back(std::as_const(*pair->father).hash());
        return found;
    }
    std::vector<std::uint64_t> versions() const {
        std::vector<std::uint64_t> found;
        for (const PlanPair *pair : all())
            found.push_back(pair->father->version());
        return found;
    }

    PlanWorld world;
    Fault fault;
    std::unique_ptr<PlanPair> u, old, gradient, flux, sums, constant;
};

enum class End { Good, Own, Peer, Other };

struct Ended {
    End how = End::Good;
    std::string text;
};

Ended runOf(Plan &plan) {
    try {
        plan.run();
        return {};
    } catch (const PeerError &error) {
        return {End::Peer, error.what()};
    } catch (const StateError &error) {
        return {End::Own, error.what()};
    } catch (const std::exception &error) {
        return {End::Other, error.what()};
    }
}

const std::vector<std::string> tasks{"gradient", "flux", "sums", "look", "update"};

/// Rows of a task in all of its parts: the first and the last of each.
std::vector<index> rowsOf(const Plan &plan, std::size_t task) {
    std::vector<index> rows;
    for (const Part &part : plan.model().parts)
        if (part.task == task && part.rows.count > 0)
            for (const index k : {index{0}, part.rows.count - 1})
                rows.push_back(part.rows(k));
    if (rows.empty() && task == 3)
        rows.push_back(0); // the call
    std::ranges::sort(rows);
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
}

/// Whether all parts of `later` have to wait for the part of `task` that holds `row`. In threads, others go on.
bool allWaitFor(const Plan &plan, std::size_t task, index row, std::size_t later) {
    const PlanModel &model = plan.model();
    const auto holdsRow = [&](const Part &part) {
        for (index k = 0; k < part.rows.count; ++k)
            if (part.rows(k) == row)
                return true;
        return false;
    };
    std::vector<bool> waits(model.operations.size(), false);
    for (std::size_t k = 0; k < model.operations.size(); ++k) {
        const Operation &operation = model.operations[k];
        waits[k] = std::ranges::any_of(operation.after, [&](std::size_t before) { return waits[before]; });
        if (operation.kind != OperationKind::Part)
            continue;
        const Part &part = model.parts[operation.what];
        if (part.task == later && part.rows.count > 0 && !waits[k])
            return false;
        if (part.task == task && holdsRow(part))
            waits[k] = true;
    }
    return true;
}

void failEverywhere(const Executor &executor, const ExchangeOptions &exchange, unsigned seed) {
    Stepper stepper(seed);
    CompileOptions options;
    options.exchange = exchange;
    Plan plan = stepper.graph().compile(executor, options);
    stepper.fill();
    plan.run();
    const std::vector<std::uint64_t> once = stepper.hashes();
    plan.run();
    const std::vector<std::uint64_t> twice = stepper.hashes();
    for (std::size_t t = 0; t < tasks.size(); ++t)
        for (int rank = 0; rank < worldSize(); ++rank) {
            std::vector<index> rows = rowsOf(plan, t);
            index count = static_cast<index>(rows.size());
            stepper.world.comm.broadcast(count, rank);
            rows.resize(toSize(count));
            stepper.world.comm.broadcast(rows.data(), rows.size(), rank);
            for (const index row : rows) {
                SCOPED_TRACE(fmt::format("'{}' on rank {} in row {}", tasks[t], rank, row));
                const int before = static_cast<int>(row + rank) % 2; // in the first run, or the second
                stepper.fill();
                if (before > 0)
                    plan.run();
                const std::vector<std::uint64_t> versions = stepper.versions(), hashes = stepper.hashes();
                stepper.fault = {tasks[t], rank, row};
                const Ended ended = runOf(plan);
                stepper.fault = {};
                if (worldRank() == rank) {
                    EXPECT_EQ(ended.how, End::Own) << ended.text;
                    expectContains(ended.text, "in task '" + tasks[t] + "'");
                    expectContains(ended.text, "injected");
                    if (t != 3)
                        expectContains(ended.text, "rows, the first of which is");
                } else {
                    EXPECT_TRUE(ended.how == End::Good || ended.how == End::Peer) << ended.text;
                }
                EXPECT_EQ(stepper.versions().back(), versions.back()) << "an array that is only read";
                if (ended.how != End::Good) {
                    const std::string again = messageOf<StateError>([&] { plan.run(); });
                    expectContains(again, "recover()");
                }
                if (worldRank() == rank && t <= 1) // later tasks have not run, and what peers have pushed is left out
                    for (const std::size_t a : {0U, 1U, 4U}) {
                        if (a != 4) { // its ghosts may have been made zero
                            EXPECT_EQ(stepper.versions()[a], versions[a]) << a;
                        }
                        if (executor.threads() == 1 || a != 4 || allWaitFor(plan, t, row, 2)) {
                            EXPECT_EQ(stepper.hashes()[a], hashes[a]) << a;
                        }
                    }
                plan.recover();
                stepper.fill();
                plan.run();
                EXPECT_EQ(stepper.hashes(), once);
                plan.run();
                EXPECT_EQ(stepper.hashes(), twice);
                if (testing::Test::HasFailure())
                    return;
            }
        }
}

TEST(PlanFailures, EachPartOfEachTaskOnEachRank) {
    for (const unsigned seed : {3U, 11U})
        failEverywhere(Executor::host(), {}, seed);
}

TEST(PlanFailures, EachPartOfEachTaskOnEachRankInThreads) {
    if (!Crew::hasThreads())
        GTEST_SKIP() << "built without oneTBB";
    failEverywhere(Executor::hostThreads(2), {}, 3);
}

TEST(PlanFailures, HalfWrittenArraysAreRefusedUntilTheyAreWritten) {
    Stepper stepper(3);
    Plan plan = stepper.graph().compile();
    stepper.fill();
    plan.run();
    const int last = worldSize() - 1;
    index row = stepper.world.cells.owned - 1;
    stepper.world.comm.broadcast(row, last);
    if (row < 0)
        GTEST_SKIP() << "no rows on the last rank";
    stepper.fault = {"update", last, row};
    (void)runOf(plan);
    stepper.fault = {};
    for (int time = 0; time < 2; ++time) {
        plan.recover();
        const Ended ended = runOf(plan);
        if (worldRank() == last) {
            EXPECT_EQ(ended.how, End::Own) << "the array that 'update' was writing";
            expectContains(ended.text, "'old' is half written: a run of 'step' failed");
        }
    }
    plan.recover();
    stepper.fill();
    plan.run();
    const std::vector<std::uint64_t> found = stepper.hashes();
    stepper.fill();
    plan.run();
    EXPECT_EQ(stepper.hashes(), found);
}

TEST(PlanFailures, ArraysThatTheRunWritesAnewNeedNotBeWrittenByHand) {
    Stepper stepper(3);
    Plan plan = stepper.graph().compile();
    stepper.fill();
    stepper.fault = {"flux", 0, 0};
    (void)runOf(plan);
    stepper.fault = {};
    plan.recover();
    PlanWorld::set(*stepper.u, stepper.world.cells, 1);
    PlanWorld::set(*stepper.old, stepper.world.cells, 2);
    PlanWorld::set(*stepper.sums, stepper.world.cells, 5);
    plan.run(); // which writes gradient and flux before it reads them
    const std::vector<std::uint64_t> found = stepper.hashes();
    stepper.fill();
    plan.run();
    EXPECT_EQ(stepper.hashes(), found);
}

/// A rank has pulled what another has not when the run ends; plans that read the same array agree nevertheless.
TEST(PlanFailures, OtherPlansOfTheSameArraysGoOn) {
    Stepper stepper(3);
    Plan plan = stepper.graph().compile();
    Graph graph("other", stepper.world.comm);
    auto out = PlanWorld::pair("out", stepper.world.cells, 9);
    graph.task("look", stepper.world.cells)
        .reads(through(*stepper.constant, stepper.world.cellCells))
        .writes(*out)
        .run(MeanKernel{stepper.world.viewOf(stepper.world.cellCells)});
    Plan other = graph.compile();
    const AllRows expected = meanOf(stepper.world.allCellCells, stepper.world.all(true, 6));
    for (int rank = 0; rank < worldSize(); ++rank) {
        stepper.fill();
        PlanWorld::set(*stepper.constant, stepper.world.cells, 6);
        stepper.fault = {"gradient", rank, 0};
        (void)runOf(plan);
        stepper.fault = {};
        plan.recover();
        other.run();
        EXPECT_EQ(PlanWorld::wrong(*out, stepper.world.cells, expected), 0);
        stepper.fill();
        plan.run();
    }
}

TEST(PlanFailures, FinishesThatThrow) {
    PlanWorld world(3);
    auto u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2);
    RowSpace cells("cells", world.cells);
    int throwing = -1;
    Graph graph("turned", world.comm);
    const index last = world.cells.size() - 1;
    graph.finishPulls(*u, cells.region("ghosts"), [&](index row, const auto &ghosts) {
        if (throwing == worldRank() && row == last)
            throw Injected("injected");
        ghosts(row) = -ghosts(row);
    });
    graph.task("mean", world.cells)
        .reads(through(*u, world.cellCells))
        .writes(*v)
        .run(MeanKernel{world.viewOf(world.cellCells)});
    Plan plan = graph.compile();
    for (throwing = 0; throwing < worldSize(); ++throwing) {
        changed(*u);
        const Ended ended = runOf(plan);
        if (worldRank() == throwing && world.cells.ghosts > 0) {
            EXPECT_NE(ended.how, End::Good);
            expectContains(ended.text, "injected");
        }
        const int now = std::exchange(throwing, -1);
        plan.recover();
        plan.run();
        for (index row = 0; row < world.cells.ghosts; ++row)
            EXPECT_EQ(std::as_const(*u->son)(row, 0),
                      -fieldValue(world.cells.global[toSize(row + world.cells.owned)], 1));
        throwing = now;
    }
}

TEST(PlanFailures, CallsMayCommunicate) {
    PlanWorld world(3);
    auto u = PlanWorld::pair("u", world.cells, 1), v = PlanWorld::pair("v", world.cells, 2);
    const Communicator own = Communicator::duplicate(world.comm);
    Graph graph("sum", world.comm);
    graph.task("mean", world.cells)
        .reads(through(*u, world.cellCells))
        .writes(*v)
        .run(MeanKernel{world.viewOf(world.cellCells)});
    index rows = 0;
    graph.call("count").reads(owned(*v)).run(
        [&](const auto & /*v*/) { rows = own.view().allReduce(world.cells.owned, MPI_SUM); });
    graph.task("back", world.cells)
        .reads(through(*v, world.cellCells))
        .writes(*u)
        .run(MeanKernel{world.viewOf(world.cellCells)});
    graph.call("again").reads(*u).run(
        [&](const auto & /*u*/) { rows += own.view().allReduce(world.cells.owned, MPI_SUM); });
    Plan plan = graph.compile();
    AllRows all = world.all(true, 1);
    for (int run = 0; run < 5; ++run) {
        plan.run();
        all = meanOf(world.allCellCells, meanOf(world.allCellCells, all));
        EXPECT_EQ(rows, 120);
        EXPECT_EQ(PlanWorld::wrong(*u, world.cells, all), 0);
    }
}

TEST(PlanFailures, PlansGoInAnyOrderAfterAFailure) {
    for (int order = 0; order < 4; ++order) {
        Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
        auto stepper = std::make_unique<Stepper>(3, comm.view());
        auto graph = std::make_unique<Graph>(stepper->graph());
        std::optional<Plan> plan(graph->compile());
        stepper->fill();
        plan->run();
        stepper->fault = {"flux", 0, 0};
        (void)runOf(*plan);
        stepper->fault = {};
        if (order == 0) {
            plan.reset();
        } else if (order == 1) {
            graph.reset();
            stepper.reset(); // the plan is not run any more
            plan.reset();
        } else if (order == 2) {
            Plan moved = std::move(*plan);
            graph.reset();
            moved.recover();
            stepper->fill();
            moved.run();
            expectContains(messageOf<StateError>([&] { plan->run(); }), "moved from"); // NOLINT: that is tested
            expectContains(messageOf<StateError>([&] { plan->recover(); }), "moved from");
        }
        stepper.reset();
        comm = Communicator();
        plan.reset();
    }
}

TEST(PlanFailures, PlansWhoseCommunicatorWasFreed) {
    Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    Stepper stepper(3, comm.view());
    Plan plan = stepper.graph().compile();
    plan.run();
    stepper.fill();
    const bool exchanges = !plan.paths().empty();
    comm = Communicator();
    const Ended ended = runOf(plan);
    EXPECT_TRUE(!exchanges || ended.how == End::Own) << ended.text;
}

TEST(PlanFailures, ArraysThatChangedTheirRows) {
    const CommunicatorView world(MPI_COMM_WORLD);
    for (int rank = 0; rank < worldSize(); ++rank)
        for (int change = 0; change < 4; ++change) {
            Stepper stepper(3);
            PlanLocal local("local", world);
            local.resize(stepper.world.cells.owned);
            Graph graph = stepper.graph();
            graph.task("local", stepper.world.cells)
                .reads(*stepper.u)
                .writes(local)
                .run([](index row, const auto &in, const auto &out) { out(row) = in(row); });
            Plan plan = graph.compile();
            stepper.fill();
            plan.run();
            stepper.fill();
            const std::string name = std::vector<std::string>{"local", "gradient", "sums", "flux"}[toSize(change)];
            if (worldRank() == rank) {
                if (change == 0)
                    local.resize(stepper.world.cells.owned + 1);
                else if (change == 1)
                    stepper.gradient->father->resize(stepper.world.cells.owned + 3);
                else if (change == 2)
                    stepper.sums->son->resize(stepper.world.cells.ghosts + 1);
                else
                    stepper.flux->father = std::make_shared<PlanLocal>(*stepper.flux->father);
            }
            const Ended ended = runOf(plan);
            if (worldRank() == rank) {
                EXPECT_EQ(ended.how, End::Own);
                expectContains(ended.text, "'" + name + "' was resized, replaced or got another mapping");
            } else {
                EXPECT_TRUE(ended.how == End::Good || ended.how == End::Peer) << ended.text;
            }
        }
}

/// One rank writes an array that the others leave alone: they would leave the pull out.
TEST(PlanFailures, RanksThatDisagreeAboutPulls) {
    for (int rank = 0; rank < worldSize(); ++rank) {
        Stepper stepper(3);
        CompileOptions options;
        options.fuse = false; // else it is pulled together with one that all pull
        Plan plan = stepper.graph().compile(Executor::host(), options);
        stepper.fill();
        plan.run();
        const bool alone = plan.paths().empty();
        if (worldRank() == rank)
            PlanWorld::set(*stepper.constant, stepper.world.cells, 6);
        const double begin = MPI_Wtime();
        Ended ended = runOf(plan);
        if (ended.how == End::Good)
            ended = runOf(plan); // at the latest
        EXPECT_LT(MPI_Wtime() - begin, 5);
        if (!alone && worldRank() == rank) {
            EXPECT_NE(ended.how, End::Good);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        plan.recover();
        stepper.fill();
        PlanWorld::set(*stepper.constant, stepper.world.cells, 6);
        plan.run();
        const std::vector<std::uint64_t> found = stepper.hashes();
        stepper.fill();
        plan.run();
        EXPECT_EQ(stepper.hashes(), found);
    }
}

/// The only exchange is a pull that can be left out: one rank makes it, and the others find out in the next run.
TEST(PlanFailures, RanksThatFindOutInDifferentRunsRecover) {
    const CommunicatorView world(MPI_COMM_WORLD);
    GraphWorld mesh(world, 9, 60, 1);
    const auto u = PlanWorld::pair("u", mesh.cells, 1), v = PlanWorld::pair("v", mesh.cells, 2);
    Graph graph("one pull", world);
    const auto cells = std::as_const(mesh.cellCells).view();
    graph.task("mean", mesh.cells)
        .reads(through(*u, mesh.cellCells))
        .writes(*v)
        .run([cells](index row, const auto &in, const auto &out) {
            out(row) = 0;
            for (const LocalIndex other : cells[row])
                if (other >= 0)
                    out(row) += in(other);
        });
    Plan plan = graph.compile();
    plan.run();
    for (int round = 0; round < 3; ++round) {
        if (world.rank() == 0)
            u->father->markWritten();
        std::exception_ptr failure;
        try {
            plan.run();
            plan.run();
        } catch (const Error &) {
            failure = std::current_exception();
        }
        if (world.rank() == 0 &&
            u->trans.pattern()->owners().size() > 0) { // the others may be further away than two runs
            EXPECT_NE(failure, nullptr);
        }
        plan.recover();
        const index before = plan.statistics().runs;
        EXPECT_EQ(world.allReduce(before, MPI_MAX), before);
        plan.run();
        plan.run();
        plan.run();
    }
}

/// Nobody waits for rows of a rank whose last task failed: the others find out in their next run.
TEST(PlanFailures, PeersOfARankThatGaveUpFindOutInTheirNextRun) {
    const CommunicatorView world(MPI_COMM_WORLD);
    GraphWorld mesh(world, 9, 60, 1);
    const auto u = PlanWorld::pair("u", mesh.cells, 1), v = PlanWorld::pair("v", mesh.cells, 2);
    bool fails = false;
    Graph graph("last task", world);
    graph.task("pulls", mesh.cells)
        .reads(through(*u, mesh.cellCells))
        .writes(*v)
        .run([](index row, const auto & /*in*/, const auto &out) { out(row) = 1; });
    graph.call("fails").run([&] {
        if (fails && world.rank() == 0)
            throw Injected("last");
    });
    graph.task("writes", mesh.cells).reads(*v).writes(*u).run([](index row, const auto &in, const auto &out) {
        out(row) = in(row);
    });
    Plan plan = graph.compile();
    plan.run();
    fails = true;
    const bool peers = u->trans.pattern()->owners().size() + u->trans.pattern()->readers().size() > 0;
    if (world.rank() == 0) {
        EXPECT_THROW(plan.run(), StateError);
    } else {
        bool threw = false;
        try {
            for (int run = 0; run < world.size() + 1; ++run) // it takes a run from neighbour to neighbour
                plan.run();
        } catch (const PeerError &) {
            threw = true;
        }
        EXPECT_TRUE(threw || !peers);
    }
    fails = false;
    plan.recover();
    for (PlanPair *pair : {u.get(), v.get()})
        PlanWorld::set(*pair, mesh.cells, 3);
    plan.run();
    plan.run();
}

} // namespace
} // namespace DNDS::Task
