// Operations on many elements in one call, on the same elements by all ranks, against what follows by hand.

#include "HeapTest.hpp"

#include "DNDS/OneSided/Window.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace DNDS {
namespace {

using test::worldRank;
using test::worldSize;

/// The parameter: memory that a node's ranks map, or memory of the program, which others reach by messages.
enum class Memory : unsigned char { Allocated, OfTheProgram };

class WindowBatches : public testing::TestWithParam<Memory> {
  protected:
    /// `n` elements on each rank, all `value`. Collective.
    template <class T>
    Window make(std::size_t n, T value) {
        if (GetParam() == Memory::OfTheProgram)
            memory_.assign(n * sizeof(T) / sizeof(std::int64_t) + 1, 0);
        Window window = GetParam() == Memory::OfTheProgram
                            ? Window::create(MPI_COMM_WORLD, memory_.data(), n * sizeof(T), sizeof(T))
                            : Window::allocate(MPI_COMM_WORLD, n * sizeof(T), sizeof(T));
        std::fill_n(static_cast<T *>(window.own()), n, value);
        window.barrier();
        return window;
    }
    template <class T>
    static std::vector<T> own(const Window &window, std::size_t n) {
        const auto *mine = static_cast<const T *>(window.own());
        return {mine, mine + n};
    }
    /// A window with this rank's batch on each rank, by all ranks at the same time, under locks of `type`.
    template <class T>
    std::vector<T> accumulated(LockType type, T initial, std::size_t n, AccumulateOp op) {
        Window window = make<T>(n, initial);
        const std::vector<T> mine = batch<T>(worldRank(), n);
        for (int k = 0; k < worldSize(); ++k) {
            const int target = (worldRank() + k) % worldSize();
            window.lock(type, target);
            window.accumulate(mine.data(), n, target, 0, op);
            window.unlock(target);
        }
        window.barrier();
        std::vector<T> result = own<T>(window, n);
        window.barrier();
        return result;
    }
    template <class T>
    static std::vector<T> batch(int rank, std::size_t n) {
        std::vector<T> values(n);
        for (std::size_t k = 0; k < n; ++k)
            values[k] = static_cast<T>((7 * k + 31 * static_cast<std::size_t>(rank)) % 101 + 1);
        return values;
    }
    template <class T, class Combine>
    void compare(LockType type, T initial, std::size_t n, AccumulateOp op, const Combine &combine) {
        std::vector<T> expected(n, initial);
        for (int rank = 0; rank < worldSize(); ++rank) {
            const std::vector<T> theirs = batch<T>(rank, n);
            for (std::size_t k = 0; k < n; ++k)
                expected[k] = combine(expected[k], theirs[k]);
        }
        EXPECT_EQ(accumulated<T>(type, initial, n, op), expected)
            << n << " elements, operation " << static_cast<int>(op);
    }

  private:
    std::vector<std::int64_t> memory_; ///< outlives the windows over it
};

TEST_P(WindowBatches, OfAllRanksOnTheSameElementsAreAllThere) {
    const auto plus = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
    const auto least = [](auto a, auto b) { return std::min(a, b); };
    const auto most = [](auto a, auto b) { return std::max(a, b); };
    const auto both = [](auto a, auto b) { return static_cast<decltype(a)>(a & b); };
    const auto either = [](auto a, auto b) { return static_cast<decltype(a)>(a | b); };
    for (const LockType type : {LockType::Shared, LockType::Exclusive}) {
        for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{70000}}) // 560 KB
            compare<double>(type, 0.5, n, AccumulateOp::Sum, plus);
        compare<float>(type, 2, 1001, AccumulateOp::Sum, plus);
        compare<std::int16_t>(type, -5, 1003, AccumulateOp::Sum, plus);
        compare<double>(type, 50, 1000, AccumulateOp::Min, least);
        compare<std::int32_t>(type, 40, 1000, AccumulateOp::Max, most);
        compare<std::uint8_t>(type, 0xff, 1000, AccumulateOp::BitAnd, both);
        compare<std::uint64_t>(type, 0, 1000, AccumulateOp::BitOr, either);
        compare<std::int64_t>(type, 3, 100, AccumulateOp::NoOp, [](auto a, auto /*b*/) { return a; });
    }
}

TEST_P(WindowBatches, FetchWhatTheElementsWereBetweenOthersChanges) {
    constexpr std::size_t n = 300;
    constexpr std::int64_t rounds = 12;
    const int home = worldSize() - 1;
    for (const AccumulateOp op : {AccumulateOp::Sum, AccumulateOp::Replace}) {
        Window window = make<std::int64_t>(n, 0);
        std::vector<std::int64_t> fetched(n * rounds), mine(n);
        for (std::int64_t round = 0; round < rounds; ++round) {
            const std::int64_t number = 1 + worldRank() + worldSize() * round; // differs from those of all others
            std::fill(mine.begin(), mine.end(), op == AccumulateOp::Sum ? 1 : number);
            window.lock((worldRank() + round) % 3 == 0 ? LockType::Exclusive : LockType::Shared, home);
            window.getAccumulate(mine.data(), fetched.data() + n * static_cast<std::size_t>(round), n, home, 0, op);
            window.unlock(home);
        }
        window.barrier();
        std::vector<std::int64_t> last(n);
        window.lock(LockType::Shared, home);
        window.getAccumulate(last.data(), last.data(), n, home, 0, AccumulateOp::NoOp);
        window.unlock(home);
        window.barrier();
        const std::vector<std::int64_t> all =
            CommunicatorView(MPI_COMM_WORLD).allGatherV(std::span<const std::int64_t>(fetched));
        std::vector<std::int64_t> expected(static_cast<std::size_t>(rounds * worldSize()) + 1);
        std::iota(expected.begin(), expected.end(), 0);
        for (std::size_t k = 0; k < n; ++k) { // each value that an element had was fetched once, or is the last one
            std::vector<std::int64_t> seen{last[k]};
            for (std::size_t at = k; at < all.size(); at += n)
                seen.push_back(all[at]);
            std::sort(seen.begin(), seen.end());
            ASSERT_EQ(seen, expected) << "element " << k;
        }
    }
}

TEST_P(WindowBatches, ExclusiveLocksKeepOtherRanksAtomicOperationsOut) {
    constexpr std::size_t n = 64;
    constexpr int turns = 40;
    Window window = make<double>(n, 0);
    const int home = worldSize() - 1;
    const std::vector<double> ones(n, 1);
    for (int turn = 0; turn < turns; ++turn) {
        window.lock((turn + worldRank()) % 2 == 0 ? LockType::Exclusive : LockType::Shared, home);
        window.accumulate(ones.data(), n, home, 0, AccumulateOp::Sum);
        window.fetchAndOp(1.0, home, n / 2, AccumulateOp::Sum);
        window.unlock(home);
    }
    window.barrier();
    if (worldRank() == home) {
        std::vector<double> expected(n, turns * worldSize());
        expected[n / 2] *= 2;
        EXPECT_EQ(own<double>(window, n), expected);
    }
    window.barrier();
}

TEST_P(WindowBatches, CompareAndSwapLosesNoUpdate) {
    constexpr std::size_t n = 8;
    constexpr int turns = 6;
    Window window = make<std::int32_t>(n, 0);
    const int home = worldSize() - 1;
    window.lockAll();
    for (int turn = 0; turn < turns; ++turn)
        for (std::size_t k = 0; k < n; ++k)
            for (std::int32_t expected = 0;;) {
                const std::int32_t seen = window.compareAndSwap(expected + 1, expected, home, k);
                if (seen == expected)
                    break;
                expected = seen;
            }
    window.barrier();
    window.unlockAll();
    if (worldRank() == home) {
        EXPECT_EQ(own<std::int32_t>(window, n), std::vector<std::int32_t>(n, turns * worldSize()));
    }
    window.barrier();
}

INSTANTIATE_TEST_SUITE_P(OfMemory, WindowBatches, testing::Values(Memory::Allocated, Memory::OfTheProgram),
                         [](const testing::TestParamInfo<Memory> &memory) {
                             return memory.param == Memory::Allocated ? "Allocated" : "OfTheProgram";
                         });

} // namespace
} // namespace DNDS
