// Exchanges that are polled instead of waited for, and epochs that ranks take no part in.

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

Exchange exchangeOf(RealField &u, Direction direction, const ExchangeOptions &options) {
    return {u.trans.pattern(), direction, {u.trans.member()}, options, PushOp::Sum};
}

void poll(Exchange &exchange) {
    while (!exchange.ready())
        std::this_thread::yield();
}

TEST(ExchangeReady, PolledPullsBringEachNewVersion) {
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField();
        Exchange pull = exchangeOf(u, Direction::Pull, options);
        for (int version = 1; version < 20; ++version) {
            fill(u, version);
            pull.start();
            poll(pull);
            EXPECT_TRUE(pull.ready());
            EXPECT_TRUE(pull.inFlight());
            pull.wait();
            EXPECT_EQ(wrongGhosts(u, version), 0);
        }
    });
}

TEST(ExchangeReady, IsFalseUntilAllPeersHaveStarted) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const Wishes wishes = Wishes::ring();
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        Exchange pull = exchangeOf(u, Direction::Pull, options);
        for (int late = 0; late < worldSize(); ++late) {
            fill(u, 1 + late);
            if (worldRank() != late) {
                pull.start();
                for (int times = 0; times < 50 && wishes.hasReader(late, worldRank()); ++times)
                    EXPECT_FALSE(pull.ready());
            }
            world.barrier();
            if (worldRank() == late)
                pull.start();
            poll(pull);
            pull.wait();
            EXPECT_EQ(wrongGhosts(u, 1 + late), 0);
        }
    });
}

TEST(ExchangeReady, SeveralPolledInTurnsInAnyOrder) {
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        Exchange first = exchangeOf(u, Direction::Pull, options);
        Exchange second = exchangeOf(v, Direction::Pull, options);
        std::vector<Exchange *> order{&first, &second};
        for (int version = 1; version < 10; ++version) {
            fill(u, version);
            fill(v, version + 100);
            if ((worldRank() + version) % 2 == 0)
                std::swap(order[0], order[1]);
            for (Exchange *exchange : order)
                exchange->start();
            // All but one are polled only: it must not need anybody to wait for it.
            while (!order[1]->ready() || !order[0]->ready())
                std::this_thread::yield();
            for (Exchange *exchange : order)
                exchange->wait();
            EXPECT_EQ(wrongGhosts(u, version), 0);
            EXPECT_EQ(wrongGhosts(v, version + 100), 0);
        }
    });
}

TEST(ExchangeReady, PollingLetsOtherExchangesGoOn) {
    // Even ranks poll the first one only until it is there, odd ones the second: each needs the others' help.
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        Exchange first = exchangeOf(u, Direction::Pull, options);
        Exchange second = exchangeOf(v, Direction::Pull, options);
        for (int version = 1; version < 5; ++version) {
            fill(u, version);
            fill(v, version);
            first.start();
            second.start();
            const bool even = worldRank() % 2 == 0;
            poll(even ? first : second);
            (even ? first : second).wait();
            poll(even ? second : first);
            (even ? second : first).wait();
            EXPECT_EQ(wrongGhosts(u, version) + wrongGhosts(v, version), 0);
        }
    });
}

TEST(ExchangeReady, PolledPushesAddUp) {
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField();
        Exchange pull = exchangeOf(u, Direction::Pull, options);
        Exchange push = exchangeOf(u, Direction::Push, options);
        std::vector<int> copies(static_cast<std::size_t>(ringRows), 1);
        for (const index row : u.trans.pattern()->readers().values)
            ++copies[static_cast<std::size_t>(row)];
        for (int version = 1; version < 5; ++version) {
            fill(u, version);
            for (Exchange *exchange : {&pull, &push}) {
                exchange->start();
                poll(*exchange);
                exchange->wait();
            }
            for (index row = 0; row < ringRows; ++row)
                EXPECT_EQ((*u.father)(row, 1), ringValue<real>(worldRank() * ringRows + row, 1, version) *
                                                   copies[static_cast<std::size_t>(row)]);
        }
    });
}

TEST(ExchangeReady, OutOfTurnItSaysSo) {
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField();
        Exchange pull = exchangeOf(u, Direction::Pull, options);
        expectContains(messageOf<StateError>([&] { pull.ready(); }), "without start");
        expectContains(messageOf<StateError>([&] { pull.checkPeers(1.0); }), "without start");
        fill(u, 1);
        pull.start();
        expectContains(messageOf<StateError>([&] { pull.refuse(); }), "already started");
        pull.checkPeers(1.0); // all are alive, and there is no limit
        poll(pull);
        pull.wait();
        EXPECT_THROW(pull.ready(), StateError);
        EXPECT_EQ(wrongGhosts(u, 1), 0);
    });
}

/// Polls and waits; expects PeerError where one of the ranks that `refuse` gives this rank rows, and right ghosts
/// elsewhere.
void expectRefusals(RealField &u, Exchange &pull, int version, const std::function<bool(int)> &refuses) {
    const Wishes wishes = Wishes::ring();
    pull.start();
    poll(pull);
    for (int rank = 0; rank < worldSize(); ++rank)
        if (refuses(rank) && wishes.hasReader(rank, worldRank())) {
            expectContains(messageOf<PeerError>([&] { pull.wait(); }), "could not send its rows");
            return;
        }
    pull.wait();
    EXPECT_EQ(wrongGhosts(u, version), 0);
}

void expectStarts(RealField &u, Exchange &pull, int version) {
    fill(u, version);
    pull.start();
    pull.wait();
    EXPECT_EQ(wrongGhosts(u, version), 0);
}

TEST(ExchangeRefuse, PeersThrowAndTheNextEpochIsRight) {
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField();
        Exchange pull = exchangeOf(u, Direction::Pull, options);
        expectStarts(u, pull, 1);
        for (int bad = 0; bad < worldSize(); ++bad)
            for (int times = 1; times < 3; ++times) { // epochs in a row
                SCOPED_TRACE(testing::Message() << "rank " << bad << " refuses " << times << " epochs");
                for (int epoch = 0; epoch < times; ++epoch) {
                    if (worldRank() == bad) {
                        pull.refuse();
                        EXPECT_EQ(wrongGhosts(u, 1), 0);
                    } else {
                        fill(u, 2 + epoch);
                        expectRefusals(u, pull, 2 + epoch, [&](int rank) { return rank == bad; });
                    }
                }
                expectStarts(u, pull, 10);
                expectStarts(u, pull, 1);
            }
    });
}

TEST(ExchangeRefuse, OnSomeRanksAndOnAll) {
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField();
        Exchange pull = exchangeOf(u, Direction::Pull, options);
        for (int version = 1; version < 8; version += 2) {
            const auto refuses = [&](int rank) { return version > 4 || rank % 2 == 0; };
            fill(u, version);
            if (refuses(worldRank()))
                pull.refuse();
            else
                expectRefusals(u, pull, version, refuses);
            expectStarts(u, pull, version + 1);
        }
        pull.refuse(); // and it is destroyed
    });
    RealField after = ringField();
    after.trans.initPersistentPull();
    expectPullWorks(after, 3);
}

TEST(ExchangeRefuse, ARefusedPushChangesNoOwnedRow) {
    const Wishes wishes = Wishes::ring();
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        fill(u, 1);
        u.trans.pullOnce(options);
        Exchange push = exchangeOf(u, Direction::Push, options);
        for (int bad = 0; bad < worldSize(); ++bad) {
            const std::uint64_t before = u.father->hash();
            if (worldRank() == bad) {
                push.refuse();
            } else {
                push.start();
                poll(push);
                if (wishes.hasReader(worldRank(), bad))
                    messageOf<PeerError>([&] { push.wait(); });
                else
                    push.wait();
            }
            const bool changed = worldRank() != bad && !wishes.hasReader(worldRank(), bad);
            EXPECT_EQ(u.father->hash() != before, changed);
        }
    });
}

} // namespace
} // namespace DNDS
