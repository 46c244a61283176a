// Runs that fail on one rank: all ranks get the right error soon, arrays that were not written stay as they are, and
// after a recovery the plan continues with the right bits.

#include "DNDS/Mpi/Survival.hpp"
#include "DNDS/Task/PlanFields.hpp"
#include "DNDS/Task/PlanStage.hpp"
#include "support/ScopedVariable.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

/// Kinds of exceptions thrown.
enum class Kind { Runtime, Memory, Data };

void throwOf(Kind kind) {
    if (kind == Kind::Memory)
        throw std::bad_alloc();
    if (kind == Kind::Data)
        throw DataError("injected");
    throw std::runtime_error("injected");
}

/// Place where a task throws.
struct Fault {
    std::string task; ///< empty: nowhere
    int rank = 0;
    index row = 0;
    Kind kind = Kind::Runtime;

    void check(const char *where, index at) const {
        if (task == where && worldRank() == rank && row == at)
            throwOf(kind);
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
        graph.call("every other", 2).reads(owned(*u)).run([this](const auto & /*in*/) { ++calls; });
        sum = graph.reduce("sum", ReduceOp::Sum, *u);
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
    PlanWorld world;
    Fault fault;
    Reduction sum;
    int calls = 0;
    std::unique_ptr<PlanPair> u, old, gradient, flux, sums, constant;
};

/// A fault of one rank.
struct Wrong {
    std::string name;
    /// Makes the next run fail on this rank; whether it does.
    std::function<bool(Stepper &)> make;
    std::string text; ///< part of what all ranks throw
    std::function<void(Stepper &)> repair = [](Stepper &stepper) { stepper.fault = {}; };
    bool anyMayNotice = false;
};

std::vector<Wrong> faults() {
    std::vector<Wrong> list;
    for (const std::string task : {"gradient", "flux", "sums", "update", "look"})
        for (const Kind kind : {Kind::Runtime, Kind::Memory, Kind::Data})
            list.push_back({fmt::format("'{}' throws {}", task, static_cast<int>(kind)),
                            [=](Stepper &stepper) {
                                const bool ofCells = task == "gradient" || task == "update";
                                const WorldRows &rows = ofCells ? stepper.world.cells : stepper.world.faces;
                                stepper.fault = {task, worldRank(), task == "look" ? 0 : rows.owned / 2, kind};
                                return task == "look" || rows.owned > 0;
                            },
                            fmt::format("in task '{}'", task)});
    list.push_back({"rows changed",
                    [](Stepper &stepper) {
                        stepper.gradient->father->resize(stepper.world.cells.owned + 3);
                        return true;
                    },
                    "'gradient' was resized, replaced or got another mapping",
                    [](Stepper &stepper) { stepper.gradient->father->resize(stepper.world.cells.owned); }});
    return list;
}

class PlanFailures : public testing::TestWithParam<int> {
  protected:
    Plan compiled(Stepper &stepper, CompileOptions options = {}) const {
        return stepper.graph().compile(GetParam() == 1 ? Executor::host() : Executor::hostThreads(GetParam()), options);
    }
};

/// One step of a program.
void step(Plan &plan, const Stepper &stepper) {
    plan.run();
    (void)plan.result(stepper.sum);
}

TEST_P(PlanFailures, OfOneRankStopAllAndRecoveryGivesTheRightBits) {
    const Communicator own = Communicator::duplicate(MPI_COMM_WORLD);
    Stepper stepper(3, own.view());
    Plan plan = compiled(stepper);
    stepper.fill();
    plan.run();
    const std::vector<std::uint64_t> once = stepper.hashes();
    const real sum = plan.result(stepper.sum)[0];
    plan.run();
    const std::vector<std::uint64_t> twice = stepper.hashes();
    int turn = 0;
    for (const Wrong &wrong : faults())
        for (int rank = 0; rank < worldSize(); ++rank) {
            SCOPED_TRACE(fmt::format("{} on rank {}", wrong.name, rank));
            stepper.fill();
            if (++turn % 2 == 0)
                plan.run();
            const std::uint64_t ofConstant = stepper.hashes().back();
            int fails = worldRank() == rank && wrong.make(stepper) ? 1 : 0;
            own.view().broadcast(fails, rank);
            if (fails == 0)
                continue;
            const auto fail = [&] {
                const std::string text = messageOf<Error>([&] { plan.run(); });
                if (worldSize() == 1)
                    throw DataError(text);
                expectContains(text, wrong.text);
                expectContains(messageOf<RevokedError>([&] { plan.run(); }), "this rank failed in");
                plan.run();
            };
            survive(own.view(),
                    {.rank = rank,
                     .told = wrong.text,
                     .happens = fail,
                     .call = [&] { step(plan, stepper); },
                     .repair = [&] { wrong.repair(stepper); },
                     .recover = [&] { worldSize() > 1 && turn % 3 == 0 ? recover(own.view()) : plan.recover(); }});
            EXPECT_EQ(stepper.hashes().back(), ofConstant) << "an array that is only read";
            EXPECT_THROW((void)plan.result(stepper.sum), StateError) << "before the first run";
            stepper.fill();
            stepper.calls = 0;
            plan.run();
            EXPECT_EQ(stepper.calls, 1) << "counted from the recovery";
            EXPECT_EQ(plan.result(stepper.sum)[0], sum);
            EXPECT_EQ(stepper.hashes(), once);
            plan.run();
            EXPECT_EQ(stepper.calls, 1);
            EXPECT_EQ(stepper.hashes(), twice);
            if (testing::Test::HasFailure())
                return;
        }
}

/// One rank writes an array that the others leave alone: they would leave the pull out.
TEST_P(PlanFailures, RanksThatDisagreeAboutPulls) {
    const Communicator own = Communicator::duplicate(MPI_COMM_WORLD);
    for (int rank = 0; rank < worldSize(); ++rank) {
        Stepper stepper(3, own.view());
        CompileOptions options;
        options.fuse = false; // else it is pulled together with one that all pull
        Plan plan = compiled(stepper, options);
        stepper.fill();
        plan.run();
        const std::vector<std::uint64_t> expected = stepper.hashes();
        stepper.fill();
        if (worldRank() == rank)
            PlanWorld::set(*stepper.constant, stepper.world.cells, 6);
        int alone = plan.paths().empty() ? 1 : 0;
        own.view().broadcast(alone, rank);
        const auto steps = [&] {
            while (true)
                step(plan, stepper);
        };
        if (alone == 0)
            survive(own.view(), {.rank = rank,
                                 .told = "disagree about plan 'step'",
                                 .happens = steps,
                                 .call = steps,
                                 .recover = [&] { plan.recover(); },
                                 .anyMayNotice = true});
        stepper.fill();
        plan.run();
        EXPECT_EQ(stepper.hashes(), expected);
        own.view().barrier();
    }
}

INSTANTIATE_TEST_SUITE_P(Threads, PlanFailures, testing::Values(1, 4)); // host threads

/// A program's own exception destroys the plan on one rank while the others wait for its rows.
TEST(PlansThatFail, ByAnExceptionThatDestroysThem) {
    const Communicator own = Communicator::duplicate(MPI_COMM_WORLD);
    for (const int rank : std::set{0, worldSize() - 1}) {
        Stepper stepper(3, own.view());
        std::optional<Plan> plan(stepper.graph().compile());
        stepper.fill();
        plan->run();
        const auto fail = [&] {
            try {
                const std::optional<Plan> destroyed = std::exchange(plan, std::nullopt);
                throw std::runtime_error("the program's own");
            } catch (const std::exception &) {
                revoke(own.view(), std::current_exception());
                throw;
            }
        };
        survive(own.view(), {.rank = rank,
                             .told = "", // of the destruction or of the exception
                             .happens = fail,
                             .call = [&] { step(*plan, stepper); },
                             .recover =
                                 [&] {
                                     plan.reset();
                                     recover(own.view());
                                 },
                             .anyMayNotice = true}); // that the plan went
        plan.emplace(stepper.graph().compile());
        stepper.fill();
        plan->run();
    }
}

/// A rank has pulled what another has not when the run ends; plans that read the same array agree nevertheless.
TEST(PlansThatFail, LetOtherPlansOfTheSameArraysGoOn) {
    Stepper stepper(3);
    const CommunicatorView comm = stepper.world.comm;
    Plan plan = stepper.graph().compile();
    Graph graph("other", comm);
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
        int fails = stepper.world.cells.owned > 0 ? 1 : 0;
        comm.broadcast(fails, rank);
        if (fails == 0)
            continue;
        const auto steps = [&] { step(plan, stepper); };
        survive(comm, {.rank = rank, .told = "injected", .happens = steps, .call = steps});
        stepper.fault = {};
        other.run();
        EXPECT_EQ(PlanWorld::wrong(*out, stepper.world.cells, expected), 0);
        stepper.fill();
        plan.run();
    }
}

/// A plan of one task and two reductions.
struct Ones {
    explicit Ones(CommunicatorView on) : comm(on) {
        u.resize(3);
        graph.task("ones", RowSpace("rows", 3)).writes(u).run([](index row, const auto &ones) { ones(row) = 1; });
        sum = graph.reduce("sum", ReduceOp::Sum, u);
        least = graph.reduce("least", ReduceOp::Min, u, 0);
    }
    void expectWorks(Plan &plan) const {
        plan.run();
        EXPECT_EQ(plan.result(sum)[0], 3 * comm.size());
        EXPECT_EQ(plan.result(least)[0], std::numeric_limits<real>::infinity());
    }
    CommunicatorView comm;
    ParArray<real, 1> u{"u", comm};
    Graph graph{"failing", comm};
    Reduction sum, least;
};

/// The tasks are done on all ranks when one finds no values for a reduction.
TEST(PlansThatFail, AfterTheirTasks) {
    Ones ones(MPI_COMM_WORLD);
    bool fails = worldRank() == 0;
    auto &elements = ones.graph.model().reductions[ones.sum.number].elements;
    elements = [&, find = elements](auto space) {
        if (fails)
            throw DataError("no values");
        return find(space);
    };
    Plan plan = ones.graph.compile();
    EXPECT_THROW((void)plan.result(ones.sum), StateError);
    const auto run = [&] {
        plan.run();
        (void)plan.result(ones.sum);
    };
    survive(ones.comm, {.rank = 0,
                        .told = "no values",
                        .happens = run,
                        .call = run,
                        .repair = [&] { fails = false; },
                        .recover = [&] { plan.recover(); }});
    ones.expectWorks(plan);
}

/// A rank that does not run the plan, as one that is stopped.
TEST(PlansThatFail, AfterTheTimeLimit) {
    const Communicator own = Communicator::duplicate(MPI_COMM_WORLD);
    {
        const ScopedVariable limit("DNDS_WAIT_TIMEOUT", "0.3");
        (void)CommunicatorContext::of(own.view());
    }
    const Ones ones(own.view());
    Plan plan = ones.graph.compile();
    ones.expectWorks(plan);
    if (worldRank() != worldSize() - 1) {
        plan.run();
        const std::string text = messageOf<PeerError>([&] { (void)plan.result(ones.sum); });
        expectContains(text, "to take part in the reduction of plan 'failing'");
        expectContains(text, "DNDS_WAIT_TIMEOUT");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    plan.recover();
    ones.expectWorks(plan);
}

TEST(PlanStages, AreThoseOfTheTable) {
    using enum PlanStage;
    using enum PlanEvent;
    const auto refused = std::optional<PlanStage>();
    const std::vector<std::pair<PlanStage, std::vector<std::optional<PlanStage>>>> expected{
        // Start, Queue, Complete, Fail, Renew
        {Idle, {Running, refused, Idle, Failed, Idle}},
        {Running, {refused, Queued, Idle, Failed, refused}},
        {Queued, {Running, refused, Idle, Failed, Idle}},
        {Failed, {Running, refused, Failed, Failed, Idle}}};
    for (const auto &[stage, after] : expected)
        for (const PlanEvent event : {Start, Queue, Complete, Fail, Renew})
            EXPECT_EQ(stageAfter(stage, event), after[static_cast<std::size_t>(event)])
                << static_cast<int>(stage) << " " << static_cast<int>(event);
}

TEST(PlansThatCommunicate, CallsMayCommunicate) {
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

TEST(PlansThatFail, GoInAnyOrderAfterAFailure) {
    for (int order = 0; order < 4; ++order) {
        Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
        auto stepper = std::make_unique<Stepper>(3, comm.view());
        auto graph = std::make_unique<Graph>(stepper->graph());
        std::optional<Plan> plan(graph->compile());
        stepper->fill();
        plan->run();
        stepper->fault = {"flux", 0, 0};
        try {
            plan->run();
        } catch (const std::exception &) { // on ranks that it reaches
        }
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

/// Plans whose pulls are dropped run without waiting for peers: some are destroyed before these have run.
TEST(PlansThatEnd, BeforeTheirPeersHaveRun) {
    for (int round = 0; round < 10; ++round) {
        const ScopedVariable nodes("DNDS_RANKS_PER_NODE", round % 2 == 0 ? "1" : "0");
        const Communicator own = Communicator::duplicate(MPI_COMM_WORLD); // MPI gives it the number of the one before
        Stepper stepper(3, own.view());
        Graph graph("means", own.view());
        auto out = PlanWorld::pair("out", stepper.world.cells, 9, own.view());
        graph.task("mean", stepper.world.cells)
            .reads(through(*stepper.constant, stepper.world.cellCells))
            .writes(*out)
            .run(MeanKernel{stepper.world.viewOf(stepper.world.cellCells)});
        std::optional<Plan> plan(graph.compile());
        stepper.fill();
        plan->run();
        EXPECT_EQ(plan->statistics().dropped, 0);
        own.view().barrier();
        for (int late = 0; late < worldSize(); ++late) {
            if (worldRank() != late)
                plan->run(); // would never return if it waited
            own.view().barrier();
            if (worldRank() == late)
                plan->run();
        }
        EXPECT_EQ(plan->statistics().dropped, stepper.world.times(worldSize()));
        const bool absent = round % 3 == 1 && worldRank() == round % worldSize();
        if (!absent)
            plan->run();
        if (round % 3 == 1)
            std::thread([&] { plan.reset(); }).join();
        own.view().barrier();
        if (absent || round % 3 == 1)
            recover(own.view());
        plan.emplace(graph.compile());
        stepper.fill();
        plan->run();
        EXPECT_EQ(
            PlanWorld::wrong(*out, stepper.world.cells, meanOf(stepper.world.allCellCells, stepper.world.all(true, 6))),
            0);
    }
}

/// Of small parts in a chain none gains from another thread.
TEST(PlansInThreads, RunChainsOfSmallPartsInTheCallingThread) {
    PlanWorld world(5, 50, 1, MPI_COMM_SELF);
    const auto u = PlanWorld::pair("u", world.cells, 1, MPI_COMM_SELF);
    PlanWorld::set(*u, world.cells, 1);
    Graph graph("chain", world.comm);
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<index> inWorkers = 0;
    for (int k = 0; k < 50; ++k)
        graph.task(fmt::format("link {}", k), world.cells).readsWrites(*u).run([&](index row, const auto &values) {
            values(row) += 1;
            if (std::this_thread::get_id() != caller)
                ++inWorkers;
        });
    Plan plan = graph.compile(Executor::hostThreads(3));
    const real before = std::as_const(*u->father)(0, 0);
    for (int run = 0; run < 20; ++run)
        plan.run();
    EXPECT_EQ(inWorkers, 0);
    EXPECT_EQ(std::as_const(*u->father)(0, 0), before + 1000);
}

/// The calling thread runs the last task, and fails long before the worker that runs the first one.
TEST(PlansInThreads, ThrowTheFirstFailureInTheOrderOfTasks) {
    for (const auto &[threads, calls] : {std::pair{1, false}, {2, false}, {2, true}}) {
        PlanWorld world(5, 50, 1, MPI_COMM_SELF);
        const auto u = PlanWorld::pair("u", world.cells, 1, MPI_COMM_SELF);
        const auto v = PlanWorld::pair("v", world.cells, 1, MPI_COMM_SELF);
        Graph graph("failing", world.comm);
        graph.task("first", world.cells).readsWrites(*u).run([](index row, const auto & /*values*/) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (row + 1 == 40)
                throw std::runtime_error("injected");
        });
        if (calls)
            graph.call("second").reads(owned(*v)).run(
                [](const auto & /*values*/) { throw std::runtime_error("injected"); });
        else
            graph.task("second", world.cells).readsWrites(*v).run([](index /*row*/, const auto & /*values*/) {
                throw std::runtime_error("injected");
            });
        Plan plan = graph.compile(threads == 1 ? Executor::host() : Executor::hostThreads(threads));
        expectContains(messageOf<Error>([&] { plan.run(); }), "in task 'first'");
        plan.recover();
    }
}

} // namespace
} // namespace DNDS::Task
