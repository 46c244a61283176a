#include "DNDS/Index/Mappings.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "PullLists.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::PullLists;
using test::seed;
using test::worldRank;
using test::worldSize;

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

void expectAsRequested(const GhostMapping &mapping, const PullLists &pullLists) {
    const index begin = pullLists.begin(worldRank());
    const index owned = pullLists.size(worldRank());
    const auto &reads = pullLists.myReads();
    const std::set<index> set(reads.begin(), reads.end());
    const std::vector<index> ghosts(set.begin(), set.end()); // ascending rows are ascending owners, too

    EXPECT_EQ(mapping.fatherSize(), owned);
    ASSERT_EQ(mapping.ghostSize(), static_cast<index>(ghosts.size()));
    EXPECT_TRUE(std::ranges::equal(mapping.ghosts(), ghosts));

    RankLists owners;
    RankLists readers;
    for (int rank = 0; rank < worldSize(); ++rank) {
        std::vector<index> of;
        std::copy_if(ghosts.begin(), ghosts.end(), std::back_inserter(of),
                     [&](index r) { return pullLists.owner(r) == rank; });
        if (!of.empty())
            owners.append(rank, of);
        std::set<index> read;
        for (const index row : pullLists.readsOf(rank))
            if (pullLists.owner(row) == worldRank())
                read.insert(row - begin);
        if (!read.empty())
            readers.append(rank, std::vector<index>(read.begin(), read.end()));
    }
    EXPECT_EQ(mapping.ownerPeers().ranks, owners.ranks);
    EXPECT_EQ(mapping.ownerPeers().starts, owners.starts);
    EXPECT_EQ(mapping.ownerPeers().values, owners.values);
    EXPECT_EQ(mapping.readerPeers().ranks, readers.ranks);
    EXPECT_EQ(mapping.readerPeers().starts, readers.starts);
    EXPECT_EQ(mapping.readerPeers().values, readers.values);

    // Look-ups, both ways, of every row there is and of some there are not.
    for (index row = -2; row < pullLists.rows() + 2; ++row) {
        const bool mine = row >= begin && row < begin + owned;
        const auto ghost = std::lower_bound(ghosts.begin(), ghosts.end(), row);
        const bool isGhost = ghost != ghosts.end() && *ghost == row;
        const index number = ghost - ghosts.begin();
        ASSERT_EQ(mapping.findGhost(row), isGhost ? std::optional<index>(number) : std::nullopt) << "row " << row;
        ASSERT_EQ(mapping.toLocal(row), mine      ? std::optional<index>(row - begin)
                                        : isGhost ? std::optional<index>(owned + number)
                                                  : std::nullopt)
            << "row " << row;
    }
    for (index local = 0; local < owned + mapping.ghostSize(); ++local)
        ASSERT_EQ(mapping.toGlobal(local),
                  local < owned ? begin + local : ghosts[static_cast<std::size_t>(local - owned)]);
    EXPECT_THROW((void)mapping.toGlobal(-1), IndexError);
    EXPECT_THROW((void)mapping.toGlobal(owned + mapping.ghostSize()), IndexError);

    const std::vector<LocalIndex> locals = mapping.toLocal(std::span<const index>(reads));
    ASSERT_EQ(locals.size(), reads.size());
    for (std::size_t i = 0; i < reads.size(); ++i)
        ASSERT_EQ(mapping.toGlobal(locals[i]), reads[i]);
}

TEST(GhostMapping, FromPullListsEqualsASerialReference) {
    for (std::uint64_t round = 0; round < 20; ++round) {
        SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << seed() << ", round " << round);
        const PullLists pullLists = PullLists::random(round);
        const auto global = pullLists.global();
        for (const auto discovery : {PeerDiscovery::AllToAll, PeerDiscovery::Consensus})
            expectAsRequested(*GhostMapping::fromPullList(global, pullLists.myReads(), discovery), pullLists);
    }
}

TEST(GhostMapping, FromPushListsEqualsASerialReferenceAndIsSearchable) {
    for (std::uint64_t round = 0; round < 20; ++round) {
        SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << seed() << ", round " << round);
        const PullLists pullLists = PullLists::random(1000 + round);
        const index begin = pullLists.begin(worldRank());
        // The same pull lists, as owners know them: with duplicates, unsorted.
        std::vector<index> localRows;
        std::vector<index> starts{0};
        for (int reader = 0; reader < worldSize(); ++reader) {
            for (const index row : pullLists.readsOf(reader))
                if (pullLists.owner(row) == worldRank())
                    localRows.push_back(row - begin);
            starts.push_back(static_cast<index>(localRows.size()));
        }
        for (const auto discovery : {PeerDiscovery::AllToAll, PeerDiscovery::Consensus})
            expectAsRequested(*GhostMapping::fromPushList(pullLists.global(), localRows, starts, discovery), pullLists);
    }
}

TEST(GhostMapping, OwnRowsMayBeGhostsButTranslateToOwnedRows) {
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, 4);
    const std::vector<index> own{global->localBegin() + 2, global->localBegin(), global->localBegin() + 2};
    const auto mapping = GhostMapping::fromPullList(global, own);
    EXPECT_EQ(mapping->ghostSize(), 2);
    EXPECT_EQ(mapping->findGhost(global->localBegin() + 2), 1);
    EXPECT_EQ(mapping->toLocal(global->localBegin() + 2), 2);
    EXPECT_EQ(mapping->toGlobal(4 + 1), global->localBegin() + 2);
    EXPECT_EQ(mapping->ownerPeers().ranks, std::vector<int>{worldRank()});
    EXPECT_EQ(mapping->readerPeers().values, (std::vector<index>{0, 2}));
}

TEST(GhostMapping, NoRowsAnywhere) {
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, 0);
    const auto mapping = GhostMapping::fromPullList(global, {});
    EXPECT_EQ(mapping->ghostSize(), 0);
    EXPECT_EQ(mapping->ownerPeers().size(), 0U);
    EXPECT_EQ(mapping->readerPeers().size(), 0U);
    EXPECT_EQ(mapping->toLocal(0), std::nullopt);
}

TEST(GhostMapping, ARowThatDoesNotExistThrowsOnAllRanksAndIsNamed) {
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, 5);
    for (int bad = 0; bad < worldSize(); ++bad) {
        for (const index row : {index{-1}, global->globalSize(), InvalidIndex}) {
            std::vector<index> list{0, 3, 1};
            if (worldRank() == bad)
                list.insert(list.begin() + 1, row);
            const std::string text = messageOnAll<IndexError>([&] { (void)GhostMapping::fromPullList(global, list); });
            expectContains(text, "entry 1 ");
            expectContains(text, "row " + std::to_string(row));
            expectContains(text, "(rank " + std::to_string(bad));
            expectContains(text, "0 to " + std::to_string(global->globalSize() - 1));
        }
    }
    // The failed attempts left no state that disturbs the next one.
    EXPECT_EQ(GhostMapping::fromPullList(global, std::vector<index>{0, 0})->ghostSize(), 1);
}

TEST(GhostMapping, AWrongPushListThrowsOnAllRanks) {
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, 5);
    const auto ranks = at(worldSize());
    const auto make = [&](const std::vector<index> &rows, const std::vector<index> &starts) {
        return [&] { (void)GhostMapping::fromPushList(global, rows, starts); };
    };
    std::vector<index> good(ranks + 1, 3);
    good[0] = 0;
    for (int bad = 0; bad < worldSize(); ++bad) {
        const bool here = worldRank() == bad;
        for (const index row : {index{-1}, index{5}}) {
            const std::vector<index> rows{0, here ? row : 4, 2};
            const std::string text = messageOnAll<IndexError>(make(rows, good));
            expectContains(text, "row " + std::to_string(row));
            expectContains(text, "(rank " + std::to_string(bad));
        }
        const std::vector<index> rows{0, 4, 2};
        std::vector<index> starts = good;
        if (here)
            starts.pop_back();
        messageOnAll<ArgumentError>(make(rows, starts));
        starts = good;
        if (here)
            starts.back() = 2;
        messageOnAll<ArgumentError>(make(rows, starts));
        starts = good;
        if (here)
            starts.front() = 1;
        messageOnAll<ArgumentError>(make(rows, starts));
        messageOnAll<ArgumentError>(make(rows, here ? std::vector<index>() : good));
    }
}

TEST(GhostMapping, NeedsAGlobalMapping) {
    EXPECT_THROW((void)GhostMapping::fromPullList(nullptr, {}), StateError);
    EXPECT_THROW((void)GhostMapping::fromPushList(nullptr, {}, {}), StateError);
}

TEST(GhostMapping, TranslatingARowThatIsNotHereNamesIt) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, 3);
    const auto mapping = GhostMapping::fromPullList(global, {});
    const index elsewhere = global->begin((worldRank() + 1) % worldSize());
    const std::vector<index> rows{global->localBegin(), elsewhere};
    const std::string text = messageOf<IndexError>([&] { (void)mapping->toLocal(rows); });
    expectContains(text, "entry 1 ");
    expectContains(text, "row " + std::to_string(elsewhere));
}

TEST(GhostMapping, LocalNumbersBeyond32BitsAreRefused) {
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, index{1} << 31);
    const auto mapping = GhostMapping::fromPullList(global, {});
    const std::vector<index> rows{global->localBegin()};
    expectContains(messageOf<ArgumentError>([&] { (void)mapping->toLocal(rows); }), "32-bit");
    EXPECT_EQ(mapping->toLocal(global->localBegin() + 2147483647), 2147483647); // 64-bit look-ups work
}

TEST(GhostMapping, OfMoreRowsThan32BitsCount) {
    const index many = index{3} << 32;
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, many);
    std::vector<index> rows; // the last two of every rank
    for (int rank = 0; rank < worldSize(); ++rank)
        rows.insert(rows.end(), {global->end(rank) - 2, global->end(rank) - 1});
    const auto mapping = GhostMapping::fromPullList(global, rows);
    EXPECT_TRUE(std::ranges::equal(mapping->ghosts(), rows));
    EXPECT_EQ(mapping->fatherSize(), many);
    EXPECT_EQ(mapping->toLocal(rows.back()), worldRank() == worldSize() - 1 ? many - 1 : many + 2 * worldSize() - 1);
    EXPECT_EQ(mapping->toGlobal(many + 1), rows[1]);
    const RankLists &readers = mapping->readerPeers();
    ASSERT_EQ(readers.size(), static_cast<std::size_t>(worldSize()));
    for (std::size_t k = 0; k < readers.size(); ++k)
        EXPECT_TRUE(std::ranges::equal(readers.list(k), std::vector<index>{many - 2, many - 1}));
}

TEST(GhostMapping, OfTwoNumberingsInAnotherOrderOnOneRankFailsOnAllRanks) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs ranks that differ";
    const auto lastRows = [](const GlobalMapping &global) {
        std::vector<index> rows;
        for (int rank = 0; rank < worldSize(); ++rank)
            rows.push_back(global.end(rank) - 1);
        return rows;
    };
    // Of equal and of different sizes: rows of the larger one do not exist in the smaller.
    for (const index moreRows : {0, 1000}) {
        const auto few = GlobalMapping::create(MPI_COMM_WORLD, 5);
        const auto many = GlobalMapping::create(MPI_COMM_WORLD, 5 + moreRows);
        for (int odd = 0; odd < worldSize(); ++odd) {
            const auto &mine = worldRank() == odd ? many : few;
            const std::vector<index> last = lastRows(*mine);
            for (const PeerDiscovery discovery : {PeerDiscovery::AllToAll, PeerDiscovery::Consensus}) {
                const std::string text =
                    messageOnAll<StateError>([&] { (void)GhostMapping::fromPullList(mine, last, discovery); });
                expectContains(text, "numbering " + std::to_string(few->serial()));
                expectContains(text, "numbering " + std::to_string(many->serial()));
                expectContains(text, "same order");
                messageOnAll<StateError>([&] { (void)GhostMapping::fromRepeatedPullList(mine, last, discovery); });
                // Every rank gives its last row to all.
                const auto ranks = static_cast<std::size_t>(worldSize());
                const std::vector<index> rows(ranks, mine->localSize() - 1);
                std::vector<index> starts(ranks + 1);
                std::iota(starts.begin(), starts.end(), 0);
                messageOnAll<StateError>([&] { (void)GhostMapping::fromPushList(mine, rows, starts, discovery); });
            }
        }
        EXPECT_EQ(GhostMapping::fromPullList(few, lastRows(*few))->ghostSize(), worldSize());
    }
}

TEST(GhostMapping, OfArraysInAnotherOrderOnOneRankNamesBoth) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs ranks that differ";
    const auto global = GlobalMapping::create(MPI_COMM_WORLD, 3);
    const std::vector<index> rows{0};
    const std::string text = messageOnAll<StateError>([&] {
        (void)GhostMapping::fromPullList(*global->context(), [&] {
            return GhostMapping::PullRequest{global, rows, worldRank() == worldSize() - 1 ? "velocity" : "pressure"};
        });
    });
    expectContains(text, "'velocity'");
    expectContains(text, "'pressure'");
}

TEST(GhostMapping, OfANumberingOfAnotherCommunicatorReadsNoRowsThatAreNotThere) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs ranks that differ";
    // Each of them is the first of its communicator, so that their numbers are equal.
    const Communicator one = Communicator::duplicate(MPI_COMM_WORLD);
    const Communicator other = Communicator::duplicate(MPI_COMM_WORLD);
    const auto few = GlobalMapping::create(one.view(), 5);
    const auto many = GlobalMapping::create(other.view(), 1000);
    ASSERT_EQ(few->serial(), many->serial());
    const auto &mine = worldRank() == worldSize() - 1 ? many : few;
    const std::vector<index> rows{mine->end(0) - 1};
    const auto request = [&] { return GhostMapping::PullRequest{mine, rows}; };
    expectContains(messageOnAll<IndexError>([&] { (void)GhostMapping::fromPullList(*few->context(), request); }),
                   "not rows of their owners");
}

} // namespace
} // namespace DNDS
