#include "DNDS/Exchange/PeerAgreement.hpp"

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"
#include "DNDS/Transport/NodeSharedCase.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

std::vector<int> everyone() {
    std::vector<int> ranks(static_cast<std::size_t>(worldSize()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

/// The ranks before and after this one, without those of the ends of the line.
std::vector<int> neighboursInALine() {
    std::vector<int> ranks;
    for (const int rank : {worldRank() + 1, worldRank() - 1})
        if (rank >= 0 && rank < worldSize())
            ranks.push_back(rank);
    return ranks;
}

std::unique_ptr<PeerAgreement> agreementOn(const World &world, const std::vector<int> &peers) {
    return std::make_unique<PeerAgreement>(world.context, "the test", peers);
}

std::string rankName(int rank) { return "rank " + std::to_string(rank) + " "; }

/// Fails the test unless nothing is left of agreements that were destroyed on all ranks.
void expectNothingParked(const World &world) {
    const Clock::time_point begin = Clock::now();
    while (world.context->hasParked() && secondsSince(begin) < 10.0)
        world.context->progressParked();
    EXPECT_FALSE(world.context->hasParked());
}

/// Fails the test unless a new one works on the same communicator.
void expectUsable(const World &world) {
    const auto agreement = agreementOn(world, everyone());
    for (std::uint64_t round = 0; round < 5; ++round)
        agreement->begin(round);
    agreement->finish();
    EXPECT_EQ(agreement->disagreeing(), std::nullopt);
}

/// Polls until a peer disagrees, for some seconds at most.
std::optional<int> pollFor(PeerAgreement &agreement) {
    const Clock::time_point begin = Clock::now();
    std::optional<int> found;
    while (!(found = agreement.disagreeing()) && secondsSince(begin) < 10.0)
        std::this_thread::yield();
    return found;
}

TEST(PeerAgreement, EqualWordsForManyRoundsOfRanksThatComeAtDifferentTimes) {
    const World world;
    std::mt19937_64 random(rankSeed(1));
    for (const auto &peers : {everyone(), neighboursInALine(), std::vector<int>{}}) {
        const auto agreement = agreementOn(world, peers);
        for (std::uint64_t round = 0; round < 300; ++round) {
            if (random() % 16 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
            agreement->begin(mix({round}));
            for (std::uint64_t polls = random() % 4; polls > 0; --polls)
                EXPECT_EQ(agreement->disagreeing(), std::nullopt);
            if (random() % 32 == 0)
                agreement->finish();
        }
        agreement->finish();
        agreement->finish();
        EXPECT_EQ(agreement->disagreeing(), std::nullopt);
        EXPECT_EQ(agreement->rounds(), 300U);
    }
    expectNothingParked(world);
}

TEST(PeerAgreement, ARoundIsBegunWithoutItsPeers) {
    const World world;
    const auto agreement = agreementOn(world, everyone());
    for (int late = 0; late < worldSize(); ++late) {
        if (worldRank() != late)
            agreement->begin(1); // would never return if it waited
        world.comm().barrier();
        EXPECT_EQ(agreement->disagreeing(), std::nullopt);
        if (worldRank() == late)
            agreement->begin(1);
    }
    agreement->finish();
}

TEST(PeerAgreement, AnotherWordIsFoundInItsRoundByWhoPolls) {
    const World world;
    for (int bad = 0; bad < worldSize() && worldSize() > 1; ++bad) {
        const auto agreement = agreementOn(world, everyone());
        for (std::uint64_t round = 0; round < 3; ++round)
            agreement->begin(round);
        agreement->begin(worldRank() == bad ? 8 : 7);
        const auto found = pollFor(*agreement);
        ASSERT_TRUE(found.has_value());
        if (worldRank() != bad) {
            EXPECT_EQ(*found, bad);
        }
        for (int times = 0; times < 2; ++times) {
            const std::string text = messageOf<StateError>([&] { agreement->finish(); });
            expectContains(text, rankName(*found) + "and this rank disagree about the test in round 4");
            expectContains(messageOf<StateError>([&] { agreement->begin(9); }), rankName(*found));
            EXPECT_EQ(agreement->disagreeing(), found);
        }
        EXPECT_EQ(agreement->rounds(), 4U);
    }
    expectUsable(world);
    expectNothingParked(world);
}

TEST(PeerAgreement, AnotherWordIsFoundInTheNextRoundAtTheLatest) {
    const World world;
    for (int bad = 0; bad < worldSize() && worldSize() > 1; ++bad) {
        const auto agreement = agreementOn(world, everyone());
        agreement->begin(1);
        agreement->begin(worldRank() == bad ? 8 : 7);
        const std::string text = messageOf<StateError>([&] { agreement->begin(9); });
        if (worldRank() != bad)
            expectContains(text, rankName(bad));
        EXPECT_EQ(agreement->rounds(), 2U);
    }
    expectNothingParked(world);
}

TEST(PeerAgreement, RanksThatOnlyHavePeersInCommonStopToo) {
    const World world;
    for (int bad = 0; bad < worldSize() && worldSize() > 1; ++bad) {
        const auto agreement = agreementOn(world, neighboursInALine());
        const int distance = std::abs(worldRank() - bad);
        const auto rounds = [&] {
            for (std::uint64_t round = 0; round < 20; ++round)
                agreement->begin(round == 3 && worldRank() == bad ? 99 : round);
        };
        if (distance < 2)
            messageOf<StateError>(rounds);
        else
            expectContains(messageOf<PeerError>(rounds), "has left the test");
        EXPECT_LE(agreement->rounds(), static_cast<std::uint64_t>(4 + distance));
    }
    expectNothingParked(world);
}

TEST(PeerAgreement, DestroyedUnderWayOnAllRanksInAnyOrder) {
    const World world;
    std::mt19937_64 random(rankSeed(2));
    for (int times = 0; times < 20; ++times) {
        std::vector<std::unique_ptr<PeerAgreement>> agreements;
        for (int k = 0; k < 4; ++k)
            agreements.push_back(agreementOn(world, k % 2 == 0 ? everyone() : neighboursInALine()));
        for (std::uint64_t round = 0; round < 3; ++round)
            for (std::size_t k = 0; k < agreements.size(); ++k)
                if (round < k) // the first one is never used
                    agreements[k]->begin(round);
        std::shuffle(agreements.begin(), agreements.end(), random);
        for (auto &agreement : agreements)
            agreement.reset();
    }
    expectUsable(world);
    expectNothingParked(world);
}

TEST(PeerAgreement, WhoGoesOnLearnsOfRanksThatHaveDestroyedTheirs) {
    const World world;
    for (int bad = 0; bad < worldSize() && worldSize() > 1; ++bad) {
        auto agreement = agreementOn(world, everyone());
        agreement->begin(1);
        agreement->begin(2);
        if (worldRank() == bad) {
            agreement.reset();
        } else {
            agreement->begin(3); // all have begun the second round
            EXPECT_EQ(pollFor(*agreement), bad);
            expectContains(messageOf<PeerError>([&] { agreement->finish(); }), rankName(bad) + "has left the test");
        }
    }
    expectNothingParked(world);
}

TEST(PeerAgreement, LeavingIsTold) {
    const World world;
    for (int bad = 0; bad < worldSize(); ++bad) {
        const auto agreement = agreementOn(world, everyone());
        agreement->begin(1);
        if (worldRank() == bad) {
            agreement->leave();
            agreement->leave();
            agreement->finish(); // the round before is not concerned
            expectContains(messageOf<StateError>([&] { agreement->begin(2); }), "this rank has left the test");
        } else {
            agreement->begin(2);
            expectContains(messageOf<PeerError>([&] { agreement->finish(); }), rankName(bad));
        }
    }
    expectNothingParked(world);
}

TEST(PeerAgreement, APeerThatDoesNotComeIsNamedAfterTheTimeLimit) {
    const Setting limit("DNDS_WAIT_TIMEOUT", "0.3");
    const World world;
    if (worldSize() < 2)
        GTEST_SKIP() << "needs peers";
    const int late = worldSize() - 1;
    const auto agreement = agreementOn(world, everyone());
    if (worldRank() != late) {
        agreement->begin(1);
        for (int times = 0; times < 2; ++times) {
            const std::string text = messageOf<PeerError>([&] { agreement->begin(2); });
            expectContains(text, rankName(late) + "to begin round 1 of the test");
            expectContains(text, "DNDS_WAIT_TIMEOUT");
        }
    }
    world.comm().barrier();
    if (worldRank() == late)
        agreement->begin(1);
    agreement->finish(); // it came after all
    agreement->begin(2);
    agreement->finish();
}

TEST(PeerAgreement, WaitingLetsExchangesGoOn) {
    forEachTransport([](const ExchangeOptions &options) {
        const World world;
        RealField u = ringField("u", world.comm());
        Exchange pull(u.trans.pattern(), Direction::Pull, {u.trans.member()}, options);
        const auto agreement = agreementOn(world, everyone());
        for (int step = 1; step < 5; ++step) {
            fill(u, step);
            pull.start();
            // Even ranks wait for the word of the odd ones, and those for the rows of the even ones before.
            if (worldRank() % 2 == 1)
                pull.wait();
            agreement->begin(1);
            agreement->finish();
            if (worldRank() % 2 == 0)
                pull.wait();
            EXPECT_EQ(wrongGhosts(u, step), 0);
        }
    });
}

TEST(PeerAgreement, PeersAreThoseOfThePatterns) {
    const RealField u = ringField();
    const auto v = makePair<RealField>(Wishes::everything(), [](auto &father, index n) { father.resize(n); });
    const std::vector patterns{u.trans.pattern(), v.trans.pattern()};
    EXPECT_EQ(PeerAgreement::peersOf(patterns), everyone());
    const std::vector ring{u.trans.pattern()};
    std::vector<int> expected;
    for (int rank = 0; rank < worldSize(); ++rank)
        if (Wishes::ring().hasReader(worldRank(), rank) || Wishes::ring().hasReader(rank, worldRank()))
            expected.push_back(rank);
    EXPECT_EQ(PeerAgreement::peersOf(ring), expected);
    PeerAgreement agreement(u.trans.pattern()->sharedContext(), "the test", expected);
    agreement.begin(1);
    agreement.finish();
}

TEST(PeerAgreement, PeersThatCannotBeAreRefusedOnAllRanks) {
    const World world;
    for (int bad = 0; bad < worldSize(); ++bad) {
        std::vector<int> peers = everyone();
        if (worldRank() == bad)
            peers.push_back(worldSize());
        messageOnAll<IndexError>([&] { agreementOn(world, peers); });
        if (worldSize() < 2)
            continue;
        peers = worldRank() == bad ? std::vector<int>{(bad + 1) % worldSize()} : std::vector<int>{};
        expectContains(messageOnAll<ArgumentError>([&] { agreementOn(world, peers); }), "not mutual");
    }
    std::vector<int> twice = everyone();
    twice.insert(twice.end(), twice.begin(), twice.end());
    const auto agreement = agreementOn(world, twice);
    agreement->begin(1);
    agreement->finish();
}

TEST(PeerAgreement, ACommunicatorThatIsFreedBefore) {
    auto world = std::make_unique<World>();
    const auto idle = agreementOn(*world, everyone());
    const auto underWay = agreementOn(*world, everyone());
    underWay->begin(1);
    world.reset();
    for (PeerAgreement *agreement : {idle.get(), underWay.get()}) {
        expectContains(messageOf<StateError>([&] { agreement->begin(2); }), "freed");
        expectContains(messageOf<StateError>([&] { agreement->finish(); }), "freed");
    }
}

TEST(PeerAgreement, DestroyedOnAnotherThread) {
    const World world;
    for (int times = 0; times < 3; ++times) {
        auto agreement = agreementOn(world, everyone());
        agreement->begin(1);
        std::thread([&] { agreement.reset(); }).join();
    }
    expectUsable(world);
    expectNothingParked(world);
}

} // namespace
} // namespace DNDS
