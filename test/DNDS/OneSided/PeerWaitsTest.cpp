// Ranks that leave a heap or window, by an exception or after an error, and what the others see of it: never a wait
// without end.

#include "DNDS/OneSided/PeerWaits.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/OneSided/Window.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::worldRank;
using test::worldSize;

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The heaps and windows that this rank makes meanwhile give up waiting after so many seconds.
class WithPatience {
  public:
    explicit WithPatience(const char *seconds) { ::setenv("DNDS_WAIT_TIMEOUT", seconds, 1); }
    WithPatience(const WithPatience &) = delete;
    WithPatience &operator=(const WithPatience &) = delete;
    ~WithPatience() { ::unsetenv("DNDS_WAIT_TIMEOUT"); }
};

/// Tells rank 0 that this rank has given up.
void tellRankZero() { MPI_Send(nullptr, 0, MPI_BYTE, 0, 77, MPI_COMM_WORLD); }

/// One that all others leave as usual, and rank 0 by an exception.
class RankZeroLeaves : public testing::Test {
  protected:
    void SetUp() override {
        if (worldSize() == 1)
            GTEST_SKIP() << "for several ranks";
        start_ = Clock::now();
    }
    /// `others` is what ranks but 0 do with a heap and a word in it.
    template <class Others>
    void run(Others &&others) {
        try {
            SymmetricHeap heap(MPI_COMM_WORLD, 4096);
            const auto word = heap.allocate<std::int64_t>(1);
            *word.local() = 0;
            heap.barrier();
            if (worldRank() == 0)
                throw std::runtime_error("passes on one rank");
            others(heap, word);
        } catch (const std::runtime_error &error) {
            EXPECT_EQ(worldRank(), 0) << error.what();
        }
        EXPECT_LT(since(start_), 30) << "somebody waited";
        expectAllIsWell();
    }
    /// Nothing of it is left on the communicator.
    static void expectAllIsWell() {
        SymmetricHeap heap(MPI_COMM_WORLD, 4096);
        const auto word = heap.allocate<std::int64_t>(1);
        *word.local() = 0;
        heap.barrier();
        for (int rank = 0; rank < worldSize(); ++rank)
            heap.add(word, 1 + worldRank(), rank);
        heap.barrier();
        EXPECT_EQ(*word.local(), worldSize() * (worldSize() + 1) / 2);
        EXPECT_EQ(CommunicatorView(MPI_COMM_WORLD).allReduce(1, MPI_SUM), worldSize());
        heap.barrier();
    }

    Clock::time_point start_;
};

TEST_F(RankZeroLeaves, WhileOthersAreInABarrier) {
    run([](SymmetricHeap &heap, SymmetricPointer<std::int64_t> word) {
        const std::string text = messageOf<PeerError>([&] { heap.barrier(); });
        expectContains(text, "rank 0 has left a symmetric heap, since an exception destroyed it there");
        const auto start = Clock::now();
        const std::string next = messageOf<PeerError>([&] { heap.putValue(word, 1, worldRank()); });
        EXPECT_EQ(next, text) << "broken for good";
        messageOf<PeerError>([&] { heap.barrier(); });
        messageOf<PeerError>([&] { heap.quiet(); });
        messageOf<PeerError>([&] { heap.fence(); });
        messageOf<PeerError>([&] { heap.fetchAdd(word, 1, worldRank()); });
        messageOf<PeerError>([&] { static_cast<void>(heap.allocate<int>(1)); });
        messageOf<PeerError>([&] { heap.progress(); });
        EXPECT_LT(since(start), 0.5) << "at once";
    });
}

TEST_F(RankZeroLeaves, WhileOthersWaitForAWord) {
    run([](SymmetricHeap &heap, SymmetricPointer<std::int64_t> word) {
        expectContains(messageOf<PeerError>([&] { heap.waitUntil(word, Comparison::Equal, 1); }), "rank 0 has left");
    });
}

TEST_F(RankZeroLeaves, WhileOthersPoll) {
    run([this](SymmetricHeap &heap, SymmetricPointer<std::int64_t> word) {
        expectContains(messageOf<PeerError>([&] {
                           while (!heap.test(word, Comparison::Equal, 1) && since(start_) < 10)
                               std::this_thread::yield();
                       }),
                       "rank 0 has left");
    });
}

TEST_F(RankZeroLeaves, WhileOthersDestroyIt) {
    testing::internal::CaptureStderr();
    run([](SymmetricHeap & /*heap*/, SymmetricPointer<std::int64_t> /*word*/) {});
    const std::string text = testing::internal::GetCapturedStderr();
    if (worldRank() != 0)
        expectContains(text, "ends a symmetric heap without the others: PeerError on rank " +
                                 std::to_string(worldRank()) + ": rank 0 has left");
}

TEST_F(RankZeroLeaves, AWindow) {
    testing::internal::CaptureStderr();
    try {
        Window window = Window::allocate(MPI_COMM_WORLD, 64, 8);
        window.barrier();
        if (worldRank() == 0)
            throw std::runtime_error("passes on one rank");
    } catch (const std::runtime_error &) {
        EXPECT_EQ(worldRank(), 0);
    }
    const std::string text = testing::internal::GetCapturedStderr();
    if (worldRank() != 0)
        expectContains(text, "rank 0 has left a window");
    EXPECT_LT(since(start_), 30);
    expectAllIsWell();
}

TEST_F(RankZeroLeaves, AfterOthersHaveGivenUp) {
    const WithPatience patience(worldRank() == worldSize() - 1 ? "1.5" : "0");
    SymmetricHeap heap(MPI_COMM_WORLD, 4096);
    const auto word = heap.allocate<std::int64_t>(1);
    *word.local() = 0;
    heap.barrier();
    if (worldRank() == worldSize() - 1) {
        const std::string text = messageOf<PeerError>([&] { heap.waitUntil(word, Comparison::Equal, 1); });
        expectContains(text, "a symmetric heap: waited ");
        expectContains(text, fmt::format("s for other ranks to set the word at offset {}, which is 0 and is to be == 1",
                                         word.offset()));
        expectContains(text, "DNDS_WAIT_TIMEOUT");
        const auto start = Clock::now();
        EXPECT_EQ(messageOf<PeerError>([&] { heap.waitUntil(word, Comparison::Equal, 0); }), text);
        EXPECT_LT(since(start), 1);
    } else { // they wait without a limit, and are told
        expectContains(messageOf<PeerError>([&] { heap.barrier(); }),
                       "has left a symmetric heap, since a wait or request failed there");
    }
}

TEST_F(RankZeroLeaves, ALockThatAnotherGaveUp) {
    const int last = worldSize() - 1;
    {
        const WithPatience patience(worldRank() == last ? "3" : "0");
        Window window = Window::allocate(MPI_COMM_WORLD, 64, 8);
        if (worldRank() == 0)
            window.lock(LockType::Exclusive, 0);
        window.barrier();
        if (worldRank() == last) {
            const std::string text = messageOf<PeerError>([&] { window.lock(LockType::Exclusive, 0); });
            expectContains(text, "the lock of rank 0 of a window, which rank 0 holds: a window: waited ");
            expectContains(text, "s for other ranks to let go of the lock of rank 0");
            messageOf<PeerError>([&] { window.lock(LockType::Shared, last); }); // at once, and for good
            tellRankZero();
        } else if (worldRank() == 0) {
            for (int told = 0; told == 0 && since(start_) < 25; std::this_thread::yield()) {
                ProgressEngine::progressAll(); // gives tickets, where they come as messages
                MPI_Iprobe(last, 77, MPI_COMM_WORLD, &told, MPI_STATUS_IGNORE);
            }
            MPI_Recv(nullptr, 0, MPI_BYTE, last, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            std::string text;
            try { // its message may arrive between any two calls
                window.unlock(0);
                window.lock(LockType::Exclusive, 0); // whose turn comes after one that nobody takes
            } catch (const PeerError &error) {
                text = error.what();
            }
            expectContains(text, "has left a window");
        }
    }
    EXPECT_LT(since(start_), 30);
    expectAllIsWell();
}

TEST_F(RankZeroLeaves, WhileItOwesAnAnswer) {
    SymmetricHeap path(MPI_COMM_WORLD, 4096);
    const int last = worldSize() - 1;
    const bool far = path.path(0).find("MPI") != std::string::npos || worldRank() == 0;
    path.barrier();
    if (CommunicatorView(MPI_COMM_WORLD).allReduce(far ? 1 : 0, MPI_MIN) == 0)
        GTEST_SKIP() << "for ranks on nodes of their own";
    {
        const WithPatience patience(worldRank() == last ? "3" : "0");
        SymmetricHeap heap(MPI_COMM_WORLD, 4096);
        const auto word = heap.allocate<std::int64_t>(1);
        *word.local() = 0;
        heap.barrier();
        MPI_Barrier(MPI_COMM_WORLD); // rank 0 is no longer in the heap's barrier, where it would serve
        if (worldRank() == 0) {
            MPI_Recv(nullptr, 0, MPI_BYTE, last, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // serves nobody until then
            try {
                while (*word.local() == 0 && since(start_) < 10) // answers what nobody waits for any more
                    heap.progress();
            } catch (const PeerError &error) {
                expectContains(error.what(), "has left");
            }
        } else if (worldRank() == last) {
            heap.add(word, 1, 0);
            expectContains(messageOf<PeerError>([&] { heap.fetchAdd(word, 1, 0); }), "carry out an atomic operation");
            tellRankZero();
            std::this_thread::sleep_for(Milliseconds(1000));
            for (int k = 0; k < 200; ++k) // what comes late finds nobody
                messageOf<PeerError>([&] { heap.progress(); });
            const auto start = Clock::now();
            messageOf<PeerError>([&] { heap.quiet(); });
            EXPECT_LT(since(start), 1);
        }
    }
    EXPECT_LT(since(start_), 30);
    expectAllIsWell();
}

TEST(PeerWaits, BreakForGoodAndTellOthers) {
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    PeerWaits waits(context, "what is shared");
    waits.requireSound();
    waits.requireAll();
    EXPECT_FALSE(waits.broken());
    MPI_Barrier(MPI_COMM_WORLD);
    if (worldRank() == 0) {
        waits.breakDown(std::make_exception_ptr(ArgumentError("the cause")));
        waits.breakDown(std::make_exception_ptr(StateError("another one")));
        EXPECT_TRUE(waits.broken());
        expectContains(messageOf<ArgumentError>([&] { waits.requireSound(); }), "the cause");
        messageOf<ArgumentError>([&] {
            waits.waitFor(
                0, "do", [] { return true; }, [] {});
        });
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (worldRank() != 0) {
        const std::string text = messageOf<PeerError>([&] {
            waits.waitFor(
                PeerWaits::anyone, "come", [] { return false; }, [] {});
        });
        expectContains(text, "rank 0 has left what is shared, since a wait or request failed there");
        EXPECT_EQ(messageOf<PeerError>([&] { waits.requireSound(); }), text);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

} // namespace
} // namespace DNDS
