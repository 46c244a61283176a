#include "DNDS/Mpi/RequestSet.hpp"

#include "DNDS/Mpi/Communicator.hpp"
#include "ThrowsOnAll.hpp"

#include <utility>
#include <vector>

namespace DNDS {
namespace {

using test::worldRank;
using test::worldSize;

/// A ring: every rank sends one number to the next.
struct Ring {
    Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    int out = 0;
    int in = -1;
    RequestSet sends{RequestSet::Kind::Send};
    RequestSet receives{RequestSet::Kind::Receive};

    Ring() {
        const int n = worldSize();
        MPI_Send_init(&out, 1, MPI_INT, (worldRank() + 1) % n, 3, comm.view().handle(), sends.add());
        MPI_Recv_init(&in, 1, MPI_INT, (worldRank() + n - 1) % n, 3, comm.view().handle(), receives.add());
    }
    int expected(int round) const { return (worldRank() + worldSize() - 1) % worldSize() + 100 * round; }
};

TEST(RequestSet, RunsAgainAndAgain) {
    Ring ring;
    for (int round = 0; round < 5; ++round) {
        ring.out = worldRank() + 100 * round;
        ring.receives.startAll();
        ring.sends.start(0);
        std::vector<MPI_Status> statuses(1);
        ring.receives.waitAll(statuses);
        ring.sends.waitAll();
        EXPECT_EQ(ring.in, ring.expected(round));
    }
}

TEST(RequestSet, MovedSetsKeepWorking) {
    Ring ring;
    RequestSet moved(std::move(ring.receives));
    EXPECT_EQ(ring.receives.size(), 0U); // NOLINT: that is what is tested
    ring.receives = RequestSet(RequestSet::Kind::Receive);
    RequestSet assigned(RequestSet::Kind::Send);
    assigned = std::move(moved);
    ring.out = worldRank();
    assigned.startAll();
    ring.sends.startAll();
    assigned.waitAll();
    ring.sends.waitAll();
    EXPECT_EQ(ring.in, ring.expected(0));
}

TEST(RequestSet, ActiveReceivesAreCancelledByTheirDestruction) {
    Ring ring;
    ring.in = -7;
    ring.receives.startAll();
    ring.receives.clear();
    EXPECT_EQ(ring.receives.size(), 0U);
    ring.comm.view().barrier();
    // What is sent now must not arrive in memory of the cancelled receive.
    ring.out = worldRank();
    ring.sends.startAll();
    int fresh = -1;
    MPI_Recv(&fresh, 1, MPI_INT, MPI_ANY_SOURCE, 3, ring.comm.view().handle(), MPI_STATUS_IGNORE);
    ring.sends.waitAll();
    EXPECT_EQ(fresh, ring.expected(0));
    EXPECT_EQ(ring.in, -7);
}

TEST(RequestSet, EmptySetsDoNothing) {
    RequestSet none(RequestSet::Kind::Send);
    EXPECT_NO_THROW(none.startAll());
    EXPECT_NO_THROW(none.waitAll());
    none.clear();
}

} // namespace
} // namespace DNDS
