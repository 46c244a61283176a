// The proxy of heaps: the same kernels with and without it, in host memory and in device memory.

#include "HeapTest.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/OneSided/Window.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using test::filled;
using test::next;
using test::own;
using test::worldRank;
using test::worldSize;

/// Without any wait: many more requests than the ring has slots.
struct OneSidedProxyFlood {
    HeapView heap;
    SymmetricPointer<std::int64_t> table, sum;
    index each;
    int rank;
    DNDS_HOST_DEVICE void operator()(index k) const {
        for (index i = 0; i < each; ++i) {
            heap.putValue(table + k, i, rank);
            heap.fence();
            heap.add(sum, 1, rank);
        }
    }
};

struct OneSidedProxySend {
    HeapView heap;
    SymmetricPointer<std::int64_t> inbox, values;
    SymmetricPointer<std::uint64_t> filled;
    index count;
    std::int64_t round;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        std::int64_t *const mine = heap.local(values);
        for (index k = 0; k < count; ++k)
            mine[k] = round * 1000 + k;
        heap.putSignal(inbox, mine, count, filled, 1, SignalOp::Add, rank);
    }
};

/// The same with a fence and a word; the second word is seen after the first.
struct OneSidedProxyOrdered {
    HeapView heap;
    SymmetricPointer<std::int64_t> first, second;
    std::int64_t rounds;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        for (std::int64_t k = 1; k <= rounds; ++k) {
            heap.set(first, k, rank);
            heap.fence();
            heap.set(second, k, rank);
            heap.fence();
        }
    }
};

struct OneSidedProxyWrong {
    HeapView heap;
    SymmetricPointer<std::int64_t> words;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const { heap.putValue(words + 8, 1, rank); }
};

class Proxies : public test::InBothSpaces {
  protected:
    void SetUp() override {
        if (onDevice() && Device::available() && !test::onOneNode() && !mpiServesAllThreads())
            GTEST_SKIP() << "kernels in device memory need MPI_THREAD_MULTIPLE to reach ranks of other nodes";
        InBothSpaces::SetUp();
    }
};

TEST(ProxiesAskedFor, AreUsedForAllOtherRanks) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14);
    const auto word = heap.allocate<std::int64_t>(1);
    const HeapView view = heap.view();
    for (int rank = 0; rank < worldSize(); ++rank) {
        EXPECT_TRUE(view.reaches(rank));
        EXPECT_EQ(view.at(word, rank) == nullptr, rank != worldRank())
            << "this program runs with DNDS_ONE_SIDED_PROXY=1";
    }
    EXPECT_FALSE(view.reaches(worldSize()));
    heap.barrier();
}

TEST_P(Proxies, AllOperationsOnAllRanks) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 19, GetParam());
    test::testAllOperations(heap, executor());
    test::testNarrowWords(heap, executor());
    test::testTickets(heap, executor());
    test::testLongCopiesAndStrides(heap, executor());
}

TEST_P(Proxies, MoreRequestsThanTheRingHolds) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14, GetParam());
    constexpr index threads = 8, each = 60;
    const auto table = filled<std::int64_t>(heap, threads, -1);
    const auto sum = filled<std::int64_t>(heap, 1, 0);
    heap.barrier();
    parallelFor(executor(), threads, OneSidedProxyFlood{heap.view(), table, sum, each, next()});
    executor().synchronize();
    heap.barrier();
    EXPECT_EQ(own(heap, table, threads), std::vector<std::int64_t>(threads, each - 1)) << "in order";
    EXPECT_EQ(own(heap, sum, 1)[0], threads * each);
    heap.barrier();
}

TEST_P(Proxies, WhoSeesTheSignalSeesWhatWasPut) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 17, GetParam());
    constexpr index count = 2800; // six slots
    const auto inbox = filled<std::int64_t>(heap, count, 0);
    const auto values = filled<std::int64_t>(heap, count, 0);
    const auto signal = filled<std::uint64_t>(heap, 1, 0);
    heap.barrier();
    for (std::int64_t round = 1; round <= 10; ++round) {
        parallelFor(executor(), 1, OneSidedProxySend{heap.view(), inbox, values, signal, count, round, next()});
        heap.waitUntil(signal, Comparison::Equal, static_cast<std::uint64_t>(round));
        const auto got = own(heap, inbox, count);
        for (index k = 0; k < count; ++k)
            ASSERT_EQ(got[static_cast<std::size_t>(k)], round * 1000 + k);
        executor().synchronize();
        heap.barrier();
    }
}

TEST_P(Proxies, AFenceOrders) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14, GetParam());
    constexpr std::int64_t rounds = 200;
    const auto first = filled<std::int64_t>(heap, 1, 0);
    const auto second = filled<std::int64_t>(heap, 1, 0);
    heap.barrier();
    parallelFor(executor(), 1, OneSidedProxyOrdered{heap.view(), first, second, rounds, next()});
    for (std::int64_t seen = 0; seen < rounds;) {
        seen = heap.fetch(second, worldRank());
        ASSERT_GE(heap.fetch(first, worldRank()), seen);
        heap.progress();
    }
    executor().synchronize();
    heap.barrier();
}

TEST_P(Proxies, WrongAccessesAreSkipped) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14, GetParam());
    const auto words = filled<std::int64_t>(heap, 8, 5);
    heap.barrier();
    parallelFor(executor(), 3, OneSidedProxyWrong{heap.view(), words, next()});
    executor().synchronize();
    test::expectContains(test::refused<IndexError>([&] { heap.checkKernels(); }), "in a kernel");
    heap.barrier();
    EXPECT_EQ(own(heap, words, 8), std::vector<std::int64_t>(8, 5));
}

/// Threads of the host are as good as those of a kernel.
TEST(ProxiesOfThreads, ManyThreadsAtOnce) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 16);
    constexpr int threads = 6;
    constexpr index each = 300;
    const auto counter = heap.allocate<std::int64_t>(1);
    const auto places = heap.allocate<std::int64_t>(threads);
    *counter.local() = 0;
    heap.barrier();
    const int target = next();
    std::vector<std::thread> workers;
    std::vector<int> wrong(threads, 0);
    std::atomic<int> left{threads};
    for (int t = 0; t < threads; ++t)
        workers.emplace_back([&, t, view = heap.view()] {
            for (index k = 0; k < each; ++k) {
                view.putValue(places + t, k, target);
                view.add(counter, 1, target);
                view.quiet();
                if (view.getValue(places + t, target) != k)
                    ++wrong[static_cast<std::size_t>(t)];
            }
            --left;
        });
    while (left > 0) // without MPI_THREAD_MULTIPLE, this thread serves them
        if (!heap.progress())
            std::this_thread::yield();
    for (std::thread &thread : workers)
        thread.join();
    heap.barrier();
    EXPECT_EQ(std::count(wrong.begin(), wrong.end(), 0), threads);
    EXPECT_EQ(*counter.local(), threads * each);
    heap.barrier();
}

/// The threads of this process; 0 where /proc does not say.
int proxyTestThreads() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("Threads:", 0) == 0)
            return std::stoi(line.substr(8));
    return 0;
}

TEST(ProxiesOfManyWindows, ShareAThread) {
    constexpr int count = 200;
    std::deque<Window> windows;
    windows.push_back(Window::allocate(MPI_COMM_WORLD, 8, 8));
    const int threads = proxyTestThreads();
    while (windows.size() < count)
        windows.push_back(Window::allocate(MPI_COMM_WORLD, 8, 8));
    EXPECT_EQ(proxyTestThreads(), threads);
    for (std::size_t k = 0; k < count; ++k) {
        const auto value = static_cast<std::int64_t>(k) + worldRank();
        windows[k].lock(LockType::Shared, next());
        const WindowView view = windows[k].view();
        view.accumulate(&value, 1, next(), 0, AccumulateOp::Sum);
        EXPECT_EQ(view.fetchAndOp(std::int64_t{0}, next(), 0, AccumulateOp::NoOp), value);
        windows[k].unlock(next());
    }
    for (std::size_t k = 0; k < count; ++k) {
        windows[k].barrier();
        EXPECT_EQ(*static_cast<const std::int64_t *>(windows[k].own()),
                  static_cast<std::int64_t>(k) + test::previous());
    }
    while (!windows.empty())
        windows.pop_front();
}

INSTANTIATE_TEST_SUITE_P(InBothSpaces, Proxies, testing::Values(MemorySpace::Host, MemorySpace::Device),
                         test::spaceName);

} // namespace
} // namespace DNDS
