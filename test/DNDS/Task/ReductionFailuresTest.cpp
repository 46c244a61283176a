// Reductions of runs that fail, or of nothing; on the host only, with lambdas.

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Task/Graph.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>

namespace DNDS::Task {
namespace {

TEST(PlanReductions, FailWithTheRun) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    ParArray<real, 1> u("u", comm);
    u.resize(comm.rank() + 1);
    const RowSpace rows("rows", comm.rank() + 1);
    bool fails = false;
    Graph graph("failing", comm);
    graph.task("ones", rows).writes(u).run([&](index row, const WriteRows<ParArray<real, 1>> &ones) {
        if (fails && comm.rank() == comm.size() - 1)
            throw DataError("no luck");
        ones(row) = 1;
    });
    const Reduction sum = graph.reduce("sum", ReduceOp::Sum, u);
    Plan plan = graph.compile();
    plan.run();
    EXPECT_EQ(plan.result(sum)[0], comm.size() * (comm.size() + 1) / 2);
    fails = true;
    if (comm.rank() == comm.size() - 1) {
        EXPECT_THROW(plan.run(), DataError);
    } else {
        plan.run();
        EXPECT_THROW((void)plan.result(sum), PeerError);
    }
    fails = false;
    u.view()(0) = 0;
    plan.recover();
    plan.run();
    EXPECT_EQ(plan.result(sum)[0], comm.size() * (comm.size() + 1) / 2);
}

/// The tasks are done on all ranks when one finds no values: nobody waits for it.
TEST(PlanReductions, FailAfterTheRun) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    ParArray<real, 1> u("u", comm);
    u.resize(3);
    Graph graph("failing", comm);
    graph.task("ones", RowSpace("rows", 3)).writes(u).run([](index row, const auto &ones) { ones(row) = 1; });
    const Reduction sum = graph.reduce("sum", ReduceOp::Sum, u);
    bool fails = true;
    graph.model().reductions[sum.number].elements = [&,
                                                     find = graph.model().reductions[sum.number].elements](auto space) {
        if (fails && comm.rank() == 0)
            throw DataError("no values");
        return find(space);
    };
    Plan plan = graph.compile();
    if (comm.rank() == 0) {
        EXPECT_THROW(plan.run(), DataError);
        EXPECT_THROW(plan.run(), StateError);
    } else {
        plan.run();
        EXPECT_THROW((void)plan.result(sum), PeerError);
        EXPECT_THROW((void)plan.result(sum), PeerError);
    }
    fails = false;
    plan.recover();
    plan.run();
    EXPECT_EQ(plan.result(sum)[0], 3 * comm.size());
}

/// A rank that does not run the plan, as one that is stopped.
TEST(PlanReductions, GiveUpAfterTheTimeLimit) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    if (comm.size() < 2)
        GTEST_SKIP() << "needs another rank";
    ParArray<real, 1> u("u", comm);
    u.resize(3);
    Graph graph("late", comm);
    graph.task("ones", RowSpace("rows", 3)).writes(u).run([](index row, const auto &ones) { ones(row) = 1; });
    const Reduction sum = graph.reduce("sum", ReduceOp::Sum, u);
    Plan plan = graph.compile();
    plan.run();
    EXPECT_EQ(plan.result(sum)[0], 3 * comm.size());
    ::setenv("DNDS_WAIT_TIMEOUT", "0.3", 1);
    const bool late = comm.rank() == comm.size() - 1;
    if (!late) {
        plan.run();
        for (const std::function<void()> &wait :
             std::vector<std::function<void()>>{[&] { (void)plan.result(sum); }, [&] { plan.run(); }}) {
            const std::string text = test::messageOf<PeerError>(wait);
            test::expectContains(text, "for all ranks to end their run of 'late'");
            test::expectContains(text, "DNDS_WAIT_TIMEOUT");
        }
    }
    comm.barrier();
    ::unsetenv("DNDS_WAIT_TIMEOUT");
    if (late)
        plan.run();
    EXPECT_EQ(plan.result(sum)[0], 3 * comm.size()) << "it came after all";
    plan.run();
    EXPECT_EQ(plan.result(sum)[0], 3 * comm.size());
}

TEST(PlanReductions, OfNothingAreNeutral) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    ParArray<real, 1> u("u", comm);
    Graph graph("nothing", comm);
    const Reduction least = graph.reduce("least", ReduceOp::Min, u, 0);
    const Reduction sum = graph.reduce("sum", ReduceOp::Sum, u, 0);
    Plan plan = graph.compile();
    plan.run();
    EXPECT_EQ(plan.result(least)[0], std::numeric_limits<real>::infinity());
    EXPECT_EQ(plan.result(sum)[0], 0);
}

} // namespace
} // namespace DNDS::Task
