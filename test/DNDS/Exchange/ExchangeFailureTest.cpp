// What goes wrong on one rank while exchanges run: every rank throws the right error within a moment, and `recover`
// goes on to the bit. Each fault is tried on each rank, with each transport, for pulls and pushes; the program runs on
// hosts and on devices.

#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/Recovery.hpp"
#include "DeviceCase.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;
using Clock = std::chrono::steady_clock;

/// Two fields, and one exchange of each.
struct Fields {
    Fields(const Communicator &comm, TransportKind transport, Direction way)
        : onDevice(servesDevice(transport)), direction(way), options{.transport = transport},
          u(ringField("u", comm.view())), v(ringField("v", comm.view())) {
        make();
    }

    static bool servesDevice(TransportKind kind) {
        const std::vector<TransportKind> all = allTransports();
        return std::ranges::find(all, kind) == all.end();
    }
    /// Collective.
    void make() {
        for (RealField *field : {&u, &v})
            if (onDevice)
                field->toDevice();
        for (auto [exchange, field] : {std::pair(&first, &u), std::pair(&second, &v)})
            if (*exchange == nullptr || !bothAlive())
                *exchange = std::make_unique<Exchange>(field->trans.pattern(), direction,
                                                       std::vector<ExchangeMember>{field->trans.member()}, options,
                                                       PushOp::Max);
    }
    bool bothAlive() const { return first != nullptr && second != nullptr; }

    void write(int version) {
        for (RealField *field : {&u, &v})
            onDevice ? refill(*field, version) : fill(*field, version);
    }
    void start() const {
        first->start();
        second->start();
    }
    void wait() const { // in another order
        second->wait();
        first->wait();
    }
    void epoch() const {
        start();
        wait();
    }
    /// Fails the test unless an epoch moves what it should.
    void expectRight(int version) {
        write(version);
        epoch(); // of a push: ghosts of an old version lose against their owners
        for (RealField *field : {&u, &v}) {
            if (onDevice)
                field->toHost();
            EXPECT_EQ(direction == Direction::Pull ? wrongGhosts(*field, version) : 0, 0);
            EXPECT_EQ(wrongOwned(*field, version), 0);
            if (onDevice)
                field->toDevice();
        }
    }
    static index wrongOwned(RealField &field, int version) {
        const index begin = field.trans.ghostMapping()->global()->localBegin();
        const auto father = std::as_const(*field.father).view();
        index wrong = 0;
        for (index row = 0; row < father.size(); ++row)
            for (rowsize j = 0; j < 5; ++j)
                wrong += father(row, j) == ringValue<real>(begin + row, j, version) ? 0 : 1;
        return wrong;
    }

    bool onDevice;
    Direction direction;
    ExchangeOptions options;
    RealField u, v;
    std::unique_ptr<Exchange> first, second;
};

/// What the failing rank does, how it is undone there, and what others are told.
struct Fault {
    const char *name;
    std::function<void(Fields &)> happen; ///< throws what this rank sees of it
    std::function<void(Fields &)> undo;
    std::string told;
};

void resizeOnHost(Fields &fields, index rows) {
    if (fields.onDevice)
        fields.u.toHost();
    fields.u.father->resize(rows);
    if (fields.onDevice)
        fields.u.toDevice();
}

std::vector<Fault> allFaults() {
    const auto nothing = [](Fields &) {};
    const auto back = [](Fields &fields) { resizeOnHost(fields, ringRows); };
    return {{"rows changed before start",
             [](Fields &fields) {
                 resizeOnHost(fields, ringRows + 1);
                 fields.epoch();
             },
             back, "father of 'u' has 7 rows"},
            {"rows changed between start and wait",
             [](Fields &fields) {
                 fields.start();
                 resizeOnHost(fields, ringRows + 1);
                 fields.wait();
             },
             back, "between start and wait"},
            {"wait without start", [](Fields &fields) { fields.first->wait(); }, nothing, "without start"},
            {"started twice",
             [](Fields &fields) {
                 fields.start();
                 fields.start();
             },
             nothing, "already started"},
            {"destroyed in flight",
             [](Fields &fields) {
                 fields.start();
                 fields.first.reset();
                 fields.second->wait(); // sees that, as all do
             },
             nothing, "destroyed the exchange of 'u' in flight"},
            {"an exception of the program",
             [](Fields &fields) {
                 fields.start();
                 const auto thrown = std::make_exception_ptr(std::runtime_error("negative pressure"));
                 revoke(fields.u.trans.pattern()->context().comm(), thrown);
                 std::rethrow_exception(thrown);
             },
             nothing, "negative pressure"}};
}

/// Runs epochs until one throws; whether that was a RevokedError, whose text is returned.
std::string runUntilRevoked(const Fields &fields, int failing) {
    try {
        while (true)
            fields.epoch();
    } catch (const RevokedError &error) {
        EXPECT_EQ(error.failedRank(), failing) << error.what();
        return error.what();
    } catch (const std::exception &error) {
        ADD_FAILURE() << "not a RevokedError: " << error.what();
    }
    return {};
}

void expectAllFaults(TransportKind transport, Direction direction) {
    SCOPED_TRACE(testing::Message() << transportName(transport)
                                    << (direction == Direction::Pull ? ", pull" : ", push"));
    const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    Fields fields(comm, transport, direction);
    fields.expectRight(1);
    comm.view().barrier();
    const auto &arena = CommunicatorContext::of(comm.view())->node().arena;
    std::size_t used = 0;
    int version = 1;
    for (int round = 0; round < 2; ++round) { // the second needs no more memory, but for rows that are offered
        for (const Fault &fault : allFaults())
            for (int bad = 0; bad < worldSize(); ++bad) {
                SCOPED_TRACE(testing::Message() << fault.name << " on rank " << bad);
                const auto begin = Clock::now();
                if (worldRank() == bad) {
                    EXPECT_ANY_THROW(fault.happen(fields));
                    EXPECT_THROW(fields.second->start(), RevokedError);
                    fault.undo(fields);
                } else {
                    expectContains(runUntilRevoked(fields, bad), fault.told);
                }
                EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 5.0);
                recover(comm.view());
                EXPECT_FALSE(fields.second->inFlight());
                const int alive = comm.view().allReduce(fields.bothAlive() ? 1 : 0, MPI_MIN);
                if (alive == 0) { // on one rank there is one no more: all make theirs anew
                    fields.first.reset();
                    fields.make();
                }
                for (int epochs = 0; epochs < 2; ++epochs)
                    fields.expectRight(++version);
                comm.view().barrier(); // before the next rank fails
            }
        if (!arena)
            continue;
        arena->reap();
        if (round == 0)
            used = arena->bytesInUse();
        EXPECT_LE(arena->bytesInUse(), used + 4096);
    }
}

TEST(ExchangeFailure, EveryRankIsToldAndRecoverGoesOnToTheBit) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    for (const TransportKind transport : allTransports())
        for (const Direction direction : {Direction::Pull, Direction::Push})
            expectAllFaults(transport, direction);
}

TEST(ExchangeFailure, OnDevicesToo) {
    if (worldSize() < 2 || !Device::available())
        GTEST_SKIP() << "needs a peer, and a device";
    for (const TransportKind transport : deviceTransports())
        for (const Direction direction : {Direction::Pull, Direction::Push})
            expectAllFaults(transport, direction);
}

TEST(ExchangeFailure, WithoutPeersAnErrorIsNothingButAnError) {
    const Communicator comm = Communicator::duplicate(MPI_COMM_SELF);
    RealField u = emptyPair<RealField>("u", comm.view());
    u.father->resize(4);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    const std::vector<index> reads{1, 3};
    u.trans.createGhostMapping(reads);
    u.trans.createMPITypes();
    u.trans.initPersistentPull();
    for (int round = 1; round < 3; ++round) {
        u.father->resize(5);
        EXPECT_THROW(u.trans.startPersistentPull(), StateError);
        u.father->resize(4);
        EXPECT_THROW(u.trans.waitPersistentPull(), StateError);
        EXPECT_FALSE(isRevoked(comm.view()));
        fill(u, round);
        u.trans.startPersistentPull();
        u.trans.waitPersistentPull();
        EXPECT_EQ(wrongGhosts(u, round), 0);
    }
}

/// A rank that is late is waited for, whatever the transport; one that fails meanwhile ends the wait.
TEST(ExchangeFailure, ALateRankMayStillFail) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    forEachTransport([](const ExchangeOptions &options) {
        const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
        RealField u = ringField("u", comm.view());
        u.trans.initPersistentPull(options);
        if (worldRank() == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(150)); // peers look around by then
            revoke(comm.view(), "too late");
        }
        expectContains(messageOnAll<RevokedError>([&] {
                           while (true)
                               pull(u);
                       }),
                       "too late");
        recover(comm.view());
        expectPullWorks(u, 2);
    });
}

} // namespace
} // namespace DNDS
