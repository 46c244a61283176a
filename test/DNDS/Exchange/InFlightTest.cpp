// Exchanges that are destroyed, moved or abandoned while rows move.

#include "DNDS/Mpi/Recovery.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <algorithm>
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
        Wishes::ring(), [&](auto &father, index n) { father.resize(n, width); }, "bytes", comm.view());
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

TEST(InFlight, DestroyedOnAllRanks) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        Bytes u = byteField(comm, width);
        u.trans.initPersistentPull(options);
        u.trans.startPersistentPull();
        comm.view().barrier();
        u = {};
        expectUsable(comm, options);
    });
}

TEST(InFlight, DestroyedOnAllRanksRightBeforeTheCommunicator) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        Bytes u = byteField(comm, width);
        u.trans.initPersistentPush(PushOp::Sum, options);
        u.trans.startPersistentPush();
        comm.view().barrier();
    });
}

TEST(InFlight, DestroyedInDifferentOrders) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        std::vector<Bytes> fields;
        for (int k = 0; k < 3; ++k) {
            fields.push_back(byteField(comm, width));
            fields.back().trans.initPersistentPull(options);
        }
        for (Bytes &u : fields)
            u.trans.startPersistentPull();
        comm.view().barrier();
        std::rotate(fields.begin(), fields.begin() + worldRank() % 3, fields.end());
        for (Bytes &u : fields)
            u = {};
        expectUsable(comm, options);
    });
}

TEST(InFlight, DestroyedOnOneRankLeavesNobodyWaiting) {
    for (int bad = 0; bad < std::min(worldSize(), 3); ++bad)
        forEachCase([&](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
            Bytes u = byteField(comm, width);
            u.trans.initPersistentPull(options);
            fill(u, 7);
            u.trans.startPersistentPull();
            comm.view().barrier();
            if (worldRank() == bad)
                u = {};
            else
                expectContains(messageOf<RevokedError>([&] {
                                   while (true) {
                                       u.trans.waitPersistentPull();
                                       u.trans.startPersistentPull();
                                   }
                               }),
                               fmt::format("rank {} failed in pull: it destroyed the exchange of 'bytes'", bad));
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

TEST(InFlight, AMovedTransformerGoesOnAndTheOldOneSaysSo) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        Bytes u = byteField(comm, width);
        u.trans.initPersistentPull(options);
        fill(u, 3);
        u.trans.startPersistentPull();
        ArrayTransformer<Bytes::ArrayType> moved = std::move(u.trans);
        EXPECT_THROW(u.trans.waitPersistentPull(), StateError); // NOLINT: that is what is tested
        EXPECT_THROW(u.trans.startPersistentPull(), StateError);
        EXPECT_THROW(u.trans.initPersistentPull(), StateError);
        EXPECT_THROW(u.trans.createMPITypes(), StateError);
        EXPECT_THROW(u.trans.pullOnce(), StateError);
        EXPECT_THROW((void)u.trans.member(), StateError);
        moved.waitPersistentPull();
        u.trans = std::move(moved);
        EXPECT_EQ(wrongGhosts(u, 3), 0);
        expectPullWorks(u, 4);
    });
}

TEST(InFlight, AMovedPairGoesOnAndTheOldOneSaysSo) {
    forEachCase([](const Communicator &comm, const ExchangeOptions &options, rowsize width) {
        Bytes u = byteField(comm, width);
        u.trans.initPersistentPull(options);
        fill(u, 3);
        u.trans.startPersistentPull();
        Bytes moved = std::move(u);
        EXPECT_THROW((void)u.size(), StateError); // NOLINT: that is what is tested
        EXPECT_THROW((void)u.view(), StateError);
        EXPECT_THROW(u.trans.waitPersistentPull(), StateError);
        moved.trans.waitPersistentPull();
        EXPECT_EQ(wrongGhosts(moved, 3), 0);
        expectPullWorks(moved, 4);
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
        u.trans.createGhostMapping(Wishes::ring().myReads());
        u.trans.createMPITypes();
        recover(comm.view()); // the old ones were given up in flight
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
