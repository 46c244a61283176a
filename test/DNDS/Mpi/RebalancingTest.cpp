#include "DNDS/Mpi/Reductions.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

TEST(Rebalancing, IsDueWhenItPaysOff) {
    Rebalancing policy(0.1);
    const double slow = worldSize() > 1 ? 2 : 1;
    const double mine = worldRank() == worldSize() - 1 ? slow : 1;
    const bool uneven = worldSize() > 1;
    EXPECT_FALSE(policy.isDue(world(), 1)) << "all are equal";
    EXPECT_EQ(policy.isDue(world(), mine), uneven) << "nobody knows yet what moving costs";
    EXPECT_EQ(policy.last().maxRank, uneven ? worldSize() - 1 : 0);
    EXPECT_NE(describeImbalance(world(), policy.last()).find(uneven ? "x the mean of" : "nothing to balance"),
              std::string::npos);
    policy.moved(world(), 100);
    EXPECT_FALSE(policy.isDue(world(), mine)) << "moving again would cost more than was lost";
    int steps = 1;
    while (uneven && !policy.isDue(world(), mine))
        ++steps;
    const double lost = slow - (slow + worldSize() - 1) / worldSize(); // a step
    EXPECT_TRUE(!uneven || std::abs(steps - 100 / lost) < 2) << steps;
    messageOnAll<ArgumentError>([&] { measureImbalance(world(), worldRank() == 0 ? -1.0 : 1.0); });
    EXPECT_THROW(Rebalancing(-1), ArgumentError);
    Rebalancing other(worldRank() == 0 ? 0.1 : 10);
    if (uneven)
        expectContains(messageOnAll<ArgumentError>([&] { other.isDue(world(), mine); }), "threshold = 10 on rank 1");
}

} // namespace
} // namespace DNDS::test
