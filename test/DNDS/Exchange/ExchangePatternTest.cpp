#include "DNDS/Exchange/ExchangePattern.hpp"

#include "DNDS/Index/Wishes.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

TEST(ExchangePattern, BoundaryRowsAreThoseThatSomebodyReads) {
    for (std::uint64_t round = 0; round < 10; ++round) {
        const Wishes wishes = Wishes::random(round);
        SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << seed() << ", " << wishes.name);
        const ExchangePattern pattern(GhostMapping::fromPullList(wishes.global(), wishes.myReads()));
        std::set<index> read;
        for (int rank = 0; rank < worldSize(); ++rank)
            for (const index row : wishes.readsOf(rank))
                if (wishes.owner(row) == worldRank())
                    read.insert(row - wishes.begin(worldRank()));
        EXPECT_TRUE(std::ranges::equal(pattern.boundaryRows(), read));
        std::vector<index> inner;
        for (index row = 0; row < pattern.fatherSize(); ++row)
            if (!read.contains(row))
                inner.push_back(row);
        EXPECT_TRUE(std::ranges::equal(pattern.innerRows(), inner));
        EXPECT_EQ(pattern.sonSize(), static_cast<index>(wishes.ghostsOf(worldRank()).size()));
    }
}

TEST(ExchangePattern, NeedsAMapping) { EXPECT_THROW(ExchangePattern(nullptr), StateError); }

} // namespace
} // namespace DNDS
