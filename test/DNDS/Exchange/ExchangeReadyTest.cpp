// Exchanges that are polled instead of waited for.

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

} // namespace
} // namespace DNDS
