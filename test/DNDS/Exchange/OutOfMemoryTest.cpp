// One rank alone has no memory for the n-th allocation of an exchange's set-up, or of its start: all ranks throw, and
// what was set up before still works. This program replaces operator new (support/FailingAllocations.hpp).

#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "RingField.hpp"
#include "support/FailingAllocations.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace DNDS {
namespace {

using namespace DNDS::test;

constexpr int everyAllocation = 1000;

/// Calls `body` once for each transport of host rows.
template <class Body>
void forEachHostTransport(Body &&body) {
    for (const TransportKind kind : {TransportKind::NodeShared, TransportKind::Packed, TransportKind::Datatype}) {
        SCOPED_TRACE(transportName(kind));
        body(ExchangeOptions{.transport = kind});
    }
}

TEST(OutOfMemory, EndsTheSetUpOfExchangesOnAllRanks) {
    using RealField = ArrayPair<ParArray<real, 5>>;
    using PaddedField = ArrayPair<ParArray<index, NonUniformSize, 4>>;
    RealField u = ringField("u");
    auto v = makePair<PaddedField>(
        PullLists::ring(), [](auto &father, index n) { father.resize(n, [](index row) { return row % 4; }); }, "v");
    v.trans.borrowGGIndexing(u.trans);
    v.trans.createMPITypes();
    ExchangeGroup group;
    group.add(u.trans);
    group.add(v.trans);
    // Freeing the previous exchange keeps shared memory allocated rather than throw.
    constexpr Outcome freeing = Outcome::ThrowsOrDoesWithout;
    forEachHostTransport([&](const ExchangeOptions &options) {
        failEverywhere(
            everyAllocation, [&] { u.trans.initPersistentPull(options); }, freeing);
        failEverywhere(
            everyAllocation, [&] { u.trans.initPersistentPush(PushOp::Sum, options); }, freeing);
        failEverywhere(
            everyAllocation, [&] { group.initPersistentPull(options); }, freeing);
        failEverywhere(
            everyAllocation, [&] { group.initPersistentPush(PushOp::Replace, options); }, freeing);
        expectPullWorks(u, 1);
        fill(u, 2);
        fill(v, 3);
        group.startPersistentPull();
        group.waitPersistentPull();
        EXPECT_EQ(wrongGhosts(u, 2), 0);
        EXPECT_EQ(wrongGhosts(v, 3), 0);
    });
}

/// Recoveries know nothing of what could not be made.
TEST(OutOfMemory, LeavesNothingToRecover) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    failEverywhere(everyAllocation, [&] {
        try {
            const MessageReduction sum(*context, "sum");
        } catch (const std::exception &) {
            recover(MPI_COMM_WORLD);
            throw;
        }
    });
    recover(MPI_COMM_WORLD);
}

TEST(OutOfMemory, IsAMemoryErrorThatNamesTheRankWhereAnExchangeIsSetUp) {
    ArrayPair<ParArray<real, 5>> u = ringField("u");
    forEachHostTransport([&](const ExchangeOptions &options) {
        for (const int victim : {0, worldSize() - 1}) {
            u.trans.initPersistentPull(options);
            allocations = 0;
            u.trans.initPersistentPull(options);
            const std::int64_t count = allocations;
            for (const std::int64_t n : {std::int64_t{1}, count / 4, count / 2}) {
                allocations = 0;
                failsAt = worldRank() == victim ? n : 0;
                std::string text;
                try {
                    u.trans.initPersistentPull(options);
                } catch (const MemoryError &error) {
                    text = error.what();
                }
                failsAt = 0;
                EXPECT_NE(text.find("rank " + std::to_string(victim) + " has not enough memory"), std::string::npos)
                    << "allocation " << n << " of " << count << ": " << text;
            }
        }
    });
}

/// A start that has to bind new memory, or finds that rows have changed, and nothing can be allocated from some point
/// on.
TEST(OutOfMemory, InStartsIsRecoveredFrom) {
    using Wide = ArrayPair<ParArray<real, DynamicSize>>;
    const int victim = worldSize() - 1;
    forEachHostTransport([&](const ExchangeOptions &options) {
        for (const rowsize width : {1, 1 << 14})
            for (const index more : {0, 1}) {
                SCOPED_TRACE(testing::Message() << "width " << width << (more > 0 ? ", other rows" : ""));
                Wide u = makePair<Wide>(PullLists::ring(), [&](auto &father, index n) { father.resize(n, width); });
                u.trans.initPersistentPull(options);
                int version = 0;
                const auto prepare = [&] {
                    if (worldRank() == victim)
                        for (auto *array : {u.father.get(), u.son.get()}) {
                            const index rows = array->size();
                            array->resize(0, width);
                            array->resize(rows, width);
                        }
                    fill(u, ++version);
                };
                const auto start = [&] {
                    const std::int64_t fails = std::exchange(failsAt, 0);
                    if (more > 0 && fails > 0)
                        u.father->resize(ringRows + more, width);
                    allocations = 0;
                    failsAt = fails;
                    u.trans.startPersistentPull();
                    const std::int64_t made = allocations;
                    failsAt = 0;
                    u.trans.waitPersistentPull();
                    EXPECT_EQ(wrongGhosts(u, version), 0);
                    allocations = made + 2; // where rows have changed there may be more
                };
                const auto after = [&] {
                    if (u.father->size() != ringRows)
                        u.father->resize(ringRows, width);
                    recover(MPI_COMM_WORLD);
                    for (int pulls = 0; pulls < 2; ++pulls)
                        expectPullWorks(u, ++version);
                };
                failsOn = true;
                failRunningCalls(victim, everyAllocation, prepare, start, after);
                failsOn = false;
            }
    });
}

} // namespace
} // namespace DNDS
