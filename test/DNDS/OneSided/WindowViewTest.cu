// Windows in kernels.

#include "HeapTest.hpp"

#include "../Mpi/ThrowsOnAll.hpp"
#include "DNDS/OneSided/Window.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace DNDS {
namespace {

using test::worldRank;
using test::worldSize;

/// Word 0 counts threads of all ranks, word 1 is their largest number, word 2 + r is what rank r put.
struct OneSidedOnWindow {
    WindowView window;
    DNDS_HOST_DEVICE void operator()(index k) const {
        for (int rank = 0; rank < window.ranks(); ++rank) {
            const std::int64_t one = 1;
            window.accumulate(&one, 1, rank, 0, AccumulateOp::Sum);
            window.fetchAndOp(static_cast<std::int64_t>(k), rank, 1, AccumulateOp::Max);
            std::int64_t seen = window.fetchAndOp(std::int64_t{0}, rank, 2 + window.rank(), AccumulateOp::NoOp);
            while (true) { // adds k by compare-and-swap
                const std::int64_t before = window.compareAndSwap(seen + k, seen, rank, 2 + window.rank());
                if (before == seen)
                    break;
                seen = before;
            }
        }
    }
};

/// Adds 1 to two words by gets and puts, under a lock that the kernel takes.
struct OneSidedLocked {
    WindowView window;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        if (!window.lock(LockType::Exclusive, rank))
            return;
        std::int64_t both[2];
        window.get(both, 2, rank, 0);
        both[0] += 1;
        both[1] += 1;
        window.put(both, 2, rank, 0);
        window.flush(rank);
        window.unlock(rank);
    }
};

/// Locks all ranks, adds to a word of each, looks at what windows say of themselves, and lets others in.
struct OneSidedLocksAll {
    WindowView window;
    std::size_t bytes;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        if (!window.lockAll())
            return;
        const std::int64_t one = 1;
        for (int rank = 0; rank < window.ranks(); ++rank) {
            const WindowShared part = window.sharedQuery(rank);
            const bool well = part.bytes == bytes && part.displacementUnit == 8 &&
                              (rank != window.rank() || part.base == window.own());
            window.accumulate(&one, 1, rank, well ? 0 : 1, AccumulateOp::Sum);
        }
        window.flushAll();
        window.flushLocalAll();
        window.unlockAll();
    }
};

/// Waits until the kernels of all ranks have added to its word 0, then says so in word 1.
struct OneSidedWatches {
    WindowView window;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        const auto all = static_cast<std::int64_t>(window.ranks());
        if (window.waitUntil(0, Comparison::GreaterOrEqual, all) && window.test(0, Comparison::GreaterOrEqual, all))
            static_cast<std::int64_t *>(window.own())[1] = 7;
    }
};

/// Each of these is wrong.
struct OneSidedWrongLocks {
    enum Kind : int { Twice, All, UnlockAll, FlushLocalAll, Query };
    WindowView window;
    Kind kind;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        if (kind == Twice)
            window.lock(LockType::Exclusive, window.rank());
        else if (kind == All)
            window.lockAll();
        else if (kind == UnlockAll)
            window.unlockAll();
        else if (kind == FlushLocalAll)
            window.flushLocalAll();
        else
            window.sharedQuery(window.ranks());
    }
};

/// Nothing but a flush, of one kind.
struct OneSidedFlush {
    enum Kind : int { One, All, Local };
    WindowView window;
    Kind kind;
    int rank;
    DNDS_HOST_DEVICE void operator()(index /*k*/) const {
        if (kind == One)
            window.flush(rank);
        else if (kind == All)
            window.flushAll();
        else
            window.flushLocal(rank);
    }
};

class WindowViews : public test::InBothSpaces {
  protected:
    static Window make(std::size_t words) {
        WindowInfo info;
        if (onDevice())
            info = {{"mpi_alloc_memory_kind", "gpu:device"}, {"win_populate_to_device", "true"}};
        return Window::allocate(MPI_COMM_WORLD, words * 8, 8, info);
    }
    /// For kernels that wait; none where ranks share a GPU.
    static std::optional<WindowView> waitingView(Window &window) {
        try {
            return window.view(KernelWaits::Yes);
        } catch (const StateError &error) {
            test::expectContains(error.what(), "take turns");
            window.barrier();
            return std::nullopt;
        }
    }
    static bool allReached(const Window &window) {
        for (int rank = 0; rank < worldSize(); ++rank)
            if (!onDevice() && window.sharedQuery(rank).base == nullptr)
                return false;
        return true;
    }
};

TEST_P(WindowViews, OperateOnAllRanks) {
    const auto words = static_cast<std::size_t>(2 + worldSize());
    Window window = make(words);
    EXPECT_EQ(window.residing(), GetParam());
    constexpr index threads = 100;
    window.lockAll();
    parallelFor(executor(), threads, OneSidedOnWindow{window.view()});
    executor().synchronize();
    window.barrier();
    std::vector<std::int64_t> seen(words);
    window.get(seen.data(), words, worldRank(), 0);
    EXPECT_EQ(seen[0], threads * worldSize());
    EXPECT_EQ(seen[1], threads - 1);
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(worldSize()); ++rank)
        EXPECT_EQ(seen[2 + rank], threads * (threads - 1) / 2);
    window.unlockAll();
    window.barrier();
}

TEST_P(WindowViews, TakeLocks) {
    Window window = make(2);
    if (!allReached(window))
        GTEST_SKIP() << "ranks on several nodes";
    auto view = waitingView(window);
    if (!view)
        return;
    const int home = worldSize() - 1;
    constexpr int turns = 20;
    for (int turn = 0; turn < turns; ++turn)
        parallelFor(executor(), 1, OneSidedLocked{*view, home});
    executor().synchronize();
    window.barrier();
    window.lock(LockType::Shared, home);
    std::int64_t both[2];
    window.get(both, 2, home, 0);
    window.unlock(home);
    EXPECT_EQ(both[0], turns * worldSize());
    EXPECT_EQ(both[1], turns * worldSize());
    window.barrier();
}

TEST_P(WindowViews, LockAllRanksAndWatchTheirOwnWords) {
    Window window = make(2);
    if (!allReached(window))
        GTEST_SKIP() << "ranks on several nodes";
    EXPECT_EQ(window.sharedQuery(worldRank()).base, onDevice() ? nullptr : window.own());
    EXPECT_NE(window.own(), nullptr);
    auto view = waitingView(window);
    if (!view)
        return;
    EXPECT_EQ(view->residing(), GetParam());
    window.barrier();
    parallelFor(executor(), 1, OneSidedLocksAll{*view, 16});
    parallelFor(executor(), 1, OneSidedWatches{*view});
    executor().synchronize();
    window.barrier();
    window.lock(LockType::Shared, worldRank());
    std::int64_t both[2];
    window.get(both, 2, worldRank(), 0);
    EXPECT_EQ(both[0], worldSize());
    EXPECT_EQ(both[1], 7);
    window.unlock(worldRank());
    window.barrier();
}

TEST_P(WindowViews, WrongLocksAreThrownByTheHost) {
    Window window = make(2);
    auto view = waitingView(window);
    if (!view)
        return;
    const auto textOf = [&](OneSidedWrongLocks::Kind kind) -> std::string {
        parallelFor(executor(), 1, OneSidedWrongLocks{*view, kind});
        executor().synchronize();
        return test::refused<Error>([&] { window.test(0, Comparison::Equal, std::int64_t{0}); });
    };
    test::expectContains(textOf(OneSidedWrongLocks::UnlockAll), "not locked for this rank");
    test::expectContains(textOf(OneSidedWrongLocks::FlushLocalAll), "no rank is locked");
    test::expectContains(textOf(OneSidedWrongLocks::Query), "IndexError");
    for (const auto kind : {OneSidedWrongLocks::Twice, OneSidedWrongLocks::All}) {
        window.lock(LockType::Shared, worldRank());
        test::expectContains(textOf(kind), "has a lock of it already");
        if (worldSize() == 1) { // else recovery has released the lock
            window = make(2);
            view = window.view(KernelWaits::Yes);
        }
    }
    EXPECT_TRUE(window.test(0, Comparison::Equal, std::int64_t{0}));
    window.lock(LockType::Exclusive, worldRank());
    window.unlock(worldRank());
    window.barrier();
}

TEST_P(WindowViews, AccessesWithoutALockAreThrownByTheHost) {
    Window window = make(3 + static_cast<std::size_t>(worldSize()));
    parallelFor(executor(), 1, OneSidedOnWindow{window.view()});
    executor().synchronize();
    test::expectContains(test::refused<StateError>([&] { window.flushAll(); }), "not locked for this rank");
    parallelFor(executor(), 1, OneSidedLocked{window.view(), worldRank()}); // a view that does not wait
    executor().synchronize();
    test::refused<PeerError>([&] { window.flushAll(); });
    window.lock(LockType::Shared, worldRank());
    std::int64_t word = -1;
    window.get(&word, 1, worldRank(), 0);
    window.unlock(worldRank());
    EXPECT_EQ(word, 0);
    window.barrier();
}

TEST_P(WindowViews, FlushesWithoutALockAreThrownByTheHost) {
    Window window = make(2);
    const int home = worldSize() - 1;
    const auto flush = [&](OneSidedFlush::Kind kind, int rank) {
        parallelFor(executor(), 1, OneSidedFlush{window.view(), kind, rank});
        executor().synchronize();
    };
    const auto messageOf = [&] { return test::refused<StateError>([&] { window.lock(LockType::Shared, home); }); };
    for (const auto kind : {OneSidedFlush::One, OneSidedFlush::Local}) {
        flush(kind, home);
        test::expectContains(messageOf(),
                             fmt::format("flush on rank {}: the window is not locked for this rank", home));
        flush(kind, worldSize());
        test::refused<IndexError>([&] { window.lock(LockType::Shared, home); });
    }
    flush(OneSidedFlush::All, home);
    test::expectContains(messageOf(), "in a kernel: a window: flush: no rank is locked");
    window.lock(LockType::Shared, home);
    for (const auto kind : {OneSidedFlush::One, OneSidedFlush::All, OneSidedFlush::Local})
        flush(kind, home);
    window.unlock(home);
    window.barrier();
}

TEST(WindowViewsOfDevices, NeedMemoryThatOthersCanOpen) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    std::vector<double> values(8); // as good as device memory that DNDS did not allocate
    const std::string text = test::messageOnAll<ArgumentError>(
        [&] { Window::create(MPI_COMM_WORLD, values.data(), 64, 8, MemorySpace::Device); });
    test::expectContains(text, "a window: other processes cannot open this memory");
    test::expectContains(text, "Let DNDS allocate it");
}

TEST(WindowViewsOfDevices, LocksAreRefusedWhereTheDevicesHaveNoAtomicOperations) {
    if (Device::name() != "emulated" || worldSize() == 1)
        GTEST_SKIP() << "for several ranks on the emulated device, which pretends";
    ::setenv("DNDS_EMULATED_DEVICE", "no-peer-atomics", 1);
    Window window = Window::allocate(MPI_COMM_WORLD, 16, 8,
                                     {{"mpi_alloc_memory_kind", "gpu:device"}, {"win_populate_to_device", "true"}});
    ::unsetenv("DNDS_EMULATED_DEVICE");
    const int next = test::next();
    const Device::Stream stream;
    parallelFor(Executor::device(stream), 1, OneSidedLocked{window.view(KernelWaits::Yes), next});
    stream.synchronize();
    test::expectContains(test::refused<StateError>([&] { window.flushAll(); }), "atomically");
    test::refused<Error>([&] { window.lock(LockType::Shared, next); });
    window.lock(LockType::Exclusive, worldRank());
    std::int64_t both[2] = {-1, -1};
    window.get(both, 2, worldRank(), 0);
    EXPECT_EQ(both[0], 0) << "what was not locked was not changed";
    window.unlock(worldRank());
    window.barrier();
}

TEST(WindowViewsOfDevices, NeedToBePopulated) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    EXPECT_EQ(whyNoDeviceWindows(MPI_COMM_WORLD), "");
    Window window = Window::allocate(MPI_COMM_WORLD, 8, 8, {{"mpi_alloc_memory_kind", "gpu:device"}});
    EXPECT_EQ(window.residing(), MemorySpace::Host);
    test::expectContains(test::messageOf<StateError>([&] { window.view(); }), "call populateToDevice");
    window.populateToDevice();
    EXPECT_EQ(window.residing(), MemorySpace::Device);
    EXPECT_EQ(window.info().at("win_populate_to_device"), "true");
    window.view();
    window.barrier();
}

INSTANTIATE_TEST_SUITE_P(InBothSpaces, WindowViews, testing::Values(MemorySpace::Host, MemorySpace::Device),
                         test::spaceName);

} // namespace
} // namespace DNDS
