// The proxy of heaps: the same kernels with and without it, in host memory and in device memory.

#include "DNDS/OneSided/SymmetricHeap.hpp"
#include "DNDS/OneSided/Window.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using test::worldRank;
using test::worldSize;

int next() { return (worldRank() + 1) % worldSize(); }
int previous() { return (worldRank() + worldSize() - 1) % worldSize(); }

bool oneNode() {
    const NodeTopology &node = CommunicatorContext::of(MPI_COMM_WORLD)->node();
    for (int rank = 0; rank < worldSize(); ++rank)
        if (!node.sameNode(rank))
            return false;
    return true;
}

/// Every operation on every rank; what comes back is checked where it arrives.
struct OneSidedProxyScatter {
    HeapView heap;
    SymmetricPointer<std::int64_t> table; ///< [ranks x threads]
    SymmetricPointer<std::int64_t> sum;
    SymmetricPointer<double> real;
    SymmetricPointer<std::int32_t> largest, smallest;
    SymmetricPointer<std::uint32_t> bits, fewer;
    SymmetricPointer<std::int64_t> wrong; ///< of this rank
    index threads;
    DNDS_HOST_DEVICE void operator()(index k) const {
        for (int rank = 0; rank < heap.ranks(); ++rank) {
            const SymmetricPointer<std::int64_t> mine = table + (heap.rank() * threads + k);
            heap.putValue(mine, 1000 * heap.rank() + k, rank);
            heap.add(sum, k, rank);
            heap.add(real, 0.5, rank);
            heap.max(largest, static_cast<std::int32_t>(k), rank);
            heap.min(smallest, static_cast<std::int32_t>(-k), rank);
            heap.bitOr(bits, 1U << static_cast<unsigned>(k % 32), rank);
            heap.bitAnd(fewer, ~(1U << static_cast<unsigned>(k % 32)), rank);
            heap.quiet();
            bool well = heap.getValue(mine, rank) == 1000 * heap.rank() + k;
            well = well && heap.fetch(mine, rank) == 1000 * heap.rank() + k;
            well = well && heap.swap(mine, 5, rank) == 1000 * heap.rank() + k;
            well = well && heap.compareSwap(mine, 6, 7, rank) == 5; // fails
            well = well && heap.compareSwap(mine, 5, 8, rank) == 5;
            well = well && heap.fetchAdd(mine, 2, rank) == 8;
            heap.set(mine, 3000 * heap.rank() + k, rank);
            if (!well)
                heap.add(wrong, 1, heap.rank());
        }
    }
};

struct OneSidedProxyTickets {
    HeapView heap;
    SymmetricPointer<std::uint32_t> counter, taken;
    DNDS_HOST_DEVICE void operator()(index k) const {
        heap.local(taken)[k] = heap.fetchAdd(counter, 1U, heap.ranks() - 1);
    }
};

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

/// Long copies by lanes, forth as they are and back with strides.
struct OneSidedProxyLanes {
    HeapView heap;
    SymmetricPointer<float> from, to, gathered;
    index count, lanes;
    int rank;
    DNDS_HOST_DEVICE void operator()(index k) const {
        heap.put(to, heap.local(from), count, rank, Lane{k, lanes});
        heap.getStrided(heap.local(gathered), 1, from, 2, count / 2, rank, Lane{k, lanes});
        heap.putStrided(to + count, 3, heap.local(from), 1, 10, rank, Lane{k, lanes});
    }
};

struct OneSidedProxyLongGet {
    HeapView heap;
    SymmetricPointer<float> from, here;
    index count;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const { heap.get(heap.local(here), from, count, rank); }
};

struct OneSidedProxySend {
    HeapView heap;
    SymmetricPointer<std::int64_t> inbox, values;
    SymmetricPointer<std::uint64_t> filled;
    index count;
    std::int64_t round;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        for (index k = 0; k < count; ++k)
            heap.local(values)[k] = round * 1000 + k;
        heap.putSignal(inbox, heap.local(values), count, filled, 1, SignalOp::Add, rank);
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

struct OneSidedProxyOnWindow {
    WindowView window;
    DNDS_HOST_DEVICE void operator()(index k) const {
        for (int rank = 0; rank < window.ranks(); ++rank) {
            const std::int64_t one = 1;
            window.accumulate(&one, 1, rank, 0, AccumulateOp::Sum);
            window.fetchAndOp(static_cast<std::int64_t>(k), rank, 1, AccumulateOp::Max);
            window.put(&one, 1, rank, 2 + window.rank());
            window.flush(rank);
        }
    }
};

class Proxies : public testing::TestWithParam<MemorySpace> {
  protected:
    void SetUp() override {
        if (!onDevice())
            return;
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
        if (!oneNode())
            GTEST_SKIP() << "heaps in device memory need ranks of one node";
        stream_ = std::make_unique<Device::Stream>();
    }
    static bool onDevice() { return GetParam() == MemorySpace::Device; }
    Executor executor() const { return onDevice() ? Executor::device(*stream_) : Executor::host(); }
    template <class T>
    static std::vector<T> own(SymmetricHeap &heap, SymmetricPointer<T> pointer, std::size_t count) {
        std::vector<T> values(count);
        heap.get(values.data(), pointer, count, worldRank());
        return values;
    }
    template <class T>
    static SymmetricPointer<T> filled(SymmetricHeap &heap, std::size_t count, T value) {
        const auto pointer = heap.allocate<T>(count);
        const std::vector<T> values(count, value);
        heap.put(pointer, values.data(), count, worldRank());
        return pointer;
    }

    std::unique_ptr<Device::Stream> stream_;
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
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 18, GetParam());
    constexpr index threads = 70;
    const auto n = static_cast<std::size_t>(worldSize());
    const auto table = filled<std::int64_t>(heap, n * threads, -1);
    const auto sum = filled<std::int64_t>(heap, 1, 0);
    const auto wrong = filled<std::int64_t>(heap, 1, 0);
    const auto real = filled<double>(heap, 1, 0);
    const auto largest = filled<std::int32_t>(heap, 1, -5);
    const auto smallest = filled<std::int32_t>(heap, 1, 5);
    const auto bits = filled<std::uint32_t>(heap, 1, 0);
    const auto fewer = filled<std::uint32_t>(heap, 1, ~0U);
    heap.barrier();
    parallelFor(executor(), threads,
                OneSidedProxyScatter{heap.view(), table, sum, real, largest, smallest, bits, fewer, wrong, threads});
    executor().synchronize();
    heap.barrier();
    const auto got = own(heap, table, n * threads);
    for (std::size_t k = 0; k < got.size(); ++k)
        ASSERT_EQ(got[k], static_cast<std::int64_t>(3000 * (k / threads) + k % threads));
    EXPECT_EQ(own(heap, wrong, 1)[0], 0);
    EXPECT_EQ(own(heap, sum, 1)[0], worldSize() * threads * (threads - 1) / 2);
    EXPECT_EQ(own(heap, real, 1)[0], 0.5 * static_cast<double>(worldSize() * threads));
    EXPECT_EQ(own(heap, largest, 1)[0], threads - 1);
    EXPECT_EQ(own(heap, smallest, 1)[0], 1 - threads);
    EXPECT_EQ(own(heap, bits, 1)[0], ~0U);
    EXPECT_EQ(own(heap, fewer, 1)[0], 0U);
    heap.barrier();
}

TEST_P(Proxies, TicketsAreGivenOnce) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 16, GetParam());
    constexpr std::size_t threads = 400;
    const auto counter = filled<std::uint32_t>(heap, 1, 0);
    const auto taken = filled<std::uint32_t>(heap, threads, 0);
    heap.barrier();
    parallelFor(executor(), threads, OneSidedProxyTickets{heap.view(), counter, taken});
    executor().synchronize();
    heap.barrier();
    std::vector<bool> seen(threads * static_cast<std::size_t>(worldSize()));
    for (int rank = 0; rank < worldSize(); ++rank) {
        std::vector<std::uint32_t> tickets(threads);
        heap.get(tickets.data(), taken, threads, rank);
        for (const std::uint32_t ticket : tickets) {
            ASSERT_LT(ticket, seen.size());
            ASSERT_FALSE(seen[ticket]);
            seen[ticket] = true;
        }
    }
    heap.barrier();
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

TEST_P(Proxies, LongCopiesAndStrides) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 17, GetParam());
    constexpr std::size_t n = 3001; // several slots, and a part of one
    std::vector<float> values(n);
    for (std::size_t k = 0; k < n; ++k)
        values[k] = static_cast<float>(k) + 4000.0F * static_cast<float>(worldRank());
    const auto from = heap.allocate<float>(n);
    const auto to = filled<float>(heap, n + 30, 0);
    const auto gathered = filled<float>(heap, n, 0);
    const auto here = filled<float>(heap, n, 0);
    heap.put(from, values.data(), n, worldRank());
    heap.barrier();
    parallelFor(executor(), 32, OneSidedProxyLanes{heap.view(), from, to, gathered, n, 32, next()});
    parallelFor(executor(), 1, OneSidedProxyLongGet{heap.view(), from, here, n, next()});
    executor().synchronize();
    heap.barrier();
    const auto got = own(heap, to, n + 30);
    const auto strided = own(heap, gathered, n);
    const auto whole = own(heap, here, n);
    const float after = 4000.0F * static_cast<float>(next()), before = 4000.0F * static_cast<float>(previous());
    for (std::size_t k = 0; k < n; ++k) {
        ASSERT_EQ(got[k], static_cast<float>(k) + before);
        ASSERT_EQ(strided[k], k < n / 2 ? static_cast<float>(2 * k) + after : 0.0F);
        ASSERT_EQ(whole[k], static_cast<float>(k) + after);
    }
    for (std::size_t k = 0; k < 30; ++k)
        ASSERT_EQ(got[n + k], k % 3 == 0 ? static_cast<float>(k / 3) + before : 0.0F);
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
    test::expectContains(test::messageOf<IndexError>([&] { heap.checkKernels(); }), "in a kernel");
    heap.barrier();
    EXPECT_EQ(own(heap, words, 8), std::vector<std::int64_t>(8, 5));
}

TEST(ProxiesOfWindows, KernelsOperateOnAllRanks) {
    constexpr index threads = 40;
    Window window = Window::allocate(MPI_COMM_WORLD, (2 + static_cast<std::size_t>(worldSize())) * 8, 8);
    const std::vector<std::int64_t> zeros(2 + static_cast<std::size_t>(worldSize()), 0);
    window.lockAll();
    window.put(zeros.data(), zeros.size(), worldRank(), 0);
    window.flushAll();
    window.unlockAll();
    window.barrier();
    window.lockAll();
    parallelFor(Executor::host(), threads, OneSidedProxyOnWindow{window.view()});
    window.flushAll();
    window.unlockAll();
    window.barrier();
    std::vector<std::int64_t> got(zeros.size());
    window.lockAll();
    window.get(got.data(), got.size(), worldRank(), 0);
    window.unlockAll();
    EXPECT_EQ(got[0], worldSize() * threads);
    EXPECT_EQ(got[1], threads - 1);
    EXPECT_EQ(std::count(got.begin() + 2, got.end(), 1), worldSize());
    window.barrier();
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
    std::vector<std::thread> crew;
    std::vector<int> wrong(threads, 0);
    std::atomic<int> left{threads};
    for (int t = 0; t < threads; ++t)
        crew.emplace_back([&, t, view = heap.view()] {
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
    for (std::thread &thread : crew)
        thread.join();
    heap.barrier();
    EXPECT_EQ(std::count(wrong.begin(), wrong.end(), 0), threads);
    EXPECT_EQ(*counter.local(), threads * each);
    heap.barrier();
}

std::string spaceName(const testing::TestParamInfo<MemorySpace> &space) {
    return space.param == MemorySpace::Host ? "Host" : "Device";
}

INSTANTIATE_TEST_SUITE_P(InBothSpaces, Proxies, testing::Values(MemorySpace::Host, MemorySpace::Device), spaceName);

} // namespace
} // namespace DNDS
