#include "DNDS/Mpi/Communicator.hpp"

#include "ThrowsOnAll.hpp"

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::worldRank;

TEST(CheckMpi, SuccessPasses) { EXPECT_NO_THROW(checkMpi(MPI_SUCCESS, "MPI_Send")); }

TEST(CheckMpi, FailureCarriesTheNameOfTheCallTheCodeAndMpisText) {
    char expected[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(MPI_ERR_RANK, expected, &length);
    const std::string text = messageOf<MpiError>([] { checkMpi(MPI_ERR_RANK, "MPI_Send"); });
    expectContains(text, "MPI_Send failed");
    expectContains(text, std::to_string(MPI_ERR_RANK));
    expectContains(text, expected);
    expectContains(text, "CheckTest.cpp");
}

TEST(CheckMpi, AnErrorOfMpiItselfBecomesAnException) {
    const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    int value = 0;
    const std::string text = messageOf<MpiError>(
        [&] { checkMpi(MPI_Bcast(&value, 1, MPI_INT, comm.view().size() + 5, comm.view().handle()), "MPI_Bcast"); });
    expectContains(text, "MPI_Bcast");
    expectContains(text, "on rank " + std::to_string(worldRank()));
}

TEST(MpiActive, BetweenInitAndFinalize) {
    EXPECT_TRUE(mpiActive());
    EXPECT_NO_THROW(requireMpiActive("a test runs"));
}

} // namespace
} // namespace DNDS
