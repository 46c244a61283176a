#include "DNDS/Mpi/CommunicatorContext.hpp"

#include "ThrowsOnAll.hpp"

#include <algorithm>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using test::seed;
using test::worldRank;
using test::worldSize;

/// Message from rank `from` to rank `to` in case `round`: computed alike on all ranks. Empty lists mean no message.
std::vector<index> letter(int from, int to, std::uint64_t round, double density) {
    std::seed_seq seeds{seed(), round, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to)};
    std::mt19937_64 random(seeds);
    if (std::uniform_real_distribution<>(0, 1)(random) >= density)
        return {};
    std::vector<index> values(random() % 50);
    for (index &value : values)
        value = static_cast<index>(random());
    return values;
}

void expectDelivery(const Communicator &comm, std::uint64_t round, double density, PeerDiscovery discovery) {
    SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << seed() << ", round " << round);
    RankLists outgoing;
    RankLists expected;
    for (int rank = 0; rank < worldSize(); ++rank) {
        if (const auto values = letter(worldRank(), rank, round, density); !values.empty() || round % 2 == 0)
            outgoing.append(rank, values); // in even rounds empty lists are listed, too
        if (const auto values = letter(rank, worldRank(), round, density); !values.empty())
            expected.append(rank, values);
    }
    const RankLists incoming = sparseExchange(*CommunicatorContext::of(comm.view()), outgoing, discovery);
    EXPECT_EQ(incoming.ranks, expected.ranks);
    EXPECT_EQ(incoming.starts, expected.starts);
    EXPECT_EQ(incoming.values, expected.values);
}

TEST(SparseExchange, BothDiscoveriesDeliverRandomLists) {
    const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    std::uint64_t round = 0;
    for (const double density : {0.0, 0.15, 0.5, 1.0})
        for (int repeat = 0; repeat < 6; ++repeat)
            for (const auto discovery : {PeerDiscovery::AllToAll, PeerDiscovery::Consensus, PeerDiscovery::Auto})
                expectDelivery(comm, round++, density, discovery);
}

TEST(SparseExchange, OnlyToOneself) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    for (const auto discovery : {PeerDiscovery::AllToAll, PeerDiscovery::Consensus}) {
        RankLists outgoing;
        const std::vector<index> mine{5, worldRank(), -3};
        outgoing.append(worldRank(), mine);
        const RankLists incoming = sparseExchange(*context, outgoing, discovery);
        EXPECT_EQ(incoming.ranks, std::vector<int>{worldRank()});
        EXPECT_EQ(incoming.values, mine);
        EXPECT_EQ(incoming.starts, (std::vector<index>{0, 3}));
    }
}

TEST(SparseExchange, ManyRoundsInARowDoNotMix) {
    // Ranks leave a round at different times: messages of the next round must not be taken for this one's.
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    const int to = (worldRank() + 1) % worldSize();
    const int from = (worldRank() + worldSize() - 1) % worldSize();
    for (index round = 0; round < 200; ++round) {
        RankLists outgoing;
        outgoing.append(to, std::vector<index>(static_cast<std::size_t>(round % 3 + 1), round));
        const RankLists incoming = sparseExchange(*context, outgoing, PeerDiscovery::Consensus);
        ASSERT_EQ(incoming.ranks, std::vector<int>{from});
        ASSERT_EQ(incoming.values, std::vector<index>(static_cast<std::size_t>(round % 3 + 1), round));
    }
}

TEST(SparseExchange, LongListsArrive) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    for (const auto discovery : {PeerDiscovery::AllToAll, PeerDiscovery::Consensus}) {
        RankLists outgoing;
        for (int rank = 0; rank < worldSize(); ++rank)
            outgoing.append(rank, std::vector<index>(100000, 1000 * worldRank() + rank));
        const RankLists incoming = sparseExchange(*context, outgoing, discovery);
        ASSERT_EQ(incoming.size(), static_cast<std::size_t>(worldSize()));
        for (int rank = 0; rank < worldSize(); ++rank) {
            const auto list = incoming.list(static_cast<std::size_t>(rank));
            ASSERT_EQ(list.size(), 100000U);
            EXPECT_TRUE(std::ranges::all_of(list, [&](index v) { return v == 1000 * rank + worldRank(); }));
        }
    }
}

TEST(RankLists, ListsAreAppendedInOrder) {
    RankLists lists;
    EXPECT_EQ(lists.size(), 0U);
    lists.append(2, std::vector<index>{4, 5});
    lists.append(7, {});
    lists.append(9, std::vector<index>{6});
    EXPECT_EQ(lists.size(), 3U);
    EXPECT_EQ(lists.list(0).size(), 2U);
    EXPECT_TRUE(lists.list(1).empty());
    EXPECT_EQ(lists.list(2).front(), 6);
}

} // namespace
} // namespace DNDS
