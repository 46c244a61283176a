#include "DNDS/Mpi/Spread.hpp"

#include <gtest/gtest.h>

namespace DNDS {
namespace {

TEST(Spread, IsOfOneNumberARank) {
    const double values[] = {4.0, 1.0, 3.0, 0.0};
    const int ranks[] = {2, 3, 5, 7};
    const Spread spread = Spread::of(values, ranks);
    EXPECT_EQ(spread.least, 0.0);
    EXPECT_EQ(spread.median, 2.0);
    EXPECT_EQ(spread.most, 4.0);
    EXPECT_EQ(spread.mean, 2.0);
    EXPECT_EQ(spread.mostAt, 2);
    EXPECT_EQ(spread.imbalance(), 1.0);
    EXPECT_EQ(Spread::of({}).imbalance(), 0.0);
}

TEST(Spread, IsTheSameOnAllRanks) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const Spread spread = Spread::over(world, world.rank());
    const double last = world.size() - 1;
    EXPECT_EQ(spread.least, 0.0);
    EXPECT_EQ(spread.median, 0.5 * last);
    EXPECT_EQ(spread.most, last);
    EXPECT_EQ(spread.mean, 0.5 * last);
    EXPECT_EQ(spread.mostAt, world.size() - 1);
}

} // namespace
} // namespace DNDS
