// What fails on one rank while the others are in calls of heaps and windows: all are told who failed and how, and go on
// after they have recovered.

#include "HeapTest.hpp"

#include "DNDS/OneSided/Window.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include <unistd.h>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::next;
using test::previous;
using test::worldRank;
using test::worldSize;

using Clock = std::chrono::steady_clock;

/// How a rank fails.
enum class Fault { Program, Access, Kernel, Unwinding };
/// What the others are in meanwhile.
enum class Call { Barrier, Wait, Poll, Fetch, Kernel, Lock, Allocate, MakeHeap, MakeWindow, Destroy };

constexpr std::array faultNames{"Program", "Access", "Kernel", "Unwinding"};
constexpr std::array faultTexts{"negative pressure", "beyond its ends", "in a kernel", "destroyed 'scratch'"};
constexpr std::array callNames{"Barrier", "Wait",     "Poll",     "Fetch",      "Kernel",
                               "Lock",    "Allocate", "MakeHeap", "MakeWindow", "Destroy"};

/// A heap and a window on a communicator that is theirs alone.
class Shared {
  public:
    /// `patience`: DNDS_WAIT_TIMEOUT, in seconds.
    explicit Shared(const char *patience = nullptr) : owner_(Communicator::duplicate(MPI_COMM_WORLD)) {
        if (patience != nullptr)
            ::setenv("DNDS_WAIT_TIMEOUT", patience, 1);
        static_cast<void>(CommunicatorContext::of(comm()));
        ::unsetenv("DNDS_WAIT_TIMEOUT");
        heap = std::make_unique<SymmetricHeap>(comm(), std::size_t{1} << 16U, MemorySpace::Host, "the heap");
        window = std::make_unique<Window>(Window::allocate(comm(), 64, 8, {{"name", "the window"}}));
        inbox = test::filled<std::int64_t>(*heap, 4, 0);
        sum = test::filled<std::int64_t>(*heap, 1, 0);
        signal = test::filled<std::uint64_t>(*heap, 1, 0);
        never = test::filled<std::uint64_t>(*heap, 1, 0);
        heap->barrier();
    }

    CommunicatorView comm() const { return owner_.view(); }

    /// All kinds of operations, which give what they did when nothing had failed.
    void expectAllIsWell() {
        ++steps_;
        const std::int64_t values[4] = {steps_, worldRank(), 3, 4};
        heap->putSignal(inbox, values, 4, signal, 1, SignalOp::Add, next());
        EXPECT_EQ(heap->waitUntil(signal, Comparison::Equal, static_cast<std::uint64_t>(steps_)),
                  static_cast<std::uint64_t>(steps_))
            << "signals keep their values";
        EXPECT_EQ(test::own(*heap, inbox, 4), (std::vector<std::int64_t>{steps_, previous(), 3, 4}));
        for (int rank = 0; rank < worldSize(); ++rank)
            heap->fetchAdd(sum, 1, rank);
        heap->barrier();
        EXPECT_EQ(*sum.local(), steps_ * worldSize());
        const std::int64_t one = 1;
        for (const LockType type : {LockType::Shared, LockType::Exclusive}) {
            window->lock(type, next());
            window->accumulate(&one, 1, next(), 0, AccumulateOp::Sum);
            window->unlock(next());
        }
        window->barrier();
        EXPECT_EQ(*static_cast<const std::int64_t *>(window->own()), 2 * steps_);
        heap->view().add(sum, 0, next()); // through the proxy between nodes
        heap->free(heap->allocate<double>(7));
        const SymmetricHeap made(comm(), 4096);
        heap->barrier(); // before some rank fails again
    }

    std::unique_ptr<SymmetricHeap> heap;
    std::unique_ptr<Window> window;
    SymmetricPointer<std::int64_t> inbox, sum;
    SymmetricPointer<std::uint64_t> signal, never;

  private:
    Communicator owner_;
    std::int64_t steps_ = 0;
};

/// This rank fails; in the case of `Unwinding`, an exception destroys `scratch`.
void fail(Fault fault, Shared &shared, std::unique_ptr<SymmetricHeap> &scratch) {
    SymmetricHeap &heap = *shared.heap;
    switch (fault) {
    case Fault::Program:
        revoke(shared.comm(), std::make_exception_ptr(std::runtime_error("negative pressure")));
        return;
    case Fault::Access:
        messageOf<IndexError>([&] { heap.putValue(shared.inbox + 4, 1, worldRank()); });
        return;
    case Fault::Kernel:
        heap.view().putValue(shared.inbox + 4, 1, worldRank());
        messageOf<IndexError>([&] { heap.checkKernels(); });
        return;
    case Fault::Unwinding:
        EXPECT_THROW(
            {
                const auto destroyed = std::move(scratch);
                throw std::runtime_error("passes");
            },
            std::runtime_error);
    }
}

void make(Call call, Shared &shared, std::unique_ptr<SymmetricHeap> &scratch, int failing) {
    SymmetricHeap &heap = *shared.heap;
    switch (call) {
    case Call::Barrier:
        return heap.barrier();
    case Call::Wait:
        static_cast<void>(heap.waitUntil(shared.never, Comparison::Equal, 1));
        return;
    case Call::Poll:
        while (!heap.test(shared.never, Comparison::Equal, 1))
            std::this_thread::yield();
        return;
    case Call::Fetch: // on a node this waits for nobody
        static_cast<void>(heap.fetch(shared.never, failing));
        return heap.quiet(), heap.barrier();
    case Call::Kernel:
        static_cast<void>(heap.view().fetch(shared.never, failing));
        heap.checkKernels();
        return heap.barrier();
    case Call::Lock: // which the failing rank has
        shared.window->lock(LockType::Shared, worldRank() == 0 ? 0 : worldSize() - 1);
        return shared.window->barrier();
    case Call::Allocate:
        static_cast<void>(heap.allocate<double>(10));
        return;
    case Call::MakeHeap:
        static_cast<void>(SymmetricHeap(shared.comm(), 4096));
        return;
    case Call::MakeWindow:
        static_cast<void>(Window::allocate(shared.comm(), 64, 8));
        return;
    case Call::Destroy: // silent
        scratch.reset();
        heap.barrier();
    }
}

class Failures : public testing::TestWithParam<std::tuple<Fault, Call>> {
  protected:
    void SetUp() override {
        if (worldSize() == 1)
            GTEST_SKIP() << "for several ranks";
    }
    /// One of rank `failing`, and the recovery.
    static void failAndRecover(Shared &shared, Fault fault, Call call, int failing) {
        constexpr std::size_t scratchBytes = std::size_t{1} << 20U;
        auto scratch = std::make_unique<SymmetricHeap>(shared.comm(), scratchBytes, MemorySpace::Host, "scratch");
        static_cast<void>(test::filled(*scratch, scratchBytes / 2, 'x'));
        if (call == Call::Lock && worldRank() == failing)
            for (int rank = 0; rank < worldSize(); ++rank)
                shared.window->lock(LockType::Exclusive, rank);
        shared.heap->barrier(); // serves locks
        MPI_Barrier(MPI_COMM_WORLD);
        const auto start = Clock::now();
        if (worldRank() == failing) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the others wait by then
            fail(fault, shared, scratch);
        } else {
            try {
                make(call, shared, scratch, failing);
                ADD_FAILURE() << "the call ended";
            } catch (const RevokedError &error) {
                EXPECT_EQ(error.failedRank(), failing) << error.what();
                expectContains(error.what(), faultTexts[static_cast<std::size_t>(fault)]);
            }
        }
        EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 5.0);
        scratch.reset(); // waits for nobody
        recover(shared.comm());
    }
};

TEST_P(Failures, AreToldToAllRanksWhichRecoverTogether) {
    const auto [fault, call] = GetParam();
    Shared shared;
    for (const int failing : {0, worldSize() - 1}) {
        failAndRecover(shared, fault, call, failing);
        shared.expectAllIsWell();
    }
}

INSTANTIATE_TEST_SUITE_P(
    OfOneRank, Failures,
    testing::Combine(testing::Values(Fault::Program, Fault::Access, Fault::Kernel, Fault::Unwinding),
                     testing::Values(Call::Barrier, Call::Wait, Call::Poll, Call::Fetch, Call::Kernel, Call::Lock,
                                     Call::Allocate, Call::MakeHeap, Call::MakeWindow, Call::Destroy)),
    [](const auto &item) {
        return std::string(faultNames[static_cast<std::size_t>(std::get<0>(item.param))]) + "While" +
               callNames[static_cast<std::size_t>(std::get<1>(item.param))];
    });

/// Bytes of this process in memory.
std::size_t residentBytes() {
    std::size_t total = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(Failures, LeaveNoMemoryBehind) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
    Shared shared;
    std::size_t before = 0;
    for (int round = 0; round < 30; ++round) {
        if (round == 10) // libraries have what they need
            before = residentBytes();
        failAndRecover(shared, round % 2 == 0 ? Fault::Access : Fault::Program,
                       static_cast<Call>(round % static_cast<int>(callNames.size())), round % worldSize());
    }
    EXPECT_LT(residentBytes(), before + (std::size_t{6} << 20U)) << "bytes after 20 failures; before: " << before;
    shared.expectAllIsWell();
}

/// Of one object they are compared, which revokes nothing.
TEST_F(Failures, OtherCallsOfOneHeapAreNamedOnAllRanks) {
    Shared shared;
    SymmetricHeap &heap = *shared.heap;
    const auto refused = [&](int odd, auto &&one, auto &&others) {
        return messageOnAll<ArgumentError>([&] { worldRank() == odd ? one() : others(); });
    };
    const auto pointer = heap.allocate<int>(8);
    const int last = worldSize() - 1;
    const auto allocate = [&] { static_cast<void>(heap.allocate<int>(1)); };
    const auto free = [&] { heap.free(pointer); };
    const auto wait = [&] { heap.barrier(); };
    const auto cover = [&] { static_cast<void>(Window::create(heap, pointer, 8)); };
    const auto makeHeap = [&] { static_cast<void>(SymmetricHeap(shared.comm(), 4096)); };
    const auto makeWindow = [&] { static_cast<void>(Window::allocate(shared.comm(), 8, 8)); };
    const std::string text = refused(last, allocate, wait);
    expectContains(text, fmt::format("the heap: rank 0 is in a barrier, but rank {} allocates", last));
    expectContains(text, "make all ranks call the same in the same order");
    expectContains(refused(0, free, wait), "rank 1 is in a barrier, but rank 0 frees");
    expectContains(refused(0, allocate, free), "rank 0 allocates, but rank 1 frees");
    expectContains(refused(0, cover, allocate), "makes a window over an allocation");
    expectContains(refused(0, makeHeap, makeWindow), "rank 0 makes a heap, but rank 1 makes a window");
    expectContains(messageOnAll<ArgumentError>([&] {
                       SymmetricHeap(shared.comm(), 100, worldRank() == 0 ? MemorySpace::Device : MemorySpace::Host);
                   }),
                   "rank 1 asks for host memory, but rank 0 for device memory");
    EXPECT_FALSE(isRevoked(shared.comm()));
    heap.free(pointer);
    shared.expectAllIsWell();
}

TEST_F(Failures, WhatIsGoneOnOneRankIsOfNoUseToOthersAfterwards) {
    Shared shared;
    auto scratch = std::make_unique<SymmetricHeap>(shared.comm(), 4096, MemorySpace::Host, "scratch");
    const auto word = scratch->allocate<std::int64_t>(1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (worldRank() == 1)
        fail(Fault::Unwinding, shared, scratch);
    recover(shared.comm());
    if (scratch != nullptr) {
        scratch->putValue(word, 1, 1); // to memory that is kept
        expectContains(messageOf<StateError>([&] { scratch->barrier(); }), "scratch: rank 1 destroyed it");
        messageOf<StateError>([&] { static_cast<void>(scratch->waitUntil(word, Comparison::Equal, 7)); });
    }
    shared.expectAllIsWell();
    scratch.reset(); // waits for nobody
    for (int round = 0; round < 2; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        recover(shared.comm());
        shared.expectAllIsWell();
    }
}

TEST_F(Failures, OneRankDestroysWhatOthersUse) {
    Shared shared;
    auto scratch = std::make_unique<SymmetricHeap>(shared.comm(), 4096, MemorySpace::Host, "scratch");
    MPI_Barrier(MPI_COMM_WORLD);
    if (worldRank() == 0)
        scratch.reset(); // silent
    else
        expectContains(messageOf<Error>([&] { scratch->barrier(); }), "but rank 0 destroys it");
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_TRUE(isRevoked(shared.comm()));
    scratch.reset();
    recover(shared.comm());
    shared.expectAllIsWell();
}

/// The time limit ends it, and the error tells where each rank of the node is.
TEST_F(Failures, RanksThatWaitInDifferentObjects) {
    Shared shared("0.5");
    SymmetricHeap second(shared.comm(), 4096, MemorySpace::Host, "the second heap");
    const auto differ = [&](auto &&one, auto &&others, const char *where) {
        const std::string text = messageOnAll<PeerError>([&] { worldRank() == 0 ? one() : others(); });
        expectContains(text, "DNDS_WAIT_TIMEOUT");
        const int holds = text.find(where) != std::string::npos ? 1 : 0; // two may give up at the same time
        if (test::onOneNode()) {
            EXPECT_GE(CommunicatorView(MPI_COMM_WORLD).allReduce(holds, MPI_SUM), 1) << text;
        }
        recover(shared.comm());
        second.barrier();
        shared.expectAllIsWell();
    };
    const auto inSecond = [&] { second.barrier(); };
    differ([&] { static_cast<void>(shared.heap->allocate<int>(1)); }, inSecond, "allocation in 'the heap'");
    differ([&] { static_cast<void>(SymmetricHeap(shared.comm(), 64)); }, inSecond, "barrier of 'the second heap'");
    differ([&] { shared.window->barrier(); }, inSecond, "barrier of 'the window'");
}

TEST_F(Failures, CallsThatAreOnlyLateAreNone) {
    Shared shared;
    for (int late = 0; late < worldSize(); ++late) {
        if (worldRank() == late)
            std::this_thread::sleep_for(std::chrono::milliseconds(150));
        shared.expectAllIsWell();
    }
    EXPECT_FALSE(isRevoked(shared.comm()));
}

} // namespace
} // namespace DNDS
