// Contents of the ghosts after a push, and the effect of a second push: for rows in host memory and, in another
// program, for rows in device memory.

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Exchange/DeviceCase.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <algorithm>

namespace DNDS {
namespace {

using namespace DNDS::test;

/// Every rank adds to its own rows and to its ghosts, as assembly loops do.
template <class Pair>
void assemble(Pair &u) {
    backToHost(u);
    for (auto *array : {u.father.get(), u.son.get()})
        for (index row = 0; row < array->size(); ++row)
            for (rowsize j = 0; j < array->rowSize(row); ++j)
                array->row(row)[static_cast<std::size_t>(j)] +=
                    static_cast<typename Pair::ArrayType::Element>(1 + worldRank() + j);
    toSpaceUnderTest(u);
}

template <class Pair>
std::uint64_t twiceOverNewGhosts() {
    auto u = ringField<Pair>();
    for (int round = 0; round < 2; ++round) {
        backToHost(u);
        u.trans.createMPITypes(); // ghosts are zero
        assemble(u);
        u.trans.pushOnce(PushOp::Sum);
    }
    backToHost(u);
    return u.father->hash();
}

template <class Pair>
bool isZero(Pair &u) {
    backToHost(u);
    const auto &son = std::as_const(*u.son);
    const bool zero = std::all_of(son.data(), son.data() + son.dataSize(), [](auto value) { return value == 0; });
    toSpaceUnderTest(u);
    return zero;
}

template <class Pair>
std::uint64_t hashOfFather(Pair &u) {
    backToHost(u);
    const std::uint64_t hash = u.father->hash();
    toSpaceUnderTest(u);
    return hash;
}

using AccumulatorField = ArrayPair<ParArray<ExactAccumulator, 2>>;

TEST(GhostsAfterPush, KeptGhostsAreAddedAgain) {
    auto u = ringField();
    assemble(u);
    u.trans.pushOnce(PushOp::Sum);
    const std::uint64_t once = hashOfFather(u);
    u.trans.pushOnce(PushOp::Sum);
    EXPECT_EQ(isZero(u), u.son->size() == 0);
    EXPECT_EQ(hashOfFather(u) == once, u.trans.pattern()->readers().values.empty());
}

TEST(GhostsAfterPush, TwoAssemblyLoopsGiveWhatTheyGiveOverNewGhosts) {
    const std::uint64_t expected = twiceOverNewGhosts<RealField>();
    for (const TransportKind kind : transportsUnderTest()) {
        SCOPED_TRACE(transportName(kind));
        const ExchangeOptions options{.transport = kind, .ghosts = GhostsAfterPush::Zero};
        auto once = ringField();
        for (int round = 0; round < 2; ++round) {
            assemble(once);
            once.trans.pushOnce(PushOp::Sum, options);
            EXPECT_TRUE(isZero(once));
        }
        EXPECT_EQ(hashOfFather(once), expected);
        auto persistent = ringField();
        toSpaceUnderTest(persistent);
        persistent.trans.initPersistentPush(PushOp::Sum, options);
        for (int round = 0; round < 2; ++round) {
            assemble(persistent);
            persistent.trans.startPersistentPush();
            persistent.trans.waitPersistentPush();
            EXPECT_TRUE(isZero(persistent));
        }
        EXPECT_EQ(hashOfFather(persistent), expected);
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
    EXPECT_EQ(hashOfFather(a), twiceOverNewGhosts<RealField>());
    EXPECT_EQ(hashOfFather(b), twiceOverNewGhosts<Floats>());
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

/// Terms that nearly cancel each other: float64 sums would depend on their order.
TEST(GhostsAfterPush, SumsOfAccumulatorsDoNotDependOnTheRanksThatAdd) {
    for (const TransportKind kind : transportsUnderTest()) {
        SCOPED_TRACE(transportName(kind));
        auto u = ringField<AccumulatorField>();
        for (int round = 1; round <= 2; ++round) {
            for (rowsize j = 0; j < 2; ++j) {
                for (index row = 0; row < u.father->size(); ++row)
                    (*u.father)(row, j) += 1e20;
                for (index row = 0; row < u.son->size(); ++row)
                    (*u.son)(row, j) += -1e20 + 4e4;
            }
            toSpaceUnderTest(u);
            u.trans.pushOnce(PushOp::Sum, {.transport = kind, .ghosts = GhostsAfterPush::Zero});
            backToHost(u);
            for (index row = 0; row < u.father->size(); ++row) {
                ExactAccumulator expected;
                for (int k = 0; k < round; ++k) {
                    expected += 1e20;
                    for (const index read : u.trans.pattern()->readers().values)
                        if (read == row)
                            expected += -1e20 + 4e4;
                }
                for (rowsize j = 0; j < 2; ++j)
                    EXPECT_EQ((*u.father)(row, j).value(), expected.value());
            }
        }
        expectContains(messageOnAll<LayoutError>([&] { u.trans.pushOnce(PushOp::Max); }), "Sum");
    }
}

TEST(GhostsAfterPush, OfARestrictionAreZeroWhereTheyWerePushed) {
    for (const TransportKind kind : transportsUnderTest()) {
        SCOPED_TRACE(transportName(kind));
        const PullLists pullLists = PullLists::everything();
        auto u = makePair<RealField>(pullLists, [](auto &father, index n) { father.resize(n); });
        std::vector<index> even;
        for (index k = 0; k < u.son->size(); k += 2)
            even.push_back(k);
        const auto some = u.trans.pattern()->restrictedTo(even);
        for (index k = 0; k < u.son->size(); ++k)
            for (rowsize j = 0; j < 5; ++j)
                (*u.son)(k, j) = 1;
        toSpaceUnderTest(u);
        Exchange push(some, Direction::Push, {u.trans.member()}, {.transport = kind, .ghosts = GhostsAfterPush::Zero},
                      PushOp::Sum);
        push.start();
        push.wait();
        backToHost(u);
        for (index k = 0; k < u.son->size(); ++k)
            EXPECT_EQ((*u.son)(k, 4), k % 2) << "ghost " << k;
        for (index row = 0; row < u.father->size(); ++row)
            EXPECT_EQ((*u.father)(row, 0), (pullLists.begin(worldRank()) + row) % 2 == 0 ? worldSize() : 0);
        // And a pull brings them, scattered as they are.
        toSpaceUnderTest(u);
        Exchange pull(some, Direction::Pull, {u.trans.member()}, {.transport = kind});
        pull.start();
        pull.wait();
        backToHost(u);
        for (index k = 0; k < u.son->size(); ++k)
            EXPECT_EQ((*u.son)(k, 4), k % 2 == 0 ? worldSize() : 1) << "ghost " << k;
    }
}

TEST(GhostsAfterPush, ManyMoreThanZerosAreCopiedAtOnceAreZero) {
    using Wide = ArrayPair<ParArray<real, DynamicSize>>; // 1.6 MB a row
    auto u = makePair<Wide>(PullLists::ring(), [](auto &father, index n) { father.resize(n, 200001); });
    assemble(u);
    u.trans.pushOnce(PushOp::Sum, {.ghosts = GhostsAfterPush::Zero});
    EXPECT_TRUE(isZero(u));
}

} // namespace
} // namespace DNDS
