// Compiled with DNDS_DEBUG_CHECKS, as GhostStateTest.cpp is beside it, linked in the preset release with a library that
// was built without.

#include "DNDS/Array/ArrayTransformer.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/GhostReads.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(DNDS_DEBUG_CHECKS)
#error "This test is about programs that define DNDS_DEBUG_CHECKS"
#endif

namespace DNDS {
namespace {

using namespace DNDS::test;

/// Each way to write the owned row 0, and no ghost.
std::vector<std::function<void(RealField &, real)>> waysToWrite() {
    return {
        [](RealField &u, real to) { u.father->view()(0, 0) = to; }, [](RealField &u, real to) { u.view()(0, 0) = to; },
        [](RealField &u, real to) { (*u.father)(0, 0) = to; },      [](RealField &u, real to) { u(0, 0) = to; },
        [](RealField &u, real to) { u.view()[0][0] = to; },         [](RealField &u, real to) { u[0][0] = to; }};
}

TEST(GhostWatch, GhostsOlderThanOwnedRows) {
    RealField u = ringField("pressure");
    u.trans.initPersistentPull();
    fill(u, 1);
    real value = 0;
    for (const auto &write : waysToWrite()) {
        pull(u);
        expectReadsWork(u);
        write(u, value -= 1);
        expectReadsThrow<StaleError>(u, "are older than the owned rows");
    }
    pull(u);
    expectReadsWork(u);
    u.trans.pushOnce(PushOp::Sum);
    expectReadsThrow<StaleError>(u, "are older than the owned rows");
    EXPECT_THROW((void)std::as_const(u).view(GhostUse::Read), StaleError) << "when the view is taken";
}

TEST(GhostWatch, GhostsBetweenStartAndWait) {
    RealField u = ringField("pressure");
    fill(u, 1);
    u.trans.initPersistentPull();
    const auto before = std::as_const(u).view();
    const index ghost = u.father->size();
    for (int round = 0; round < 2; ++round) {
        u.trans.startPersistentPull();
        expectReadsThrow<StateError>(u, "read between start and wait of a pull");
        const auto written = u.view(GhostUse::Checked);
        EXPECT_NO_THROW((void)written(0, 0));
        EXPECT_THROW((void)before(ghost, 0), StateError) << "a view taken before";
        u.trans.waitPersistentPull();
        expectReadsWork(u);
        EXPECT_NO_THROW((void)before(ghost, 0)) << "the same view after the wait";
        EXPECT_NO_THROW((void)written(ghost, 0));
    }
    Exchange other(u.trans.pattern(), Direction::Pull, {u.trans.member()});
    other.start();
    expectContains(messageOf<StateError>([&] { u(ghost, 0) = 1; }), "accessed between start and wait of a pull");
    expectContains(messageOf<StateError>([&] { u.view()(ghost, 0) = 1; }), "'pressure'");
    other.wait();
    EXPECT_NO_THROW(u.view()(ghost, 0) = 1);
}

TEST(GhostWatch, SentRowsWrittenBetweenStartAndWait) {
    RealField u = ringField("pressure");
    u.trans.initPersistentPull();
    u.trans.initPersistentPush(PushOp::Sum);
    const index read = u.trans.pattern()->readers().values.front();
    fill(u, 1);
    const auto kept = u.father->view();
    u.trans.startPersistentPull();
    CommunicatorView(MPI_COMM_WORLD).barrier();
    kept(read, 4) += 1;
    const std::string text = messageOf<Error>([&] { u.trans.waitPersistentPull(); });
    expectContains(text, "'pressure'");
    expectContains(text, "written between start and wait of a pull");
    recover(MPI_COMM_WORLD);
    u.trans.startPersistentPush();
    CommunicatorView(MPI_COMM_WORLD).barrier();
    (*u.son)(0, 0) += 1;
    expectContains(messageOf<Error>([&] { u.trans.waitPersistentPush(); }), "of a push");
    recover(MPI_COMM_WORLD);
    pull(u);
    expectReadsWork(u);
}

TEST(GhostWatch, OverlapIsNoFalseAlarm) {
    RealField u = ringField();
    u.trans.initPersistentPull();
    const auto pattern = u.trans.pattern();
    fill(u, 1);
    const auto view = std::as_const(u).view();
    for (int step = 0; step < 3; ++step) {
        for (const index row : pattern->boundaryRows())
            u.father->view()(row, 0) = step;
        u.trans.startPersistentPull();
        real sum = 0;
        for (const index row : pattern->innerRows()) { // may be written: no peer reads them
            u.father->view()(row, 0) = step;
            sum += std::as_const(u).view()(row, 0) + view(row, 0);
        }
        u.trans.waitPersistentPull();
        for (index row = 0; row < u.size(); ++row)
            EXPECT_NO_THROW(sum += view(row, 0));
        EXPECT_EQ(sum, step * static_cast<real>(u.size() + 2 * static_cast<index>(pattern->innerRows().size())));
    }
}

TEST(GhostWatch, NonConstReadingIsNoFalseAlarm) {
    RealField u = ringField();
    fill(u, 1);
    u.trans.pullOnce();
    real sum = u(0, 0) + u[1][0] + (*u.father)(0, 0) + u.father->view()(0, 0) + u.view()(0, 0);
    expectReadsWork(u);
    sum += u.view()(u.father->size(), 0) + u(u.father->size(), 0);
    expectReadsWork(u);
    EXPECT_NE(sum, 0);
}

TEST(GhostWatch, GhostsThatTheProgramWritesAreItsOwn) {
    const auto write = std::vector<std::function<void(RealField &)>>{[](RealField &u) {
                                                                         const auto v = u.view();
                                                                         for (index row = 0; row < v.size(); ++row)
                                                                             v(row, 0) = 1;
                                                                     },
                                                                     [](RealField &u) {
                                                                         for (index row = 0; row < u.size(); ++row)
                                                                             u[row][0] = 1;
                                                                     },
                                                                     [](RealField &u) {
                                                                         u.father->view()(0, 0) = 1;
                                                                         u.son->view()(0, 0) = 1;
                                                                     },
                                                                     [](RealField &u) {
                                                                         const auto v = u.view();
                                                                         v(0, 0) = 1;
                                                                         v.son()(0, 0) = 1;
                                                                     }};
    for (const auto &all : write) {
        RealField u = ringField();
        all(u);
        expectReadsWork(u);
        fill(u, 1);
        u.trans.pullOnce();
        fill(u, 2);
        all(u);
        expectReadsWork(u);
    }
}

TEST(GhostWatch, MovedPulledInPartAndInAGroup) {
    RealField u = ringField("u");
    RealField v = ringField("v");
    v.trans.borrowGGIndexing(u.trans);
    v.trans.createMPITypes();
    fill(u, 1);
    u.trans.pullOnce();
    fill(u, 2);
    RealField moved = std::move(u);
    expectReadsThrow<StaleError>(moved, "are older");
    Exchange some(moved.trans.pattern()->restrictedTo({}), Direction::Pull, {moved.trans.member()});
    some.start();
    expectReadsWork(moved);
    some.wait();
    expectReadsWork(moved); // which ones are current, the program knows

    ExchangeGroup group;
    group.add(moved.trans);
    group.add(v.trans);
    group.initPersistentPull();
    group.startPersistentPull();
    expectReadsThrow<StateError>(v, "between start and wait");
    group.waitPersistentPull();
    expectReadsWork(moved);
    expectReadsWork(v);
}

TEST(GhostWatch, SwapsDuringAPullLeaveNoPairInFlight) {
    RealField u = ringField("u");
    RealField v = emptyPair<RealField>("v");
    v.father->resize(ringRows);
    v.transAttach();
    v.trans.borrowGGIndexing(u.trans);
    v.trans.createMPITypes();
    fill(u, 1);
    fill(v, 2);
    v.trans.pullOnce();
    u.trans.initPersistentPull();
    u.trans.startPersistentPull();
    CommunicatorView(MPI_COMM_WORLD).barrier();
    u.swapData(v);
    EXPECT_THROW(u.trans.waitPersistentPull(), Error);
    expectReadsWork(v); // no pull of it runs
    recover(MPI_COMM_WORLD);
    u.trans.pullOnce();
    expectReadsWork(u);
}

TEST(GhostWatch, PullsThatFailAreToldByTheirWaitAlone) {
    RealField u = ringField("u");
    RealField v = ringField("v");
    fill(u, 1);
    u.trans.initPersistentPull();
    u.trans.startPersistentPull();
    CommunicatorView(MPI_COMM_WORLD).barrier();
    u.father->swapData(*v.father);
    EXPECT_THROW(u.trans.waitPersistentPull(), Error);
    u.father->swapData(*v.father);
    expectReadsWork(u);
    recover(MPI_COMM_WORLD);
    pull(u);
    fill(u, 2);
    expectReadsThrow<StaleError>(u, "are older");
    {
        Exchange given(u.trans.pattern(), Direction::Pull, {u.trans.member()});
        given.start();
        CommunicatorView(MPI_COMM_WORLD).barrier();
    }
    expectReadsWork(u);
    recover(MPI_COMM_WORLD);
}

TEST(GhostWatch, OperationsOnOwnedRowsAndGhosts) {
    auto u = makePair<ArrayDof<5, 1>>(PullLists::ring(), [](auto &father, index n) { father.resize(n); });
    const auto read = [&] { return std::as_const(u)[u.father->size()][0]; };
    EXPECT_THROW((void)read(), StaleError);
    u.setConstant(1);
    EXPECT_NO_THROW((void)read());
    u.trans.pullOnce();
    u *= 2;
    EXPECT_EQ(read(), 2);
    (*u.father)(0, 0) = 3;
}

TEST(GhostWatch, ViewsStayTriviallyCopyableWithOnePointerMore) {
    using Rows = ArrayView<const real, 5>;
    static_assert(std::is_trivially_copyable_v<ArrayPairView<Rows>>);
    EXPECT_EQ(sizeof(ArrayPairView<Rows>), 2 * sizeof(Rows) + sizeof(void *)) << "in every build";
}

} // namespace
} // namespace DNDS
