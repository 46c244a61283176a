// What goes wrong on one rank is told on all that are concerned, nobody waits for ever, and afterwards all works again.

#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/Recovery.hpp"
#include "DNDS/Storage/ArrayCases.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace DNDS {
namespace {

using namespace DNDS::test;

using CsrField = ArrayPair<ParArray<index, NonUniformSize>>;
using PaddedField = ArrayPair<ParArray<std::int32_t, NonUniformSize, 6>>;

std::string rankName(int rank) { return "rank " + std::to_string(rank); }

/// Starts where `bad` cannot, runs until all know it, and goes on.
template <class Pair>
void expectStartFailsOn(int bad, Pair &u, const std::string &told) {
    if (worldRank() == bad)
        expectContains(messageOf<StateError>([&] { u.trans.startPersistentPull(); }), told);
    expectContains(messageOnAll<RevokedError>([&] {
                       while (true)
                           pull(u);
                   }),
                   worldRank() == bad ? "this rank" : rankName(bad));
}

/// All but `bad` have started what `wait` ends and `start` begins anew. All learn that `bad` has failed, and go on.
void expectRevoked(int bad, const std::function<void()> &wait, const std::function<void()> &start) {
    if (worldSize() > 1)
        expectContains(messageOnAll<RevokedError>([&] {
                           while (true) {
                               wait();
                               start();
                           }
                       }),
                       worldRank() == bad ? "this rank" : rankName(bad));
    recover(MPI_COMM_WORLD);
}

/// No rank fails before all have come so far.
void meet() { CommunicatorView(MPI_COMM_WORLD).barrier(); }

/// Calls `spoil` on one rank after another between init and start of a pull, expects StateError there and RevokedError
/// on the others, and that everything works once `repair` was called there.
void expectSpoilt(const std::function<void(RealField &)> &spoil, const std::function<void(RealField &)> &repair) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
        meet();
        for (int bad = 0; bad < worldSize(); ++bad) {
            fill(u, 2);
            if (worldRank() == bad)
                spoil(u);
            expectStartFailsOn(bad, u, "'u'");
            if (worldRank() == bad)
                repair(u);
            recover(MPI_COMM_WORLD);
            expectPullWorks(u, 3 + bad);
            meet();
        }
    });
}

TEST(ExchangeErrors, AFatherResizedAfterInit) {
    expectSpoilt([](RealField &u) { u.father->resize(ringRows + 1); },
                 [](RealField &u) { u.father->resize(ringRows); });
}

TEST(ExchangeErrors, ASonResizedAfterInit) {
    expectSpoilt([](RealField &u) { u.son->resize(u.son->size() + 1); },
                 [](RealField &u) { u.son->resize(u.son->size() - 1); });
}

TEST(ExchangeErrors, AFatherMovedAway) {
    std::optional<ParArray<real, 5>> taken;
    expectSpoilt([&](RealField &u) { taken.emplace(std::move(*u.father)); },
                 [&](RealField &u) { *u.father = std::move(*taken); });
}

TEST(ExchangeErrors, BothArraysEmptied) {
    index ghosts = 0;
    expectSpoilt(
        [&](RealField &u) {
            ghosts = u.son->size();
            u.father->resize(0);
            u.son->resize(0);
        },
        [&](RealField &u) {
            u.father->resize(ringRows);
            u.son->resize(ghosts);
        });
}

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
    Wishes wishes = Wishes::ring();
    for (int rank = 0; rank < worldSize(); ++rank) {
        const index next = wishes.begin((rank + 1) % worldSize());
        wishes.reads[static_cast<std::size_t>(rank)] = {next, next + 1};
    }
    const auto sizes = [](bool swapped) { return [=](index row) { return row == (swapped ? 1 : 0) ? 3 : 1; }; };
    forEachTransport([&](const ExchangeOptions &options) {
        CsrField u = makePair<CsrField>(wishes, [&](auto &father, index n) { father.resize(n, sizes(false)); });
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
        meet();
        u.father->resize(ringRows, sizes(true));
        fill(u, 2);
        messageOnAll<Error>([&] { u.trans.startPersistentPull(); });
        recover(MPI_COMM_WORLD);
        // An exchange made anew must not take the son as it is either.
        expectContains(messageOnAll<LayoutError>([&] { u.trans.initPersistentPull(options); }), "createMPITypes");
        u.trans.createMPITypes();
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 3);
    });
}

TEST(ExchangeErrors, CsrRowsCompressedAnewWithTheSameSizesAreBoundAnew) {
    forEachTransport([&](const ExchangeOptions &options) {
        CsrField u = makePair<CsrField>(
            Wishes::ring(), [](auto &father, index n) { father.resize(n, [](index row) { return row % 4; }); });
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
        u.father->decompress();
        u.father->compress();
        expectPullWorks(u, 2);
    });
}

TEST(ExchangeErrors, DecompressedCsrIsRefusedWithAdvice) {
    const Wishes wishes = Wishes::ring();
    forEachTransport([&](const ExchangeOptions &options) {
        for (int bad = 0; bad < worldSize(); ++bad) {
            const auto spoil = [&](CsrField &u) { worldRank() == bad ? u.father->decompress() : void(); };
            CsrField u =
                makePair<CsrField>(wishes, [](auto &father, index n) { father.resize(n, [](index) { return 2; }); });
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
            spoil(u);
            if (worldSize() > 1)
                expectStartFailsOn(bad, u, "compress()");
            recover(MPI_COMM_WORLD);
            u.father->compress();
            expectPullWorks(u, 2);
            meet();
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
        const Wishes wishes = Wishes::ring();
        PaddedField u =
            makePair<PaddedField>(wishes, [](auto &father, index n) { father.resize(n, [](index) { return 3; }); });
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

TEST(ExchangeErrors, AFatherResizedBetweenStartAndWaitOfAPush) {
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        u.trans.initPersistentPush(PushOp::Sum, options);
        u.trans.startPersistentPush();
        meet();
        u.father->resize(1);
        expectContains(messageOf<Error>([&] { u.trans.waitPersistentPush(); }), "between start and wait");
        u.father->resize(ringRows);
        recover(MPI_COMM_WORLD);
        u.trans.startPersistentPush();
        u.trans.waitPersistentPush();
    });
}

TEST(ExchangeErrors, ASonGivenUpBetweenStartAndWaitOfAPullIsNotWrittenTo) {
    // What arrives goes to the memory that was bound, which is kept until then; the new memory stays as it is.
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

TEST(ExchangeErrors, ArraysChangedBetweenStartAndWaitAreToldByWait) {
    struct Change {
        const char *what;
        std::function<void(RealField &, RealField &)> make, undo;
    };
    const auto swapBoth = [](RealField &u, RealField &v) { u.swapData(v); };
    const auto swapFathers = [](RealField &u, RealField &v) { u.father->swapData(*v.father); };
    const std::vector<Change> changes{
        {"swapped pair", swapBoth, swapBoth},
        {"swapped father", swapFathers, swapFathers},
        {"resized father", [](RealField &u, RealField &) { u.father->resize(ringRows + 1); },
         [](RealField &u, RealField &) { u.father->resize(ringRows); }},
        {"resized son", [](RealField &u, RealField &) { u.son->resize(u.son->size() + 1); },
         [](RealField &u, RealField &) { u.son->resize(u.son->size() - 1); }},
        {"new memory",
         [](RealField &u, RealField &) {
             u.father->resize(0);
             u.father->resize(ringRows);
         },
         [](RealField &, RealField &) {}}};
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = emptyPair<RealField>("v");
        v.clone(u);
        u.trans.initPersistentPull(options);
        u.trans.initPersistentPush(PushOp::Replace, options);
        for (const Change &change : changes) {
            SCOPED_TRACE(change.what);
            for (int bad = 0; bad < worldSize(); ++bad) {
                const bool here = worldRank() == bad;
                fill(u, 1);
                fill(v, 2);
                u.trans.startPersistentPull();
                meet();
                if (here) {
                    change.make(u, v);
                    const std::string text = messageOf<StateError>([&] { u.trans.waitPersistentPull(); });
                    expectContains(text, "'u'");
                    expectContains(text, "between start and wait of a pull");
                    change.undo(u, v);
                }
                expectRevoked(
                    bad, [&] { u.trans.waitPersistentPull(); }, [&] { u.trans.startPersistentPull(); });
                expectPullWorks(u, 3);
                meet();
                u.trans.startPersistentPush();
                meet();
                if (here) {
                    change.make(u, v);
                    expectContains(messageOf<StateError>([&] { u.trans.waitPersistentPush(); }), "of a push");
                    change.undo(u, v);
                }
                expectRevoked(
                    bad, [&] { u.trans.waitPersistentPush(); }, [&] { u.trans.startPersistentPush(); });
                expectPullWorks(u, 4);
                meet();
            }
        }
    });
}

TEST(ExchangeErrors, RowsWrittenBetweenStartAndWaitAreToldWithDebugChecks) {
#if !defined(DNDS_DEBUG_CHECKS)
    GTEST_SKIP() << "costs O(rows sent), so in builds with debug checks only";
#endif
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        u.trans.initPersistentPull(options);
        u.trans.initPersistentPush(PushOp::Sum, options);
        const index read = u.trans.pattern()->readers().values.front();
        fill(u, 1);
        u.trans.startPersistentPull();
        meet();
        (*u.father)(read, 4) += 1;
        const std::string text = messageOf<Error>([&] { u.trans.waitPersistentPull(); });
        expectContains(text, "'u'");
        expectContains(text, "written between start and wait of a pull");
        recover(MPI_COMM_WORLD);
        expectPullWorks(u, 2);
        u.trans.startPersistentPush();
        meet();
        (*u.son)(0, 0) += 1;
        expectContains(messageOf<Error>([&] { u.trans.waitPersistentPush(); }), "of a push");
        recover(MPI_COMM_WORLD);
        // Rows that nobody reads may be written.
        if (const auto inner = u.trans.pattern()->innerRows(); !inner.empty()) {
            fill(u, 3);
            u.trans.startPersistentPull();
            (*u.father)(inner.front(), 0) += 1;
            u.trans.waitPersistentPull();
        }
        expectPullWorks(u, 4);
    });
}

TEST(ExchangeErrors, ACommunicatorFreedBeforeItsArrays) {
    forEachTransport([&](const ExchangeOptions &options) {
        Communicator comm = Communicator::duplicate(MPI_COMM_WORLD);
        RealField u = ringField("u", comm.view());
        u.trans.initPersistentPull(options);
        expectPullWorks(u, 1);
        comm = Communicator();
        { const Communicator freed = std::move(comm); }
        expectContains(messageOf<StateError>([&] { u.trans.startPersistentPull(); }), "freed");
        EXPECT_THROW(u.trans.pullOnce(), StateError);
    });
}

TEST(ExchangeErrors, ACommunicatorFreedBetweenStartAndWait) {
    forEachTransport([&](const ExchangeOptions &options) {
        std::optional<Communicator> comm = Communicator::duplicate(MPI_COMM_WORLD);
        RealField pulled = ringField("pulled", comm->view());
        RealField pushed = ringField("pushed", comm->view());
        pulled.trans.initPersistentPull(options);
        pushed.trans.initPersistentPush(PushOp::Sum, options);
        pulled.trans.startPersistentPull();
        pushed.trans.startPersistentPush();
        comm.reset();
        for (int times = 0; times < 2; ++times) {
            expectContains(messageOf<StateError>([&] { pulled.trans.waitPersistentPull(); }),
                           "the communicator of 'pulled' was freed");
            expectContains(messageOf<StateError>([&] { pushed.trans.waitPersistentPush(); }),
                           "the communicator of 'pushed' was freed");
        }
        EXPECT_THROW(pulled.trans.initPersistentPull(options), StateError);
        EXPECT_THROW(pushed.trans.createMPITypes(), StateError);
    });
}

} // namespace
} // namespace DNDS
