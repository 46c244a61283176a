#include "DNDS/Mpi/Communicator.hpp"

#include "ThrowsOnAll.hpp"

#include <string>
#include <vector>

namespace DNDS {
namespace {

using test::worldRank;

TEST(BroadcastList, GivesRankZerosListToAll) {
    const CommunicatorView world(MPI_COMM_WORLD);
    std::vector<double> list(worldRank() == 0 ? 3 : static_cast<std::size_t>(2 * worldRank()), 1.5 + worldRank());
    broadcastList(world, list);
    EXPECT_EQ(list, std::vector<double>(3, 1.5));
    list.resize(worldRank() == 0 ? 0 : 4);
    broadcastList(world, list);
    EXPECT_TRUE(list.empty());
}

TEST(BroadcastList, GivesRankZerosStringsToAll) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const std::vector<std::string> expected{"", std::string("a\0b", 3), std::string(5000, 'x')};
    std::vector<std::string> strings(static_cast<std::size_t>(worldRank()), "other");
    if (worldRank() == 0)
        strings = expected;
    broadcastStrings(world, strings);
    EXPECT_EQ(strings, expected);
}

} // namespace
} // namespace DNDS
