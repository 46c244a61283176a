// Collective calls of heaps and windows that differ between ranks: all throw, and nobody waits for ever.

#include "DNDS/OneSided/Meetings.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/OneSided/Window.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::worldRank;
using test::worldSize;

/// One heap that ranks call different things of, or of another heap.
class DifferentCalls : public testing::Test {
  protected:
    void SetUp() override {
        if (worldSize() == 1)
            GTEST_SKIP() << "for several ranks";
    }
    static void expectAllIsWell() {
        MPI_Barrier(MPI_COMM_WORLD); // what fails on one rank is seen before
        SymmetricHeap heap(MPI_COMM_WORLD, 4096);
        const auto word = heap.allocate<std::int64_t>(1);
        *word.local() = 0;
        heap.barrier();
        for (int rank = 0; rank < worldSize(); ++rank)
            heap.add(word, 1 + worldRank(), rank);
        heap.barrier();
        EXPECT_EQ(*word.local(), worldSize() * (worldSize() + 1) / 2);
        const Window window = Window::allocate(MPI_COMM_WORLD, 8, 8);
    }
    /// Where ranks look at each other.
    static bool onOneNode() {
        const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
        bool one = context->node().arena != nullptr;
        for (int rank = 0; rank < worldSize(); ++rank)
            one = one && context->node().sameNode(rank);
        return context->comm().allReduce(one ? 1 : 0, MPI_MIN) == 1;
    }
    /// How many ranks' texts have a part. Collective.
    static int hold(const std::string &part, const std::string &text) {
        return CommunicatorView(MPI_COMM_WORLD).allReduce(text.find(part) != std::string::npos ? 1 : 0, MPI_SUM);
    }
    /// Rank `odd` does one thing and the others another, which all throw for.
    template <class Failure = ArgumentError, class One, class Others>
    static std::string refused(int odd, One &&one, Others &&others) {
        return messageOnAll<Failure>([&] { worldRank() == odd ? one() : others(); });
    }
};

TEST_F(DifferentCalls, OfOneHeapAreNamedAndItCanBeUsedFurther) {
    SymmetricHeap heap(MPI_COMM_WORLD, 8192, MemorySpace::Host, "the heap of the test");
    const auto pointer = heap.allocate<int>(8);
    const int last = worldSize() - 1;
    const auto allocate = [&] { static_cast<void>(heap.allocate<int>(1)); };
    const auto free = [&] { heap.free(pointer); };
    const auto wait = [&] { heap.barrier(); };
    const auto cover = [&] { static_cast<void>(Window::create(heap, pointer, 8)); };
    std::string text = refused(last, allocate, wait);
    expectContains(text, fmt::format("the heap of the test: rank 0 is in a barrier, but rank {} allocates", last));
    expectContains(text, "make all ranks call the same in the same order");
    expectContains(refused(0, free, wait), "rank 1 is in a barrier, but rank 0 frees");
    expectContains(refused(0, allocate, free), "rank 0 allocates, but rank 1 frees");
    expectContains(refused(0, cover, allocate), "makes a window over an allocation");
    heap.free(pointer);
    EXPECT_EQ(heap.freeBytes(), 8192U);
    heap.barrier();
}

TEST_F(DifferentCalls, OfMakingAreNamed) {
    const auto heap = [] { SymmetricHeap made(MPI_COMM_WORLD, 4096, MemorySpace::Host, "the heap of the test"); };
    const auto window = [] { static_cast<void>(Window::allocate(MPI_COMM_WORLD, 8, 8)); };
    expectContains(refused(0, heap, window), "rank 0 makes a heap, but rank 1 makes a window");
    expectAllIsWell();
    std::string text = messageOnAll<ArgumentError>([] {
        SymmetricHeap made(MPI_COMM_WORLD, worldRank() == 0 ? 100 : 200, MemorySpace::Host, "the heap of the test");
    });
    expectContains(text, "the heap of the test: rank 0 gives 100 bytes, but rank 1 gives 200");
    text = messageOnAll<ArgumentError>(
        [] { SymmetricHeap made(MPI_COMM_WORLD, 100, worldRank() == 0 ? MemorySpace::Device : MemorySpace::Host); });
    expectContains(text, "rank 1 asks for host memory, but rank 0 for device memory");
    expectAllIsWell();
}

TEST_F(DifferentCalls, OfTwoHeaps) {
    const bool near = onOneNode();
    {
        SymmetricHeap first(MPI_COMM_WORLD, 4096, MemorySpace::Host, "the first heap");
        SymmetricHeap second(MPI_COMM_WORLD, 4096, MemorySpace::Host, "the second heap");
        const std::string text = refused<Error>(
            0, [&] { static_cast<void>(first.allocate<int>(1)); }, [&] { second.barrier(); });
        EXPECT_GE(hold("each waits for the other", text), 1);
        if (worldRank() == 0) {
            expectContains(text, near ? "the first heap: this rank allocates here, while rank " : "the first heap");
            messageOf<Error>([&] { first.barrier(); }); // broken for good
        } else {
            expectContains(text, worldSize() == 2 && near
                                     ? "the second heap: this rank is in a barrier here, while rank 0 "
                                     : "the second heap"); // others may have been told
        }
    }
    expectAllIsWell();
    {
        SymmetricHeap heap(MPI_COMM_WORLD, 4096, MemorySpace::Host, "the heap of the test");
        const std::string text = refused<Error>(
            worldSize() - 1, [] { SymmetricHeap other(MPI_COMM_WORLD, 4096, MemorySpace::Host, "another"); },
            [&] { heap.barrier(); });
        EXPECT_GE(hold("each waits for the other", text), 1);
        expectContains(text, worldRank() == worldSize() - 1 ? "another: this rank makes a heap"
                             : worldSize() == 2 && near     ? "the heap of the test: this rank is in a barrier here"
                                                            : "the heap of the test");
    }
    expectAllIsWell();
    {
        SymmetricHeap heap(MPI_COMM_WORLD, 4096, MemorySpace::Host, "the heap of the test");
        const auto pointer = heap.allocate<int>(1);
        refused<Error>(
            1, [&] { heap.free(pointer); }, [] { static_cast<void>(Window::allocate(MPI_COMM_WORLD, 8, 8)); });
    }
    expectAllIsWell();
}

TEST_F(DifferentCalls, WhereOneRankDestroysTheHeap) {
    testing::internal::CaptureStderr();
    {
        auto heap = std::make_unique<SymmetricHeap>(MPI_COMM_WORLD, 4096, MemorySpace::Host, "the heap of the test");
        if (worldRank() == 0)
            heap.reset();
        else
            expectContains(messageOf<ArgumentError>([&] { heap->barrier(); }), "but rank 0 destroys it");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const std::string text = testing::internal::GetCapturedStderr();
    if (worldRank() == 0)
        expectContains(text, "rank 1 is in a barrier, but rank 0 destroys it");
    expectAllIsWell();
}

TEST_F(DifferentCalls, ThatAreOnlyLateAreNoError) {
    SymmetricHeap first(MPI_COMM_WORLD, 4096);
    SymmetricHeap second(MPI_COMM_WORLD, 4096);
    for (int late = 0; late < worldSize(); ++late) { // longer than ranks take to look around
        if (worldRank() == late)
            std::this_thread::sleep_for(std::chrono::milliseconds(150));
        first.barrier();
        second.barrier();
        SymmetricHeap third(MPI_COMM_WORLD, 4096);
        static_cast<void>(second.allocate<int>(1));
        third.barrier();
    }
}

} // namespace
} // namespace DNDS
