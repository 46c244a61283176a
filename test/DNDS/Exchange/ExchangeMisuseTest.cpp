// Arguments that ranks must have in common and required call orders: violations throw on all affected ranks.

#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using FixedField = ArrayPair<ParArray<real, DynamicSize>>;

TEST(ExchangeErrors, RanksThatAskForRowsOfDifferentSpaces) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs ranks that differ";
    for (int bad = 0; bad < worldSize(); ++bad) {
        const bool here = worldRank() == bad;
        RealField u = ringField();
        if (Device::available())
            u.toDevice();
        const auto expectRefusal = [&](const ExchangeOptions &options) {
            const std::string text = messageOnAll<Error>([&] { u.trans.initPersistentPull(options); });
            expectContains(text, Device::available() ? "some ranks ask for rows in host memory" : "device");
        };
        expectRefusal({.space = here ? ExchangeSpace::Device : ExchangeSpace::Host});
        expectRefusal({.transport = here ? TransportKind::Packed : TransportKind::Staged});
        if (Device::available()) // one that does not care goes with the others
            u.trans.initPersistentPull({.space = here ? ExchangeSpace::Auto : ExchangeSpace::Device});
        u.toHost();
        u.trans.initPersistentPull({.space = here ? ExchangeSpace::Auto : ExchangeSpace::Host});
        expectPullWorks(u, 1);
    }
}

TEST(ExchangeErrors, RunTimeWidthsThatDifferBetweenRanks) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    for (int bad = 0; bad < worldSize(); ++bad) {
        const auto resize = [&](auto &father, index n) { father.resize(n, worldRank() == bad ? 4 : 3); };
        expectContains(messageOnAll<LayoutError>([&] { (void)makePair<FixedField>(PullLists::ring(), resize); }),
                       "wide");
        using MaxField = ArrayPair<ParArray<real, NonUniformSize, DynamicSize>>;
        expectContains(messageOnAll<LayoutError>([&] { (void)makePair<MaxField>(PullLists::ring(), resize); }), "wide");

        // The same after createMPITypes, when nothing asks for it but the exchange.
        FixedField u = makePair<FixedField>(PullLists::ring(), [](auto &father, index n) { father.resize(n, 3); });
        const index ghosts = u.son->size();
        if (worldRank() == bad)
            u.father->resize(ringRows, 4);
        messageOnAll<LayoutError>([&] { u.trans.initPersistentPull(); });
        if (worldRank() == bad)
            u.son->resize(ghosts, 4);
        expectContains(messageOnAll<LayoutError>([&] { u.trans.initPersistentPull(); }), "bytes");
        u.father->resize(ringRows, 4);
        u.trans.createMPITypes();
        u.trans.initPersistentPull();
        expectPullWorks(u, 1);
    }
}

TEST(ExchangeErrors, DifferentTransportsOnDifferentRanks) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    RealField u = ringField();
    for (int odd = 0; odd < worldSize(); ++odd) {
        const TransportKind kind = worldRank() == odd ? TransportKind::Datatype : TransportKind::Packed;
        const std::string text = messageOnAll<ArgumentError>([&] { u.trans.initPersistentPull({.transport = kind}); });
        expectContains(text, "'datatype'");
        expectContains(text, "'packed'");
        messageOnAll<ArgumentError>([&] { u.trans.pushOnce(PushOp::Replace, {.transport = kind}); });
    }
    u.trans.initPersistentPull();
    expectPullWorks(u, 1);
}

TEST(ExchangeErrors, TheLocalTransportCannotBeForced) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    RealField u = ringField();
    messageOnAll<ArgumentError>([&] { u.trans.pullOnce({.transport = TransportKind::Local}); });
}

/// Fails the test unless all ranks throw StateError that names both arrays.
template <class Call>
void expectBothNames(Call &&call) {
    const std::string text = messageOnAll<StateError>(std::forward<Call>(call));
    expectContains(text, "'u'");
    expectContains(text, "'v'");
    expectContains(text, "same order");
}

TEST(ExchangeErrors, ExchangesOfOneShapeCreatedInDifferentOrders) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    for (const bool share : {true, false}) // one mapping, or two made in the same order
        forEachTransport([&](const ExchangeOptions &options) {
            RealField u = ringField("u");
            RealField v = ringField("v");
            if (share)
                v.trans.borrowGGIndexing(u.trans);
            for (int odd = 0; odd < worldSize(); ++odd) {
                const bool other = worldRank() == odd;
                const auto initU = [&] { u.trans.initPersistentPull(options); };
                const auto initV = [&] { v.trans.initPersistentPull(options); };
                expectBothNames([&] { other ? initV() : initU(); });
                expectBothNames([&] { other ? initU() : initV(); });
                expectBothNames([&] { (other ? v : u).trans.pushOnce(PushOp::Sum, options); });
                ExchangeGroup group; // one array more
                group.add(u.trans);
                if (other && share)
                    group.add(v.trans);
                if (share)
                    expectContains(messageOnAll<StateError>([&] { group.initPersistentPull(options); }), "'u, v'");
                // Pull and push, and different operations, of the same array.
                const auto initPush = [&](PushOp op) { u.trans.initPersistentPush(op, options); };
                messageOnAll<LayoutError>([&] { other ? initPush(PushOp::Replace) : initU(); });
                messageOnAll<LayoutError>([&] { initPush(other ? PushOp::Sum : PushOp::Max); });
            }
            u.trans.initPersistentPull(options);
            v.trans.initPersistentPull(options);
            expectPullWorks(u, 1);
            expectPullWorks(v, 2);
        });
}

TEST(ExchangeErrors, MappingsOfOneShapeMadeInDifferentOrders) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    const std::vector<index> rows = PullLists::ring().myReads();
    for (int odd = 0; odd < worldSize(); ++odd) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        RealField &first = worldRank() == odd ? v : u;
        RealField &second = worldRank() == odd ? u : v;
        expectBothNames([&] { first.trans.createGhostMapping(rows); });
        expectBothNames([&] { second.trans.createGhostMapping(rows); });
        // Equal names: numbers tell the arrays apart.
        RealField a = ringField("same");
        RealField b = ringField("same");
        RealField &mine = worldRank() == odd ? b : a;
        expectContains(messageOnAll<StateError>([&] { mine.trans.createGhostMapping(rows); }), "numbering");
        expectContains(messageOnAll<StateError>([&] { mine.trans.initPersistentPull(); }), "on mapping");
        // The old mappings are untouched.
        u.trans.initPersistentPull();
        v.trans.initPersistentPull();
        expectPullWorks(u, 1);
        expectPullWorks(v, 2);
    }
}

TEST(ExchangeErrors, AnInitWhileInFlightOnOneRankOnly) {
    const CommunicatorView world(MPI_COMM_WORLD);
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        ExchangeGroup group;
        group.add(u.trans);
        struct Case {
            std::function<void()> init, start, wait;
        };
        const std::vector<Case> cases{{[&] { u.trans.initPersistentPull(options); },
                                       [&] { u.trans.startPersistentPull(); }, [&] { u.trans.waitPersistentPull(); }},
                                      {[&] { u.trans.initPersistentPush(PushOp::Replace, options); },
                                       [&] { u.trans.startPersistentPush(); }, [&] { u.trans.waitPersistentPush(); }},
                                      {[&] { group.initPersistentPull(options); }, [&] { group.startPersistentPull(); },
                                       [&] { group.waitPersistentPull(); }},
                                      {[&] { group.initPersistentPush(PushOp::Replace, options); },
                                       [&] { group.startPersistentPush(); }, [&] { group.waitPersistentPush(); }}};
        for (const Case &each : cases)
            each.init();
        for (int bad = 0; bad < worldSize(); ++bad)
            for (const Case &each : cases) {
                fill(u, 1);
                if (worldRank() == bad)
                    each.start();
                expectContains(messageOnAll<StateError>(each.init), "in flight");
                if (worldRank() != bad) // what was prepared before is still there, on all ranks
                    each.start();
                each.wait();
                world.barrier();
                each.init();
                cases[0].init();
                expectPullWorks(u, 2);
            }
    });
}

TEST(ExchangeErrors, CallsInTheWrongOrder) {
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        auto &trans = u.trans;
        // An exchange that was never set up affects no other rank.
        expectContains(messageOf<StateError>([&] { trans.startPersistentPull(); }), "initPersistentPull");
        expectContains(messageOf<StateError>([&] { trans.waitPersistentPull(); }), "initPersistentPull");
        expectContains(messageOf<StateError>([&] { trans.startPersistentPush(); }), "initPersistentPush");
        expectContains(messageOf<StateError>([&] { trans.waitPersistentPush(); }), "initPersistentPush");
        EXPECT_THROW((void)trans.pullPaths(), StateError);
        trans.clearPersistentPull(); // nothing to clear
        trans.initPersistentPull(options);
        trans.initPersistentPush(PushOp::Replace, options);
        fill(u, 1);
        trans.startPersistentPull();
        expectContains(messageOf<StateError>([&] { trans.clearPersistentPull(); }), "in flight");
        expectContains(messageOnAll<StateError>([&] { trans.initPersistentPull(options); }), "in flight");
        trans.waitPersistentPull();
        EXPECT_EQ(wrongGhosts(u, 1), 0);
        trans.startPersistentPush();
        expectContains(messageOf<StateError>([&] { trans.clearPersistentPush(); }), "in flight");
        trans.waitPersistentPush();
        expectPullWorks(u, 2);
        trans.clearPersistentPull();
        expectContains(messageOf<StateError>([&] { trans.startPersistentPull(); }), "initPersistentPull");
    });
}

TEST(ExchangeErrors, ThingsNeededBeforeAnExchange) {
    RealField none;
    messageOnAll<ArgumentError>([&] { none.transAttach(); });
    EXPECT_THROW(none.trans.createMPITypes(), StateError);
    EXPECT_THROW(none.trans.pullOnce(), StateError);
    RealField u = emptyPair<RealField>();
    u.father->resize(ringRows);
    EXPECT_THROW(u.trans.initPersistentPull(), StateError);
    u.transAttach();
    const std::vector<index> rows{0};
    expectContains(messageOnAll<StateError>([&] { u.trans.createGhostMapping(rows); }), "createFatherGlobalMapping");
    u.trans.createFatherGlobalMapping();
    for (const auto &call : std::vector<std::function<void()>>{
             [&] { u.trans.createMPITypes(); }, [&] { u.trans.initPersistentPull(); },
             [&] { u.trans.initPersistentPush(); }, [&] { u.trans.pullOnce(); }, [&] { u.trans.pushOnce(); }})
        expectContains(messageOnAll<StateError>(call), "createGhostMapping");
    // A mapping, but sons without rows.
    u.trans.createGhostMapping(rows);
    expectContains(messageOnAll<StateError>([&] { u.trans.initPersistentPull(); }), "createMPITypes");
    u.trans.createMPITypes();
    u.trans.initPersistentPull();
    expectPullWorks(u, 1);
}

TEST(ExchangeErrors, ANullArrayOnOneRank) {
    for (int bad = 0; bad < worldSize(); ++bad)
        for (const bool fatherIsNull : {true, false}) {
            RealField u = emptyPair<RealField>();
            if (worldRank() == bad)
                (fatherIsNull ? u.father : u.son).reset();
            expectContains(messageOnAll<ArgumentError>([&] { u.transAttach(); }), "null");
            EXPECT_EQ(u.trans.father(), nullptr);
        }
    RealField u = emptyPair<RealField>();
    u.son = u.father;
    messageOnAll<ArgumentError>([&] { u.transAttach(); });
}

TEST(ExchangeErrors, AFatherResizedOnOneRankBeforeItsGhostMapping) {
    for (int bad = 0; bad < worldSize(); ++bad) {
        RealField u = ringField();
        if (worldRank() == bad)
            u.father->resize(ringRows + 2);
        expectContains(messageOnAll<StateError>([&] { u.trans.createGhostMapping(PullLists::ring().myReads()); }),
                       "resized");
        expectContains(messageOnAll<StateError>([&] { u.trans.createMPITypes(); }), "make the mapping again");
        messageOnAll<StateError>([&] { u.trans.pullOnce(); });
    }
}

/// Collective: the first ranks detect the misuse, the others may learn of it from them.
void expectStartFails(const std::function<void()> &start, const std::string &text) {
    expectContains(messageOnAll<Error>(start), text);
    recover(MPI_COMM_WORLD);
}

/// Another mapping of as many ghosts of each owner.
void replaceMapping(RealField &u) {
    std::vector<index> other = PullLists::ring().myReads();
    for (index &row : other)
        row = row / ringRows * ringRows + (row + 1) % ringRows;
    u.trans.createGhostMapping(other);
    u.trans.createMPITypes();
}

TEST(ExchangeErrors, AMappingReplacedAfterInit) {
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        v.trans.borrowGGIndexing(u.trans);
        v.trans.createMPITypes();
        ExchangeGroup group;
        group.add(u.trans);
        group.add(v.trans);
        group.initPersistentPull(options);
        group.initPersistentPush(PushOp::Replace, options);
        v.trans.initPersistentPull(options);
        v.trans.initPersistentPush(PushOp::Replace, options);
        Exchange bare(v.trans.pattern(), Direction::Pull, {v.trans.member()}, options);
        fill(v, 1);
        bare.start();
        bare.wait();
        EXPECT_EQ(wrongGhosts(v, 1), 0);
        const index ghosts = v.son->size();
        replaceMapping(v);
        ASSERT_EQ(v.son->size(), ghosts);
        for (const auto &start : std::vector<std::function<void()>>{
                 [&] { group.startPersistentPull(); }, [&] { group.startPersistentPush(); }, [&] { bare.start(); },
                 [&] { v.trans.startPersistentPull(); }, [&] { v.trans.startPersistentPush(); }})
            expectStartFails(start, "mapping of 'v' was replaced");
        expectContains(messageOnAll<StateError>([&] { group.initPersistentPull(options); }), "'v' was replaced");
        v.trans.initPersistentPull(options);
        expectPullWorks(v, 2);

        // Arrays that are attached again have lost their mapping, even if the same one is set again.
        ExchangeGroup alone;
        alone.add(u.trans);
        alone.initPersistentPull(options);
        const auto pattern = u.trans.pattern();
        u.transAttach();
        expectStartFails([&] { alone.startPersistentPull(); }, "");
        u.trans.usePattern(pattern);
        expectStartFails([&] { alone.startPersistentPull(); }, "");
        alone = ExchangeGroup();
        alone.add(u.trans);
        alone.initPersistentPull(options);
        fill(u, 3);
        alone.startPersistentPull();
        alone.waitPersistentPull();
        EXPECT_EQ(wrongGhosts(u, 3), 0);
    });
}

TEST(ExchangeErrors, AGroupWhoseTransformersMovedOrWentGoesOn) {
    forEachTransport([&](const ExchangeOptions &options) {
        ExchangeGroup group;
        std::shared_ptr<ParArray<real, 5>> son;
        std::uint64_t wanted = 0;
        {
            RealField u = ringField("u");
            group.add(u.trans);
            group.initPersistentPull(options);
            fill(u, 1);
            RealField moved = std::move(u);
            group.startPersistentPull();
            group.waitPersistentPull();
            EXPECT_EQ(wrongGhosts(moved, 1), 0);
            wanted = moved.son->hash();
            replaceMapping(moved); // the group is notified wherever the transformer has moved
            expectStartFails([&] { group.startPersistentPull(); }, "replaced");
        }
        {
            RealField u = ringField("u");
            son = u.son;
            group = ExchangeGroup();
            group.add(u.trans);
            group.initPersistentPull(options);
            fill(u, 1);
        }
        group.startPersistentPull();
        group.waitPersistentPull();
        EXPECT_EQ(son->hash(), wanted);
    });
}

} // namespace
} // namespace DNDS
