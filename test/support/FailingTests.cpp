// Tests that must not pass: ctest runs each by itself and checks how the program ends.

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <stdexcept>

namespace {

using DNDS::test::worldRank;

TEST(Failing, Throws) {
    if (worldRank() == 1)
        throw std::runtime_error("only rank 1 threw");
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Failing, Hangs) {
    if (worldRank() == 0)
        MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Failing, FailsBeforeCollective) {
    ASSERT_NE(worldRank(), 1) << "only rank 1 left the collective";
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Failing, FailsOnOneRank) { EXPECT_NE(worldRank(), 1); }

} // namespace
