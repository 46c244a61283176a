// Exchanges that a graph starts and finishes by calls of their own.

#include "DNDS/Blocks/BlockTasks.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <gtest/gtest.h>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

/// A rank without peers continues without a recovery.
TEST(CalledExchanges, EndWithARunOfOneRankThatFails) {
    const CommunicatorView comm(MPI_COMM_SELF);
    const auto grid = BlockGrid::blocksOf(comm, {"box", Box({0, 0}, {13, 10}), {true, true}}, {4, 3});
    BlockField<real> u("u", comm, BlockPattern::make(comm, grid, {1, 1}));
    int calls = 0;
    Graph graph("deposit", comm);
    startPushGhosts(graph, u);
    graph.call("look").reads(owned(u)).run([&](const auto & /*views*/) {
        if (++calls % 2 == 1)
            throw ArgumentError("every other time");
    });
    finishPushGhosts(graph, u);
    Plan plan = graph.compile();
    for (int run = 0; run < 3; ++run) {
        expectContains(messageOf<ArgumentError>([&] { plan.run(); }), "every other time");
        EXPECT_FALSE(u.pushInFlight());
        EXPECT_NO_THROW(plan.run());
    }
    EXPECT_EQ(calls, 6);
}

} // namespace
} // namespace DNDS::Task
