// Windows over the rows of distributed arrays: calls on the host and kernels, in both memory spaces.

#include "HeapTest.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/OneSided/GhostWindow.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using test::allReached;
using test::expectContains;
using test::messageOnAll;
using test::refused;
using test::worldRank;
using test::worldSize;

using Labels = ArrayPair<ParArray<std::int64_t, 3>>;

/// Rank 0 owns nothing where there are several; the others own 4 + rank rows. Each has ghosts of all rows but some.
index rowsOf(int rank) { return worldSize() > 1 && rank == 0 ? 0 : 4 + rank; }

void makeLabels(Labels &u) {
    u.initPair("labels", CommunicatorView(MPI_COMM_WORLD));
    u.father->resize(rowsOf(worldRank()));
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    std::vector<index> wanted;
    for (index row = worldRank() % 2; row < u.father->globalMapping()->globalSize(); row += 1 + worldRank() % 2)
        wanted.push_back(row);
    u.trans.createGhostMapping(wanted);
    u.trans.createMPITypes();
    const index first = u.father->globalMapping()->localBegin();
    for (index i = 0; i < u.father->size(); ++i)
        for (rowsize j = 0; j < 3; ++j)
            (*u.father)(i, j) = 100 * (first + i) + j;
}

/// Ghost k gets one more in element 0 from each rank that has it; element 1 becomes the largest of the ranks' numbers;
/// the first to arrive claims element 2.
struct OneSidedVisit {
    GhostWindowView<std::int64_t> window;
    std::int64_t rank;
    DNDS_HOST_DEVICE void operator()(index k) const {
        window.accumulate(window.ghost(k), 0, 1);
        window.accumulate(window.local(window.fatherSize() + k), 1, 1000000 + rank, AtomicOp::Max);
        const std::int64_t seen = window.fetch(window.ghost(k), 2);
        if (seen >= 0)
            window.compareAndSwap(window.ghost(k), 2, seen, -1 - rank);
    }
};

struct OneSidedRows {
    GhostWindowView<std::int64_t> window;
    index row; ///< global
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        std::int64_t values[3];
        window.get(window.global(row), values);
        for (std::int64_t &value : values)
            value = -value;
        window.put(window.global(row), values);
    }
};

struct OneSidedNoSuchRow {
    GhostWindowView<std::int64_t> window;
    DNDS_HOST_DEVICE void operator()(index k) const { window.accumulate(window.ghost(window.ghostSize() + k), 0, 1); }
};

class GhostWindows : public test::InBothSpaces {
  protected:
    static void moveTo(Labels &u) {
        if (onDevice())
            u.toDevice();
    }
    /// Ranks whose ghosts include a row.
    static std::vector<int> readersOf(index row) {
        std::vector<int> readers;
        for (int rank = 0; rank < worldSize(); ++rank)
            if (row >= rank % 2 && (row - rank % 2) % (1 + rank % 2) == 0)
                readers.push_back(rank);
        return readers;
    }
    static void expectVisited(Labels &u) {
        u.father->toHost();
        const index first = u.father->globalMapping()->localBegin();
        for (index i = 0; i < u.father->size(); ++i) {
            const std::vector<int> readers = readersOf(first + i);
            const auto row = 100 * (first + i);
            ASSERT_EQ((*u.father)(i, 0), row + static_cast<std::int64_t>(readers.size()));
            ASSERT_EQ((*u.father)(i, 1), readers.empty() ? row + 1 : 1000000 + readers.back());
            const std::int64_t taken = -1 - (*u.father)(i, 2);
            ASSERT_TRUE(readers.empty() ? (*u.father)(i, 2) == row + 2
                                        : std::count(readers.begin(), readers.end(), taken) == 1);
        }
    }
};

TEST_P(GhostWindows, ChangeTheOwnersRowsFromTheHost) {
    Labels u;
    makeLabels(u);
    moveTo(u);
    {
        GhostWindow window(u, GetParam());
        for (index k = 0; k < u.son->size(); ++k) {
            window.accumulate(window.ghost(k), 0, 1);
            window.accumulate(window.local(u.father->size() + k), 1, 1000000 + worldRank(), AtomicOp::Max);
            const std::int64_t seen = window.fetch(window.ghost(k), 2);
            if (seen >= 0)
                window.compareAndSwap(window.ghost(k), 2, seen, -1 - worldRank());
        }
        window.barrier();
        EXPECT_TRUE(u.ghostsAreStale());
    }
    expectVisited(u);
}

TEST_P(GhostWindows, FetchTheValueBeforeEachOperation) {
    Labels u;
    makeLabels(u);
    moveTo(u);
    GhostWindow window(u, GetParam());
    if (u.father->size() > 0) {
        const std::int64_t before = 100 * u.father->globalMapping()->localBegin() + 1;
        EXPECT_EQ(window.fetchAndOp(window.local(0), 1, 5, AtomicOp::Set), before);
        EXPECT_EQ(window.fetchAndOp(window.local(0), 1, 2, AtomicOp::Add), 5);
        EXPECT_EQ(window.fetchAndOp(window.local(0), 1, 9, AtomicOp::Swap), 7);
        EXPECT_EQ(window.fetch(window.local(0), 1), 9);
    }
    window.barrier();
}

TEST_P(GhostWindows, ChangeTheOwnersRowsInKernels) {
    Labels u;
    makeLabels(u);
    moveTo(u);
    {
        GhostWindow window(u, GetParam());
        if (!allReached(window))
            GTEST_SKIP() << "ranks on several nodes";
        parallelFor(executor(), u.son->size(), OneSidedVisit{window.view(), worldRank()});
        executor().synchronize();
        window.barrier();
        const index chosen = u.father->globalMapping()->globalSize() - 1;
        if (worldRank() == 0) {
            std::int64_t before[3], after[3];
            window.get(window.global(chosen), before);
            parallelFor(executor(), 1, OneSidedRows{window.view(), chosen});
            executor().synchronize();
            window.quiet(); // the proxy, where there is one, has done it
            window.get(window.global(chosen), after);
            for (int j = 0; j < 3; ++j)
                EXPECT_EQ(after[j], -before[j]);
            window.put(window.global(chosen), before);
        }
        window.barrier();
    }
    expectVisited(u);
}

TEST_P(GhostWindows, RowsThatDoNotExistAreErrors) {
    Labels u;
    makeLabels(u);
    moveTo(u);
    GhostWindow window(u, GetParam());
    std::int64_t row[3] = {};
    expectContains(refused<IndexError>([&] { window.get(window.ghost(u.son->size()), row); }), "ghosts here are");
    refused<IndexError>([&] { window.get(window.ghost(-1), row); });
    refused<IndexError>([&] { window.get(window.global(u.father->globalMapping()->globalSize()), row); });
    expectContains(refused<IndexError>([&] { window.accumulate(window.global(0), 3, 1); }), ": rows have 3 elements");
    parallelFor(executor(), 1, OneSidedNoSuchRow{window.view()});
    executor().synchronize();
    expectContains(refused<IndexError>([&] { window.quiet(); }), "in a kernel: a window over 'labels'");
    window.barrier();
    u.father->resize(u.father->size() + 1);
    expectContains(refused<StateError>([&] { window.get(window.global(0), row); }), "make the window again");
    window.quiet();
}

INSTANTIATE_TEST_SUITE_P(InBothSpaces, GhostWindows, testing::Values(MemorySpace::Host, MemorySpace::Device),
                         test::spaceName);

TEST(GhostWindow, NeedsAMappingAndRowsOfOneWidth) {
    ArrayPair<ParArray<double, NonUniformSize>> rows;
    rows.initPair("rows", CommunicatorView(MPI_COMM_WORLD));
    rows.father->resize(2, [](index i) { return static_cast<rowsize>(i + 1); });
    rows.father->compress();
    rows.transAttach();
    expectContains(messageOnAll<StateError>([&] { GhostWindow window(rows); }), "createGhostMapping");
    rows.trans.createFatherGlobalMapping();
    rows.trans.createGhostMapping(std::vector<index>{0});
    rows.trans.createMPITypes();
    expectContains(messageOnAll<LayoutError>([&] { GhostWindow window(rows); }), "rows of one width");
}

TEST(GhostWindow, IsInOneSpaceOnAllRanks) {
    if (worldSize() == 1)
        GTEST_SKIP() << "for several ranks";
    Labels u;
    makeLabels(u);
    const MemorySpace mine = worldRank() == 0 ? MemorySpace::Device : MemorySpace::Host;
    expectContains(messageOnAll<ArgumentError>([&] { GhostWindow window(u, mine); }), "give all the same");
    GhostWindow window(u); // nothing was moved
    refused<IndexError>([&] { window.accumulate({worldRank(), 1000}, 0, 1); });
    window.barrier();
}

TEST(GhostWindow, BitsAreThoseOfIntegers) {
    ArrayPair<ParArray<double, 1>> u;
    u.initPair("u", CommunicatorView(MPI_COMM_WORLD));
    u.father->resize(2);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    u.trans.createGhostMapping(std::vector<index>{0});
    u.trans.createMPITypes();
    GhostWindow window(u);
    expectContains(refused<ArgumentError>([&] { window.accumulate(window.local(0), 0, 1.0, AtomicOp::And); }),
                   "integers");
    window.barrier();
}

TEST(GhostWindow, IsRefusedHoweverManyMappingsFollow) {
    Labels u;
    makeLabels(u);
    GhostWindow window(u);
    refused<IndexError>([&] { window.accumulate({0, index{1} << 61}, 0, 1); }); // beyond 64 bits in bytes
    window.barrier();
    for (index count = 0; count < 40; ++count) { // allocators reuse the addresses of destroyed patterns
        std::vector<index> wanted;
        for (index row = 0; row < std::min(count % 4, u.father->globalMapping()->globalSize()); ++row)
            wanted.push_back(row);
        u.trans.createGhostMapping(wanted);
        expectContains(refused<StateError>([&] {
                           window.accumulate({worldRank(), 0}, 0, 1);
                       }),
                       "another ghost mapping");
        EXPECT_THROW(window.view(), StateError) << "mapping " << count;
    }
    window.barrier();
}

TEST(GhostWindow, SumsAreThoseOfAPush) {
    ArrayPair<ParArray<double, 2>> u;
    u.initPair("u", CommunicatorView(MPI_COMM_WORLD));
    u.father->resize(20);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    std::mt19937_64 random(test::rankSeed());
    std::vector<index> wanted;
    for (int k = 0; k < 15; ++k)
        wanted.push_back(static_cast<index>(random() % static_cast<unsigned>(20 * worldSize())));
    u.trans.createGhostMapping(wanted);
    u.trans.createMPITypes();
    ArrayPair<ParArray<double, 2>> pushed;
    pushed.clone(u);
    for (index k = 0; k < u.son->size(); ++k)
        for (rowsize j = 0; j < 2; ++j)
            (*pushed.son)(k, j) = 0.25 * static_cast<double>(random() % 1000); // sums are exact
    {
        GhostWindow window(u);
        for (index k = 0; k < u.son->size(); ++k)
            window.accumulateRow(window.ghost(k), (*pushed.son)[k]);
        window.barrier();
    }
    pushed.trans.pushOnce(PushOp::Sum);
    for (index i = 0; i < u.father->size(); ++i)
        for (rowsize j = 0; j < 2; ++j)
            ASSERT_EQ((*u.father)(i, j), (*pushed.father)(i, j));
    u.trans.pullOnce(); // exchanges find the rows where they are now
    pushed.trans.pullOnce();
    EXPECT_EQ(u.hash(), pushed.hash());
}

} // namespace
} // namespace DNDS
