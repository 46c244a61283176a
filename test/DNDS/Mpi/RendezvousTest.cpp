#include "DNDS/Mpi/Rendezvous.hpp"

#include "ThrowsOnAll.hpp"

#include "DNDS/Base/Error.hpp"

#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOnAll;
using test::worldRank;
using test::worldSize;

TEST(Rendezvous, GroupsAndPacksRecordsByRank) {
    const std::vector<int> ranks{2, 0, -1, 2, 0, 3};
    const RankLists groups = groupByRank(4, ranks.size(), [&](std::size_t i) { return ranks[i]; });
    EXPECT_EQ(groups.ranks, (std::vector<int>{0, 2, 3}));
    EXPECT_EQ(groups.starts, (std::vector<index>{0, 2, 4, 5}));
    EXPECT_EQ(groups.values, (std::vector<index>{1, 4, 0, 3, 5}));

    const RankLists records = packByRank(
        4, ranks.size(), [&](std::size_t i) { return ranks[i]; }, [](std::size_t i) { return i % 2 + 1; },
        [](std::size_t i, index *words) { std::fill_n(words, i % 2 + 1, static_cast<index>(10 * i)); });
    EXPECT_EQ(records.ranks, groups.ranks);
    EXPECT_EQ(records.values, (std::vector<index>{10, 10, 40, 0, 30, 30, 50, 50}));
}

TEST(Rendezvous, CollectsWordsInAnyOrderOfRanks) {
    Outbox outbox;
    outbox.to(3).push_back(1);
    outbox.to(1).push_back(2);
    outbox.to(3).push_back(3);
    const RankLists lists = outbox.take();
    EXPECT_EQ(lists.ranks, (std::vector<int>{1, 3}));
    EXPECT_EQ(lists.values, (std::vector<index>{2, 1, 3}));
    EXPECT_EQ(outbox.take().size(), 0U);
}

TEST(Rendezvous, RecordsAreReadWordByWord) {
    const std::vector<index> words{7, packReal(0.5), 1, 2, 3, packReal(1), packReal(2), packReal(-3)};
    RecordReader reader(words);
    EXPECT_EQ(reader.next(), 7);
    EXPECT_EQ(reader.nextReal(), 0.5);
    EXPECT_EQ(reader.next(3)[2], 3);
    EXPECT_EQ(reader.nextPoint(), (std::array<real, 3>{1, 2, -3}));
    EXPECT_TRUE(reader.atEnd());
}

TEST(Rendezvous, OwnersAnswerWithRecordsOfAnyLength) {
    auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    // Rank r owns the numbers r, r + size, ... and answers n with n words.
    std::vector<index> numbers;
    for (index i = 0; i < 20; ++i)
        numbers.push_back((i * 7 + worldRank()) % 13 + 1);
    std::vector<std::vector<index>> replies(numbers.size());
    queryOwners(
        *context, numbers.size(),
        [&](std::size_t i) { return i == 4 ? -1 : static_cast<int>(numbers[i] % worldSize()); },
        [&](std::size_t i) { return numbers[i]; },
        [&](index number, std::vector<index> &reply) {
            EXPECT_EQ(number % worldSize(), worldRank());
            reply.insert(reply.end(), static_cast<std::size_t>(number), number);
        },
        [&](std::size_t i, RecordReader &reader) {
            const auto words = reader.next(numbers[i]);
            replies[i].assign(words.begin(), words.end());
        });
    for (std::size_t i = 0; i < numbers.size(); ++i)
        EXPECT_EQ(replies[i], std::vector<index>(i == 4 ? 0 : static_cast<std::size_t>(numbers[i]), numbers[i]));
}

TEST(Rendezvous, WhatAnOwnerThrowsIsThrownOnAllRanks) {
    auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    const auto ask = [&](const std::exception_ptr &failure) {
        queryOwners(
            *context, 1, [](std::size_t) { return worldSize() - 1; }, [](std::size_t) { return worldRank(); },
            [](index number, std::vector<index> &reply) {
                DNDS_CHECK(number != 0, DataError, "nobody knows {}", number);
                reply.push_back(number);
            },
            [](std::size_t, RecordReader &reader) { (void)reader.next(); }, failure);
    };
    expectContains(messageOnAll<DataError>([&] { ask(nullptr); }), "nobody knows 0");
    const auto before = std::make_exception_ptr(StateError("failed before"));
    expectContains(messageOnAll<StateError>([&] { ask(worldRank() == 0 ? before : nullptr); }), "failed before");
}

} // namespace
} // namespace DNDS
