// Failures of one rank while the others are in calls of heaps and windows: all ranks get its rank and message, and
// continue after the recovery.

#include "HeapTest.hpp"

#include "DNDS/Mpi/Survival.hpp"
#include "DNDS/OneSided/Window.hpp"
#include "support/ScopedVariable.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::next;
using test::previous;
using test::worldRank;
using test::worldSize;

/// A heap and a window on a communicator that is theirs alone.
class Shared {
  public:
    /// `patience`: DNDS_WAIT_TIMEOUT, in seconds.
    explicit Shared(const char *patience = "") : owner_(Communicator::duplicate(MPI_COMM_WORLD)) {
        const test::ScopedVariable timeout("DNDS_WAIT_TIMEOUT", patience);
        heap = std::make_unique<SymmetricHeap>(comm(), std::size_t{1} << 16U, MemorySpace::Host, "the heap");
        window = std::make_unique<Window>(Window::allocate(comm(), 64, 8, {{"name", "the window"}}));
        inbox = test::filled<std::int64_t>(*heap, 4, 0);
        sum = test::filled<std::int64_t>(*heap, 1, 0);
        signal = test::filled<std::uint64_t>(*heap, 1, 0);
        never = test::filled<std::uint64_t>(*heap, 1, 0);
        heap->barrier();
    }

    CommunicatorView comm() const { return owner_.view(); }

    /// Runs all kinds of operations, with the same results as before any failure.
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

using Scratch = std::unique_ptr<SymmetricHeap>;

/// A fault of one rank, and the error text on the others.
struct Fault {
    const char *name, *told;
    void (*happens)(Shared &, Scratch &);
};

const Fault faults[] = {
    {"Program", "negative pressure",
     [](Shared &shared, Scratch &) {
         revoke(shared.comm(), std::make_exception_ptr(std::runtime_error("negative pressure")));
         shared.heap->barrier();
     }},
    {"Access", "beyond its ends",
     [](Shared &shared, Scratch &) { shared.heap->putValue(shared.inbox + 4, 1, worldRank()); }},
    {"Kernel", "in a kernel",
     [](Shared &shared, Scratch &) {
         shared.heap->view().putValue(shared.inbox + 4, 1, worldRank());
         shared.heap->checkKernels();
     }},
    {"Unwinding", "destroyed 'scratch'",
     [](Shared &shared, Scratch &scratch) {
         try {
             const Scratch destroyed = std::move(scratch);
             throw std::runtime_error("passes");
         } catch (const std::runtime_error &) {
             shared.heap->barrier();
         }
     }},
};

/// The calls that the other ranks are in meanwhile.
struct Call {
    const char *name;
    void (*make)(Shared &, Scratch &, int failing);
};

const Call calls[] = {
    {"Barrier", [](Shared &shared, Scratch &, int) { shared.heap->barrier(); }},
    {"Wait", [](Shared &shared, Scratch &,
                int) { static_cast<void>(shared.heap->waitUntil(shared.never, Comparison::Equal, 1)); }},
    {"Poll",
     [](Shared &shared, Scratch &, int) {
         while (!shared.heap->test(shared.never, Comparison::Equal, 1))
             std::this_thread::yield();
     }},
    {"Fetch",
     [](Shared &shared, Scratch &, int failing) { // on a node this waits for no other rank
         static_cast<void>(shared.heap->fetch(shared.never, failing));
         shared.heap->quiet();
         shared.heap->barrier();
     }},
    {"Kernel",
     [](Shared &shared, Scratch &, int failing) {
         static_cast<void>(shared.heap->view().fetch(shared.never, failing));
         shared.heap->checkKernels();
         shared.heap->barrier();
     }},
    {"Lock",
     [](Shared &shared, Scratch &, int) { // which the failing rank has
         shared.window->lock(LockType::Shared, worldRank() == 0 ? 0 : worldSize() - 1);
         shared.window->barrier();
     }},
    {"Allocate", [](Shared &shared, Scratch &, int) { static_cast<void>(shared.heap->allocate<double>(10)); }},
    {"MakeHeap", [](Shared &shared, Scratch &, int) { static_cast<void>(SymmetricHeap(shared.comm(), 4096)); }},
    {"MakeWindow", [](Shared &shared, Scratch &, int) { static_cast<void>(Window::allocate(shared.comm(), 64, 8)); }},
    {"Destroy",
     [](Shared &shared, Scratch &scratch, int) { // silent
         scratch.reset();
         shared.heap->barrier();
     }},
};

class Failures : public testing::TestWithParam<std::tuple<Fault, Call>> {
  protected:
    void SetUp() override {
        if (worldSize() == 1)
            GTEST_SKIP() << "for several ranks";
    }
    static void failAndRecover(Shared &shared, const Fault &fault, const Call &call, int failing) {
        constexpr std::size_t scratchBytes = std::size_t{1} << 20U;
        auto scratch = std::make_unique<SymmetricHeap>(shared.comm(), scratchBytes, MemorySpace::Host, "scratch");
        static_cast<void>(test::filled(*scratch, scratchBytes / 2, 'x'));
        if (std::string_view(call.name) == "Lock" && worldRank() == failing)
            for (int rank = 0; rank < worldSize(); ++rank)
                shared.window->lock(LockType::Exclusive, rank);
        shared.heap->barrier(); // serves locks
        const auto happens = [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the others wait by then
            fault.happens(shared, scratch);
        };
        test::survive(shared.comm(), {.rank = failing,
                                      .told = fault.told,
                                      .happens = happens,
                                      .call = [&] { call.make(shared, scratch, failing); },
                                      .recover =
                                          [&] {
                                              scratch.reset(); // waits for no other rank
                                              recover(shared.comm());
                                          },
                                      .callsWait = true});
    }
};

TEST_P(Failures, AreToldToAllRanksWhichRecoverTogether) {
    const auto &[fault, call] = GetParam();
    Shared shared;
    for (const int failing : {0, worldSize() - 1}) {
        failAndRecover(shared, fault, call, failing);
        shared.expectAllIsWell();
    }
}

INSTANTIATE_TEST_SUITE_P(OfOneRank, Failures, testing::Combine(testing::ValuesIn(faults), testing::ValuesIn(calls)),
                         [](const auto &item) {
                             return fmt::format("{}While{}", std::get<0>(item.param).name,
                                                std::get<1>(item.param).name);
                         });

TEST_F(Failures, LeaveNoMemoryBehind) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
    Shared shared;
    std::size_t before = 0;
    for (int round = 0; round < 30; ++round) {
        if (round == 10) // libraries have made their lazy allocations
            before = test::residentBytes();
        failAndRecover(shared, faults[1 - round % 2], calls[static_cast<std::size_t>(round) % std::size(calls)],
                       round % worldSize());
    }
    EXPECT_LT(test::residentBytes(), before + (std::size_t{6} << 20U)) << "bytes after 20 failures; before: " << before;
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
        messageOf<RevokedError>([&] { faults[3].happens(shared, scratch); });
    recover(shared.comm());
    if (scratch != nullptr) {
        scratch->putValue(word, 1, 1); // to memory that is kept
        expectContains(messageOf<StateError>([&] { scratch->barrier(); }), "scratch: rank 1 destroyed it");
        messageOf<StateError>([&] { static_cast<void>(scratch->waitUntil(word, Comparison::Equal, 7)); });
    }
    shared.expectAllIsWell();
    scratch.reset(); // waits for no other rank
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
        const int holds = text.find(where) != std::string::npos ? 1 : 0; // two ranks may time out at once
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
