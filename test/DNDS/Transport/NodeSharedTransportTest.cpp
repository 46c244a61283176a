// Hazards between ranks that write into each other's memory: order, lateness, arrays that move. ExchangeTest, which
// also runs on virtual nodes, checks that sons and fathers are right for every layout and operation.

#include "NodeSharedCase.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

// ---------------------------------------------------------------------------------------------------------------------
// Placement of sons

TEST_F(NodeShared, SonsLieInTheArenaWhereANeighbourOnTheNodeOwnsGhosts) {
    const Field ring(world.comm(), PullLists::ring());
    EXPECT_TRUE(world.arena()->locate(ring.pair.son->data()).has_value());
    EXPECT_FALSE(world.arena()->locate(ring.pair.father->data()).has_value()) << "fathers stay ordinary memory";
    const Field alone(world.comm(), PullLists::ownRowsOnly());
    EXPECT_FALSE(world.arena()->locate(alone.pair.son->data()).has_value());
}

TEST_F(NodeShared, SonsThatLeaveTheArenaStillGetTheirRows) {
    using A = Field::A;
    struct Move {
        const char *name;
        bool inArena;
        std::function<void(Field &)> apply;
    };
    const auto ordinary = [](const Field &field) {
        A other("other", field.pair.son->comm());
        other.resize(field.pair.son->size());
        return other;
    };
    const std::vector<Move> moves{
        {"nothing", true, [](Field &) {}},
        {"copied over", true,
         [&](Field &f) {
             const A other = ordinary(f);
             *f.pair.son = other;
         }},
        {"moved over", false, [&](Field &f) { *f.pair.son = ordinary(f); }},
        {"resized to nothing and back", true,
         [](Field &f) {
             const index rows = f.pair.son->size();
             f.pair.son->resize(0);
             f.pair.son->resize(rows);
         }},
        {"swapped", false,
         [&](Field &f) {
             A other = ordinary(f);
             f.pair.son->swapData(other);
         }},
        {"rehosted out", false, [](Field &f) { f.pair.son->rehost(nullptr); }},
        {"rehosted in", true, [&](Field &f) { f.pair.son->rehost(world.context->node().arena); }},
    };
    Field field(world.comm(), PullLists::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    int version = 0;
    for (const Move &move : moves)
        for (const bool everywhere : {true, false}) {
            SCOPED_TRACE(move.name);
            const bool here = everywhere || worldRank() % 2 == 0;
            field.pair.son->rehost(world.context->node().arena);
            field.pull(++version);
            if (here)
                move.apply(field);
            for (int epoch = 0; epoch < 3; ++epoch)
                field.pull(++version);
            EXPECT_EQ(world.arena()->locate(std::as_const(*field.pair.son).data()).has_value(), !here || move.inArena);
            field.pair.son->rehost(nullptr);
            field.pull(++version);
        }
}

// ---------------------------------------------------------------------------------------------------------------------
// Order

TEST_F(NodeShared, EpochsCountOnAcrossTheWrapAround) {
    // Flags begin 1000 epochs before it.
    std::mt19937_64 random(rankSeed(31));
    Field field(world.comm(), PullLists::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    const auto delay = [&] {
        if (random() % 100 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    };
    for (int epoch = 1; epoch <= 1100; ++epoch) {
        delay();
        field.fill(epoch);
        field.pair.trans.startPersistentPull();
        delay();
        field.pair.trans.waitPersistentPull();
        ASSERT_EQ(field.wrongGhost(epoch), "") << "epoch " << epoch;
        delay();
    }
}

TEST_F(NodeShared, LargeMessagesArriveWholeWhicheverWayTheyAreWritten) {
    // More epochs than it takes until the writer has tried ordinary and streaming stores, and tries again.
    Field field(world.comm(), largePullLists(worldSize() > 4 ? 300 : 700));
    field.pair.trans.initPersistentPull(nodeShared);
    const auto paths = field.pair.trans.pullPaths();
    EXPECT_TRUE(std::any_of(paths.begin(), paths.end(), [](const PeerPath &path) { return path.bytesSent > 6000; }));
    for (int epoch = 1; epoch <= 150; ++epoch) {
        field.fill(epoch);
        field.pair.trans.startPersistentPull();
        field.pair.trans.waitPersistentPull();
        ASSERT_EQ(field.wrongGhost(epoch), "") << "epoch " << epoch;
    }
}

// As with messages: once both sides have started, neither needs a further call of the other.

TEST_F(NodeShared, AReaderFinishesWhileItsWriterIsInMpi) {
    Field field(world.comm(), PullLists::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    for (int round = 1; round <= 6; ++round) {
        SCOPED_TRACE(round);
        const int early = round % worldSize();
        field.fill(round);
        if (worldRank() == early) {
            field.pair.trans.startPersistentPull();
            signalTo((early + 1) % worldSize(), world.comm());
            awaitSignal((early + 1) % worldSize(), world.comm()); // sent after its wait
        } else if (worldRank() == (early + 1) % worldSize()) {
            awaitSignal(early, world.comm());
            if (round > 3)
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            field.pair.trans.startPersistentPull();
            field.pair.trans.waitPersistentPull();
            field.expect(round);
            signalTo(early, world.comm());
            continue;
        } else {
            field.pair.trans.startPersistentPull();
        }
        field.pair.trans.waitPersistentPull();
        field.expect(round);
    }
}

TEST_F(NodeShared, AWriterFinishesWhileItsReaderIsInMpi) {
    Field field(world.comm(), PullLists::ring(5));
    field.pair.trans.initPersistentPull(nodeShared);
    const int next = (worldRank() + 1) % worldSize();
    const int before = (worldRank() + worldSize() - 1) % worldSize();
    for (int round = 1; round <= 40; ++round) {
        SCOPED_TRACE(round);
        field.fill(round);
        // All start at about the same time, so that any interleaving of offering and opening happens.
        field.pair.trans.startPersistentPull();
        if (worldRank() == round % worldSize()) {
            field.pair.trans.waitPersistentPull();
            signalTo(next, world.comm());
            awaitSignal(before, world.comm());
        } else {
            awaitSignal(before, world.comm());
            field.pair.trans.waitPersistentPull();
            signalTo(next, world.comm());
        }
        field.expect(round);
    }
}

TEST_F(NodeShared, AWriterMayChangeItsRowsAsSoonAsItsOwnWaitIsOver) {
    std::mt19937_64 random(rankSeed(32));
    Field field(world.comm(), PullLists::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    for (int epoch = 1; epoch <= 60; ++epoch) {
        field.fill(epoch);
        field.pair.trans.startPersistentPull();
        if (random() % 4 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
        field.pair.trans.waitPersistentPull();
        field.fill(-epoch); // no rank may see this value
        ASSERT_EQ(field.wrongGhost(epoch), "") << "epoch " << epoch;
    }
}

TEST_F(NodeShared, WaitingLetsMpiProgress) {
    // Rank 1 is late because it is inside a send that needs rank 0's MPI library, while rank 0 waits for a flag.
    Field field(world.comm(), PullLists::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    constexpr std::size_t many = 4'000'000;
    std::vector<char> bytes(worldRank() < 2 ? many : 0, static_cast<char>(worldRank()));
    MPI_Request request = MPI_REQUEST_NULL;
    field.fill(1);
    if (worldRank() == 0)
        MPI_Irecv(bytes.data(), static_cast<int>(many), MPI_CHAR, 1, 9, world.comm().handle(), &request);
    if (worldRank() == 1)
        MPI_Send(bytes.data(), static_cast<int>(many), MPI_CHAR, 0, 9, world.comm().handle());
    field.pair.trans.startPersistentPull();
    field.pair.trans.waitPersistentPull();
    field.expect(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (worldRank() == 0) {
        EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 1), static_cast<std::ptrdiff_t>(many));
    }
}

} // namespace
} // namespace DNDS
