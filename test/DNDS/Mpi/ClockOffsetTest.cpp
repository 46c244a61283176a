#include "DNDS/Mpi/Reductions.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

namespace DNDS {
namespace {

TEST(ClockOffset, IsZeroOnOneMachine) { EXPECT_EQ(clockOffset(MPI_COMM_WORLD), 0.0); }

TEST(ClockOffset, BringsTogetherWhatIsApart) {
    // Clocks that are 1000 s apart from rank to rank, and rank 0's is not at 0.
    constexpr auto clock = []() noexcept { return monotonicSeconds() + 1000.0 * (3 - test::worldRank()); };
    const CommunicatorView world(MPI_COMM_WORLD);
    const double offset = clockOffset(world, clock);
    EXPECT_NEAR(offset, 1000.0 * world.rank(), 0.5); // half a round trip, on a machine with more ranks than cores
    EXPECT_TRUE(world.rank() != 0 || offset == 0.0);
    // Between two barriers, the clocks of all ranks differ by no more than the time between them.
    world.barrier();
    const double from = clock() + offset;
    world.barrier();
    const double to = clock() + offset;
    EXPECT_LT(world.allReduce(from, MPI_MAX), world.allReduce(to, MPI_MIN) + 0.5);
}

} // namespace
} // namespace DNDS
