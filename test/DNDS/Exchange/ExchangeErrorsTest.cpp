// Arrays that changed after an exchange was set up: rebound where possible, refused with an error otherwise.

#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Mpi/Survival.hpp"
#include "DNDS/Storage/ArrayCases.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using CsrField = ArrayPair<ParArray<index, NonUniformSize>>;
using PaddedField = ArrayPair<ParArray<std::int32_t, NonUniformSize, 6>>;

/// No rank fails before all ranks are here.
void meet() { CommunicatorView(MPI_COMM_WORLD).barrier(); }

TEST(ExchangeErrors, ReallocatedToTheSameShapeIsBoundAnew) {
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
        std::vector<ParArray<real, 5>> takeTheOldPlaces(3, *u.father);
        for (int round = 0; round < 3; ++round) {
            if ((worldRank() + round) % 2 == 0) {
                u.father->resize(0);
                u.father->resize(ringRows);
            }
            if (round > 0) {
                const index ghosts = u.son->size();
                u.son->resize(0);
                u.son->resize(ghosts);
            }
            if (round == 2)
                *u.father = ParArray<real, 5>(takeTheOldPlaces[0]); // another array's memory
            expectPullWorks(u, 2 + round);
        }
    });
}

TEST(ExchangeErrors, RowWidthsThatChangedWithinTheSameNumberOfBytes) {
    // CSR: rows 0 and 1 of each rank go to the previous one; their sizes are exchanged, the sum stays.
    PullLists pullLists = PullLists::ring();
    for (int rank = 0; rank < worldSize(); ++rank) {
        const index next = pullLists.begin((rank + 1) % worldSize());
        pullLists.reads[static_cast<std::size_t>(rank)] = {next, next + 1};
    }
    const auto sizes = [](bool swapped) { return [=](index row) { return row == (swapped ? 1 : 0) ? 3 : 1; }; };
    forEachTransport([&](const ExchangeOptions &options) {
        CsrField u = makePair<CsrField>(pullLists, [&](auto &father, index n) { father.resize(n, sizes(false)); });
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
        meet();
        u.father->resize(ringRows, sizes(true));
        fill(u, 2);
        messageOnAll<Error>([&] { u.trans.startPersistentPull(); });
        recover(MPI_COMM_WORLD);
        // Setting up the exchange again must not accept the son as it is either.
        expectContains(messageOnAll<LayoutError>([&] { u.trans.initPersistentPull(options); }), "createMPITypes");
        u.trans.createMPITypes();
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 3);
    });
}

TEST(ExchangeErrors, CsrRowsCompressedAnewWithTheSameSizesAreBoundAnew) {
    forEachTransport([&](const ExchangeOptions &options) {
        CsrField u = makePair<CsrField>(
            PullLists::ring(), [](auto &father, index n) { father.resize(n, [](index row) { return row % 4; }); });
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
        u.father->decompress();
        u.father->compress();
        expectPullWorks(u, 2);
    });
}

TEST(ExchangeErrors, DecompressedCsrIsRefusedWithAdvice) {
    const PullLists pullLists = PullLists::ring();
    forEachTransport([&](const ExchangeOptions &options) {
        for (int bad = 0; bad < worldSize(); ++bad) {
            const auto spoil = [&](CsrField &u) { worldRank() == bad ? u.father->decompress() : void(); };
            CsrField u =
                makePair<CsrField>(pullLists, [](auto &father, index n) { father.resize(n, [](index) { return 2; }); });
            spoil(u);
            expectContains(messageOnAll<StateError>([&] { u.trans.createMPITypes(); }), "compress()");
            u.father->compress();
            u.trans.createMPITypes();
            spoil(u);
            expectContains(messageOnAll<StateError>([&] { u.trans.initPersistentPull(options); }), "compress()");
            expectContains(messageOnAll<StateError>([&] { u.trans.pullOnce(options); }), "compress()");
            expectContains(messageOnAll<StateError>([&] { u.trans.pushOnce(PushOp::Sum, options); }), "compress()");
            u.father->compress();
            u.trans.initPersistentPull(options);
            fill(u, 1);
            if (worldSize() > 1)
                survive(MPI_COMM_WORLD, {.rank = bad,
                                         .told = "compress()",
                                         .happens =
                                             [&] {
                                                 spoil(u);
                                                 pull(u);
                                             },
                                         .call = [&] { pull(u); },
                                         .repair = [&] { u.father->compress(); }});
            expectPullWorks(u, 2);
        }
    });
}

TEST(ExchangeErrors, OperationsOnStructs) {
    auto u = ringField<ArrayPair<ParArray<Particle, 2>>>();
    forEachTransport([&](const ExchangeOptions &options) {
        for (const PushOp op : {PushOp::Sum, PushOp::Min, PushOp::Max}) {
            expectContains(messageOnAll<LayoutError>([&] { u.trans.initPersistentPush(op, options); }), "Replace");
            messageOnAll<LayoutError>([&] { u.trans.pushOnce(op, options); });
        }
        u.trans.pushOnce(PushOp::Replace, options);
    });
}

TEST(ExchangeErrors, PushedPaddedRowsOfAnotherSize) {
    forEachTransport([&](const ExchangeOptions &options) {
        const PullLists pullLists = PullLists::ring();
        PaddedField u =
            makePair<PaddedField>(pullLists, [](auto &father, index n) { father.resize(n, [](index) { return 3; }); });
        fill(u, 1);
        u.trans.pullOnce(options);
        const std::uint64_t before = u.father->hash();
        for (index ghost = 0; ghost < u.son->size(); ++ghost)
            u.son->resizeRow(ghost, 2);
        // Every owner is told, because every rank's rows are read; no row was changed.
        expectContains(messageOnAll<Error>([&] { u.trans.pushOnce(PushOp::Sum, options); }), "size");
        EXPECT_EQ(u.father->hash(), before);
        recover(MPI_COMM_WORLD);
        u.trans.pushOnce(PushOp::Replace, options);
        for (index row = 0; row < ringRows; ++row) {
            const auto &readers = u.trans.pattern()->readers().values;
            const bool read = std::find(readers.begin(), readers.end(), row) != readers.end();
            EXPECT_EQ(u.father->rowSize(row), read ? 2 : 3);
        }
        u.trans.pullOnce(options);
        EXPECT_EQ(wrongGhosts(u, 1), 0);
    });
}

TEST(ExchangeErrors, ASonGivenUpBetweenStartAndWaitOfAPullIsNotWrittenTo) {
    // Received rows go to the bound memory, which is kept until then; the new memory is not written.
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        u.trans.initPersistentPull(options);
        fill(u, 1);
        const index ghosts = u.son->size();
        u.trans.startPersistentPull();
        meet();
        u.son->resize(0);
        u.son->resize(ghosts);
        const std::uint64_t fresh = u.son->hash();
        expectContains(messageOf<Error>([&] { u.trans.waitPersistentPull(); }), "between start and wait");
        EXPECT_EQ(u.son->hash(), fresh);
        recover(MPI_COMM_WORLD);
        expectPullWorks(u, 2);
    });
}

TEST(ExchangeErrors, ACommunicatorFreedBetweenStartAndWait) {
    forEachTransport([&](const ExchangeOptions &options) {
        std::optional<Communicator> comm = Communicator::duplicate(MPI_COMM_WORLD);
        RealField idle = ringField("idle", comm->view());
        RealField pulled = ringField("pulled", comm->view());
        RealField pushed = ringField("pushed", comm->view());
        idle.trans.initPersistentPull(options);
        pulled.trans.initPersistentPull(options);
        pushed.trans.initPersistentPush(PushOp::Sum, options);
        pulled.trans.startPersistentPull();
        pushed.trans.startPersistentPush();
        comm.reset();
        for (int times = 0; times < 2; ++times) {
            expectContains(messageOf<StateError>([&] { idle.trans.startPersistentPull(); }), "freed");
            expectContains(messageOf<StateError>([&] { pulled.trans.waitPersistentPull(); }),
                           "the communicator of 'pulled' was freed");
            expectContains(messageOf<StateError>([&] { pushed.trans.waitPersistentPush(); }),
                           "the communicator of 'pushed' was freed");
        }
        EXPECT_THROW(idle.trans.pullOnce(), StateError);
        EXPECT_THROW(pulled.trans.initPersistentPull(options), StateError);
        EXPECT_THROW(pushed.trans.createMPITypes(), StateError);
        CommunicatorView(MPI_COMM_WORLD).barrier(); // rows in flight arrive here, not in the next communicator
    });
}

} // namespace
} // namespace DNDS
