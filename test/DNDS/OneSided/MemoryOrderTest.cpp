// Litmus tests: what ranks may see of each other's accesses, in many random interleavings. Named as in the literature.

#include "DNDS/OneSided/SymmetricHeap.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using test::worldRank;
using test::worldSize;

/// Two words a try for each pair of ranks (0, 1), (2, 3), ..., on both ranks of it, and how far each rank has come.
class Pair {
  public:
    explicit Pair(std::size_t tries)
        : heap(MPI_COMM_WORLD, tries * 2 * sizeof(std::int64_t) + (1 << 14)), first(worldRank() % 2 == 0),
          partner(first ? worldRank() + 1 : worldRank() - 1), alone(partner >= worldSize()),
          near(!alone && heap.path(partner).find("stores") != std::string::npos),
          words(heap.allocate<std::int64_t>(2 * tries)), come(heap.allocate<std::int64_t>(1)) {
        std::fill(words.local(), words.local() + 2 * tries, 0);
        *come.local() = 0;
        heap.barrier();
    }
    /// The same place for both: word `which` of try `k` lives on the first rank for 0, on the second one for 1.
    int home(int which) const { return first == (which == 0) ? worldRank() : partner; }
    SymmetricPointer<std::int64_t> word(std::size_t k, int which) const {
        return words + static_cast<std::ptrdiff_t>(2 * k) + which;
    }
    /// Comes to try `k` about when the partner does; a few turns are enough of a chance.
    void meet(std::size_t k) {
        if (!near)
            return;
        Atomics::storeRelease(come.at(partner), static_cast<std::int64_t>(k));
        for (int turn = 0; turn < 2000 && Atomics::loadAcquire(come.local()) < static_cast<std::int64_t>(k); ++turn) {
        }
        for (std::size_t turn = 0; turn < (k * 2654435761U >> 5U) % 16; ++turn)
            Atomics::fenceRelease();
    }
    std::vector<std::int64_t> ofPartner(const std::vector<std::int64_t> &mine) const {
        std::vector<std::int64_t> theirs(mine.size());
        MPI_Sendrecv(mine.data(), static_cast<int>(mine.size()), MPI_INT64_T, partner, 0, theirs.data(),
                     static_cast<int>(mine.size()), MPI_INT64_T, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return theirs;
    }

    SymmetricHeap heap;
    bool first;
    int partner;
    bool alone;
    bool near;
    SymmetricPointer<std::int64_t> words;
    SymmetricPointer<std::int64_t> come;
};

std::size_t tries() {
    SymmetricHeap heap(MPI_COMM_WORLD, 128);
    bool far = false;
    for (int rank = 0; rank < worldSize(); ++rank)
        far = far || heap.path(rank).find("MPI") != std::string::npos;
    const bool anyFar = CommunicatorView(MPI_COMM_WORLD).allReduce(far ? 1 : 0, MPI_MAX) != 0;
    return anyFar ? 2000 : worldSize() <= 2 ? 100000 : 20000;
}

/// Both ranks of a pair store to one word and load the other, in one order or the other; what they saw.
std::vector<std::pair<bool, bool>> seenByPairs(bool loadFirst) {
    const std::size_t n = tries();
    Pair pair(n);
    std::vector<std::int64_t> seen(n);
    const int mine = pair.first == loadFirst ? 1 : 0;
    for (std::size_t k = 0; k < n && !pair.alone; ++k) {
        pair.meet(k);
        const auto load = [&] { seen[k] = pair.heap.getValue(pair.word(k, 1 - mine), pair.home(1 - mine)); };
        if (loadFirst)
            load();
        pair.heap.putValue(pair.word(k, mine), 1, pair.home(mine));
        if (!loadFirst) {
            pair.heap.quiet();
            load();
        }
    }
    pair.heap.barrier();
    std::vector<std::pair<bool, bool>> both;
    if (pair.alone)
        return both;
    const auto theirs = pair.ofPartner(seen);
    for (std::size_t k = 0; k < n; ++k)
        both.emplace_back(seen[k] == 1, theirs[k] == 1);
    return both;
}

TEST(MemoryOrder, StoreBuffering) {
    for (const auto &[mine, theirs] : seenByPairs(false))
        ASSERT_TRUE(mine || theirs) << "neither rank saw the other's store";
}

TEST(MemoryOrder, LoadBuffering) {
    for (const auto &[mine, theirs] : seenByPairs(true))
        ASSERT_FALSE(mine && theirs) << "both ranks saw what came after their loads";
}

TEST(MemoryOrder, MessagePassing) {
    const std::size_t n = tries();
    Pair pair(n);
    for (std::size_t k = 0; k < n && !pair.alone; ++k) {
        pair.meet(k);
        const auto value = static_cast<std::int64_t>(k + 1);
        if (pair.first) { // both words in the partner's memory
            pair.heap.putValue(pair.word(k, 0), value, pair.partner);
            pair.heap.fence();
            pair.heap.set(pair.word(k, 1), value, pair.partner);
        } else {
            const int polls = k % 3 == 0 ? 100000 : 3;
            for (int poll = 0; poll < polls; ++poll)
                if (pair.heap.test(pair.word(k, 1), Comparison::Equal, value)) {
                    ASSERT_EQ(pair.heap.getValue(pair.word(k, 0), worldRank()), value) << "try " << k;
                    break;
                }
        }
    }
    pair.heap.barrier();
}

TEST(MemoryOrder, TicketsAreGivenOnce) {
    const auto n = static_cast<std::int64_t>(std::min<std::size_t>(tries(), 20000));
    SymmetricHeap heap(MPI_COMM_WORLD, 4096);
    const auto counter = heap.allocate<std::int64_t>(1);
    const auto owner = heap.allocate<std::uint32_t>(1);
    *counter.local() = 0;
    *owner.local() = 0;
    heap.barrier();
    const int home = worldSize() - 1;
    std::vector<std::int64_t> mine;
    for (std::int64_t k = 0; k < n; ++k)
        mine.push_back(heap.fetchAdd(counter, 1, home));
    heap.barrier();
    ASSERT_TRUE(std::is_sorted(mine.begin(), mine.end())) << "later tickets are higher";
    auto all = CommunicatorView(MPI_COMM_WORLD).allGatherV(std::span<const std::int64_t>(mine));
    std::sort(all.begin(), all.end());
    for (std::size_t k = 0; k < all.size(); ++k)
        ASSERT_EQ(all[k], static_cast<std::int64_t>(k));
    EXPECT_EQ(heap.fetch(counter, home), n * worldSize());
    // A lock by compare-and-swap: what it guards is changed by plain puts and gets
    const auto guarded = heap.allocate<std::int64_t>(1);
    *guarded.local() = 0;
    heap.barrier();
    const std::int64_t turns = n <= 2000 ? 20 : 200;
    for (std::int64_t k = 0; k < turns; ++k) {
        while (heap.compareSwap(owner, 0U, static_cast<std::uint32_t>(worldRank() + 1), home) != 0) {
            heap.progress();
            std::this_thread::yield();
        }
        heap.putValue(guarded, heap.getValue(guarded, home) + 1, home);
        heap.quiet();
        heap.set(owner, 0U, home);
    }
    heap.barrier();
    EXPECT_EQ(heap.getValue(guarded, home), turns * worldSize());
    heap.barrier();
}

} // namespace
} // namespace DNDS
