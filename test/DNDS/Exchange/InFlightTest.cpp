// Exchanges that are destroyed, moved or abandoned while rows move.

#include "DNDS/Mpi/FailTogether.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using Bytes = ArrayPair<ParArray<std::uint8_t, DynamicSize>>;

/// Rows of one byte, which go at once, and of half a megabyte, which MPI only sends when both sides are there.
constexpr rowsize small = 1;
constexpr rowsize large = 1 << 19;

Bytes byteField(const Communicator &comm, rowsize width) {
    return makePair<Bytes>(
        PullLists::ring(), [&](auto &father, index n) { father.resize(n, width); }, "bytes", comm.view());
}

template <class Body>
void forEachCase(Body &&body) {
    for (const TransportKind kind : allTransports())
        for (const rowsize width : {small, large}) {
            SCOPED_TRACE(testing::Message() << transportName(kind) << ", width " << width);
            const Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
            body(comm, ExchangeOptions{.transport = kind}, width);
            // The communicator goes here, and with it what was kept for messages that never arrived.
        }
}

/// After all that, exchanges on the same communicator work.
void expectUsable(const Communicator &comm, const ExchangeOptions &options) {
    recover(comm.view());
    RealField v = ringField("v", comm.view());
    v.trans.initPersistentPull(options);
    expectPullWorks(v, 1);
}

/// Exchanges in flight are destroyed by all ranks, each in another order, or by none before their communicator goes; by
/// one: ExchangeFailureTest.cpp
TEST(InFlight, Destroyed) {
    const std::vector<std::string> who{"all", "none"};
    for (const std::string &by : who)
        forEachCase([&](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
            SCOPED_TRACE(by);
            std::vector<Bytes> fields;
            for (int k = 0; k < 3; ++k)
                fields.push_back(byteField(comm, width));
            fields[0].trans.initPersistentPush(PushOp::Sum, options);
            for (std::size_t k = 1; k < 3; ++k)
                fields[k].trans.initPersistentPull(options);
            const auto start = [&] {
                fields[0].trans.startPersistentPush();
                fields[1].trans.startPersistentPull();
                fields[2].trans.startPersistentPull();
            };
            start();
            comm.view().barrier();
            if (by == "none")
                return;
            std::rotate(fields.begin(), fields.begin() + worldRank() % 3, fields.end());
            for (Bytes &u : fields)
                u = {};
            expectUsable(comm, options);
        });
}

TEST(InFlight, ArraysDestroyedAreKeptUntilTheWait) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        Bytes u = byteField(comm, width);
        u.trans.initPersistentPull(options);
        fill(u, 3);
        u.trans.startPersistentPull();
        u.father.reset();
        auto trans = std::move(u.trans);
        const auto son = std::exchange(u.son, nullptr);
        trans.waitPersistentPull();
        const auto ghosts = trans.ghostMapping()->ghosts();
        for (std::size_t k = 0; k < ghosts.size(); ++k)
            EXPECT_EQ((*son)(static_cast<index>(k), 0), ringValue<std::uint8_t>(ghosts[k], 0, 3));
    });
}

TEST(InFlight, WhatWasMovedGoesOnAndTheOldOneSaysSo) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        Bytes u = byteField(comm, width);
        u.trans.initPersistentPull(options);
        fill(u, 3);
        u.trans.startPersistentPull();
        Bytes pair = std::move(u);
        EXPECT_THROW((void)u.size(), StateError); // NOLINT: that is what is tested
        EXPECT_THROW((void)u.view(), StateError);
        ArrayTransformer<Bytes::ArrayType> moved = std::move(pair.trans);
        for (auto *old : {&u.trans, &pair.trans}) {
            EXPECT_THROW(old->waitPersistentPull(), StateError);
            EXPECT_THROW(old->startPersistentPull(), StateError);
            EXPECT_THROW(old->initPersistentPull(), StateError);
            EXPECT_THROW(old->createMPITypes(), StateError);
            EXPECT_THROW(old->pullOnce(), StateError);
            EXPECT_THROW((void)old->member(), StateError);
        }
        moved.waitPersistentPull();
        pair.trans = std::move(moved);
        EXPECT_EQ(wrongGhosts(pair, 3), 0);
        expectPullWorks(pair, 4);
    });
}

TEST(InFlight, NewArraysAttachedWhileTheOldOnesMove) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        Bytes u = byteField(comm, width);
        u.trans.initPersistentPull(options);
        u.trans.startPersistentPull();
        comm.view().barrier();
        u.initPair("new", comm.view());
        u.father->resize(ringRows, 2);
        u.transAttach();
        u.trans.createFatherGlobalMapping();
        u.trans.createGhostMapping(PullLists::ring().myReads());
        u.trans.createMPITypes();
        recover(comm.view()); // the old ones were abandoned in flight
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 5);
    });
}

TEST(InFlight, ManyDestroyedOnACommunicatorThatLivesUntilMpiEnds) {
    static const Communicator kept = Communicator::duplicate(MPI_COMM_WORLD); // until MPI_Finalize
    for (const TransportKind kind : allTransports())
        for (const rowsize width : {small, large}) {
            Bytes u = byteField(kept, width);
            u.trans.initPersistentPull({.transport = kind});
            recover(kept.view());
            u.trans.startPersistentPull();
            kept.view().barrier();
        }
}

} // namespace
} // namespace DNDS
