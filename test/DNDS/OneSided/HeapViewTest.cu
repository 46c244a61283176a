// Heaps in kernels: the same functors in host memory, called on the host, and in device memory, in kernels.

#include "HeapTest.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/Base/Environment.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace DNDS {
namespace {

using test::allReached;
using test::filled;
using test::next;
using test::onOneNode;
using test::own;
using test::previous;
using test::worldRank;
using test::worldSize;

struct OneSidedWrong {
    HeapView heap;
    SymmetricPointer<std::int64_t> words;
    int how;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        if (how == 0)
            heap.putValue(words + 8, 1, 0);
        else if (how == 1)
            heap.fetchAdd(words, 1, heap.ranks());
        else if (how == 2)
            heap.getValue(words, 0); // of freed memory
        else if (how == 4) {
            const std::int64_t value = 1;
            const volatile index unseen = index{1} << 32; // compilers refuse what they see
            const index far = unseen;
            heap.putStrided(words, far, &value, 1, far + 1, 0);
        } else
            heap.waitUntil(words, Comparison::Equal, -77);
    }
};

struct OneSidedOneAdd {
    HeapView heap;
    SymmetricPointer<std::int64_t> word;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const { heap.add(word, 1, rank); }
};

struct OneSidedSend {
    HeapView heap;
    SymmetricPointer<std::int64_t> inbox;
    SymmetricPointer<std::uint64_t> filled;
    std::int64_t round;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        const std::int64_t values[3] = {round, 2 * round, 3 * round};
        heap.putSignal(inbox, values, 3, filled, static_cast<std::uint64_t>(round), SignalOp::Set, rank);
    }
};

struct OneSidedReceive {
    HeapView heap;
    SymmetricPointer<std::int64_t> inbox, sum;
    SymmetricPointer<std::uint64_t> filled;
    std::int64_t round;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        if (!heap.waitUntil(filled, Comparison::GreaterOrEqual, static_cast<std::uint64_t>(round)))
            return;
        for (int k = 0; k < 3; ++k)
            *heap.local(sum) += heap.local(inbox)[k];
    }
};

class HeapViews : public test::InBothSpaces {};

TEST_P(HeapViews, AllOperationsOnAllRanks) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 19, GetParam());
    if (!allReached(heap))
        GTEST_SKIP() << "ranks on several nodes";
    test::testAllOperations(heap, executor());
    test::testNarrowWords(heap, executor());
    test::testTickets(heap, executor());
    test::testLongCopiesAndStrides(heap, executor());
}

TEST_P(HeapViews, WrongAccessesAreThrownByTheNextCallOnTheHost) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14, GetParam());
    const auto words = filled<std::int64_t>(heap, 8, 5);
    const auto freed = filled<std::int64_t>(heap, 8, 5);
    heap.free(freed);
    const auto textOf = [&](int how, SymmetricPointer<std::int64_t> pointer) -> std::string {
        parallelFor(executor(), 3, OneSidedWrong{heap.view(), pointer, how});
        executor().synchronize();
        return test::refused<Error>([&] { heap.quiet(); });
    };
    const std::string three = textOf(0, words);
    EXPECT_NE(three.find("IndexError"), std::string::npos);
    EXPECT_NE(three.find("(2 more accesses were wrong, and skipped)"), std::string::npos) << three;
    EXPECT_NE(textOf(1, words).find("in a kernel: a symmetric heap: an atomic operation of 8 bytes"),
              std::string::npos);
    EXPECT_NE(textOf(2, freed).find("this memory was freed"), std::string::npos);
    EXPECT_NE(textOf(3, words).find("PeerError"), std::string::npos);
    EXPECT_NE(textOf(4, words).find("IndexError"), std::string::npos) << "more than 64 bits";
    heap.quiet(); // thrown once
    EXPECT_EQ(own(heap, words, 8), std::vector<std::int64_t>(8, 5)) << "wrong accesses are skipped";
    heap.barrier();
}

TEST_P(HeapViews, KernelsSignalEachOther) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14, GetParam());
    if (!allReached(heap))
        GTEST_SKIP() << "ranks on several nodes";
    const auto inbox = filled<std::int64_t>(heap, 3, 0);
    const auto sum = filled<std::int64_t>(heap, 1, 0);
    const auto signal = filled<std::uint64_t>(heap, 1, 0);
    HeapView view;
    try {
        view = heap.view(KernelWaits::Yes);
    } catch (const StateError &error) { // ranks that share a GPU: all of them throw
        EXPECT_NE(std::string(error.what()).find("take turns"), std::string::npos);
        std::cout << "kernels take turns, so that none may wait for another rank's\n";
        heap.barrier();
        return;
    }
    heap.barrier();
    std::int64_t expected = 0;
    for (std::int64_t round = 1; round <= 20; ++round) {
        parallelFor(executor(), 1, OneSidedSend{view, inbox, signal, round, next()});
        parallelFor(executor(), 1, OneSidedReceive{view, inbox, sum, signal, round});
        expected += 6 * round;
        if (onDevice())
            heap.barrier(*stream_);
        else
            heap.barrier();
    }
    EXPECT_EQ(own(heap, sum, 1)[0], expected);
    heap.barrier();
}

TEST_P(HeapViews, TheHostOperatesOnTheSameMemory) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14, GetParam());
    const auto words = filled<std::int64_t>(heap, 4, 0);
    const auto signal = filled<std::uint64_t>(heap, 1, 0);
    EXPECT_EQ(words.at(worldRank()) == nullptr, onDevice());
    heap.barrier();
    const std::int64_t values[2] = {worldRank(), 7};
    heap.putSignal(words + 2, values, 2, signal, 1, SignalOp::Add, next());
    heap.add(words, 3, 0);
    heap.max(words + 1, worldRank(), worldSize() - 1);
    EXPECT_EQ(heap.waitUntil(signal, Comparison::Equal, 1), 1U);
    EXPECT_EQ(heap.getValue(words + 2, worldRank()), previous());
    heap.barrier();
    EXPECT_EQ(heap.fetch(words, 0), 3 * worldSize());
    EXPECT_EQ(heap.fetch(words + 1, worldSize() - 1), worldSize() - 1);
    heap.barrier();
    EXPECT_EQ(heap.compareSwap(words + 3, 7, 8, next()), 7);
    EXPECT_EQ(heap.swap(words + 3, 9, next()), 8);
    heap.barrier();
}

TEST(DeviceHeaps, NeedADevice) {
    if (Device::available())
        GTEST_SKIP() << "there is a device";
    test::messageOnAll<NotBuiltError>([] { SymmetricHeap(MPI_COMM_WORLD, 4096, MemorySpace::Device); });
}

TEST(DeviceHeaps, ReachRanksOfOtherNodesByRequests) {
    if (!Device::available() || onOneNode())
        GTEST_SKIP() << "for devices on several nodes; " << Device::unavailableReason();
    constexpr std::size_t n = 200001; // several requests
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 23, MemorySpace::Device);
    const auto to = filled<double>(heap, n, 0.0);
    const auto strided = filled<std::int64_t>(heap, 30, -1);
    const auto counter = filled<std::int64_t>(heap, 1, 0);
    const auto bytes = filled<std::uint8_t>(heap, 4, 0);
    const auto signal = filled<std::uint64_t>(heap, 1, 0);
    heap.barrier();
    const auto valuesOf = [](int rank) {
        std::vector<double> values(n);
        for (std::size_t k = 0; k < n; ++k)
            values[k] = static_cast<double>(k) + 0.5 * rank;
        return values;
    };
    heap.putSignal(to, valuesOf(worldRank()).data(), n, signal, 7, SignalOp::Add, next());
    EXPECT_EQ(heap.waitUntil(signal, Comparison::Equal, 7), 7U);
    EXPECT_EQ(own(heap, to, n), valuesOf(previous())) << "who sees the signal sees what was put";
    std::vector<double> got(n);
    heap.getNbi(got.data(), to, n, next());
    heap.quiet();
    EXPECT_EQ(got, valuesOf(worldRank()));
    const std::int64_t few[3] = {1, 2, 3};
    heap.putStrided(strided, 10, few, 1, 3, next());
    std::int64_t back[3] = {};
    heap.getStrided(back, 1, strided, 10, 3, next());
    EXPECT_EQ(back[2], 3);
    EXPECT_EQ(heap.getValue(strided + 1, next()), -1);
    for (int rank = 0; rank < worldSize(); ++rank) {
        heap.fetchAdd(counter, 1, rank);
        heap.add(counter, 10, rank);
        heap.bitOr(bytes + 2, static_cast<std::uint8_t>(1U << static_cast<unsigned>(worldRank())), rank);
    }
    heap.barrier();
    EXPECT_EQ(heap.fetch(counter, next()), 11 * worldSize());
    EXPECT_EQ(own(heap, bytes, 4)[2], (1U << static_cast<unsigned>(worldSize())) - 1);
    EXPECT_EQ(own(heap, bytes, 4)[3], 0);
    const bool withFirst = CommunicatorContext::of(MPI_COMM_WORLD)->node().sameNode(0);
    const int far = withFirst ? worldSize() - 1 : 0;
    heap.barrier(); // ranks in plain MPI calls answer no requests where no thread does
    const int toFirst = CommunicatorView(MPI_COMM_WORLD).allReduce(withFirst ? 0 : 1, MPI_SUM);
    test::expectContains(heap.path(far), "requests to the owner");
    heap.barrier();
    const Device::Stream stream;
    parallelFor(Executor::device(stream), 1, OneSidedOneAdd{heap.view(), counter, far});
    stream.synchronize();
#if !defined(DNDS_CUDA_PROXY)
    const bool kernelsAsk = Device::name() == "emulated";
#else
    const bool kernelsAsk = true;
#endif
    const bool carriedOut = kernelsAsk && mpiServesAllThreads(); // else no thread does what kernels ask for
    if (carriedOut)
        heap.quiet();
    else
        test::expectContains(test::refused<StateError>([&] { heap.quiet(); }),
                             kernelsAsk ? "MPI_THREAD_MULTIPLE" : "DNDS_CUDA_PROXY");
    heap.barrier();
    EXPECT_EQ(heap.fetch(counter, 0) - 11 * worldSize(), carriedOut ? toFirst : 0);
    heap.barrier();
}

TEST(DeviceHeaps, KernelsMustNotWaitWhereTheyAreLoadedLazily) {
    if (Device::name() != "emulated" || !onOneNode())
        GTEST_SKIP() << "for the emulated device of one node, which pretends";
    if (worldRank() == worldSize() - 1) // all ranks come to know of one
        ::setenv("DNDS_EMULATED_DEVICE", "loads-lazily", 1);
    if (readEnvironment().oneSidedProxy) { // whose kernels wait, too
        const std::string text =
            test::messageOnAll<StateError>([] { SymmetricHeap(MPI_COMM_WORLD, 4096, MemorySpace::Device).barrier(); });
        ::unsetenv("DNDS_EMULATED_DEVICE");
        test::expectContains(text, "CUDA_MODULE_LOADING=EAGER");
        return;
    }
    SymmetricHeap heap(MPI_COMM_WORLD, 4096, MemorySpace::Device);
    ::unsetenv("DNDS_EMULATED_DEVICE");
    const std::string text = test::messageOnAll<StateError>([&] { heap.view(KernelWaits::Yes); });
    test::expectContains(text, fmt::format("each kernel of rank {} when it is first launched", worldSize() - 1));
    test::expectContains(text, "CUDA_MODULE_LOADING=EAGER");
    heap.view(); // others may be made
    heap.barrier();
}

struct OneSidedSlowFill {
    HeapView heap;
    SymmetricPointer<std::int64_t> words;
    int rank;
    DNDS_HOST_DEVICE void operator()(index k) const { heap.putValue(words + k, k, rank); }
};

void makeAndLeave(Device::StreamHandle stream, index threads) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 16, MemorySpace::Device);
    const auto words = heap.allocate<std::int64_t>(static_cast<std::size_t>(threads));
    heap.barrier();
    for (int kernel = 0; kernel < 10; ++kernel)
        parallelFor(Executor::device(stream), threads, OneSidedSlowFill{heap.view(), words, next()});
    parallelFor(Executor::device(stream), 1, OneSidedWrong{heap.view(), words, 1});
}

TEST(DeviceHeaps, AreDestroyedAfterKernelsThatNobodyHasWaitedFor) {
    if (!Device::available() || !onOneNode())
        GTEST_SKIP() << "for ranks that reach each other's devices; " << Device::unavailableReason();
    constexpr index threads = 1000;
    const Device::Stream stream;
    for (int round = 0; round < 5; ++round) {
        testing::internal::CaptureStderr();
        makeAndLeave(stream, threads);
        // Errors of the last kernel are known only after it has run.
        test::expectContains(testing::internal::GetCapturedStderr(), "did wrong, and nobody asked");
    }
    stream.synchronize(); // a kernel that found its memory gone would say so
}

TEST(DeviceHeaps, AtomicOperationsAreRefusedWhereTheDevicesHaveNone) {
    if (Device::name() != "emulated" || !onOneNode())
        GTEST_SKIP() << "for the emulated device of one node, which pretends";
    ::setenv("DNDS_EMULATED_DEVICE", "no-peer-atomics", 1);
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14, MemorySpace::Device);
    ::unsetenv("DNDS_EMULATED_DEVICE");
    const auto words = heap.allocate<std::int64_t>(8);
    const auto signal = heap.allocate<std::uint64_t>(1);
    const std::vector<std::int64_t> zeros(8);
    heap.put(words, zeros.data(), 8, worldRank());
    heap.set(signal, 0, worldRank());
    heap.barrier();
    const Device::Stream stream;
    const auto addTo = [&](int rank) {
        parallelFor(Executor::device(stream), 1, OneSidedOneAdd{heap.view(), words, rank});
        stream.synchronize();
    };
    addTo(worldRank()); // its own words
    EXPECT_EQ(heap.fetchAdd(words, 1, worldRank()), 1);
    if (worldSize() > 1) {
        addTo(next());
        const std::string text = test::refused<StateError>([&] { heap.quiet(); });
        test::expectContains(text, "in a kernel");
        test::expectContains(text, "this rank's GPU does not change words of that rank's memory atomically");
        test::expectContains(text, "emulated device: atomic operations on another rank's memory are refused");
        test::expectContains(test::refused<Error>([&] { heap.fetchAdd(words, 1, next()); }), "atomic operation");
        test::refused<Error>([&] { heap.putSignal(words + 4, zeros.data(), 1, signal, 1, SignalOp::Add, next()); });
    }
    heap.barrier();
    EXPECT_EQ(heap.getValue(words, worldRank()), 2) << "refused ones did nothing";
    heap.barrier();
    parallelFor(Executor::device(stream), 1, OneSidedSend{heap.view(), words, signal, 7, next()}); // by stores
    heap.barrier(stream);
    EXPECT_EQ(heap.waitUntil(signal, Comparison::Equal, 7), 7U);
    EXPECT_EQ(heap.getValue(words + 2, worldRank()), 21);
    heap.barrier();
}

struct OneSidedAndOfReals {
    HeapView heap;
    SymmetricPointer<double> word;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const { heap.atomic(AtomicOp::And, word, 1.0, 0.0, heap.rank()); }
};

TEST_P(HeapViews, BitsAreThoseOfIntegers) {
    SymmetricHeap heap(MPI_COMM_WORLD, 4096, GetParam());
    const auto word = filled<double>(heap, 1, 2.5);
    test::expectContains(test::refused<ArgumentError>([&] { heap.atomic(AtomicOp::Or, word, 1.0, 0.0, worldRank()); }),
                         "integers");
    parallelFor(executor(), 1, OneSidedAndOfReals{heap.view(), word});
    executor().synchronize();
    test::expectContains(test::refused<ArgumentError>([&] { heap.quiet(); }), "And and Or are for integers");
    EXPECT_EQ(own(heap, word, 1)[0], 2.5);
    heap.barrier();
}

INSTANTIATE_TEST_SUITE_P(InBothSpaces, HeapViews, testing::Values(MemorySpace::Host, MemorySpace::Device),
                         test::spaceName);

} // namespace
} // namespace DNDS
