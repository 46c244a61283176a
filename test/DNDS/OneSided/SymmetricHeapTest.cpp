#include "HeapTest.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Mpi/NodeMemory.hpp"
#include "DNDS/OneSided/Window.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::next;
using test::previous;
using test::refused;
using test::worldRank;
using test::worldSize;

TEST(SymmetricHeap, OffsetsAreEqualEverywhereAndMemoryIsReused) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 16);
    std::mt19937 random(static_cast<unsigned>(test::seed())); // the same on all ranks
    std::vector<SymmetricPointer<double>> live;
    for (int k = 0; k < 60; ++k) {
        if (!live.empty() && random() % 2 == 0) {
            const std::size_t chosen = random() % live.size();
            heap.free(live[chosen]);
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
        } else {
            live.push_back(heap.allocate<double>(random() % 200));
            const auto offsets = CommunicatorView(MPI_COMM_WORLD).allGather(live.back().offset());
            EXPECT_EQ(std::vector<std::uint64_t>(offsets.size(), live.back().offset()), offsets);
            EXPECT_EQ(live.back().offset() % 128, 0U);
        }
    }
    for (const auto &pointer : live)
        heap.free(pointer);
    EXPECT_EQ(heap.freeBytes(), std::size_t{1} << 16);
    EXPECT_EQ(heap.largestFree(), std::size_t{1} << 16) << "pieces are joined";
}

TEST(SymmetricHeap, ExhaustionSaysHowMuchThereIs) {
    SymmetricHeap heap(MPI_COMM_WORLD, 8192);
    const auto first = heap.allocate<char>(1024);
    const auto second = heap.allocate<char>(1024);
    heap.free(first);
    const std::string text = messageOnAll<MemoryError>([&] { heap.allocate<double>(1 << 20); });
    expectContains(text, "no room for 8388608 bytes");
    expectContains(text, "7040 of 8192 bytes are free, the largest piece has 5888");
    heap.putValue(second, 'a', next()); // still works
}

TEST(SymmetricHeap, MoreThanTheNodeHasIsRefusedBeforeItIsTaken) {
    if (availableMemory().machine == AvailableMemory::unlimited)
        GTEST_SKIP() << "the system does not say what it has";
    constexpr std::size_t much = std::size_t{1} << 50U;
    std::string text = messageOnAll<MemoryError>(
        [] { SymmetricHeap heap(MPI_COMM_WORLD, much, MemorySpace::Host, "the heap of the test"); });
    expectContains(text, "the heap of the test: no room for 1125899906842624 bytes: with what the other ranks");
    expectContains(text, " are available ");
    text = messageOnAll<MemoryError>([] { // for all, where one rank asks for it
        static_cast<void>(Window::allocate(MPI_COMM_WORLD, worldRank() == 0 ? much : 8, 8));
    });
    expectContains(text, " are available ");
}

TEST(SymmetricHeap, AllocationsThatDifferAreRefusedOnAllRanks) {
    SymmetricHeap heap(MPI_COMM_WORLD, 8192);
    if (worldSize() > 1) {
        const std::string text =
            messageOnAll<ArgumentError>([&] { heap.allocate<int>(static_cast<std::size_t>(10 + worldRank())); });
        expectContains(text, "rank 0 allocates 40 bytes, but rank ");
        messageOnAll<ArgumentError>(
            [] { SymmetricHeap other(MPI_COMM_WORLD, static_cast<std::size_t>(1000 + worldRank())); });
        const auto a = heap.allocate<int>(1);
        const auto b = heap.allocate<int>(1);
        messageOnAll<ArgumentError>([&] { heap.free(worldRank() == 0 ? a : b); });
    }
    const auto fine = heap.allocate<int>(3);
    heap.free(fine);
    messageOnAll<StateError>([&] { heap.free(fine); });
}

TEST(SymmetricHeap, WrongAccessesSayWhatAndWhere) {
    SymmetricHeap heap(MPI_COMM_WORLD, 8192, MemorySpace::Host, "the heap of the test");
    SymmetricHeap other(MPI_COMM_WORLD, 8192);
    const auto tenWords = heap.allocate<int>(10);
    const auto freed = heap.allocate<int>(10);
    const auto foreign = other.allocate<int>(10);
    heap.free(freed);
    struct Packed {
        char bytes[4];
    };
    const auto four = heap.allocate<Packed>(4);
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<int> values(20);
    const int n = worldSize();
    std::string text = messageOf<IndexError>([&] { heap.put(tenWords, values.data(), 10, n); });
    expectContains(text, fmt::format("the heap of the test: put of 40 bytes"));
    expectContains(text, fmt::format("of rank {}: ranks are 0 to {}", n, n - 1));
    text = messageOf<IndexError>([&] { heap.put(tenWords + 5, values.data(), 6, 0); });
    expectContains(
        text, "the heap of the test: put of 6 elements of 4 bytes from element 5 of an allocation of 10 on rank 0");
    text = messageOf<IndexError>([&] { heap.get(values.data(), tenWords - 1, 1, 0); });
    expectContains(text, "get of 1 elements of 4 bytes from element -1 of an allocation of 10");
    messageOf<IndexError>([&] { heap.get(values.data(), tenWords, SIZE_MAX / 2, 0); });
    messageOf<IndexError>([&] { heap.putStrided(tenWords, 5, values.data(), 1, 3, 0); });
    messageOf<ArgumentError>([&] { heap.putStrided(tenWords, 1, values.data(), 0, 3, 0); });
    messageOf<ArgumentError>([&] { heap.getStrided(values.data(), 0, tenWords, 1, 3, 0); });
    messageOf<IndexError>([&] { heap.putValue(tenWords, 1, -1); });
    expectContains(messageOf<StateError>([&] { heap.putValue(freed, 1, 0); }), "this memory was freed");
    expectContains(messageOf<ArgumentError>([&] { heap.putValue(foreign, 1, 0); }), "another heap");
    messageOf<ArgumentError>([&] { heap.putValue(SymmetricPointer<int>{}, 1, 0); });
    const auto shifted = std::bit_cast<SymmetricPointer<std::int64_t>>(four + 1);
    expectContains(messageOf<ArgumentError>([&] { heap.fetchAdd(shifted, 1, 0); }), "multiples of their size");
    recover(MPI_COMM_WORLD);
    heap.barrier();
}

TEST(SymmetricHeap, AddressesAreGivenWhereMemoryIsMapped) {
    SymmetricHeap heap(MPI_COMM_WORLD, 8192);
    const auto values = heap.allocate<int>(4);
    const NodeTopology &node = CommunicatorContext::of(MPI_COMM_WORLD)->node();
    for (int rank = 0; rank < worldSize(); ++rank) {
        const bool mapped = rank == worldRank() || (node.sameNode(rank) && node.arena);
        EXPECT_EQ(values.at(rank) != nullptr, mapped) << heap.path(rank);
    }
    for (int k = 0; k < 4; ++k)
        values.local()[k] = 10 * worldRank() + k;
    heap.barrier();
    for (int rank = 0; rank < worldSize(); ++rank) {
        EXPECT_EQ(heap.getValue(values + 3, rank), 10 * rank + 3);
        if (values.at(rank) != nullptr) {
            EXPECT_EQ(*(values + 2).at(rank), 10 * rank + 2);
        }
    }
    EXPECT_EQ((values + 3) - values, 3);
    heap.barrier();
}

TEST(SymmetricHeap, PutsAndGetsOfAllSizesMoveTheirBytes) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 20);
    const auto inbox = heap.allocate<unsigned char>(300000);
    const auto value = [](int from, std::size_t k) {
        return static_cast<unsigned char>(static_cast<std::size_t>(from) * 31 + k * 7);
    };
    for (const std::size_t n : {0U, 1U, 3U, 8U, 63U, 64U, 65U, 4096U, 299998U})
        for (const std::size_t shift : {0U, 1U}) {
            std::vector<unsigned char> sent(n);
            for (std::size_t k = 0; k < n; ++k)
                sent[k] = value(worldRank(), k);
            heap.put(inbox + static_cast<std::ptrdiff_t>(shift), sent.data(), n, next());
            std::fill(sent.begin(), sent.end(), static_cast<unsigned char>(0)); // may be changed
            heap.barrier();
            for (std::size_t k = 0; k < n; ++k)
                ASSERT_EQ(inbox.local()[shift + k], value(previous(), k)) << n << " bytes, byte " << k;
            std::vector<unsigned char> got(n), later(n);
            heap.get(got.data(), inbox + static_cast<std::ptrdiff_t>(shift), n, next());
            heap.getNbi(later.data(), inbox + static_cast<std::ptrdiff_t>(shift), n, next());
            heap.quiet();
            for (std::size_t k = 0; k < n; ++k)
                ASSERT_TRUE(got[k] == value(worldRank(), k) && later[k] == got[k]);
            heap.barrier();
        }
}

TEST(SymmetricHeap, StridedCopiesLeaveTheGaps) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 16);
    const auto grid = heap.allocate<double>(100);
    std::fill(grid.local(), grid.local() + 100, -1.0);
    heap.barrier();
    std::vector<double> column(20);
    std::iota(column.begin(), column.end(), 100.0 * worldRank());
    heap.putStrided(grid + 3, 10, column.data(), 2, 10, next());
    heap.barrier();
    for (std::ptrdiff_t k = 0; k < 100; ++k)
        ASSERT_EQ(grid.local()[k], k % 10 == 3 ? 100.0 * previous() + 2.0 * static_cast<double>(k / 10) : -1.0);
    std::vector<double> got(30, 7.0);
    heap.getStrided(got.data(), 3, grid + 3, 10, 10, next());
    for (std::size_t k = 0; k < 30; ++k)
        ASSERT_EQ(got[k], k % 3 == 0 ? 100.0 * worldRank() + 2.0 * static_cast<double>(k / 3) : 7.0);
    heap.barrier();
    refused<ArgumentError>([&] { heap.putStrided(grid, 0, column.data(), 1, 2, 0); });
}

TEST(SymmetricHeap, SignalsCoverWhatWasPut) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 16);
    constexpr int parts = 64;
    const auto inbox = heap.allocate<std::int64_t>(parts);
    const auto extra = heap.allocate<std::int64_t>(1);
    const auto filled = heap.allocate<std::uint64_t>(1);
    const auto taken = heap.allocate<std::uint64_t>(1);
    *filled.local() = *taken.local() = 0;
    heap.barrier();
    for (std::uint64_t round = 1; round <= 200; ++round) {
        std::vector<std::int64_t> sent(parts, static_cast<std::int64_t>(round) * 1000 + worldRank());
        heap.putValue(extra, static_cast<std::int64_t>(round), next());
        heap.fence();
        const bool add = round % 2 == 0;
        heap.putSignal(inbox, sent.data(), parts, filled, add ? 1 : round, add ? SignalOp::Add : SignalOp::Set, next());
        EXPECT_EQ(heap.waitUntil(filled, Comparison::GreaterOrEqual, round), round);
        for (int k = 0; k < parts; ++k)
            ASSERT_EQ(inbox.local()[k], static_cast<std::int64_t>(round) * 1000 + previous());
        ASSERT_EQ(*extra.local(), static_cast<std::int64_t>(round));
        heap.add(taken, 1, previous());
        heap.waitUntil(taken, Comparison::Equal, round);
    }
    EXPECT_TRUE(heap.test(taken, Comparison::Equal, 200));
    EXPECT_FALSE(heap.test(taken, Comparison::Less, 200));
    heap.barrier();
}

TEST(SymmetricHeap, WaitsOfExchangesServeAtomicOperations) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 12);
    const auto word = heap.allocate<std::int64_t>(1);
    *word.local() = 0;
    ArrayPair<ParArray<real, 1>> u;
    u.initPair("u", CommunicatorView(MPI_COMM_WORLD));
    u.father->resize(4);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    std::vector<index> wanted{(worldRank() * 4 + 4) % (4 * worldSize())};
    u.trans.createGhostMapping(wanted);
    u.trans.createMPITypes();
    u.trans.initPersistentPull();
    heap.barrier();
    for (int step = 0; step < 20; ++step) {
        if (worldRank() % 2 == 0) // the odd ranks are in their waits meanwhile
            heap.fetchAdd(word, 1, next());
        u.trans.startPersistentPull();
        u.trans.waitPersistentPull();
    }
    heap.barrier();
    EXPECT_EQ(*word.local(), previous() % 2 == 0 ? 20 : 0);
    heap.barrier();
}

TEST(SymmetricHeap, PointersOfAHeapThatIsGoneAreStrangers) {
    auto heap = std::make_unique<SymmetricHeap>(MPI_COMM_WORLD, 8192);
    const auto old = heap->allocate<int>(8);
    heap.reset();
    heap = std::make_unique<SymmetricHeap>(MPI_COMM_WORLD, 8192); // likely at the same place
    const auto pointer = heap->allocate<int>(8);
    heap->putValue(pointer, 5, worldRank());
    refused<Error>([&] { heap->putValue(old, 77, worldRank()); });
    EXPECT_EQ(heap->getValue(pointer, worldRank()), 5);
    messageOnAll<StateError>([&] { heap->free(old); });
    heap->free(pointer);
}

TEST(SymmetricHeap, CannotBeUsedAfterItWasMovedFrom) {
    SymmetricHeap heap(MPI_COMM_WORLD, 8192);
    const auto pointer = heap.allocate<int>(8);
    SymmetricHeap taken(std::move(heap));
    taken.putValue(pointer, 1, worldRank());
    expectContains(messageOf<StateError>([&] { heap.putValue(pointer, 1, 0); }), "moved from"); // NOLINT: on purpose
    expectContains(messageOf<StateError>([&] { (void)heap.freeBytes(); }), "moved from");
    Window window = Window::allocate(MPI_COMM_WORLD, 8, 8);
    const Window owner = std::move(window);
    const int one = 1;
    expectContains(messageOf<StateError>([&] { window.put(&one, 1, 0, 0); }), "moved from"); // NOLINT: on purpose
    expectContains(messageOf<StateError>([&] { (void)window.rank(); }), "moved from");
    window = Window::allocate(MPI_COMM_WORLD, 8, 8);
    EXPECT_EQ(window.rank(), worldRank()) << "it may be assigned to";
    messageOf<StateError>([&] { heap.barrier(); });
    messageOf<StateError>([&] { heap.quiet(); });
    messageOf<StateError>([&] { static_cast<void>(heap.allocate<int>(1)); });
    messageOf<StateError>([&] { static_cast<void>(heap.view()); });
    taken.barrier();
}

/// Between nodes MPI is called, which aborts the job for a freed communicator.
TEST(SymmetricHeap, CannotBeUsedAfterItsCommunicatorWasFreed) {
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    SymmetricHeap heap(mine, 8192), other(MPI_COMM_WORLD, 8192);
    const auto word = heap.allocate<std::int64_t>(1);
    heap.set(word, 0, worldRank());
    heap.barrier();
    MPI_Comm_free(&mine);
    if (word.at(next()) == nullptr) {
        expectContains(messageOf<StateError>([&] { heap.fetchAdd(word, 1, next()); }), "communicator");
        messageOf<StateError>([&] { heap.putValue(word, 1, next()); });
        messageOf<StateError>([&] { static_cast<void>(heap.getValue(word, next())); });
    }
    messageOf<StateError>([&] { heap.barrier(); });
    other.barrier(); // serves all heaps
}

} // namespace
} // namespace DNDS
