// What pushes of rows in device memory leave in the ghosts, and sums of accumulators there.

#include "DNDS/Exchange/AssemblyCase.hpp"
#include "DNDS/Exchange/DeviceCase.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

class DeviceGhostsAfterPush : public WithDevice {};

TEST_F(DeviceGhostsAfterPush, AreZeroWhereThatWasAskedFor) {
    const std::uint64_t expected = twiceOverNewGhosts<RealField>();
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        auto u = ringField();
        u.toDevice();
        u.trans.initPersistentPush(PushOp::Sum, {.transport = kind, .ghosts = GhostsAfterPush::Zero});
        for (int round = 0; round < 2; ++round) {
            u.toHost();
            assemble(u);
            u.toDevice();
            u.trans.startPersistentPush();
            u.trans.waitPersistentPush();
            u.toHost();
            EXPECT_TRUE(isZero(u));
        }
        EXPECT_EQ(u.father->hash(), expected);
    }
}

TEST_F(DeviceGhostsAfterPush, ManyMoreThanZerosAreCopiedAtOnceAreZero) {
    using Wide = ArrayPair<ParArray<real, DynamicSize>>; // 1.6 MB a row
    auto u = makePair<Wide>(Wishes::ring(), [](auto &father, index n) { father.resize(n, 200001); });
    assemble(u);
    u.toDevice();
    u.trans.pushOnce(PushOp::Sum, {.space = ExchangeSpace::Device, .ghosts = GhostsAfterPush::Zero});
    u.toHost();
    EXPECT_TRUE(isZero(u));
}

TEST_F(DeviceGhostsAfterPush, OfARestrictionAreZeroWhereTheyWerePushed) {
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        const Wishes wishes = Wishes::everything();
        auto u = makePair<RealField>(wishes, [](auto &father, index n) { father.resize(n); });
        std::vector<index> even;
        for (index k = 0; k < u.son->size(); k += 2)
            even.push_back(k);
        const auto some = u.trans.pattern()->restrictedTo(even);
        for (index k = 0; k < u.son->size(); ++k)
            for (rowsize j = 0; j < 5; ++j)
                (*u.son)(k, j) = 1;
        u.toDevice();
        Exchange push(some, Direction::Push, {u.trans.member()}, {.transport = kind, .ghosts = GhostsAfterPush::Zero},
                      PushOp::Sum);
        push.start();
        push.wait();
        u.toHost();
        for (index k = 0; k < u.son->size(); ++k)
            EXPECT_EQ((*u.son)(k, 4), k % 2) << "ghost " << k;
        for (index row = 0; row < u.father->size(); ++row)
            EXPECT_EQ((*u.father)(row, 0), (wishes.begin(worldRank()) + row) % 2 == 0 ? worldSize() : 0);
        // And a pull brings them, scattered as they are.
        u.toDevice();
        Exchange pull(some, Direction::Pull, {u.trans.member()}, {.transport = kind});
        pull.start();
        pull.wait();
        u.toHost();
        for (index k = 0; k < u.son->size(); ++k)
            EXPECT_EQ((*u.son)(k, 4), k % 2 == 0 ? worldSize() : 1) << "ghost " << k;
    }
}

TEST_F(DeviceGhostsAfterPush, SumsOfAccumulatorsAreThoseOfTheHost) {
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        auto u = ringField<AccumulatorField>();
        for (int round = 1; round <= 2; ++round) {
            addTerms(u);
            u.toDevice();
            u.trans.pushOnce(PushOp::Sum, {.transport = kind, .ghosts = GhostsAfterPush::Zero});
            u.toHost();
            expectTermsOfAll(u, round);
        }
    }
}

} // namespace
} // namespace DNDS
