// Exchanges that are polled instead of waited for.

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"

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
    const PullLists pullLists = PullLists::ring();
    forEachTransport([&](const ExchangeOptions &options) {
        for (const Direction direction : {Direction::Pull, Direction::Push}) {
            const bool isPull = direction == Direction::Pull;
            RealField u = ringField();
            Exchange exchange = exchangeOf(u, direction, options);
            for (int late = 0; late < worldSize(); ++late) {
                fill(u, 1 + late);
                const bool needsLate =
                    isPull ? pullLists.hasReader(late, worldRank()) : pullLists.hasReader(worldRank(), late);
                if (worldRank() != late) {
                    exchange.start(); // does not wait for later ranks
                    for (int times = 0; times < 50 && needsLate; ++times)
                        EXPECT_FALSE(exchange.ready());
                }
                world.barrier();
                if (worldRank() == late)
                    exchange.start();
                poll(exchange);
                exchange.wait();
                EXPECT_EQ(isPull ? wrongGhosts(u, 1 + late) : 0, 0);
            }
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
            // All except one are only polled: progress must not depend on a waiting rank.
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
