#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace {

using DNDS::test::rankSeed;
using DNDS::test::seed;
using DNDS::test::worldRank;
using DNDS::test::worldSize;

TEST(MpiMain, RunsOnTheRanksThatTheTestAsksFor) {
    const char *asked = std::getenv("DNDS_TEST_RANKS");
    if (!asked)
        GTEST_SKIP() << "DNDS_TEST_RANKS is not set: started by hand";
    EXPECT_EQ(worldSize(), std::stoi(asked));
    EXPECT_GE(worldRank(), 0);
    EXPECT_LT(worldRank(), worldSize());
}

TEST(MpiMain, RanksAreDistinct) {
    int sum = worldRank();
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(sum, worldSize() * (worldSize() - 1) / 2);
}

TEST(MpiMain, SeedIsSharedAndRankSeedsDiffer) {
    std::vector<std::uint64_t> mine{seed(), rankSeed(), rankSeed(1)};
    std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(worldSize()));
    MPI_Allgather(mine.data(), 3, MPI_UINT64_T, all.data(), 3, MPI_UINT64_T, MPI_COMM_WORLD);
    std::set<std::uint64_t> seeds;
    for (std::size_t i = 0; i < all.size(); i += 3) {
        EXPECT_EQ(all[i], seed());
        seeds.insert({all[i + 1], all[i + 2]});
    }
    EXPECT_EQ(seeds.size(), 2U * static_cast<std::size_t>(worldSize()));
}

} // namespace
