#include "HeapTest.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/OneSided/Window.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOf;
using test::messageOnAll;
using test::refused;
using test::worldRank;
using test::worldSize;

MPI_Op mpiOp(AccumulateOp op) {
    switch (op) {
    case AccumulateOp::Sum:
        return MPI_SUM;
    case AccumulateOp::Min:
        return MPI_MIN;
    case AccumulateOp::Max:
        return MPI_MAX;
    case AccumulateOp::BitAnd:
        return MPI_BAND;
    case AccumulateOp::BitOr:
        return MPI_BOR;
    case AccumulateOp::Replace:
        return MPI_REPLACE;
    case AccumulateOp::NoOp:
        break;
    }
    return MPI_NO_OP;
}

/// The same calls on both kinds of window.
class OurWindow {
  public:
    explicit OurWindow(std::size_t words) : window(Window::allocate(MPI_COMM_WORLD, words * 8, 8)), words_(words) {}
    void lock(LockType type, int rank) { window.lock(type, rank); }
    void unlock(int rank) { window.unlock(rank); }
    void put(const std::int64_t *from, std::size_t n, int rank, std::size_t at) { window.put(from, n, rank, at); }
    void get(std::int64_t *to, std::size_t n, int rank, std::size_t at) { window.get(to, n, rank, at); }
    template <class T>
    void accumulate(const T *from, std::size_t n, int rank, std::size_t at, AccumulateOp op) {
        window.accumulate(from, n, rank, at, op);
    }
    void getAccumulate(const std::int64_t *from, std::int64_t *result, std::size_t n, int rank, std::size_t at,
                       AccumulateOp op) {
        window.getAccumulate(from, result, n, rank, at, op);
    }
    void fetchAndOp(std::int64_t from, std::int64_t *result, int rank, std::size_t at, AccumulateOp op) {
        *result = window.fetchAndOp(from, rank, at, op);
    }
    void compareAndSwap(std::int64_t from, std::int64_t compare, std::int64_t *result, int rank, std::size_t at) {
        *result = window.compareAndSwap(from, compare, rank, at);
    }
    void barrier() { window.barrier(); }
    std::vector<std::int64_t> memory() {
        const auto *base = static_cast<const std::int64_t *>(window.sharedQuery(worldRank()).base);
        return {base, base + words_};
    }

    Window window;

  private:
    std::size_t words_;
};

class MpiWindow {
  public:
    explicit MpiWindow(std::size_t words) : memory_(words) {
        MPI_Win_create(memory_.data(), static_cast<MPI_Aint>(words * 8), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    }
    MpiWindow(const MpiWindow &) = delete;
    MpiWindow &operator=(const MpiWindow &) = delete;
    ~MpiWindow() { MPI_Win_free(&window_); }
    void lock(LockType type, int rank) {
        MPI_Win_lock(type == LockType::Shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, rank, 0, window_);
    }
    void unlock(int rank) { MPI_Win_unlock(rank, window_); }
    void put(const std::int64_t *from, std::size_t n, int rank, std::size_t at) {
        const auto count = static_cast<int>(n);
        MPI_Put(from, count, MPI_INT64_T, rank, static_cast<MPI_Aint>(at), count, MPI_INT64_T, window_);
        MPI_Win_flush(rank, window_); // the buffers of the test are changed at once
    }
    void get(std::int64_t *to, std::size_t n, int rank, std::size_t at) {
        const auto count = static_cast<int>(n);
        MPI_Win_flush(rank, window_);
        MPI_Get(to, count, MPI_INT64_T, rank, static_cast<MPI_Aint>(at), count, MPI_INT64_T, window_);
        MPI_Win_flush(rank, window_);
    }
    template <class T>
    void accumulate(const T *from, std::size_t n, int rank, std::size_t at, AccumulateOp op) {
        const auto count = static_cast<int>(n);
        const MPI_Datatype type = mpiTypeOf<T>();
        MPI_Accumulate(from, count, type, rank, static_cast<MPI_Aint>(at), count, type, mpiOp(op), window_);
        MPI_Win_flush(rank, window_);
    }
    void getAccumulate(const std::int64_t *from, std::int64_t *result, std::size_t n, int rank, std::size_t at,
                       AccumulateOp op) {
        const auto count = static_cast<int>(n);
        MPI_Get_accumulate(from, count, MPI_INT64_T, result, count, MPI_INT64_T, rank, static_cast<MPI_Aint>(at), count,
                           MPI_INT64_T, mpiOp(op), window_);
        MPI_Win_flush(rank, window_);
    }
    void fetchAndOp(std::int64_t from, std::int64_t *result, int rank, std::size_t at, AccumulateOp op) {
        MPI_Fetch_and_op(&from, result, MPI_INT64_T, rank, static_cast<MPI_Aint>(at), mpiOp(op), window_);
        MPI_Win_flush(rank, window_);
    }
    void compareAndSwap(std::int64_t from, std::int64_t compare, std::int64_t *result, int rank, std::size_t at) {
        MPI_Compare_and_swap(&from, &compare, result, MPI_INT64_T, rank, static_cast<MPI_Aint>(at), window_);
        MPI_Win_flush(rank, window_);
    }
    void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
    std::vector<std::int64_t> memory() {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, worldRank(), 0, window_);
        std::vector<std::int64_t> copy = memory_;
        MPI_Win_unlock(worldRank(), window_);
        return copy;
    }

  private:
    std::vector<std::int64_t> memory_;
    MPI_Win window_ = MPI_WIN_NULL;
};

/// Words of each rank's memory: first the words with one writer each, then integers and reals that all change.
constexpr std::size_t perWriter = 6, shared = 8, reals = 4;

/// A random epoch on a random rank; what was fetched goes to `seen`.
template <class AnyWindow>
void epoch(AnyWindow &window, std::mt19937_64 &random, int round, std::vector<std::int64_t> &seen) {
    const int target = static_cast<int>(random() % static_cast<unsigned>(worldSize()));
    const std::size_t mine = perWriter * static_cast<std::size_t>(worldRank());
    const std::size_t ours = perWriter * static_cast<std::size_t>(worldSize());
    std::int64_t values[3], result[3] = {0, 0, 0};
    for (std::int64_t &value : values)
        value = static_cast<std::int64_t>(random() % 10000) - 4000;
    // One operation a round on words that all change, so that their order does not show
    constexpr AccumulateOp commuting[] = {AccumulateOp::Sum, AccumulateOp::Min, AccumulateOp::Max, AccumulateOp::BitAnd,
                                          AccumulateOp::BitOr};
    const AccumulateOp op = commuting[round % 5];
    window.lock(random() % 3 == 0 ? LockType::Exclusive : LockType::Shared, target);
    for (unsigned k = 0; k < 6; ++k) {
        const std::size_t at = mine + random() % 3;
        const auto any = static_cast<AccumulateOp>(random() % 7);
        switch (random() % 7) {
        case 0:
            window.put(values, 3, target, at);
            break;
        case 1:
            window.get(result, 3, target, at);
            break;
        case 2:
            window.getAccumulate(values, result, 3, target, at, any);
            break;
        case 3:
            window.fetchAndOp(values[0], result, target, at, any);
            break;
        case 4:
            window.fetchAndOp(0, result + 1, target, at, AccumulateOp::NoOp);
            window.compareAndSwap(values[1], random() % 2 == 0 ? result[1] : values[2], result, target, at);
            break;
        case 5:
            window.accumulate(values, 3, target, ours + random() % (shared - 2), op);
            break;
        default:
            const double terms[2] = {static_cast<double>(values[0]) * 0.125, 2.0};
            window.accumulate(terms, 2, target, ours + shared + random() % (reals - 1), AccumulateOp::Sum);
        }
        seen.insert(seen.end(), result, result + 3);
    }
    window.unlock(target);
}

TEST(Window, EndsWithTheBitsOfMpisWindow) {
    const std::size_t words = perWriter * static_cast<std::size_t>(worldSize()) + shared + reals;
    OurWindow ours(words);
    MpiWindow theirs(words);
    for (int round = 0; round < 25; ++round) {
        std::mt19937_64 random(test::rankSeed(static_cast<std::uint64_t>(round)));
        std::mt19937_64 again = random;
        std::vector<std::int64_t> seen, seenByMpi;
        for (int k = 0; k < 4; ++k)
            epoch(ours, random, round, seen);
        ours.barrier();
        for (int k = 0; k < 4; ++k)
            epoch(theirs, again, round, seenByMpi);
        theirs.barrier();
        ASSERT_EQ(seen, seenByMpi) << "round " << round;
        ASSERT_EQ(ours.memory(), theirs.memory()) << "round " << round;
        ours.barrier();
        theirs.barrier();
    }
}

TEST(Window, ExclusiveLocksExcludeAndSharedOnesDoNot) {
    Window window = Window::allocate(MPI_COMM_WORLD, 64, 8);
    const int home = worldSize() - 1;
    constexpr int turns = 50;
    std::mt19937 random(static_cast<unsigned>(test::rankSeed()));
    for (int k = 0; k < turns; ++k) {
        if (random() % 2 == 0) { // readers see both words change together
            std::int64_t both[2];
            window.lock(LockType::Shared, home);
            window.get(both, 2, home, 0);
            window.unlock(home);
            ASSERT_EQ(both[0], both[1]);
        }
        std::int64_t value = 0;
        window.lock(LockType::Exclusive, home);
        window.get(&value, 1, home, 0);
        ++value;
        window.put(&value, 1, home, 0);
        window.put(&value, 1, home, 1);
        window.unlock(home);
    }
    window.barrier();
    window.lockAll();
    std::int64_t sum = 0;
    window.get(&sum, 1, home, 0);
    EXPECT_EQ(sum, turns * worldSize());
    window.barrier(); // all hold shared locks at once
    window.unlockAll();
    window.barrier();
}

TEST(Window, SizesAndUnitsMayDiffer) {
    const auto bytesOf = [](int rank) { return static_cast<std::size_t>(rank) * 16; };
    Window window = Window::allocate(MPI_COMM_WORLD, bytesOf(worldRank()), worldRank() % 2 == 0 ? 8 : 4);
    for (int rank = 0; rank < worldSize(); ++rank) {
        const Window::Shared theirs = window.sharedQuery(rank);
        EXPECT_EQ(theirs.bytes, bytesOf(rank));
        EXPECT_EQ(theirs.displacementUnit, rank % 2 == 0 ? 8U : 4U);
    }
    window.lockAll();
    const std::int32_t value = worldRank();
    for (int rank = 1; rank < worldSize(); ++rank)
        window.accumulate(&value, 1, rank, rank % 2 == 0 ? 1 : 2, AccumulateOp::Sum); // byte 8
    window.barrier();
    if (worldRank() > 0) {
        std::int32_t sum = 0;
        std::memcpy(&sum, static_cast<const std::byte *>(window.sharedQuery(worldRank()).base) + 8, 4);
        EXPECT_EQ(sum, worldSize() * (worldSize() - 1) / 2);
    }
    expectContains(refused<IndexError>([&] { window.put(&value, 1, 0, 0); }), "beyond the end, which is at 0");
    window.barrier();
}

TEST(Window, IsMadeOverArraysAndHeaps) {
    std::vector<double> mine(10, worldRank());
    SymmetricHeap heap(MPI_COMM_WORLD, 4096);
    const auto inHeap = heap.allocate<double>(10);
    std::fill(inHeap.local(), inHeap.local() + 10, worldRank());
    {
        Window overArray = Window::create(MPI_COMM_WORLD, mine.data(), 80, 8);
        Window overHeap = Window::create(heap, inHeap, 10);
        const int next = test::next();
        const double term = 0.5;
        for (Window *window : {&overArray, &overHeap}) {
            window->lock(LockType::Shared, next);
            window->put(&term, 1, next, 2);
            for (int k = 0; k < 8; ++k)
                window->accumulate(&term, 1, next, 5, AccumulateOp::Sum);
            EXPECT_EQ(window->fetchAndOp(0.0, next, 5, AccumulateOp::NoOp), next + 4.0);
            window->unlock(next);
            window->barrier();
        }
        for (const double *values :
             {static_cast<const double *>(mine.data()), static_cast<const double *>(inHeap.local())}) {
            EXPECT_EQ(values[2], 0.5);
            EXPECT_EQ(values[5], worldRank() + 4.0);
            EXPECT_EQ(values[0], worldRank());
        }
        overHeap.barrier();
    }
    heap.barrier();
}

TEST(Window, WrongUseSaysWhatIsWrong) {
    Window window = Window::allocate(MPI_COMM_WORLD, 80, 8, {{"name", "the window of the test"}});
    EXPECT_EQ(window.info()["name"], "the window of the test");
    const std::int64_t value = 1;
    const double real = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    std::string text = messageOf<StateError>([&] { window.put(&value, 1, 0, 2); });
    expectContains(text, "the window of the test: put of 8 bytes at offset 16 of rank 0: the window is not locked");
    expectContains(messageOf<StateError>([&] { window.unlock(0); }), "the window of the test: unlock on rank 0: the");
    messageOf<StateError>([&] { window.flush(0); });
    expectContains(messageOf<StateError>([&] { window.flushAll(); }),
                   "the window of the test: flush: no rank is locked");
    messageOf<StateError>([&] { window.flushLocalAll(); });
    text = messageOf<IndexError>([&] { window.lock(LockType::Shared, worldSize()); });
    expectContains(text, fmt::format("lock on rank {}: ranks are 0 to", worldSize()));
    recover(MPI_COMM_WORLD);
    window.lock(LockType::Shared, worldRank());
    window.flushAll();
    window.flushLocalAll();
    MPI_Barrier(MPI_COMM_WORLD);
    text = messageOf<StateError>([&] { window.lock(LockType::Shared, worldRank()); });
    expectContains(text,
                   fmt::format("the window of the test: lock on rank {}: this rank has a lock of it", worldRank()));
    messageOf<IndexError>([&] { window.put(&value, 1, worldRank(), 10); });
    messageOf<IndexError>([&] { window.put(&value, 1, worldRank(), SIZE_MAX / 4); });
    for (const std::size_t count : {(std::size_t{1} << 61U) + 1, SIZE_MAX}) { // bytes beyond 64 bits
        std::int64_t result = 0;
        messageOf<IndexError>([&] { window.put(&value, count, worldRank(), 0); });
        messageOf<IndexError>([&] { window.get(&result, count, worldRank(), 0); });
        messageOf<IndexError>([&] { window.accumulate(&value, count, worldRank(), 0, AccumulateOp::Sum); });
        messageOf<IndexError>([&] { window.getAccumulate(&value, &result, count, worldRank(), 0, AccumulateOp::Sum); });
    }
    messageOf<ArgumentError>([&] { window.accumulate(&real, 1, worldRank(), 0, AccumulateOp::BitOr); });
    recover(MPI_COMM_WORLD);
    messageOnAll<ArgumentError>([] { Window::allocate(MPI_COMM_WORLD, 8, worldRank() == 0 ? 0 : 1); });
    messageOnAll<ArgumentError>([] { Window::allocate(MPI_COMM_WORLD, 8, 1, {{"mpi_alloc_memory_kind", "tape"}}); });
    messageOnAll<ArgumentError>([] { Window::create(MPI_COMM_WORLD, nullptr, 8, 1); });
    Window crooked = Window::allocate(MPI_COMM_WORLD, 80, 1);
    crooked.lock(LockType::Shared, worldRank());
    expectContains(refused<ArgumentError>([&] { crooked.accumulate(&value, 1, worldRank(), 3, AccumulateOp::Sum); }),
                   "multiples of their size");
    crooked.barrier();
}

TEST(Window, LocksAllRanksOrNone) {
    Window window = Window::allocate(MPI_COMM_WORLD, 80, 8);
    const std::int64_t value = 1;
    const int last = worldSize() - 1;
    window.lock(LockType::Shared, last);
    window.barrier(); // serves the others' locks
    MPI_Barrier(MPI_COMM_WORLD);
    messageOf<StateError>([&] { window.lockAll(); });
    if (last > 0) {
        messageOf<StateError>([&] { window.put(&value, 1, 0, 0); });
        messageOf<StateError>([&] { window.unlockAll(); });
        recover(MPI_COMM_WORLD); // releases all locks
    } else {
        window.put(&value, 1, last, 0);
        window.unlock(last);
    }
    window.lockAll();
    window.unlockAll();
    window.barrier();
}

TEST(Window, IsNotMadeBeyondAnAllocation) {
    SymmetricHeap heap(MPI_COMM_WORLD, 8192), other(MPI_COMM_WORLD, 8192);
    const auto values = heap.allocate<std::int64_t>(8), freed = heap.allocate<std::int64_t>(8);
    heap.free(freed);
    messageOnAll<IndexError>([&] { Window::create(heap, values, worldRank() == 0 ? 1000 : 8); });
    messageOnAll<IndexError>([&] { Window::create(heap, values, (std::size_t{1} << 61U) + 1); });
    messageOnAll<StateError>([&] { Window::create(heap, freed, 8); });
    messageOnAll<ArgumentError>([&] { Window::create(heap, SymmetricPointer<std::int64_t>{}, 8); });
    messageOnAll<ArgumentError>([&] { Window::create(other, values, 8); });
    heap.barrier();
}

/// Elements of 8 or 16 bits side by side, of which each rank changes its own.
template <class T>
class WindowsOfNarrow : public testing::Test {};
using Narrow = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>;
TYPED_TEST_SUITE(WindowsOfNarrow, Narrow);

TYPED_TEST(WindowsOfNarrow, ElementsAreChangedAloneAndAsMpiDoes) {
    using T = TypeParam;
    const auto n = static_cast<std::size_t>(worldSize());
    const auto mine = static_cast<std::size_t>(worldRank());
    Window window = Window::allocate(MPI_COMM_WORLD, (n + 5) * sizeof(T), sizeof(T));
    std::vector<T> memory(n + 5);
    MPI_Win mpi = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(T)), sizeof(T), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &mpi);
    const MPI_Datatype type = mpiTypeOf<T>();
    window.lockAll();
    MPI_Win_lock_all(0, mpi);
    constexpr AccumulateOp operations[] = {AccumulateOp::Sum, AccumulateOp::Min, AccumulateOp::Max,
                                           AccumulateOp::BitAnd, AccumulateOp::BitOr};
    for (int round = 0; round < 100; ++round)
        for (int rank = 0; rank < worldSize(); ++rank) {
            const auto value = static_cast<T>(37 * round + 11 * worldRank() + 5);
            window.accumulate(&value, 1, rank, mine, AccumulateOp::Sum); // the elements beside it are others'
            MPI_Accumulate(&value, 1, type, rank, static_cast<MPI_Aint>(mine), 1, type, MPI_SUM, mpi);
            for (std::size_t k = 0; k < 5; ++k) {
                window.accumulate(&value, 1, rank, n + k, operations[k]);
                MPI_Accumulate(&value, 1, type, rank, static_cast<MPI_Aint>(n + k), 1, type, mpiOp(operations[k]), mpi);
            }
            MPI_Win_flush(rank, mpi);
        }
    window.barrier();
    MPI_Win_unlock_all(mpi);
    MPI_Barrier(MPI_COMM_WORLD);
    const T *own = static_cast<const T *>(window.own());
#if defined(MPICH_VERSION) // 4.0 compares unsigned bytes as signed ones
    if (std::is_same_v<T, std::uint8_t>)
        std::copy_n(own + n + 1, 2, memory.begin() + static_cast<std::ptrdiff_t>(n) + 1);
#endif
    EXPECT_EQ(std::vector<T>(own, own + n + 5), memory);
    window.barrier();
    const int next = test::next();
    const T before = window.fetchAndOp(T{}, next, mine, AccumulateOp::NoOp);
    EXPECT_EQ(window.compareAndSwap(T{3}, static_cast<T>(before + 1), next, mine), before) << "fails";
    EXPECT_EQ(window.compareAndSwap(T{3}, before, next, mine), before);
    EXPECT_EQ(window.fetchAndOp(T{9}, next, mine, AccumulateOp::Replace), T{3});
    window.barrier();
    const auto previous = static_cast<std::size_t>(test::previous());
    EXPECT_EQ(window.waitUntil(previous, Comparison::Equal, T{9}), T{9});
    for (std::size_t k = 0; k < n; ++k)
        if (k != previous) {
            EXPECT_EQ(own[k], memory[k]);
        }
    expectContains(refused<IndexError>([&] { window.fetchAndOp(T{}, next, n + 5, AccumulateOp::NoOp); }), "beyond");
    window.barrier();
    MPI_Win_free(&mpi);
}

TEST(Window, OfMpiSharedMemoryIsInOnePiece) {
    const auto bytesOf = [](int rank) { return static_cast<std::size_t>(rank % 3) * 24; };
    const NodeTopology &node = CommunicatorContext::of(MPI_COMM_WORLD)->node();
    if (worldSize() > 1 && node.members.size() < static_cast<std::size_t>(worldSize())) {
        expectContains(messageOnAll<StateError>([&] { Window::allocateShared(MPI_COMM_WORLD, 8, 8); }), "splitNode");
        return;
    }
    Window window = Window::allocateShared(MPI_COMM_WORLD, bytesOf(worldRank()), 8);
    auto *at = static_cast<std::byte *>(window.sharedQuery(0).base);
    for (int rank = 0; rank < worldSize(); ++rank) {
        const Window::Shared part = window.sharedQuery(rank);
        EXPECT_EQ(part.base, at) << "rank " << rank;
        EXPECT_EQ(part.bytes, bytesOf(rank));
        at += part.bytes;
    }
    EXPECT_EQ(window.own(), window.sharedQuery(worldRank()).base);
    auto *all = static_cast<std::int64_t *>(window.sharedQuery(0).base);
    const auto words = static_cast<std::size_t>(at - reinterpret_cast<std::byte *>(all)) / 8;
    EXPECT_EQ(std::count(all, all + words, 0), static_cast<std::ptrdiff_t>(words)) << "zeroed";
    window.barrier();
    window.lockAll();
    const std::int64_t one = 1;
    for (int rank = 0; rank < worldSize(); ++rank)
        for (std::size_t k = 0; k < bytesOf(rank) / 8; ++k)
            window.accumulate(&one, 1, rank, k, AccumulateOp::Sum);
    window.unlockAll();
    window.barrier();
    EXPECT_EQ(std::count(all, all + words, worldSize()), static_cast<std::ptrdiff_t>(words));
    window.barrier();
    messageOnAll<ArgumentError>([] {
        Window::allocateShared(MPI_COMM_WORLD, 8, 8, {{"mpi_alloc_memory_kind", "gpu:device"}});
    });
}

TEST(Window, ARankThatWatchesItsMemoryServesOthers) {
    std::int64_t words[2] = {0, 0}; // not mapped by others: locks and atomic operations may come as messages
    Window window = Window::create(MPI_COMM_WORLD, words, sizeof words, 8);
    window.barrier();
    constexpr std::int64_t requests = 30;
    if (worldRank() == 0) {
        const std::int64_t all = requests * (worldSize() - 1);
        if (all > 0) {
            while (!window.test(0, Comparison::GreaterOrEqual, all / 2)) { // serves, whatever MPI's threads
            }
        }
        EXPECT_EQ(window.waitUntil(0, Comparison::GreaterOrEqual, all), all);
        EXPECT_EQ(words[0], all);
        std::int64_t done = 0;
        while (done < worldSize() - 1) { // a loop of the program's own
            window.progress();
            done = Atomics::apply(&words[1], AtomicOp::Fetch, std::int64_t{});
        }
    } else {
        for (std::int64_t k = 0; k < requests; ++k) {
            window.lock(k % 2 == 0 ? LockType::Shared : LockType::Exclusive, 0);
            window.fetchAndOp(std::int64_t{1}, 0, 0, AccumulateOp::Sum);
            window.unlock(0);
        }
        window.lock(LockType::Shared, 0);
        window.fetchAndOp(std::int64_t{1}, 0, 1, AccumulateOp::Sum);
        window.unlock(0);
    }
    window.barrier();
    expectContains(refused<IndexError>([&] { window.test(2, Comparison::Equal, std::int64_t{0}); }), "wait");
    window.barrier();
}

TEST(Window, SaysWhereItIsAndWhatKernelsMayDo) {
    Window window = Window::allocate(MPI_COMM_WORLD, 80, 8, {{"unknown", "kept by nobody"}});
    EXPECT_EQ(
        window.info(),
        (WindowInfo{{"name", "a window"}, {"mpi_alloc_memory_kind", "system"}, {"win_populate_to_device", "false"}}));
    EXPECT_EQ(window.residing(), MemorySpace::Host);
    window.view(); // for kernels on the host
    if (!Device::available()) {
        messageOf<NotBuiltError>([&] { window.populateToDevice(); });
        messageOnAll<NotBuiltError>([] {
            Window::allocate(MPI_COMM_WORLD, 8, 1, {{"mpi_alloc_memory_kind", "gpu:device"}});
        });
        EXPECT_EQ(whyNoDeviceWindows(MPI_COMM_WORLD), Device::unavailableReason());
    } else {
        expectContains(messageOf<StateError>([&] { window.populateToDevice(); }), "mpi_alloc_memory_kind");
    }
    window.barrier();
}

} // namespace
} // namespace DNDS
