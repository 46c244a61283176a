#include "DNDS/Index/Mappings.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <limits>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::seed;
using test::worldRank;
using test::worldSize;

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

void expectLikeSerial(const std::vector<index> &sizes) {
    const auto mapping = GlobalMapping::create(MPI_COMM_WORLD, sizes[at(worldRank())]);
    EXPECT_EQ(mapping->rank(), worldRank());
    EXPECT_EQ(mapping->ranks(), worldSize());
    index row = 0;
    for (int rank = 0; rank < worldSize(); ++rank) {
        EXPECT_EQ(mapping->begin(rank), row);
        EXPECT_EQ(mapping->size(rank), sizes[at(rank)]);
        EXPECT_EQ(mapping->end(rank), row + sizes[at(rank)]);
        for (index local = 0; local < sizes[at(rank)]; ++local, ++row) {
            const OwnedRow owner = mapping->owner(row);
            ASSERT_EQ(owner.rank, rank) << "row " << row;
            ASSERT_EQ(owner.row, local);
            ASSERT_EQ(mapping->toGlobal(rank, local), row);
            ASSERT_EQ(mapping->isLocal(row), rank == worldRank());
            ASSERT_TRUE(mapping->contains(row));
        }
    }
    EXPECT_EQ(mapping->globalSize(), row);
    EXPECT_EQ(mapping->localSize(), sizes[at(worldRank())]);
    EXPECT_EQ(mapping->localBegin(), mapping->begin(worldRank()));

    for (const index outside : {index{-1}, row, row + 1, std::numeric_limits<index>::max(), InvalidIndex}) {
        EXPECT_FALSE(mapping->contains(outside));
        EXPECT_FALSE(mapping->isLocal(outside));
        expectContains(messageOf<IndexError>([&] { (void)mapping->owner(outside); }), std::to_string(outside));
    }
    EXPECT_THROW((void)mapping->toGlobal(-1, 0), IndexError);
    EXPECT_THROW((void)mapping->toGlobal(worldSize(), 0), IndexError);
    EXPECT_THROW((void)mapping->toGlobal(worldRank(), -1), IndexError);
    EXPECT_THROW((void)mapping->toGlobal(worldRank(), sizes[at(worldRank())]), IndexError);
}

TEST(GlobalMapping, EqualsSerialNumberingForRandomSizes) {
    std::mt19937_64 random(seed());
    SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << seed());
    for (int round = 0; round < 20; ++round) {
        std::vector<index> sizes(at(worldSize()));
        for (index &size : sizes) {
            size = static_cast<index>(random() % 9);
            if (random() % 3 == 0)
                size = 0;
        }
        expectLikeSerial(sizes);
    }
}

TEST(GlobalMapping, EmptyRanksAtBothEndsAndInARow) {
    expectLikeSerial(std::vector<index>(at(worldSize()), 0));
    for (int only = 0; only < worldSize(); ++only) {
        std::vector<index> sizes(at(worldSize()), 0);
        sizes[at(only)] = 3;
        expectLikeSerial(sizes);
    }
}

TEST(GlobalMapping, NegativeSizeOfOneRankThrowsOnAll) {
    for (int bad = 0; bad < worldSize(); ++bad) {
        const std::string text = messageOnAll<ArgumentError>(
            [&] { (void)GlobalMapping::create(MPI_COMM_WORLD, worldRank() == bad ? -2 : 5); });
        expectContains(text, "rank " + std::to_string(bad) + " owns -2 rows");
    }
}

TEST(GlobalMapping, MoreRowsThanNumbersThrowsOnAll) {
    const index most = std::numeric_limits<index>::max();
    if (worldSize() == 1) {
        EXPECT_EQ(GlobalMapping::create(MPI_COMM_WORLD, most)->globalSize(), most);
        return;
    }
    messageOnAll<ArgumentError>([&] { (void)GlobalMapping::create(MPI_COMM_WORLD, most / 2 + 1); });
}

TEST(GlobalMapping, RowsBeyondTwoToThe32) {
    const index many = index{3} << 32;
    const auto mapping = GlobalMapping::create(MPI_COMM_WORLD, many);
    for (int rank = 0; rank < worldSize(); ++rank) {
        EXPECT_EQ(mapping->owner(many * rank + many - 1).rank, rank);
        EXPECT_EQ(mapping->owner(many * rank + many - 1).row, many - 1);
    }
}

} // namespace
} // namespace DNDS
