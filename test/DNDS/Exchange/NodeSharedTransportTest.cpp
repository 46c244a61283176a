// What can go wrong between ranks that write into each other's memory: order, lateness, arrays that move, ranks that
// leave. That sons and fathers are right for every layout and operation is in ExchangeTest, which also runs on virtual
// nodes.

#include "DNDS/Exchange/NodeSharedTransport.hpp"

#include "DNDS/Exchange/MakeTransports.hpp"
#include "FieldCase.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;
using Clock = std::chrono::steady_clock;

constexpr ExchangeOptions nodeShared{.transport = TransportKind::NodeShared};

double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// An environment variable for as long as it lives.
class Setting {
  public:
    Setting(const char *name, const std::string &value) : name_(name) {
        if (const char *before = std::getenv(name))
            before_ = before;
        setenv(name, value.c_str(), 1);
    }
    Setting(const Setting &) = delete;
    Setting &operator=(const Setting &) = delete;
    ~Setting() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

  private:
    const char *name_;
    std::optional<std::string> before_;
};

/// All ranks on a communicator of their own, in virtual nodes if asked.
struct World {
    explicit World(int ranksPerNode = 0) {
        const Setting setting("DNDS_RANKS_PER_NODE", std::to_string(ranksPerNode));
        owner = Communicator::duplicate(MPI_COMM_WORLD);
        context = CommunicatorContext::of(owner.view());
    }
    CommunicatorView comm() const { return owner.view(); }
    NodeArena *arena() const { return context->node().arena.get(); }

    Communicator owner;
    std::shared_ptr<CommunicatorContext> context;
};

/// A field whose contents tell row, component and version.
struct Field {
    using A = ParArray<real, 3>;

    Field(CommunicatorView comm, const Wishes &wanted, const std::string &name = "field") : wishes(wanted) {
        pair.initPair(name, comm);
        pair.father->resize(wishes.size(worldRank()));
        pair.transAttach();
        pair.trans.createFatherGlobalMapping();
        pair.trans.createGhostMapping(wishes.myReads());
        pair.trans.createMPITypes();
    }

    static real value(index row, rowsize j, int version) {
        return static_cast<real>(version) * 1e6 + static_cast<real>(row) * 8 + static_cast<real>(j);
    }
    void fill(int version) {
        auto father = pair.father->view();
        for (index i = 0; i < father.size(); ++i)
            for (rowsize j = 0; j < 3; ++j)
                father(i, j) = value(wishes.begin(worldRank()) + i, j, version);
    }
    /// The first ghost that is not of that version, for people; empty if all are.
    std::string wrongGhost(int version) const {
        const A &son = *pair.son;
        const auto ghosts = son.view();
        const std::vector<index> rows = wishes.ghostsOf(worldRank());
        if (ghosts.size() != static_cast<index>(rows.size()))
            return "the son has " + std::to_string(ghosts.size()) + " rows";
        for (std::size_t k = 0; k < rows.size(); ++k)
            for (rowsize j = 0; j < 3; ++j)
                if (const real found = ghosts(static_cast<index>(k), j); found != value(rows[k], j, version))
                    return "ghost of row " + std::to_string(rows[k]) + " is " + std::to_string(found) + " in version " +
                           std::to_string(version);
        return {};
    }
    void expect(int version) const { EXPECT_EQ(wrongGhost(version), ""); }

    std::unique_ptr<Exchange> makePull(const ExchangeOptions &options = nodeShared) const {
        return std::make_unique<Exchange>(pair.trans.pattern(), Direction::Pull, std::vector{pair.trans.member()},
                                          options);
    }
    void pull(int version) {
        fill(version);
        pair.trans.startPersistentPull();
        pair.trans.waitPersistentPull();
        expect(version);
    }

    Wishes wishes;
    ArrayPair<A> pair;
};

/// Rows enough that messages are large; every rank reads all rows of the next rank and every third row of all.
Wishes largeWishes(index rowsEach) {
    Wishes wishes = Wishes::ring(rowsEach);
    wishes.name = "large";
    for (int rank = 0; rank < worldSize(); ++rank) {
        auto &list = wishes.reads[static_cast<std::size_t>(rank)];
        const int next = (rank + 1) % worldSize();
        list.clear();
        for (index row = 0; row < wishes.rows(); ++row)
            if (row % 3 == rank % 3 || wishes.owner(row) == next)
                list.push_back(row);
    }
    return wishes;
}

/// Waits for a message from `from`, or sends one: an order between ranks that MPI makes.
void signalTo(int to, CommunicatorView comm) { MPI_Send(nullptr, 0, MPI_BYTE, to, 7, comm.handle()); }
void awaitSignal(int from, CommunicatorView comm) {
    MPI_Recv(nullptr, 0, MPI_BYTE, from, 7, comm.handle(), MPI_STATUS_IGNORE);
}

/// The bytes in use by this rank once all ranks are done with what they destroyed. Collective.
std::size_t settledBytes(const World &world) {
    world.comm().barrier();
    world.arena()->reap();
    return world.arena()->bytesInUse();
}

/// Most tests share one communicator, because making one is slow where ranks outnumber cores.
class NodeShared : public testing::Test {
  protected:
    static void SetUpTestSuite() { shared = std::make_unique<World>(); }
    static void TearDownTestSuite() { shared.reset(); }
    void SetUp() override {
        if (worldSize() < 2)
            GTEST_SKIP() << "needs peers";
        if (world.arena() == nullptr) // the same on all ranks of one machine; NodeArenaTest fails here
            GTEST_SKIP() << "no shared memory: " << world.context->node().whyNoArena;
    }

    static inline std::unique_ptr<World> shared;
    const World &world = *shared;
};

/// Those that leave something in flight have one of their own.
class NodeSharedOnItsOwn : public NodeShared {
  protected:
    World world;
};

// ---------------------------------------------------------------------------------------------------------------------
// Where sons are

TEST_F(NodeShared, SonsLieInTheArenaWhereANeighbourOnTheNodeOwnsGhosts) {
    const Field ring(world.comm(), Wishes::ring());
    EXPECT_TRUE(world.arena()->locate(ring.pair.son->data()).has_value());
    EXPECT_FALSE(world.arena()->locate(ring.pair.father->data()).has_value()) << "fathers stay ordinary memory";
    const Field alone(world.comm(), Wishes::ownRowsOnly());
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
    Field field(world.comm(), Wishes::everything());
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

TEST_F(NodeShared, SwappedPairsKeepMovingTheirContents) {
    Field a(world.comm(), Wishes::everything(), "a");
    Field b(world.comm(), Wishes::everything(), "b");
    b.pair.trans.borrowGGIndexing(a.pair.trans);
    b.pair.trans.createMPITypes();
    a.pair.trans.initPersistentPull(nodeShared);
    b.pair.trans.initPersistentPull(nodeShared);
    for (int round = 0; round < 10; ++round) {
        if (round % 3 == 1)
            a.pair.swapData(b.pair);
        if (round == 5)
            b.pair.son->rehost(nullptr); // from now on one of the two is outside
        a.fill(2 * round);
        b.fill(2 * round + 1);
        a.pair.trans.startPersistentPull();
        b.pair.trans.startPersistentPull();
        b.pair.trans.waitPersistentPull();
        a.pair.trans.waitPersistentPull();
        a.expect(2 * round);
        b.expect(2 * round + 1);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Order

TEST_F(NodeShared, EpochsCountOnAcrossTheWrapAround) {
    // Flags begin 1000 epochs before it.
    std::mt19937_64 random(rankSeed(31));
    Field field(world.comm(), Wishes::everything());
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

TEST_F(NodeShared, PushesCountOnAcrossTheWrapAround) {
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPush(PushOp::Sum, nodeShared);
    auto father = field.pair.father->view();
    auto son = field.pair.son->view();
    for (int epoch = 1; epoch <= 1050; ++epoch) {
        for (index i = 0; i < father.size(); ++i)
            father(i, 0) = epoch;
        for (index i = 0; i < son.size(); ++i)
            son(i, 0) = epoch * (worldRank() + 2);
        field.pair.trans.startPersistentPush();
        field.pair.trans.waitPersistentPush();
        const int n = worldSize();
        for (index i = 0; i < father.size(); ++i)
            ASSERT_EQ(father(i, 0), epoch * (1 + 2 * n + n * (n - 1) / 2)) << "epoch " << epoch;
    }
}

TEST_F(NodeShared, LargeMessagesArriveWholeWhicheverWayTheyAreWritten) {
    // More epochs than it takes until the writer has tried ordinary and streaming stores, and tries again.
    Field field(world.comm(), largeWishes(worldSize() > 4 ? 300 : 700));
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

TEST_F(NodeShared, OwnersDoNotOverwriteGhostsThatALateReaderStillReads) {
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    int version = 0;
    for (int late = 0; late < worldSize(); ++late) {
        field.pull(++version);
        if (worldRank() == late) {
            for (int rank = 0; rank < worldSize(); ++rank)
                if (rank != late)
                    awaitSignal(rank, world.comm());
            std::this_thread::sleep_for(std::chrono::milliseconds(5)); // they are in wait by now
            field.expect(version);
            field.pull(++version);
        } else {
            field.fill(++version);
            field.pair.trans.startPersistentPull();
            signalTo(late, world.comm());
            field.pair.trans.waitPersistentPull();
            field.expect(version);
        }
    }
}

TEST_F(NodeShared, StartDoesNotWaitForPeersThatStartLater) {
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    field.pair.trans.initPersistentPush(PushOp::Replace, nodeShared);
    for (int first = 0; first < worldSize(); ++first)
        for (const bool push : {false, true}) {
            field.fill(first);
            // A chain: nobody starts before the rank ahead of it has returned from start.
            const int place = (worldRank() - first + worldSize()) % worldSize();
            if (place > 0)
                awaitSignal((worldRank() + worldSize() - 1) % worldSize(), world.comm());
            push ? field.pair.trans.startPersistentPush() : field.pair.trans.startPersistentPull();
            if (place + 1 < worldSize())
                signalTo((worldRank() + 1) % worldSize(), world.comm());
            push ? field.pair.trans.waitPersistentPush() : field.pair.trans.waitPersistentPull();
            if (!push)
                field.expect(first);
        }
}

// As with messages: once both sides have started, neither needs a further call of the other.

TEST_F(NodeShared, AReaderFinishesWhileItsWriterIsInMpi) {
    Field field(world.comm(), Wishes::everything());
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
    Field field(world.comm(), Wishes::ring(5));
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

TEST_F(NodeShared, AnOfferReachesSonsOutsideOfTheArena) {
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    field.pair.son->rehost(nullptr);
    for (int round = 1; round <= 2 * worldSize(); ++round) {
        const bool late = worldRank() == round % worldSize();
        field.fill(round);
        if (late)
            for (int rank = 0; rank + 1 < worldSize(); ++rank)
                awaitSignal(MPI_ANY_SOURCE, world.comm());
        field.pair.trans.startPersistentPull();
        if (!late)
            signalTo(round % worldSize(), world.comm());
        field.pair.trans.waitPersistentPull();
        field.expect(round);
    }
}

TEST_F(NodeShared, AWriterMayChangeItsRowsAsSoonAsItsOwnWaitIsOver) {
    std::mt19937_64 random(rankSeed(32));
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPull(nodeShared);
    for (int epoch = 1; epoch <= 60; ++epoch) {
        field.fill(epoch);
        field.pair.trans.startPersistentPull();
        if (random() % 4 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
        field.pair.trans.waitPersistentPull();
        field.fill(-epoch); // nobody may see this
        ASSERT_EQ(field.wrongGhost(epoch), "") << "epoch " << epoch;
    }
}

TEST_F(NodeShared, WaitingLetsMpiProgress) {
    // Rank 1 is late because it is inside a send that needs rank 0's MPI library, while rank 0 waits for a flag.
    Field field(world.comm(), Wishes::everything());
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

// ---------------------------------------------------------------------------------------------------------------------
// Several nodes

class VirtualNodes : public testing::TestWithParam<int> {};

TEST_P(VirtualNodes, RanksOfANodeShareMemoryAndOthersSendMessages) {
    if (worldSize() > 1 && World(0).arena() == nullptr)
        GTEST_SKIP() << "no shared memory";
    const World world(GetParam());
    for (const Wishes &wishes : {Wishes::everything(), Wishes::random(51), Wishes::withEmptyAndLonelyRanks()}) {
        SCOPED_TRACE(wishes.name);
        Field field(world.comm(), wishes, "one");
        Field other(world.comm(), wishes, "two");
        other.pair.trans.borrowGGIndexing(field.pair.trans);
        other.pair.trans.createMPITypes();
        ExchangeGroup group;
        group.add(field.pair.trans);
        group.add(other.pair.trans);
        for (const TransportKind kind : {TransportKind::Auto, TransportKind::NodeShared}) {
            field.pair.trans.initPersistentPull({.transport = kind});
            for (const PeerPath &path : field.pair.trans.pullPaths()) {
                const TransportKind expected = path.peer == worldRank()                    ? TransportKind::Local
                                               : world.context->node().sameNode(path.peer) ? TransportKind::NodeShared
                                                                                           : TransportKind::Packed;
                EXPECT_EQ(path.transport, expected) << "peer " << path.peer << ": " << path.why;
                EXPECT_FALSE(path.why.empty());
            }
            group.initPersistentPull({.transport = kind});
            for (int version = 1; version <= 10; ++version) {
                field.pull(version);
                field.fill(100 + version);
                other.fill(200 + version);
                group.startPersistentPull();
                group.waitPersistentPull();
                field.expect(100 + version);
                other.expect(200 + version);
            }
        }
    }
}

TEST_P(VirtualNodes, ManyInFlightInDifferentOrdersDoNotMix) {
    const World world(GetParam());
    std::mt19937_64 random(rankSeed(52));
    std::vector<std::unique_ptr<Field>> fields;
    for (std::uint64_t k = 0; k < 8; ++k) {
        const Wishes wishes = k % 3 == 0 ? Wishes::everything() : k % 3 == 1 ? Wishes::ring() : Wishes::random(60 + k);
        fields.push_back(std::make_unique<Field>(world.comm(), wishes));
        fields.back()->pair.trans.initPersistentPull();
    }
    std::vector<std::size_t> order(fields.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int round = 0; round < 12; ++round) {
        for (std::size_t k = 0; k < fields.size(); ++k)
            fields[k]->fill(100 * round + static_cast<int>(k));
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t k : order) {
            if (random() % 16 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 600));
            fields[k]->pair.trans.startPersistentPull();
        }
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t k : order) {
            fields[k]->pair.trans.waitPersistentPull();
            fields[k]->expect(100 * round + static_cast<int>(k));
        }
    }
}

TEST_P(VirtualNodes, ARefusalIsHeardOnAndOffTheNode) {
    const World world(GetParam());
    Field field(world.comm(), Wishes::everything());
    field.pair.trans.initPersistentPull();
    field.pull(1);
    const int refuser = worldSize() / 2;
    for (int round = 0; round < 3; ++round) {
        if (worldRank() == refuser) {
            const index rows = field.pair.father->size();
            field.pair.father->resize(rows + 2);
            EXPECT_THROW(field.pair.trans.startPersistentPull(), StateError);
            field.pair.father->resize(rows);
        } else {
            field.pair.trans.startPersistentPull();
            expectContains(messageOf<PeerError>([&] { field.pair.trans.waitPersistentPull(); }),
                           "rank " + std::to_string(refuser));
        }
        field.pull(10 + round);
    }
}

INSTANTIATE_TEST_SUITE_P(RanksPerNode, VirtualNodes, testing::Values(1, 2, 3),
                         [](const auto &test) { return "of" + std::to_string(test.param); });

} // namespace
} // namespace DNDS
