#include "DNDS/Mpi/Reductions.hpp"

#include <gtest/gtest.h>

namespace DNDS {
namespace {

TEST(RankStatistics, IsOfOneNumberARank) {
    const double values[] = {4.0, 1.0, 3.0, 0.0};
    const int ranks[] = {2, 3, 5, 7};
    const RankStatistics spread = RankStatistics::of(values, ranks);
    EXPECT_EQ(spread.min, 0.0);
    EXPECT_EQ(spread.median, 2.0);
    EXPECT_EQ(spread.max, 4.0);
    EXPECT_EQ(spread.mean, 2.0);
    EXPECT_EQ(spread.maxRank, 2);
    EXPECT_EQ(spread.imbalance(), 1.0);
    EXPECT_EQ(RankStatistics::of({}).imbalance(), 0.0);
}

TEST(RankStatistics, IsTheSameOnAllRanks) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const RankStatistics spread = RankStatistics::over(world, world.rank());
    const double last = world.size() - 1;
    EXPECT_EQ(spread.min, 0.0);
    EXPECT_EQ(spread.median, 0.5 * last);
    EXPECT_EQ(spread.max, last);
    EXPECT_EQ(spread.mean, 0.5 * last);
    EXPECT_EQ(spread.maxRank, world.size() - 1);
}

} // namespace
} // namespace DNDS
