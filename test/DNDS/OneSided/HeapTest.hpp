/// @file HeapTest.hpp
/// @brief Shared by tests of heaps: neighbours, memory of known contents, and kernels that do every operation.
#pragma once

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/OneSided/SymmetricHeap.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

namespace DNDS::test {

inline int next() { return (worldRank() + 1) % worldSize(); }
inline int previous() { return (worldRank() + worldSize() - 1) % worldSize(); }

inline bool onOneNode() {
    const NodeTopology &node = CommunicatorContext::of(MPI_COMM_WORLD)->node();
    for (int rank = 0; rank < worldSize(); ++rank)
        if (!node.sameNode(rank))
            return false;
    return true;
}

/// The text that `wrong`, which is wrong on every rank, throws here as an `Exception`; all ranks have recovered from it
/// then. Collective.
template <class Exception, class Wrong>
std::string refused(Wrong &&wrong) {
    MPI_Barrier(MPI_COMM_WORLD); // no rank is still inside a barrier, which would be revoked
    std::string text = messageOf<Exception>(std::forward<Wrong>(wrong));
    recover(MPI_COMM_WORLD);
    return text;
}

/// Whether loads and stores reach all ranks of a heap or window.
template <class Memory>
bool allReached(const Memory &memory) {
    for (int rank = 0; rank < worldSize(); ++rank)
        if (memory.path(rank).find("MPI") != std::string::npos)
            return false;
    return true;
}

/// This rank's part of an array, by way of the heap.
template <class T>
std::vector<T> own(SymmetricHeap &heap, SymmetricPointer<T> pointer, std::size_t count) {
    std::vector<T> values(count);
    heap.get(values.data(), pointer, count, worldRank());
    return values;
}

/// `count` objects on each rank that all are `value`. Collective.
template <class T>
SymmetricPointer<T> filled(SymmetricHeap &heap, std::size_t count, T value) {
    const auto pointer = heap.allocate<T>(count);
    const std::vector<T> values(count, value);
    heap.put(pointer, values.data(), count, worldRank());
    return pointer;
}

/// The parameter: host memory, with functors called on the host, or device memory, with kernels.
class InBothSpaces : public testing::TestWithParam<MemorySpace> {
  protected:
    void SetUp() override {
        if (!onDevice())
            return;
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
        stream_ = std::make_unique<Device::Stream>();
    }
    static bool onDevice() { return GetParam() == MemorySpace::Device; }
    Executor executor() const { return onDevice() ? Executor::device(*stream_) : Executor::host(); }

    std::unique_ptr<Device::Stream> stream_;
};

inline std::string spaceName(const testing::TestParamInfo<MemorySpace> &space) {
    return space.param == MemorySpace::Host ? "Host" : "Device";
}

/// Every operation on every rank; returned values are checked in the kernel.
struct OneSidedScatter {
    HeapView heap;
    SymmetricPointer<std::int64_t> table; ///< [ranks x threads]
    SymmetricPointer<std::int64_t> sum;
    SymmetricPointer<double> real;
    SymmetricPointer<std::int32_t> largest, smallest;
    SymmetricPointer<std::uint32_t> bits, fewer;
    SymmetricPointer<std::int64_t> wrong; ///< errors counted on this rank
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

inline void testAllOperations(SymmetricHeap &heap, const Executor &executor) {
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
    parallelFor(executor, threads,
                OneSidedScatter{heap.view(), table, sum, real, largest, smallest, bits, fewer, wrong, threads});
    executor.synchronize();
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

/// Threads change bytes and 16-bit words side by side, on all ranks; and copy without blocking.
struct OneSidedNarrow {
    HeapView heap;
    SymmetricPointer<std::uint8_t> bytes; ///< [ranks x 4], of each rank
    SymmetricPointer<std::int16_t> words; ///< the same
    SymmetricPointer<std::int64_t> wrong; ///< errors counted on this rank
    DNDS_HOST_DEVICE void operator()(index k) const {
        for (int rank = 0; rank < heap.ranks(); ++rank) {
            const index mine = 4 * heap.rank() + k % 4;
            heap.add(bytes + mine, 3, rank);
            heap.fetchAdd(words + mine, -2, rank);
            heap.max(words + 4 * heap.ranks(), static_cast<std::int16_t>(k), rank);
            heap.bitOr(bytes + 4 * heap.ranks(), static_cast<std::uint8_t>(1U << static_cast<unsigned>(k % 8)), rank);
            std::uint8_t seen = heap.fetch(bytes + (4 * heap.ranks() + 1), rank);
            while (true) { // counts by compare-and-swap
                const std::uint8_t before =
                    heap.compareSwap(bytes + (4 * heap.ranks() + 1), seen, static_cast<std::uint8_t>(seen + 1), rank);
                if (before == seen)
                    break;
                seen = before;
            }
            heap.set(bytes + (4 * heap.ranks() + 2), 77, rank);
        }
        const std::int64_t value = 5;
        std::int64_t back = 0;
        heap.putNbi(wrong + 1, &value, 1, heap.rank());
        heap.quiet();
        heap.getNbi(&back, wrong + 1, 1, heap.rank());
        heap.quiet();
        if (back != 5 || heap.own(wrong) != heap.local(wrong) || heap.space() == MemorySpace{255})
            heap.add(wrong, 1, heap.rank());
    }
};

inline void testNarrowWords(SymmetricHeap &heap, const Executor &executor) {
    constexpr index threads = 40;
    const auto n = static_cast<std::size_t>(worldSize());
    const auto bytes = filled<std::uint8_t>(heap, 4 * n + 4, 0);
    const auto words = filled<std::int16_t>(heap, 4 * n + 1, 0);
    const auto wrong = filled<std::int64_t>(heap, 2, 0);
    heap.barrier();
    parallelFor(executor, threads, OneSidedNarrow{heap.view(), bytes, words, wrong});
    executor.synchronize();
    heap.barrier();
    const auto gotBytes = own(heap, bytes, 4 * n + 4);
    const auto gotWords = own(heap, words, 4 * n + 1);
    for (std::size_t k = 0; k < 4 * n; ++k) {
        ASSERT_EQ(gotBytes[k], 3 * threads / 4) << k;
        ASSERT_EQ(gotWords[k], -2 * threads / 4) << k;
    }
    EXPECT_EQ(gotBytes[4 * n], 255);
    EXPECT_EQ(gotBytes[4 * n + 1], static_cast<std::uint8_t>(threads * worldSize()));
    EXPECT_EQ(gotBytes[4 * n + 2], 77);
    EXPECT_EQ(gotBytes[4 * n + 3], 0) << "beside it";
    EXPECT_EQ(gotWords[4 * n], threads - 1);
    EXPECT_EQ(own(heap, wrong, 2), (std::vector<std::int64_t>{0, 5}));
    heap.barrier();
}

/// Each thread takes a ticket from the last rank.
struct OneSidedTickets {
    HeapView heap;
    SymmetricPointer<std::uint32_t> counter;
    SymmetricPointer<std::uint32_t> taken; ///< [threads], of this rank
    DNDS_HOST_DEVICE void operator()(index k) const {
        heap.local(taken)[k] = heap.fetchAdd(counter, 1U, heap.ranks() - 1);
    }
};

inline void testTickets(SymmetricHeap &heap, const Executor &executor) {
    constexpr std::size_t threads = 400;
    const auto counter = filled<std::uint32_t>(heap, 1, 0);
    const auto taken = filled<std::uint32_t>(heap, threads, 0);
    heap.barrier();
    parallelFor(executor, threads, OneSidedTickets{heap.view(), counter, taken});
    executor.synchronize();
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

/// Threads of one block copy together: forth as they are and with a stride, back with strides.
struct OneSidedLanes {
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

struct OneSidedLongGet {
    HeapView heap;
    SymmetricPointer<float> from, here;
    index count;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const { heap.get(heap.local(here), from, count, rank); }
};

inline void testLongCopiesAndStrides(SymmetricHeap &heap, const Executor &executor) {
    constexpr std::size_t n = 3001; // several slots of the proxy, and a part of one
    std::vector<float> values(n);
    for (std::size_t k = 0; k < n; ++k)
        values[k] = static_cast<float>(k) + 4000.0F * static_cast<float>(worldRank());
    const auto from = heap.allocate<float>(n);
    const auto to = filled<float>(heap, n + 30, 0);
    const auto gathered = filled<float>(heap, n, 0);
    const auto here = filled<float>(heap, n, 0);
    heap.put(from, values.data(), n, worldRank());
    heap.barrier();
    parallelFor(executor, 32, OneSidedLanes{heap.view(), from, to, gathered, n, 32, next()});
    parallelFor(executor, 1, OneSidedLongGet{heap.view(), from, here, n, next()});
    executor.synchronize();
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

} // namespace DNDS::test
