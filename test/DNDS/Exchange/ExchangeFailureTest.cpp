// Faults on one rank while exchanges run: every rank throws the right error within a moment, and after `recover`
// results are right to the bit. Each fault is tried on several ranks, with each transport, for pulls and pushes, on
// hosts and devices.

#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Mpi/Survival.hpp"
#include "DeviceCase.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

/// Two fields, and one exchange of each.
struct Fields {
    Fields(const Communicator &comm, TransportKind transport, Direction way)
        : direction(way), options{.transport = transport}, u(ringField("u", comm.view())),
          v(ringField("v", comm.view())) {
        make();
    }

    /// Collective.
    void make() {
        for (auto [exchange, field] : {std::pair(&first, &u), std::pair(&second, &v)}) {
            if (onDevice)
                field->toDevice();
            *exchange =
                std::make_unique<Exchange>(field->trans.pattern(), direction,
                                           std::vector<ExchangeMember>{field->trans.member()}, options, PushOp::Max);
        }
    }
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
    /// Starts, and lets `change` happen where all have done so.
    void startThen(const std::function<void(Fields &)> &change) {
        start();
        change(*this);
        wait();
    }
    /// Changes arrays on the host, where they are on the device, too.
    void onHost(const std::function<void(Fields &)> &change) {
        if (onDevice)
            u.toHost();
        change(*this);
        if (onDevice)
            u.toDevice();
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

    static constexpr bool onDevice = testsDeviceRows;
    Direction direction;
    ExchangeOptions options;
    RealField u, v;
    std::unique_ptr<Exchange> first, second;
    RealField::ArrayType taken{"taken", MPI_COMM_SELF}; ///< the father that a fault has moved away
};

using Change = std::function<void(Fields &)>;

/// A fault of one rank: how it happens, how that rank undoes it, and the error text on the others.
struct Fault {
    std::string name;
    Change happen; ///< throws what this rank sees of it
    std::string told;
    Change undo = [](Fields &) {};
};

/// Changes of arrays that are found before an epoch, and between its start and its wait.
struct ArrayChange {
    const char *name;
    Change make, undo;
    bool sameShape = false; ///< found in flight only
};

std::vector<ArrayChange> arrayChanges() {
    const auto rows = [](index father, index son) {
        return [=](Fields &f) {
            f.u.father->resize(ringRows + father);
            f.u.son->resize(static_cast<index>(f.u.trans.ghostMapping()->ghosts().size()) + son);
        };
    };
    const Change swapPairs = [](Fields &f) {
        if (f.onDevice)
            f.v.toHost();
        f.u.father->swapData(*f.v.father);
        if (f.onDevice)
            f.v.toDevice();
    };
    const auto emptied = [](Fields &f) {
        f.u.father->resize(0);
        f.u.son->resize(0);
    };
    const Change anew = [=](Fields &f) {
        emptied(f);
        rows(0, 0)(f);
    };
    return {{"more rows of the father", rows(1, 0), rows(0, 0)},
            {"more rows of the son", rows(0, 1), rows(0, 0)},
            {"no rows at all", emptied, rows(0, 0)},
            {"a father that was moved away", [](Fields &f) { f.taken = std::move(*f.u.father); },
             [](Fields &f) { *f.u.father = std::move(f.taken); }},
            {"fathers that were swapped", swapPairs, swapPairs, true},
            {"new memory", anew, [](Fields &) {}, true}};
}

std::vector<Fault> allFaults() {
    std::vector<Fault> faults{{"wait without start", [](Fields &f) { f.first->wait(); }, "without start"},
                              {"started twice",
                               [](Fields &f) {
                                   f.start();
                                   f.start();
                               },
                               "already started"},
                              {"destroyed in flight",
                               [](Fields &f) {
                                   f.start();
                                   f.first.reset();
                                   f.second->wait(); // sees that, as all do
                               },
                               "destroyed the exchange of 'u' in flight"},
                              {"an exception of the program",
                               [](Fields &f) {
                                   f.start();
                                   const auto thrown = std::make_exception_ptr(std::runtime_error("negative pressure"));
                                   revoke(f.u.trans.pattern()->context().comm(), thrown);
                                   std::rethrow_exception(thrown);
                               },
                               "negative pressure"}};
    if (testsDeviceRows)
        faults.push_back({"a copy that is not current",
                          [](Fields &f) {
                              f.u.toHost();
                              fill(f.u, 0); // and forgotten there
                              f.epoch();
                          },
                          "the device copy is stale", [](Fields &f) { f.u.toDevice(); }});
    for (const ArrayChange &change : arrayChanges()) {
        const Change make = [=](Fields &f) { f.onHost(change.make); }, undo = [=](Fields &f) { f.onHost(change.undo); };
        if (!change.sameShape)
            faults.push_back({std::string(change.name) + " before start",
                              [=](Fields &f) {
                                  make(f);
                                  f.epoch();
                              },
                              "'u'", undo});
        faults.push_back({std::string(change.name) + " between start and wait", [=](Fields &f) { f.startThen(make); },
                          "between start and wait of a pu", undo});
    }
    return faults;
}

void expectAllFaults(TransportKind transport, Direction direction) {
    SCOPED_TRACE(testing::Message() << transportName(transport)
                                    << (direction == Direction::Pull ? ", pull" : ", push"));
    const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
    Fields fields(comm, transport, direction);
    fields.expectRight(1);
    std::size_t used = 0;
    int version = 1;
    for (int round = 0; round < 2; ++round) { // the second allocates nothing, except offered rows
        for (const Fault &fault : allFaults())
            for (const int bad : std::set{0, worldSize() / 2, worldSize() - 1}) {
                SCOPED_TRACE(testing::Message() << fault.name << " on rank " << bad);
                survive(comm.view(), {.rank = bad,
                                      .told = fault.told,
                                      .happens =
                                          [&] {
                                              try {
                                                  fault.happen(fields);
                                              } catch (const std::exception &) {
                                                  EXPECT_THROW(fields.second->start(), RevokedError);
                                                  throw;
                                              }
                                          },
                                      .call = [&] { fields.epoch(); },
                                      .repair = [&] { fault.undo(fields); }});
                EXPECT_FALSE(fields.second->inFlight());
                if (comm.view().allReduce(fields.first ? 1 : 0, MPI_MIN) == 0) { // all ranks set theirs up again
                    fields.first.reset();
                    fields.second.reset();
                    fields.make();
                }
                for (int epochs = 0; epochs < 2; ++epochs)
                    fields.expectRight(++version);
            }
        const std::size_t now = settledBytes(comm.view());
        if (round == 0)
            used = now;
        EXPECT_LE(now, used + 4096);
    }
}

class ExchangeFailure : public testing::Test {
  protected:
    void SetUp() override {
        if (worldSize() < 2)
            GTEST_SKIP() << "needs a peer";
    }
};

TEST_F(ExchangeFailure, EveryRankIsToldAndRecoverGoesOnToTheBit) {
    for (const TransportKind transport : transportsUnderTest())
        for (const Direction direction : {Direction::Pull, Direction::Push})
            expectAllFaults(transport, direction);
}

/// A rank that is late is waited for, whatever the transport; one that fails meanwhile ends the wait.
TEST_F(ExchangeFailure, ALateRankMayStillFail) {
    forEachTransport([](const ExchangeOptions &options) {
        const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
        RealField u = ringField("u", comm.view());
        u.trans.initPersistentPull(options);
        const auto fail = [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(150)); // peers look around by then
            revoke(comm.view(), "too late");
            pull(u);
        };
        survive(comm.view(), {.rank = 0, .told = "too late", .happens = fail, .call = [&] { pull(u); }});
        expectPullWorks(u, 2);
    });
}

TEST(ExchangeWithoutPeers, AnErrorIsNothingButAnError) {
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
        expectPullWorks(u, round);
    }
}

} // namespace
} // namespace DNDS
