#include "DNDS/Mpi/CommunicatorLife.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace DNDS {
namespace {

TEST(CommunicatorLife, EndsWithItsCommunicator) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const CommunicatorLife life(comm);
    CommunicatorLife moved(comm);
    const CommunicatorLife later = std::move(moved);
    const CommunicatorLife world(MPI_COMM_WORLD);
    EXPECT_FALSE(life.ended());
    EXPECT_FALSE(later.ended());
    EXPECT_FALSE(moved.ended()); // NOLINT: moves are copies
    MPI_Comm_free(&comm);
    EXPECT_TRUE(life.ended());
    EXPECT_TRUE(later.ended());
    EXPECT_FALSE(world.ended());
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); // perhaps with the same handle
    EXPECT_FALSE(CommunicatorLife(comm).ended());
    EXPECT_TRUE(life.ended());
    MPI_Comm_free(&comm);
}

TEST(CommunicatorLife, IsNotThatOfADuplicate) {
    MPI_Comm copy = MPI_COMM_NULL;
    const Communicator user = Communicator::duplicate(MPI_COMM_WORLD);
    const CommunicatorLife life(user.view());
    MPI_Comm_dup(user.view().handle(), &copy);
    MPI_Comm_free(&copy);
    EXPECT_FALSE(life.ended());
}

} // namespace
} // namespace DNDS
