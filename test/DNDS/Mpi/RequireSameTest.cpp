#include "DNDS/Mpi/FailTogether.hpp"

#include "ThrowsOnAll.hpp"

#include <string>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOnAll;
using test::worldRank;
using test::worldSize;

TEST(RequireSame, ComparesKeys) {
    const CommunicatorView world(MPI_COMM_WORLD);
    EXPECT_TRUE(isSameOnAll(world, 42));
    EXPECT_TRUE(isSameOnAll(world, ~std::uint64_t{0}));
    EXPECT_EQ(isSameOnAll(world, worldRank() == worldSize() - 1 ? 1 : 2), worldSize() == 1);
}

/// The error of all ranks when the last one passes `mine` instead of `first`.
std::string complaint(const std::vector<std::string> &first, const std::vector<std::string> &mine) {
    const std::vector<std::string> &own = worldRank() == worldSize() - 1 ? mine : first;
    return messageOnAll<ArgumentError>([&] {
        requireSame(MPI_COMM_WORLD, own, [&](std::size_t k, const std::string *there) {
            throw ArgumentError(fmt::format("{}: {} here, {} there", k, k < own.size() ? own[k] : "nothing",
                                            there != nullptr ? *there : "nothing"));
        });
    });
}

TEST(RequireSame, SaysNothingWhereAllAreTheSame) {
    const std::vector<std::string> texts{"pull", "", "push"};
    requireSame(MPI_COMM_WORLD, texts, [](std::size_t, const std::string *) { FAIL() << "the lists are the same"; });
}

TEST(RequireSame, ComplainsOfTheFirstThatDiffersOnAllRanks) {
    if (worldSize() == 1)
        GTEST_SKIP() << "one rank differs from nobody";
    expectContains(complaint({"a", "b", "c"}, {"a", "x", "y"}), "1: x here, b there");
    expectContains(complaint({"a", "b"}, {"a"}), "1: nothing here, b there");
    expectContains(complaint({"a"}, {"a", "b"}), "1: b here, nothing there");
    expectContains(complaint({"ab", ""}, {"a", "b"}), "0: a here, ab there");
}

} // namespace
} // namespace DNDS
