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
