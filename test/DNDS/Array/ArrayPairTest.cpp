#include "DNDS/Array/ArrayPair.hpp"

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

using PaddedField = ArrayPair<ParArray<std::int32_t, NonUniformSize, 6>>;
using CsrField = ArrayPair<ParArray<index, NonUniformSize>>;

PaddedField paddedField(const std::string &name, rowsize size) {
    return makePair<PaddedField>(
        PullLists::ring(), [&](auto &father, index n) { father.resize(n, [&](index) { return size; }); }, name);
}

TEST(ArrayPair, IndexesOwnedRowsThenGhosts) {
    RealField u = ringField();
    fill(u, 1);
    u.trans.pullOnce();
    EXPECT_EQ(u.size(), ringRows + u.son->size());
    const auto view = u.view();
    static_assert(std::is_trivially_copyable_v<decltype(view)>);
    EXPECT_EQ(view.size(), u.size());
    EXPECT_EQ(view.fatherSize(), ringRows);
    const RealField &constant = u;
    const auto constView = constant.view();
    for (index row = 0; row < u.size(); ++row) {
        const index global = u.trans.ghostMapping()->toGlobal(row);
        EXPECT_EQ(u.rowSize(row), 5);
        EXPECT_EQ(view.rowSize(row), 5);
        EXPECT_EQ(view.isGhost(row), row >= ringRows);
        for (rowsize j = 0; j < 5; ++j) {
            const real value = ringValue<real>(global, j, 1);
            EXPECT_EQ(u(row, j), value);
            EXPECT_EQ(constant(row, j), value);
            EXPECT_EQ(view(row, j), value);
            EXPECT_EQ(view[row][j], value);
            EXPECT_EQ(constView(row, j), value);
            EXPECT_EQ(u[row][j], value);
            EXPECT_EQ(constant[row][j], value);
        }
    }
    view(ringRows, 2) = -3;
    EXPECT_EQ((*u.son)(0, 2), -3);
    u(ringRows - 1, 4) = -4;
    EXPECT_EQ((*u.father)(ringRows - 1, 4), -4);
    EXPECT_THROW((void)u(-1, 0), IndexError);
    EXPECT_THROW((void)u(u.size(), 0), IndexError);
    EXPECT_THROW((void)u(ringRows, 5), IndexError);
    EXPECT_THROW((void)u[u.size()], IndexError);
    EXPECT_THROW((void)u.rowSize(u.size()), IndexError);
}

/// Rows of this rank and of others, some twice, the last one first; an empty rank reads nothing.
std::vector<index> readsOf(const GlobalMapping &rows) {
    std::vector<index> reads;
    for (index row = rows.localEnd() - 1; row >= rows.localBegin(); --row)
        for (const index other : {row + 2, row, row - 1, row + 2})
            reads.push_back((other + rows.globalSize()) % rows.globalSize());
    return reads;
}

TEST(ArrayPair, GhostsForWhatIsRead) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const index owned = world.rank() == 1 ? 0 : 3 + world.rank();
    ArrayPair<ParArray<real, 2>> u("u", world, owned);
    const GlobalMapping &rows = *u.father->globalMapping();
    EXPECT_EQ(rows.localSize(), owned);
    for (index i = 0; i < owned; ++i)
        u(i, 1) = static_cast<real>(rows.localBegin() + i);
    const std::vector<index> reads = readsOf(rows);
    const std::vector<LocalIndex> locals = u.ghostsFor(reads);
    u.pull();
    const auto all = std::as_const(u).view();
    ASSERT_EQ(locals.size(), reads.size());
    for (std::size_t k = 0; k < reads.size(); ++k)
        EXPECT_EQ(all(locals[k], 1), static_cast<real>(reads[k]));
    for (const index ghost : u.trans.ghostMapping()->ghosts()) // rows of this rank are no ghosts
        EXPECT_FALSE(rows.isLocal(ghost));

    ArrayPair next("next", u);
    EXPECT_EQ(next.trans.pattern(), u.trans.pattern());
    for (index i = 0; i < owned; ++i)
        next(i, 0) = -u(i, 1);
    next.startPull();
    next.waitPull();
    u.swapData(next);
    for (std::size_t k = 0; k < reads.size(); ++k)
        EXPECT_EQ(std::as_const(u)(locals[k], 0), -static_cast<real>(reads[k]));
}

TEST(ArrayPair, OfAWidthChosenAtRunTimeIsMadeLikeAnother) {
    const CommunicatorView world(MPI_COMM_WORLD);
    ArrayPair<ParArray<int, DynamicSize>> u("u", world, 2, 3);
    const index other = u.father->globalMapping()->localEnd() % u.father->globalMapping()->globalSize();
    static_cast<void>(u.ghostsFor(std::vector<index>{other}));
    const ArrayPair like("like", u);
    EXPECT_EQ(like.father->width(), 3);
    EXPECT_EQ(like.size(), u.size());
}

TEST(ArrayPair, WhatOneRankCannotMakeIsThrownOnAll) {
    const CommunicatorView world(MPI_COMM_WORLD);
    const bool last = world.rank() == world.size() - 1;
    using Field = ArrayPair<ParArray<real, 1>>;
    expectContains(messageOnAll<ArgumentError>([&] { const Field u("u", world, last ? -1 : 2); }), "-1 rows");
    Field u("u", world, 2);
    expectContains(messageOnAll<StateError>([&] { const ArrayPair like("like", u); }), "does not exist yet");
    const std::vector<index> reads{last ? 2 * world.size() : 0};
    expectContains(messageOnAll<IndexError>([&] { static_cast<void>(u.ghostsFor(reads)); }), "global rows are 0 to");
}

TEST(ArrayPair, ResizesRowsOfBothArrays) {
    PaddedField u = paddedField("u", 2);
    u.resizeRow(0, 5);
    u.resizeRow(ringRows, 6);
    EXPECT_EQ(u.father->rowSize(0), 5);
    EXPECT_EQ(u.son->rowSize(0), 6);
    EXPECT_THROW(u.resizeRow(u.size(), 1), IndexError);
}

TEST(ArrayPair, WithoutArraysSaysSo) {
    RealField u;
    for (const auto &call : std::vector<std::function<void()>>{
             [&] { (void)u.size(); }, [&] { (void)u(0, 0); }, [&] { (void)u[0]; }, [&] { (void)u.view(); },
             [&] { (void)u.hash(); }, [&] { u.toDevice(); }, [&] { u.swapData(u); }, [&] { RealField().clone(u); },
             [&] { u.father->resize(3); }, [&] { (void)(*u.son)(0, 0); }, [&] { (void)u.son->size(); },
             [&] { (void)std::as_const(u).view(); }, [&] { u.toHost(); }, [&] { (void)u.rowSize(0); },
             [&] { u.resizeRow(0, 1); }})
        expectContains(messageOf<StateError>(call), "initPair");
    expectContains(messageOf<StateError>([&] { u.trans.createFatherGlobalMapping(); }), "setFatherSon");
    EXPECT_THROW(u.trans.pullOnce(), StateError);
    EXPECT_THROW(u.transAttach(), ArgumentError);
    EXPECT_THROW(u.borrowAndPull(RealField()), ArgumentError);
    EXPECT_THROW(u.trans.startPersistentPull(), StateError);
    RealField moved = ringField();
    const RealField taken = std::move(moved);
    expectContains(messageOf<StateError>([&] { moved.father->resize(1); }), "moved from"); // NOLINT: just this
}

TEST(ArrayPair, HashesTellContentsApart) {
    RealField u = ringField();
    const std::uint64_t zero = u.hash();
    (*u.son)(0, 0) = 1;
    const std::uint64_t one = u.hash();
    EXPECT_NE(one, zero);
    (*u.son)(0, 0) = 0;
    EXPECT_EQ(u.hash(), zero);
}

TEST(ArrayPair, BorrowAndPullFillsASonOfAnotherType) {
    RealField u = ringField();
    CsrField v;
    v.initPair("v", CommunicatorView(MPI_COMM_WORLD));
    const index begin = worldRank() * ringRows;
    v.father->resize(ringRows, [&](index row) { return (begin + row) % 4; });
    for (index row = 0; row < ringRows; ++row)
        for (rowsize j = 0; j < v.father->rowSize(row); ++j)
            (*v.father)(row, j) = ringValue<index>(begin + row, j, 2);
    v.borrowAndPull(u);
    EXPECT_EQ(v.trans.pattern(), u.trans.pattern());
    const auto ghosts = v.trans.ghostMapping()->ghosts();
    ASSERT_EQ(v.son->size(), static_cast<index>(ghosts.size()));
    for (std::size_t k = 0; k < ghosts.size(); ++k)
        EXPECT_EQ(v.son->rowSize(static_cast<index>(k)), ghosts[k] % 4);
    EXPECT_EQ(wrongGhosts(v, 2), 0);
}

TEST(ArrayPair, BorrowingFromAFieldOfOtherRowsThrowsOnAllRanks) {
    RealField u = ringField();
    for (int bad = 0; bad < worldSize(); ++bad) {
        RealField v = emptyPair<RealField>("v");
        v.father->resize(worldRank() == bad ? ringRows - 1 : ringRows);
        messageOnAll<StateError>([&] { v.borrowAndPull(u); });
        RealField unmapped = emptyPair<RealField>("w");
        messageOnAll<StateError>([&] { v.trans.borrowGGIndexing(unmapped.trans); });
    }
}

TEST(ArrayPair, ACloneExchangesItsOwnBuffers) {
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField();
        u.trans.initPersistentPull(options);
        u.trans.initPersistentPush(PushOp::Sum, options);
        expectPullWorks(u, 1);
        RealField copy;
        copy.clone(u);
        EXPECT_EQ(copy.hash(), u.hash());
        EXPECT_NE(copy.father, u.father);
        EXPECT_NE(copy.son, u.son);
        EXPECT_EQ(copy.trans.pattern(), u.trans.pattern());
        EXPECT_THROW(copy.trans.startPersistentPull(), StateError); // persistent exchanges are not copied

        const std::uint64_t before = u.hash();
        fill(copy, 2);
        copy.trans.pullOnce(options);
        EXPECT_EQ(wrongGhosts(copy, 2), 0);
        copy.trans.initPersistentPull(options);
        expectPullWorks(copy, 3);
        copy.trans.pushOnce(PushOp::Sum, options);
        EXPECT_EQ(u.hash(), before) << "the source was touched";

        const std::uint64_t copyBefore = copy.hash();
        expectPullWorks(u, 4);
        u.trans.startPersistentPush();
        u.trans.waitPersistentPush();
        EXPECT_EQ(copy.hash(), copyBefore) << "the clone was touched";
        u = {}; // the clone lives without its source
        expectPullWorks(copy, 5);
    });
}

TEST(ArrayPair, CloningIntoAPairThatExchangesAlready) {
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        v.trans.initPersistentPull(options);
        expectPullWorks(v, 1);
        fill(u, 2);
        u.trans.pullOnce(options);
        v.clone(u);
        EXPECT_THROW(v.trans.startPersistentPull(), StateError); // it was bound to destroyed arrays
        EXPECT_EQ(wrongGhosts(v, 2), 0);
        v.trans.initPersistentPull(options);
        expectPullWorks(v, 3);
        EXPECT_EQ(wrongGhosts(u, 2), 0);
    });
}

/// Two time levels, swapped each step: both must keep moving their current contents.
template <class Pair>
void expectSwapsWork(Pair u, Pair v, const ExchangeOptions &options, bool persistentFirst) {
    v.trans.borrowGGIndexing(u.trans);
    if (persistentFirst) {
        u.trans.initPersistentPull(options);
        v.trans.initPersistentPull(options);
        u.trans.initPersistentPush(PushOp::Replace, options);
    }
    for (int step = 0; step < 5; ++step) {
        fill(u, 10 + step);
        fill(v, 50 + step);
        const std::uint64_t uFather = u.father->hash();
        const std::uint64_t vFather = v.father->hash();
        u.swapData(v);
        EXPECT_EQ(u.father->hash(), vFather);
        EXPECT_EQ(v.father->hash(), uFather);
        EXPECT_EQ(u.father->name(), "u");
        if (persistentFirst) {
            pull(u);
        } else {
            u.trans.pullOnce(options);
        }
        EXPECT_EQ(wrongGhosts(u, 50 + step), 0);
        if (persistentFirst) {
            u.trans.startPersistentPush();
            u.trans.waitPersistentPush();
            pull(v);
        } else {
            v.trans.pullOnce(options);
        }
        EXPECT_EQ(wrongGhosts(v, 10 + step), 0);
        EXPECT_EQ(wrongGhosts(u, 50 + step), 0);
        EXPECT_EQ(u.father->hash(), vFather) << "a push of what was pulled changes nothing";
    }
}

TEST(ArrayPair, SwappedFieldsMoveTheirNewContents) {
    forEachTransport([&](const ExchangeOptions &options) {
        expectSwapsWork(ringField("u"), ringField("v"), options, true);
        expectSwapsWork(ringField("u"), ringField("v"), options, false);
    });
}

TEST(ArrayPair, GhostsLieBehindOwnedRowsOnRequest) {
    forEachTransport([](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        v.trans.borrowGGIndexing(u.trans);
        u.trans.initPersistentPull(options); // works again afterwards
        u.trans.initPersistentPush(PushOp::Replace, options);
        fill(u, 1);
        if (u.son->size() > 0) {
            EXPECT_FALSE(u.isContiguous());
            expectContains(messageOf<StateError>([&] { (void)u.elements(); }), "call makeContiguous");
        }
        u.makeContiguous();
        EXPECT_TRUE(u.isContiguous());
        for (int step = 2; step < 5; ++step) {
            fill(u, step);
            pull(u);
            EXPECT_EQ(wrongGhosts(u, step), 0);
            const std::span<const real> all = std::as_const(u).elements();
            ASSERT_EQ(all.size(), static_cast<std::size_t>(5 * u.size()));
            for (index row = 0; row < u.size(); ++row)
                EXPECT_EQ(all[static_cast<std::size_t>(5 * row)], std::as_const(u)(row, 0));
        }
        const std::uint64_t version = u.son->version();
        EXPECT_EQ(u.elements().data(), std::as_const(*u.father).data());
        EXPECT_GT(u.son->version(), version) << "both count as written";
        v.trans.initPersistentPull(options);
        EXPECT_EQ(u.isContiguous(), true) << "another exchange of the same pattern";
        u.swapData(v);
        EXPECT_TRUE(v.isContiguous());
        fill(v, 7);
        pull(v);
        EXPECT_EQ(wrongGhosts(v, 7), 0);
        v.father->resize(ringRows + 1);
        EXPECT_EQ(v.isContiguous(), v.son->size() == 0);
    });
    CsrField rows = makePair<CsrField>(
        PullLists::ring(), [](auto &father, index n) { father.resize(n, 2); }, "rows");
    expectContains(messageOf<LayoutError>([&] { rows.makeContiguous(); }), "sizes of their own");
}

TEST(ArrayPair, SwappedPaddedFieldsMoveTheirNewSizes) {
    forEachTransport([&](const ExchangeOptions &options) {
        for (const bool persistent : {true, false}) {
            expectSwapsWork(paddedField("u", 2), paddedField("v", 5), options, persistent);
        }
        // Sizes travel with the rows.
        PaddedField u = paddedField("u", 2);
        PaddedField v = paddedField("v", 5);
        v.trans.borrowGGIndexing(u.trans);
        u.trans.initPersistentPull(options);
        v.trans.initPersistentPull(options);
        u.swapData(v);
        pull(u);
        pull(v);
        for (index ghost = 0; ghost < u.son->size(); ++ghost) {
            EXPECT_EQ(u.son->rowSize(ghost), 5);
            EXPECT_EQ(v.son->rowSize(ghost), 2);
        }
    });
}

TEST(ArrayPair, SwappedArraysOfTwoPairsWithMappingsOfTheirOwn) {
    // std::swap of the arrays themselves, without asking the pairs: equal rows, so it works.
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        u.trans.initPersistentPull(options);
        v.trans.initPersistentPull(options);
        fill(u, 1);
        fill(v, 2);
        swap(*u.father, *v.father);
        swap(*u.son, *v.son);
        pull(u);
        pull(v);
        EXPECT_EQ(wrongGhosts(u, 2), 0);
        EXPECT_EQ(wrongGhosts(v, 1), 0);
    });
}

TEST(ArrayPair, WholePairsCanBeSwappedInFlight) {
    forEachTransport([&](const ExchangeOptions &options) {
        RealField u = ringField("u");
        RealField v = ringField("v");
        u.trans.initPersistentPull(options);
        v.trans.initPersistentPull(options);
        fill(u, 1);
        fill(v, 2);
        u.trans.startPersistentPull();
        std::swap(u, v);
        v.trans.waitPersistentPull();
        EXPECT_EQ(v.father->name(), "u");
        EXPECT_EQ(wrongGhosts(v, 1), 0);
        pull(u);
        EXPECT_EQ(wrongGhosts(u, 2), 0);
    });
}

TEST(ArrayPair, FieldsWithDifferentMappingsAreNotSwapped) {
    RealField u = ringField("u");
    RealField v = ringField("v"); // equal lists, but a mapping of its own
    expectContains(messageOnAll<StateError>([&] { u.swapData(v); }), "mappings differ");
}

} // namespace
} // namespace DNDS
