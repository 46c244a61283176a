// What pushes leave in the ghosts, and what a second push then does.

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ArrayEigenMatrix.hpp"
#include "DNDS/Exchange/AssemblyCase.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Exchange/FieldCase.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

TEST(GhostsAfterPush, KeptGhostsAreAddedAgain) {
    auto u = ringField();
    assemble(u);
    u.trans.pushOnce(PushOp::Sum);
    const std::uint64_t once = u.father->hash();
    u.trans.pushOnce(PushOp::Sum);
    EXPECT_EQ(isZero(u), u.son->size() == 0);
    EXPECT_EQ(u.father->hash() == once, u.trans.pattern()->readers().values.empty());
}

TEST(GhostsAfterPush, TwoAssemblyLoopsGiveWhatTheyGiveOverNewGhosts) {
    const std::uint64_t expected = twiceOverNewGhosts<RealField>();
    for (const TransportKind kind : allTransports()) {
        SCOPED_TRACE(transportName(kind));
        const ExchangeOptions options{.transport = kind, .ghosts = GhostsAfterPush::Zero};
        auto once = ringField();
        for (int round = 0; round < 2; ++round) {
            assemble(once);
            once.trans.pushOnce(PushOp::Sum, options);
            EXPECT_TRUE(isZero(once));
        }
        EXPECT_EQ(once.father->hash(), expected);
        auto persistent = ringField();
        persistent.trans.initPersistentPush(PushOp::Sum, options);
        for (int round = 0; round < 2; ++round) {
            assemble(persistent);
            persistent.trans.startPersistentPush();
            persistent.trans.waitPersistentPush();
            EXPECT_TRUE(isZero(persistent));
        }
        EXPECT_EQ(persistent.father->hash(), expected);
    }
}

TEST(GhostsAfterPush, GroupsLeaveZeroInAllMembers) {
    using Floats = ArrayPair<ParArray<float, 3>>;
    using Matrices = ArrayPair<ArrayEigenMatrix<NonUniformSize, NonUniformSize, 3, 3>>;
    RealField a = ringField();
    Floats b = emptyPair<Floats>("b");
    b.father->resize(ringRows);
    Matrices c = emptyPair<Matrices>("c");
    c.father->resize(ringRows, [](index) { return MatrixShape{2, 3}; });
    const auto attach = [&](auto &pair) {
        pair.transAttach();
        pair.trans.borrowGGIndexing(a.trans);
        pair.trans.createMPITypes();
    };
    attach(b);
    attach(c);
    ExchangeGroup group;
    group.add(a.trans);
    group.add(b.trans);
    group.add(c.trans);
    const ExchangeOptions options{.ghosts = GhostsAfterPush::Zero};
    const auto assembleAll = [&] {
        assemble(a);
        assemble(b);
        assemble(c);
    };
    const auto expectZero = [&] {
        EXPECT_TRUE(isZero(a));
        EXPECT_TRUE(isZero(b));
        EXPECT_TRUE(isZero(c));
        for (index ghost = 0; ghost < c.son->size(); ++ghost)
            EXPECT_EQ(c.son->matrixShape(ghost), (MatrixShape{2, 3})) << "rows keep their shapes";
    };
    assembleAll();
    group.pushOnce(PushOp::Sum, options);
    expectZero();
    group.initPersistentPush(PushOp::Sum, options);
    assembleAll();
    group.startPersistentPush();
    group.waitPersistentPush();
    expectZero();
    EXPECT_EQ(a.father->hash(), twiceOverNewGhosts<RealField>());
    EXPECT_EQ(b.father->hash(), twiceOverNewGhosts<Floats>());
}

TEST(GhostsAfterPush, ZeroIsForSumsAndForAllRanks) {
    auto u = ringField();
    const ExchangeOptions zero{.ghosts = GhostsAfterPush::Zero};
    for (const PushOp op : {PushOp::Replace, PushOp::Min, PushOp::Max})
        expectContains(messageOnAll<ArgumentError>([&] { u.trans.initPersistentPush(op, zero); }), "PushOp::Sum");
    if (worldSize() > 1)
        messageOnAll<LayoutError>(
            [&] { u.trans.initPersistentPush(PushOp::Sum, worldRank() == 0 ? zero : ExchangeOptions{}); });
    u.trans.initPersistentPull(zero); // means nothing to a pull
    expectPullWorks(u, 1);
}

TEST(GhostsAfterPush, SumsOfAccumulatorsDoNotDependOnTheRanksThatAdd) {
    for (const TransportKind kind : allTransports()) {
        SCOPED_TRACE(transportName(kind));
        auto u = ringField<AccumulatorField>();
        u.trans.initPersistentPush(PushOp::Sum, {.transport = kind, .ghosts = GhostsAfterPush::Zero});
        for (int round = 1; round <= 2; ++round) {
            addTerms(u);
            u.trans.startPersistentPush();
            u.trans.waitPersistentPush();
            expectTermsOfAll(u, round);
        }
        expectContains(messageOnAll<LayoutError>([&] { u.trans.pushOnce(PushOp::Max, {.transport = kind}); }), "Sum");
    }
}

} // namespace
} // namespace DNDS
