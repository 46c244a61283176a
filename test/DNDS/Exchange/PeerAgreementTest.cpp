#include "DNDS/Exchange/PeerAgreement.hpp"

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Wait.hpp"
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

/// Fails the test unless a new one works on the same communicator.
void expectUsable(const World &world) {
    const auto agreement = agreementOn(world, everyone());
    for (std::uint64_t round = 0; round < 5; ++round)
        agreement->begin(round);
    agreement->finish();
    EXPECT_TRUE(agreement->look());
}

/// Calls `work`; what is wrong with it, or nothing: two ranks throw StateError about each other, the others are
/// stopped.
template <class Work>
std::string disagreement(const Work &work, int bad) {
    try {
        work();
    } catch (const RevokedError &error) {
        return worldRank() == bad ? "was not found here" : std::string();
    } catch (const StateError &error) {
        const std::string text = error.what();
        if (text.find("and this rank disagree about the test in round") == std::string::npos)
            return text;
        return worldRank() == bad || text.find(fmt::format("rank {} ", bad)) != std::string::npos ? std::string()
                                                                                                  : text;
    }
    return "threw nothing";
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
                (void)agreement->look();
            if (random() % 32 == 0)
                agreement->finish();
        }
        agreement->finish();
        agreement->finish();
        EXPECT_TRUE(agreement->look());
    }
}

TEST(PeerAgreement, ARoundIsBegunWithoutItsPeers) {
    const World world;
    const auto agreement = agreementOn(world, everyone());
    for (int late = 0; late < worldSize(); ++late) {
        if (worldRank() != late)
            agreement->begin(1); // would never return if it waited
        world.comm().barrier();
        (void)agreement->look();
        if (worldRank() == late)
            agreement->begin(1);
    }
    agreement->finish();
}

TEST(PeerAgreement, AnotherWordStopsAllRanks) {
    const World world;
    for (const auto &peers : {everyone(), neighboursInALine()}) {
        const auto agreement = agreementOn(world, peers);
        for (int bad = 0; bad < worldSize() && worldSize() > 1; ++bad)
            for (const bool polls : {false, true}) {
                SCOPED_TRACE(fmt::format("rank {}, {}", bad, polls ? "look" : "begin"));
                const auto rounds = [&] {
                    for (std::uint64_t round = 0; round < 20; ++round) {
                        agreement->begin(round == 3 && worldRank() == bad ? 99 : round);
                        if (polls)
                            waitUntil(
                                *world.context, [&] { return agreement->look(); }, "words");
                    }
                };
                const Clock::time_point begin = Clock::now();
                std::string wrong = disagreement(rounds, bad);
                if (worldRank() == bad && wrong == "was not found here") // its peers were faster
                    wrong.clear();
                EXPECT_EQ(wrong, "");
                EXPECT_LT(secondsSince(begin), 2.0);
                recover(world.comm());
                for (std::uint64_t round = 0; round < 5; ++round)
                    agreement->begin(round);
                agreement->finish();
                world.comm().barrier();
            }
    }
}

/// Pending agreements are parked, and freed by a recovery.
TEST(PeerAgreement, IsDestroyedAtAnyTimeOnAnyThread) {
    const World world;
    for (int absent = -1; absent < worldSize(); ++absent) {
        auto agreement = agreementOn(world, everyone());
        if (worldRank() != absent)
            agreement->begin(1);
        if (absent % 2 == 0)
            std::thread([&] { agreement.reset(); }).join();
    }
    world.comm().barrier();
    recover(world.comm());
    EXPECT_FALSE(world.context->hasParked() && worldSize() > 1);
    expectUsable(world);
}

TEST(PeerAgreement, LeavesNoWordsToTheNextCommunicator) {
    for (std::uint64_t round = 0; round < 20; ++round) {
        const World world(1); // each rank on its own node; MPI gives it the number of the one before
        const auto agreement = agreementOn(world, everyone());
        agreement->begin(round);
        if (round % 2 == 1)
            agreement->finish(); // finds this round's words, not those of which none were looked at before
    }
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
    const auto v = makePair<RealField>(PullLists::everything(), [](auto &father, index n) { father.resize(n); });
    const std::vector patterns{u.trans.pattern(), v.trans.pattern()};
    EXPECT_EQ(PeerAgreement::peersOf(patterns), everyone());
    const std::vector ring{u.trans.pattern()};
    std::vector<int> expected;
    for (int rank = 0; rank < worldSize(); ++rank)
        if (PullLists::ring().hasReader(worldRank(), rank) || PullLists::ring().hasReader(rank, worldRank()))
            expected.push_back(rank);
    EXPECT_EQ(PeerAgreement::peersOf(ring), expected);
    PeerAgreement agreement(u.trans.pattern()->sharedContext(), "the test", expected);
    agreement.begin(1);
    agreement.finish();
}

TEST(PeerAgreement, PeersMayBeNamedTwice) {
    const World world;
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

} // namespace
} // namespace DNDS
