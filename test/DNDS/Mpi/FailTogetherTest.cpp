#include "DNDS/Mpi/FailTogether.hpp"

#include "ThrowsOnAll.hpp"

#include <new>
#include <optional>
#include <stdexcept>
#include <string>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOnAll;
using test::worldRank;
using test::worldSize;

TEST(FailTogether, ReturnsWhatTheBodyReturns) {
    const CommunicatorView world(MPI_COMM_WORLD);
    EXPECT_EQ(failTogether(world, [&] { return world.allReduce(1, MPI_SUM); }), worldSize());
    int calls = 0;
    failTogether(world, [&] { calls++; });
    EXPECT_EQ(calls, 1);
}

TEST(FailTogether, TellsAllRanksWhatOneThrewBetweenCollectives) {
    const CommunicatorView world(MPI_COMM_WORLD);
    for (int victim = 0; victim < worldSize(); victim++)
        for (int place = 0; place < 3; place++) {
            const auto work = [&] {
                failTogether(world, [&] {
                    for (int step = 0; step < 2; step++) {
                        if (worldRank() == victim && step == place)
                            throw DataError("broken");
                        world.allGather(worldRank());
                        world.barrier();
                    }
                    if (worldRank() == victim && place == 2)
                        throw DataError("broken");
                });
            };
            const std::string text = messageOnAll<DataError>(work);
            expectContains(text, "broken");
            expectContains(text, "rank " + std::to_string(victim));
        }
    EXPECT_EQ(world.allReduce(1, MPI_SUM), worldSize()); // nothing is left of it
}

TEST(FailTogether, SaysMemoryWhereThatIsMissing) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const std::string text = messageOnAll<MemoryError>([&] {
        failTogether(world, [&] {
            if (worldRank() == worldSize() - 1)
                throw std::bad_alloc();
            world.barrier();
        });
    });
    expectContains(text, "rank " + std::to_string(worldSize() - 1) + " has not enough memory");
}

TEST(FailTogether, MayBeNestedAndCaughtOutside) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const Communicator duplicate = Communicator::duplicate(world);
    for (int round = 0; round < 3; round++)
        messageOnAll<DataError>([&] {
            failTogether(world, [&] {
                failTogether(duplicate.view(), [&] {
                    if (worldRank() == 0)
                        throw DataError("inside");
                    duplicate.view().barrier();
                });
                world.barrier();
            });
        });
}

/// The ranks of one half work alone and one of them fails; the error reaches the other half.
TEST(FailTogether, ReachesFromSomeOfTheRanksToAll) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const int color = worldRank() % 2;
    const Communicator half = Communicator::split(world, color, 0);
    const std::string text = messageOnAll<DataError>([&] {
        failTogether(world, [&] {
            world.beforeCollective();
            world.guarded([&] {
                if (color == 0)
                    failTogether(half.view(), [&] {
                        if (half.view().rank() == half.view().size() - 1)
                            throw DataError("of one half");
                        half.view().barrier();
                    });
            });
            world.barrier();
        });
    });
    expectContains(text, "of one half");
}

/// Communicators of equal size are not those of the scope.
TEST(FailTogether, TellsRowsFromColumns) {
    if (worldSize() % 4 != 0)
        GTEST_SKIP() << "for squares of four ranks";
    const CommunicatorView world(MPI_COMM_WORLD);
    const Communicator row = Communicator::split(world, worldRank() / 2, 0);
    const Communicator column = Communicator::split(world, worldRank() / 4 * 2 + worldRank() % 2, 0);
    std::optional<std::string> told;
    failTogether(row.view(), [&] {
        try {
            column.view().guarded([&] {
                if (worldRank() % 4 == 3)
                    throw DataError("of the second column");
            });
        } catch (const DataError &error) {
            told = error.what();
        }
    });
    EXPECT_EQ(told.has_value(), worldRank() % 2 == 1);
}

} // namespace
} // namespace DNDS
