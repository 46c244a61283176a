#include "DNDS/Exchange/Report.hpp"

#include "DNDS/Exchange/RingField.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

/// Counts during a test.
struct Counting {
    Counting() { countExchanges(true); }
    ~Counting() { countExchanges(reportsAtEnd()); }
    Counting(const Counting &) = delete;
    Counting &operator=(const Counting &) = delete;
};

TEST(Report, KnowsWhatAPullMoves) {
    const Counting counting;
    {
        auto u = ringField("counted");
        u.trans.initPersistentPull();
        for (int version = 1; version <= 3; ++version)
            expectPullWorks(u, version);
    }
    const Report made = report(MPI_COMM_WORLD); // includes destroyed exchanges
    EXPECT_EQ(made.ranks, worldSize());
    const ExchangeReport *pull = made.find("pull of 'counted'");
    ASSERT_NE(pull, nullptr);
    EXPECT_EQ(pull->ranks, worldSize());
    EXPECT_EQ(pull->runs, 3U);
    EXPECT_EQ(pull->owned.max, static_cast<double>(ringRows));
    EXPECT_EQ(pull->owned.imbalance(), 0.0);
    EXPECT_GT(pull->ghosts.max, 0.0);
    EXPECT_EQ(pull->rowsSent.mean, pull->ghosts.mean);
    EXPECT_EQ(pull->bytesSent.mean, pull->ghosts.mean * 5 * sizeof(real));
    EXPECT_GT(pull->startSeconds.min, 0.0);
    EXPECT_GT(pull->waitSeconds.min, 0.0);
    std::uint64_t peers = 0;
    for (const auto &[count, bytes] : pull->paths)
        peers += count;
    EXPECT_EQ(static_cast<double>(peers), pull->peers.mean * worldSize());
    EXPECT_GE(made.memory[0].min, static_cast<double>(ringRows * 5 * sizeof(real)));
    EXPECT_GT(made.memory[1].max, 0.0);
    EXPECT_NE(made.text().find("pull of 'counted': run 3 times"), std::string::npos);
}

TEST(Report, CountsNothingWhileOff) {
    countExchanges(false);
    auto u = ringField("uncounted");
    u.trans.initPersistentPull();
    expectPullWorks(u, 1);
    EXPECT_EQ(report(MPI_COMM_WORLD).find("pull of 'uncounted'"), nullptr);
    countExchanges(reportsAtEnd());
}

TEST(Report, NamesTheRankThatTheOthersWaitFor) {
    const Counting counting;
    auto u = ringField("late");
    u.trans.initPersistentPull();
    const int slow = worldSize() - 1;
    for (int version = 1; version <= 5; ++version) {
        fill(u, version);
        CommunicatorView(MPI_COMM_WORLD).barrier();
        if (worldRank() == slow)
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        pull(u);
    }
    const Report made = report(MPI_COMM_WORLD);
    const ExchangeReport *late = made.find("pull of 'late'");
    ASSERT_NE(late, nullptr);
    if (worldSize() == 1) {
        EXPECT_EQ(late->latest, -1);
        return;
    }
    EXPECT_EQ(late->latest, slow);
    EXPECT_GT(late->late, 0.02);
    EXPECT_TRUE(late->keepsOthersWaiting);
    EXPECT_GT(late->waitSeconds.max, 0.2);
    EXPECT_NE(made.text().find("rank " + std::to_string(slow) + " keeps the others waiting"), std::string::npos);
}

/// Without ghosts.
RealField fieldOfPart(const char *name, CommunicatorView part) {
    auto u = emptyPair<RealField>(name, part);
    u.father->resize(2);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    u.trans.createGhostMapping({});
    u.trans.createMPITypes();
    u.trans.initPersistentPull();
    return u;
}

TEST(Report, HasExchangesThatRankZeroHasNot) {
    const Counting counting;
    const Communicator part = Communicator::split(MPI_COMM_WORLD, worldRank() == 0 ? MPI_UNDEFINED : 0, worldRank());
    if (part.valid()) {
        auto u = fieldOfPart("part", part.view());
        pull(u);
    }
    const Report made = report(MPI_COMM_WORLD);
    const ExchangeReport *pull = made.find("pull of 'part'");
    if (worldSize() == 1) {
        EXPECT_EQ(pull, nullptr);
        return;
    }
    ASSERT_NE(pull, nullptr);
    EXPECT_EQ(pull->ranks, worldSize() - 1);
    EXPECT_EQ(pull->peers.max, 0.0);
    EXPECT_EQ(pull->owned.max, 2.0);
}

TEST(Report, AccusesNobodyOfAnotherCommunicator) {
    const Counting counting;
    const bool second = 2 * worldRank() >= worldSize();
    const Communicator half = Communicator::split(MPI_COMM_WORLD, second ? 1 : 0, worldRank());
    auto u = fieldOfPart("halves", half.view());
    if (second)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pull(u);
    const Report made = report(MPI_COMM_WORLD);
    const ExchangeReport *halves = made.find("pull of 'halves'");
    ASSERT_NE(halves, nullptr);
    EXPECT_EQ(halves->ranks, worldSize());
    EXPECT_EQ(halves->latest, -1);
    EXPECT_FALSE(halves->keepsOthersWaiting);
    const Report own = report(half.view());
    EXPECT_EQ(own.find("pull of 'halves'")->latest >= 0, half.view().size() > 1);
}

/// Run once more with DNDS_REPORT=1, where ctest looks for what rank 0 says.
TEST(Report, OfPartsOnly) {
    const Communicator half = Communicator::split(MPI_COMM_WORLD, worldRank() == 0 ? 0 : 1, worldRank());
    auto u = fieldOfPart("halves", half.view());
    pull(u);
}

/// Run once more with DNDS_REPORT=1, where ctest looks for the report.
TEST(Report, TwoPullsOfTheEnd) {
    auto u = ringField("end");
    u.trans.initPersistentPull();
    expectPullWorks(u, 1);
    expectPullWorks(u, 2);
    EXPECT_EQ(report(MPI_COMM_WORLD).find("pull of 'end'") != nullptr, reportsAtEnd());
}

} // namespace
} // namespace DNDS
