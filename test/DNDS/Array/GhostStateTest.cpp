#include "DNDS/Array/ArrayTransformer.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Array/GhostReads.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"

#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;
using RingDof = ArrayDof<5, 1>;

RingDof ringDof(const std::string &name) {
    return test::makePair<RingDof>(
        PullLists::ring(), [](auto &father, index n) { father.resize(n); }, name);
}

TEST(GhostState, FollowsWritesAndPulls) {
    RealField u = ringField();
    expectState(u, GhostState::NeverPulled);
    EXPECT_TRUE(u.ghostsAreStale());
    fill(u, 1);
    u.trans.initPersistentPull();
    expectState(u, GhostState::NeverPulled);
    u.trans.startPersistentPull();
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled) << "in flight";
    u.trans.waitPersistentPull();
    expectState(u, GhostState::Current);
    EXPECT_EQ(u.trans.ghostState(), GhostState::Current);
    fill(u, 2);
    expectState(u, GhostState::Stale);
    EXPECT_EQ(u.trans.ghostState(), GhostState::Stale);
    u.trans.pullOnce();
    expectState(u, GhostState::Current);
    pull(u);
    EXPECT_FALSE(u.ghostsAreStale());
    (void)std::as_const(u).view();
    (void)std::as_const(u)(0, 0);
    (void)u.hash();
    EXPECT_EQ(u.ghostState(), GhostState::Current) << "reading changes nothing";
}

TEST(GhostState, PullsOfSomeGhostsMakeTheOthersNoNewer) {
    RealField u = ringField();
    const auto some = u.trans.pattern()->restrictedTo({});
    Exchange pullSome(some, Direction::Pull, {u.trans.member()});
    const auto pull = [&] {
        pullSome.start();
        pullSome.wait();
    };
    fill(u, 1);
    pull();
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled);
    u.trans.pullOnce();
    EXPECT_EQ(u.ghostState(), GhostState::Current);
    fill(u, 2);
    pull();
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled);
}

TEST(GhostState, EveryWayOfWritingOwnedRowsMakesGhostsStale) {
    RealField u = ringField();
    fill(u, 1);
    u.trans.initPersistentPush();
    for (const auto &write : std::vector<std::function<void()>>{
             [&] { (void)u.view(); }, [&] { u(0, 0) = 1; }, [&] { u[0][0] = 1; }, [&] { (void)u.father->data(); },
             [&] { (void)u.father->row(0); }, [&] { (void)(*u.father)(1); },
             [&] { (void)u.father->rowLayout(MemorySpace::Host, Access::Write); },
             [&] { u.father->clone(ParArray<real, 5>(*u.father)); }, [&] { *u.father = ParArray<real, 5>(*u.father); },
             [&] { u.father->markWritten(); },
             [&] {
                 u.trans.startPersistentPush();
                 u.trans.waitPersistentPush();
             },
             [&] { u.trans.pushOnce(PushOp::Sum, {.ghosts = GhostsAfterPush::Zero}); }}) {
        u.trans.pullOnce();
        ASSERT_EQ(u.ghostState(), GhostState::Current);
        write();
        EXPECT_EQ(u.ghostState(), GhostState::Stale);
    }
    u.trans.pullOnce();
    const auto kept = u.father->view();
    u.trans.pullOnce();
    kept(0, 0) = 2;
    EXPECT_EQ(u.ghostState(), GhostState::Current) << "views that are kept write unseen";
    u.father->markWritten();
    EXPECT_EQ(u.ghostState(), GhostState::Stale);
}

TEST(GhostState, IsOfTheContentsThatAreSwapped) {
    RealField u = ringField("u");
    RealField v = emptyPair<RealField>("v");
    v.father->resize(ringRows);
    v.transAttach();
    v.trans.borrowGGIndexing(u.trans);
    v.trans.createMPITypes();
    fill(u, 1);
    u.trans.pullOnce();
    u.swapData(v);
    expectState(u, GhostState::NeverPulled);
    expectState(v, GhostState::Current);
    fill(v, 2);
    u.swapData(v);
    expectState(u, GhostState::Stale);
    expectState(v, GhostState::NeverPulled);

    u.trans.pullOnce();
    v.trans.pullOnce();
    u.father->swapData(*v.father);
    EXPECT_EQ(u.ghostState(), GhostState::Stale) << "ghosts of other owned rows";
    expectState(v, GhostState::Stale);
    u.father->swapData(*v.father);
    expectState(u, GhostState::Current);
}

TEST(GhostState, IsThatOfTheOriginalInACopy) {
    RealField u = ringField("u");
    fill(u, 1);
    for (const GhostState state : {GhostState::NeverPulled, GhostState::Current, GhostState::Stale}) {
        if (state == GhostState::Current)
            u.trans.pullOnce();
        if (state == GhostState::Stale)
            fill(u, 2);
        RealField copied;
        copied.clone(u);
        EXPECT_EQ(copied.ghostState(), state); // what reads say begins with its own pulls
        expectState(u, state);
    }
}

TEST(GhostState, NewGhostsWereNeverPulled) {
    RealField u = ringField();
    fill(u, 1);
    u.trans.pullOnce();
    u.trans.createMPITypes();
    expectState(u, GhostState::NeverPulled);
    u.trans.pullOnce();
    u.trans.createGhostMapping(PullLists::ring().myReads());
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled) << "of another mapping";
    u.trans.createGhostMapping(std::vector<index>{});
    u.trans.createMPITypes();
    EXPECT_EQ(u.ghostState(), GhostState::Current) << "there are none";
}

TEST(GhostState, StaysWhereSharedMemoryTakesTheGhosts) {
    RealField u = ringField();
    fill(u, 1);
    u.trans.pullOnce({.transport = TransportKind::Packed});
    u.son->rehost(std::make_shared<std::pmr::unsynchronized_pool_resource>());
    EXPECT_EQ(u.ghostState(), GhostState::Current);
    u.son->rehost(nullptr);
}

TEST(GhostState, AFailedPullLeavesNoGhosts) {
    RealField u = ringField();
    fill(u, 1);
    u.trans.initPersistentPull();
    pull(u);
    RealField v = ringField("v");
    u.trans.startPersistentPull();
    CommunicatorView(MPI_COMM_WORLD).barrier();
    u.father->swapData(*v.father);
    EXPECT_THROW(u.trans.waitPersistentPull(), Error);
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled);
    u.father->swapData(*v.father);
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled);
    recover(MPI_COMM_WORLD);
    pull(u);
    EXPECT_EQ(u.ghostState(), GhostState::Current);
}

TEST(GhostState, PulledShapesAreNoContents) {
    ArrayPair<ArrayEigenMatrix<NonUniformSize, NonUniformSize>> u;
    u.initPair("u", MPI_COMM_WORLD);
    u.father->resize(ringRows, [](index i) { return std::pair(i % 3 + 1, 2); });
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    u.trans.createGhostMapping(PullLists::ring().myReads());
    u.trans.createMPITypes();
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled);
    u.trans.pullOnce();
    EXPECT_EQ(u.ghostState(), GhostState::Current);
    u.father->decompress();
    u.father->compress();
    u.trans.pullOnce();
    u.father->resizeMatrix(1, 1, 4); // as many elements
    EXPECT_EQ(u.ghostState(), GhostState::Stale) << "another shape";
}

TEST(GhostState, CanBeRequiredOfAViewInDebugBuilds) {
    RealField u = ringField("pressure");
    const RealField &constant = u;
    expectContains(messageOf<StaleError>([&] { u.requireCurrentGhosts(); }), "'pressure' are never pulled");
    EXPECT_NO_THROW((void)constant.view());
    fill(u, 1);
    u.trans.pullOnce();
    EXPECT_NO_THROW((void)constant.view(GhostUse::Read));
    EXPECT_NO_THROW((void)u.view(GhostUse::Read)) << "a view for reading";
    EXPECT_EQ(u.ghostState(), GhostState::Current);
    fill(u, 2);
    expectContains(messageOf<StaleError>([&] { u.requireCurrentGhosts(); }), "'pressure' are older than the owned");
#if defined(DNDS_DEBUG_CHECKS)
    expectContains(messageOf<StaleError>([&] { (void)u.view(GhostUse::Read); }), "'pressure' are older than the owned");
#else
    EXPECT_NO_THROW((void)u.view(GhostUse::Read));
#endif
    EXPECT_NO_THROW((void)constant.view());
}

/// Operations on owned rows and ghosts alike, and whether they need the ghosts of `v`.
std::vector<std::pair<bool, std::function<void(RingDof &, const RingDof &)>>> operations() {
    static const Eigen::Matrix<real, 5, 1> row = Eigen::Matrix<real, 5, 1>::Constant(1.5);
    return {{false, [](RingDof &u, const RingDof &) { u += 2; }},
            {false, [](RingDof &u, const RingDof &) { u *= 2; }},
            {false, [](RingDof &u, const RingDof &) { u += row; }},
            {true, [](RingDof &u, const RingDof &v) { u += v; }},
            {true, [](RingDof &u, const RingDof &v) { u.addTo(v, 0.5); }},
            {true, [](RingDof &u, const RingDof &v) { u.copyFrom(v); }}};
}

TEST(GhostState, SurvivesOperationsOnOwnedRowsAndGhosts) {
    for (const auto &[needsOther, operation] : operations()) {
        RingDof u = ringDof("u");
        RingDof v = emptyPair<RingDof>("v");
        v.father->resize(ringRows);
        v.transAttach();
        v.trans.borrowGGIndexing(u.trans);
        v.trans.createMPITypes();
        const std::uint64_t before = u.father->version();
        operation(u, v);
        EXPECT_NE(u.father->version(), before);
        EXPECT_EQ(u.ghostState(), GhostState::NeverPulled);
        u.trans.pullOnce();
        operation(u, v);
        EXPECT_EQ(u.ghostState(), needsOther ? GhostState::Stale : GhostState::Current);
        u.trans.pullOnce();
        v.trans.pullOnce();
        operation(u, v);
        EXPECT_EQ(u.ghostState(), GhostState::Current);
        (void)u.norm2();
        (void)u.dot(v);
        EXPECT_EQ(u.ghostState(), GhostState::Current) << "reductions read";
        (void)u.father->view();
        u += 1;
        EXPECT_EQ(u.ghostState(), GhostState::Stale);
        u.setConstant(3);
        EXPECT_EQ(u.ghostState(), GhostState::Current) << "the same on all ranks";
        (void)u.father->view();
        u.setConstant(Eigen::Matrix<real, 5, 1>::Ones());
        EXPECT_EQ(u.ghostState(), GhostState::Current);
    }
}

TEST(GhostState, OnTheDevice) {
    if (Device::name() != "emulated")
        GTEST_SKIP() << "needs host code to stand in for kernels";
    RingDof u = ringDof("u");
    u.setConstant(1);
    u.trans.createMPITypes();
    EXPECT_EQ(u.ghostState(), GhostState::NeverPulled);
    u.toDevice();
    u.trans.initPersistentPull();
    const auto pullThere = [&] {
        u.trans.startPersistentPull(nullptr);
        u.trans.waitPersistentPull(nullptr);
    };
    pullThere();
    EXPECT_EQ(u.ghostState(), GhostState::Current);
    (void)std::as_const(u).deviceView<DeviceBackend::CUDA>(GhostUse::Read);
    u.toHost();
    u.toDevice();
    EXPECT_EQ(u.ghostState(), GhostState::Current) << "copies write nothing";
    (void)u.father->deviceView<DeviceBackend::CUDA>();
    EXPECT_EQ(u.ghostState(), GhostState::Stale);
    pullThere();
    EXPECT_EQ(u.ghostState(), GhostState::Current);
    u.runOn(Executor::device(nullptr));
    u *= 2;
    EXPECT_EQ(u.ghostState(), GhostState::Current);
    u.trans.pushOnce(PushOp::Sum);
    EXPECT_EQ(u.ghostState(), GhostState::Stale);
    u.toHost();
}

} // namespace
} // namespace DNDS
