// Ranks that refuse, leave or never come while others share memory with them, and what is left behind by them.

#include "NodeSharedCase.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

// ---------------------------------------------------------------------------------------------------------------------
// Ranks that do not take part

TEST_F(NodeShared, ARefusedStartFailsItsPeersAndTheNextEpochWorks) {
    Field field(world.comm(), Wishes::everything(), "pressure");
    field.pair.trans.initPersistentPull(nodeShared);
    field.pull(1);
    const int refuser = worldSize() - 1;
    int version = 1;
    for (const bool resizeFather : {true, false}) {
        auto &array = resizeFather ? *field.pair.father : *field.pair.son;
        const index rows = array.size();
        const int epochs = resizeFather ? 1 : 2; // also twice before anybody else comes
        if (worldRank() == refuser) {
            array.resize(rows + 1);
            for (int k = 0; k < epochs; ++k)
                expectContains(messageOf<StateError>([&] { field.pair.trans.startPersistentPull(); }), "pressure");
            array.resize(rows);
            world.comm().barrier();
        } else {
            if (epochs > 1)
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            for (int k = 0; k < epochs; ++k) {
                field.pair.trans.startPersistentPull();
                expectContains(messageOf<PeerError>([&] { field.pair.trans.waitPersistentPull(); }),
                               "rank " + std::to_string(refuser));
            }
            world.comm().barrier();
        }
        field.pull(++version);
        field.pull(++version);
    }
}

TEST_F(NodeShared, WhatWasSentBeforeARefusalIsNotLost) {
    // Rank 0 is through with an epoch and refuses the next one before the others look.
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    for (int round = 0; round < 3; ++round) {
        const int version = 10 * round + 1;
        field.fill(version);
        if (worldRank() == 0) {
            field.pair.trans.startPersistentPull();
            for (int rank = 1; rank < worldSize(); ++rank)
                signalTo(rank, world.comm());
            field.pair.trans.waitPersistentPull();
            field.expect(version);
            const index rows = field.pair.father->size();
            field.pair.father->resize(rows + 1);
            EXPECT_THROW(field.pair.trans.startPersistentPull(), StateError);
            EXPECT_THROW(field.pair.trans.startPersistentPull(), StateError);
            field.pair.father->resize(rows);
            for (int rank = 1; rank < worldSize(); ++rank)
                signalTo(rank, world.comm());
        } else {
            awaitSignal(0, world.comm());
            field.pair.trans.startPersistentPull(); // gives rank 0 its rows at once
            awaitSignal(0, world.comm());
            field.pair.trans.waitPersistentPull();
            field.expect(version);
            for (int k = 0; k < 2; ++k) {
                field.pair.trans.startPersistentPull();
                EXPECT_THROW(field.pair.trans.waitPersistentPull(), PeerError);
            }
        }
        field.pull(version + 1);
    }
}

TEST_F(NodeShared, RowsOfARefusedEpochKeepTheirOldContentsInAndOutsideOfTheArena) {
    for (const bool outside : {false, true}) {
        Field field(world.comm(), Wishes::everything());
        field.pair.trans.initPersistentPull(nodeShared);
        field.pull(1);
        if (outside)
            field.pair.son->rehost(nullptr);
        field.fill(2);
        if (worldRank() == 0) {
            const index rows = field.pair.father->size();
            field.pair.father->resize(rows + 1);
            EXPECT_THROW(field.pair.trans.startPersistentPull(), StateError);
            field.pair.father->resize(rows);
            field.expect(1);
        } else {
            field.pair.trans.startPersistentPull();
            EXPECT_THROW(field.pair.trans.waitPersistentPull(), PeerError);
            const std::vector<index> rows = field.wishes.ghostsOf(worldRank());
            for (std::size_t k = 0; k < rows.size(); ++k)
                EXPECT_EQ((*field.pair.son)(static_cast<index>(k), 1),
                          Field::value(rows[k], 1, field.wishes.owner(rows[k]) == 0 ? 1 : 2))
                    << "row " << rows[k];
        }
        field.pull(3);
    }
}

TEST_F(NodeSharedOnItsOwn, AnExchangeDestroyedInFlightFailsItsPeersAndOthersGoOn) {
    for (int round = 0; round < 4; ++round) {
        SCOPED_TRACE(round);
        Field field(world.comm(), Wishes::everything());
        auto exchange = field.makePull();
        field.fill(1);
        exchange->start();
        exchange->wait();
        field.expect(1);
        const int thrower = round % worldSize();
        field.fill(2);
        if (worldRank() == thrower) {
            if (round % 2 == 1) // early or late
                std::this_thread::sleep_for(std::chrono::milliseconds(3));
            try {
                const auto mine = std::move(exchange);
                mine->start();
                throw StateError("something in between");
            } catch (const StateError &) {
                EXPECT_EQ(exchange, nullptr);
            }
        } else {
            int epochs = 0;
            bool failed = false;
            while (!failed && epochs < 10) {
                ++epochs;
                try {
                    exchange->start();
                    exchange->wait();
                    if (epochs == 1)
                        field.expect(2);
                } catch (const PeerError &error) {
                    failed = true;
                    expectContains(error.what(), "rank ");
                }
            }
            EXPECT_TRUE(failed);
            EXPECT_LE(epochs, 2);
            exchange.reset();
        }
        // The arrays are as good as before, and so is the communicator.
        auto next = field.makePull();
        for (int version = 3; version < 6; ++version) {
            field.fill(version);
            next->start();
            next->wait();
            field.expect(version);
        }
    }
}

TEST_F(NodeShared, AReaderThatRefusesLeavesTheOfferAndTheNextEpochWorks) {
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    const int refuser = worldSize() - 1;
    for (int round = 0; round < 4; ++round) {
        SCOPED_TRACE(round);
        field.fill(2 * round);
        if (worldRank() == refuser) {
            for (int rank = 0; rank < refuser; ++rank)
                awaitSignal(rank, world.comm()); // their rows are offered by now
            const index rows = field.pair.son->size();
            field.pair.son->resize(rows + 1);
            EXPECT_THROW(field.pair.trans.startPersistentPull(), StateError);
            field.pair.son->resize(rows);
        } else {
            field.pair.trans.startPersistentPull();
            signalTo(refuser, world.comm());
            expectContains(messageOf<PeerError>([&] { field.pair.trans.waitPersistentPull(); }),
                           "rank " + std::to_string(refuser));
        }
        field.pull(2 * round + 1);
    }
}

TEST_F(NodeSharedOnItsOwn, AnOfferEndsWithTheExchangeThatMadeIt) {
    for (int round = 0; round < 4; ++round) {
        SCOPED_TRACE(round);
        const std::size_t before = settledBytes(world);
        {
            Field field(world.comm(), Wishes::everything());
            auto exchange = field.makePull();
            field.fill(1);
            const int leaver = round % worldSize();
            if (worldRank() == leaver) {
                exchange->start(); // offers, since nobody else has started
                exchange.reset();
                world.comm().barrier();
            } else {
                world.comm().barrier();
                exchange->start();
                expectContains(messageOf<PeerError>([&] { exchange->wait(); }), "rank " + std::to_string(leaver));
                exchange.reset();
            }
        }
        // The leaver's own part is kept until the next set-up.
        const std::size_t after = settledBytes(world);
        if (worldRank() != round % worldSize()) {
            EXPECT_LE(after, before);
        }
    }
}

TEST_F(NodeSharedOnItsOwn, WhatAnAbandonedExchangeUsedIsNotTouchedOnceItIsUsedAgain) {
    std::vector<std::byte *> blocks;
    std::shared_ptr<NodeArena> arena = world.context->node().arena;
    {
        Field field(world.comm(), Wishes::everything());
        auto exchange = field.makePull();
        if (worldRank() == 0) {
            exchange->start();
            exchange.reset(); // kept aside: the others have not come yet
            world.comm().barrier();
        } else {
            world.comm().barrier();
            try {
                exchange->start();
                exchange->wait();
                exchange->start();
                exchange->wait();
                ADD_FAILURE() << "rank 0 is gone";
            } catch (const PeerError &) {
                exchange.reset();
            }
        }
    }
    world.comm().barrier();
    arena->reap();
    for (int k = 0; k < 8000; ++k) { // fills all gaps of the first segment
        blocks.push_back(static_cast<std::byte *>(arena->allocate(64, 64)));
        std::memset(blocks.back(), 0x5a, 64);
    }
    world.context.reset();
    world.owner = Communicator(); // lets go of what was kept aside
    MPI_Barrier(MPI_COMM_WORLD);
    std::size_t touched = 0;
    for (std::byte *block : blocks) {
        touched += std::any_of(block, block + 64, [](std::byte b) { return b != std::byte{0x5a}; }) ? 1U : 0U;
        arena->deallocate(block, 64, 64);
    }
    EXPECT_EQ(touched, 0U);
    arena->reap();
    EXPECT_EQ(arena->bytesInUse(), 0U);
}

TEST_F(NodeSharedOnItsOwn, APeerThatNeverStartsIsNamedAfterTheTimeLimit) {
    Field field(world.comm(), Wishes::everything());
    const int missing = worldSize() - 1;
    {
        const Setting limit("DNDS_WAIT_TIMEOUT", "0.4");
        auto exchange = field.makePull();
        field.fill(1);
        if (worldRank() != missing) {
            const Clock::time_point begin = Clock::now();
            exchange->start();
            const std::string message = messageOf<PeerError>([&] { exchange->wait(); });
            expectContains(message, "rank " + std::to_string(missing) + " ");
            expectContains(message, "DNDS_WAIT_TIMEOUT");
            EXPECT_GE(secondsSince(begin), 0.35);
            EXPECT_LE(secondsSince(begin), 10.0);
            expectContains(messageOf<StateError>([&] { exchange->start(); }), "lost a peer");
            exchange.reset();
            world.comm().barrier();
        } else {
            world.comm().barrier();
            // Too late: the others are gone, and it learns so instead of waiting for them.
            EXPECT_THROW(
                {
                    exchange->start();
                    exchange->wait();
                },
                PeerError);
            exchange.reset();
        }
    }
    auto next = field.makePull();
    field.fill(2);
    next->start();
    next->wait();
    field.expect(2);
}

TEST_F(NodeSharedOnItsOwn, AnExchangeDestroyedWithoutAStartFailsItsPeers) {
    Field field(world.comm(), Wishes::everything());
    auto exchange = field.makePull();
    if (worldRank() == 0) {
        exchange.reset();
        world.comm().barrier();
    } else {
        world.comm().barrier();
        exchange->start();
        const std::string message = messageOf<PeerError>([&] { exchange->wait(); });
        expectContains(message, "rank 0 ");
        expectContains(message, "destroyed");
        exchange.reset();
    }
    Field next(world.comm(), Wishes::everything());
    next.pair.trans.initPersistentPull(nodeShared);
    next.pull(1);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitizersNeedFiles = true; // the one for undefined behaviour looks at objects through a pipe
#else
constexpr bool sanitizersNeedFiles = false;
#endif

/// While it lives, this process opens no file, and so reaches no memory of others that it has not mapped before.
class NoMoreFiles {
  public:
    NoMoreFiles() {
        getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit none{0, before_.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    NoMoreFiles(const NoMoreFiles &) = delete;
    NoMoreFiles &operator=(const NoMoreFiles &) = delete;
    ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
};

TEST_F(NodeSharedOnItsOwn, AnOfferThatCannotBeMappedFailsOneEpochAndLaterOnesBringTheirOwnRows) {
    if (sanitizersNeedFiles)
        GTEST_SKIP() << "sanitizers need file descriptors themselves";
    // More rows than the first segment of an arena holds, so that their offer lies in one that nobody has mapped yet.
    constexpr index rows = 60'000;
    const int reader = 0;
    const int writer = 1;
    Wishes wishes = Wishes::ring(rows);
    for (auto &list : wishes.reads)
        list.clear();
    wishes.reads[reader].resize(static_cast<std::size_t>(rows));
    std::iota(wishes.reads[reader].begin(), wishes.reads[reader].end(), wishes.begin(writer));
    Field field(world.comm(), wishes);
    field.pair.trans.initPersistentPull(nodeShared);
    field.fill(1);
    if (worldRank() == reader) {
        awaitSignal(writer, world.comm()); // the rows are offered by now
        {
            const NoMoreFiles limit;
            EXPECT_NO_THROW(field.pair.trans.startPersistentPull());
        }
        signalTo(writer, world.comm()); // a writer that waits might withdraw the offer and write as usual
        const std::string message = messageOf<PeerError>([&] { field.pair.trans.waitPersistentPull(); });
        expectContains(message, "rank 1 ");
        expectContains(message, "cannot open shared memory");
    } else {
        field.pair.trans.startPersistentPull();
        if (worldRank() == writer) {
            signalTo(reader, world.comm());
            awaitSignal(reader, world.comm());
        }
        field.pair.trans.waitPersistentPull();
    }
    for (int version = 2; version < 6; ++version)
        field.pull(version);
}

TEST_F(NodeShared, ASetUpThatFailsOnOneRankLeavesNothingInTheArena) {
    Field field(world.comm(), Wishes::everything());
    const std::size_t before = settledBytes(world);
    const int odd = worldSize() - 1;
    for (int k = 0; k < 3; ++k) {
        // One rank wants another transport.
        const auto make = [&] {
            return field.makePull(worldRank() == odd ? ExchangeOptions{.transport = TransportKind::Packed}
                                                     : nodeShared);
        };
        messageOnAll<ArgumentError>([&] { (void)make(); });
        // One rank's arrays are not those of the mapping.
        if (worldRank() == odd)
            field.pair.father->resize(field.pair.father->size() + 1);
        messageOnAll<StateError>([&] { (void)field.makePull(); });
        if (worldRank() == odd)
            field.pair.father->resize(field.pair.father->size() - 1);
    }
    EXPECT_EQ(settledBytes(world), before);
    field.pair.trans.initPersistentPull(nodeShared);
    field.pull(1);
}

// ---------------------------------------------------------------------------------------------------------------------
// What is left behind

TEST_F(NodeShared, DestroyedInAnyOrderNothingOfTheArenaStaysInUse) {
    std::mt19937_64 random(rankSeed(33));
    const std::size_t before = settledBytes(world);
    for (int round = 0; round < 4; ++round) {
        std::vector<std::unique_ptr<Field>> fields;
        std::vector<std::unique_ptr<Exchange>> exchanges;
        for (int k = 0; k < 4; ++k) {
            fields.push_back(std::make_unique<Field>(
                world.comm(),
                k % 2 == 0 ? Wishes::everything() : Wishes::random(40 + static_cast<std::uint64_t>(round))));
            exchanges.push_back(fields.back()->makePull());
            fields.back()->pair.trans.initPersistentPush(PushOp::Sum, nodeShared);
            if (k % 2 == 0)
                fields.back()->pair.trans.initPersistentPull(nodeShared);
        }
        for (int epoch = 0; epoch < 2; ++epoch)
            for (std::size_t k = 0; k < fields.size(); ++k) {
                fields[k]->fill(epoch);
                exchanges[k]->start();
                exchanges[k]->wait();
                fields[k]->expect(epoch);
                fields[k]->pair.trans.startPersistentPush();
                fields[k]->pair.trans.waitPersistentPush();
            }
        EXPECT_GT(world.arena()->bytesInUse(), before);
        // Each rank in an order of its own, some late.
        std::vector<int> order(8);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        for (const int which : order) {
            if (random() % 8 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
            const auto k = static_cast<std::size_t>(which / 2);
            which % 2 == 0 ? fields[k].reset() : exchanges[k].reset();
        }
        if (round % 2 == 0) {
            EXPECT_EQ(settledBytes(world), before) << "round " << round;
        } // else the set-up of the next round frees it
    }
    EXPECT_EQ(settledBytes(world), before);
}

TEST_F(NodeShared, OneShotPullsAndPushesLeaveNothingBehind) {
    Field field(world.comm(), Wishes::everything());
    const std::size_t before = settledBytes(world);
    std::size_t most = 0;
    for (int k = 0; k < 16; ++k) {
        field.fill(k);
        field.pair.trans.pullOnce(nodeShared);
        field.expect(k);
        field.pair.trans.pushOnce(PushOp::Max, nodeShared);
        most = std::max(most, world.arena()->bytesInUse());
    }
    EXPECT_EQ(settledBytes(world), before);
    EXPECT_LT(most, before + 30'000U) << "each set-up frees what the ones before it left";
}

TEST_F(NodeSharedOnItsOwn, ExchangesInFlightWhenTheCommunicatorGoesAreFreedWithIt) {
    std::shared_ptr<NodeArena> arena = world.context->node().arena;
    auto field = std::make_unique<Field>(world.comm(), Wishes::everything());
    auto exchange = field->makePull();
    field->pair.son->rehost(nullptr); // so that a landing place is in flight, too
    if (worldRank() != 1) {
        exchange->start();
        exchange.reset();
        field.reset();
        EXPECT_GT(arena->bytesInUse(), 0U) << "kept: rank 1 may still write to it";
    }
    world.comm().barrier();
    exchange.reset();
    field.reset();
    world.context.reset();
    world.owner = Communicator();
    MPI_Barrier(MPI_COMM_WORLD);
    arena->reap();
    EXPECT_EQ(arena->bytesInUse(), 0U);
}

TEST_F(NodeShared, ARankThatCannotMapItsPeersMemoryFailsTheSetUpOfAll) {
    if (sanitizersNeedFiles)
        GTEST_SKIP() << "sanitizers need file descriptors themselves";
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    Field field(world.comm(), Wishes::everything(), "pressure");
    field.pair.trans.initPersistentPull(nodeShared);
    field.pull(1);
    // The flags of the next exchange are in a segment that nobody has mapped yet.
    NodeArena &arena = *world.arena();
    constexpr std::size_t line = 64;
    std::vector<void *> taken{arena.allocate(line)};
    while (arena.locate(taken.back())->segment == arena.locate(taken.front())->segment)
        taken.push_back(arena.allocate(line));
    const int victim = worldSize() - 1;
    struct rlimit before {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (worldRank() == victim) { // it can open no file
        const int next = dup(0);
        close(next);
        struct rlimit none = before;
        none.rlim_cur = static_cast<rlim_t>(next);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    const std::string text = messageOnAll<MemoryError>([&] { field.pair.trans.initPersistentPull(nodeShared); });
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    expectContains(text, "rank " + std::to_string(victim));
    expectContains(text, "shared memory");
    field.pull(2); // by the one before
    field.pair.trans.initPersistentPull(nodeShared);
    field.pull(3);
    for (void *block : taken)
        arena.deallocate(block, line);
}

} // namespace
} // namespace DNDS
