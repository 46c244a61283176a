// A rank that runs out of memory in the middle of `start`: all ranks are told, and after `recover` the next pulls bring
// each its own rows. This program replaces operator new.

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Mpi/Recovery.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local std::int64_t allocations = 0; ///< since it was set to 0
thread_local std::int64_t failsFrom = 0;   ///< this one and all later ones; none where it is 0

std::int64_t failures = 0; ///< allocations that were refused: without any the test would show nothing

void *allocate(std::size_t bytes) {
    if (++allocations >= failsFrom && failsFrom != 0) {
        ++failures;
        throw std::bad_alloc();
    }
    if (void *memory = std::malloc(bytes == 0 ? 1 : bytes))
        return memory;
    throw std::bad_alloc();
}

} // namespace

void *operator new(std::size_t bytes) { return allocate(bytes); }
void *operator new[](std::size_t bytes) { return allocate(bytes); }
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept { return std::malloc(bytes); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }

namespace DNDS {
namespace {

using namespace DNDS::test;

using Wide = ArrayPair<ParArray<real, DynamicSize>>;

/// New memory for both arrays, so that the next start has to bind anew.
void moveArrays(Wide &u, rowsize width) {
    for (auto *array : {u.father.get(), u.son.get()}) {
        const index rows = array->size();
        array->resize(0, width);
        array->resize(rows, width);
    }
}

void expectRecovery(Wide &u, rowsize width, int victim, bool spoil) {
    const CommunicatorView world(MPI_COMM_WORLD);
    int version = 0;
    for (int pulls = 0; pulls < 3; ++pulls)
        expectPullWorks(u, ++version); // what is made once is made here
    moveArrays(u, width);
    fill(u, ++version);
    allocations = 0;
    u.trans.startPersistentPull();
    std::int64_t count = allocations + 2;
    u.trans.waitPersistentPull();
    count = world.allReduce(worldRank() == victim ? count : 0, MPI_MAX);
    for (std::int64_t n = 1; n <= count; ++n) {
        SCOPED_TRACE(testing::Message() << "allocation " << n << " of " << count << " and those after it");
        fill(u, ++version);
        if (worldRank() == victim) {
            if (spoil)
                u.father->resize(u.father->size() + 1, width);
            else
                moveArrays(u, width);
            fill(u, version);
            bool started = false;
            allocations = 0;
            failsFrom = n;
            try {
                u.trans.startPersistentPull();
                started = true;
            } catch (const std::exception &) { // which revokes
            }
            failsFrom = 0;
            EXPECT_FALSE(started && spoil);
            if (started) {
                u.trans.waitPersistentPull();
                EXPECT_EQ(wrongGhosts(u, version), 0);
            }
            if (spoil)
                u.father->resize(u.father->size() - 1, width);
        } else {
            try {
                pull(u);
                EXPECT_EQ(wrongGhosts(u, version), 0);
            } catch (const RevokedError &error) {
                EXPECT_EQ(error.failedRank(), victim);
            }
        }
        world.barrier(); // or ranks that recover first would stop others, where nobody has failed
        recover(MPI_COMM_WORLD);
        for (int pulls = 0; pulls < 2; ++pulls)
            expectPullWorks(u, ++version);
        world.barrier();
    }
}

TEST(StartOutOfMemory, PeersAreToldAndLaterPullsBringTheirOwnRows) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs peers";
    for (const TransportKind kind : allTransports())
        for (const rowsize width : {1, 1 << 14})
            for (const bool spoil : {false, true}) {
                SCOPED_TRACE(testing::Message()
                             << transportName(kind) << ", width " << width << (spoil ? ", spoilt" : ""));
                Wide u = makePair<Wide>(Wishes::ring(), [&](auto &father, index n) { father.resize(n, width); });
                u.trans.initPersistentPull({.transport = kind});
                expectRecovery(u, width, worldSize() - 1, spoil);
            }
    EXPECT_GT(CommunicatorView(MPI_COMM_WORLD).allReduce(failures, MPI_SUM), 0);
}

} // namespace
} // namespace DNDS
