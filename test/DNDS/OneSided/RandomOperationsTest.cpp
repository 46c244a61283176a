// Random operations of all ranks on all ranks, beside a replay on one after the other.

#include "DNDS/OneSided/SymmetricHeap.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using test::worldRank;
using test::worldSize;

constexpr std::size_t words = 24; ///< a rank

/// Operations on one word in a round: either any operations of one rank, in order, or commuting ones of all ranks.
enum class Mode : unsigned { OneWriter, Adds, Maxima, Minima, Bits };

struct Model {
    std::vector<std::int64_t> value = std::vector<std::int64_t>(words * static_cast<std::size_t>(worldSize()));
    std::int64_t &at(int rank, std::size_t word) { return value[static_cast<std::size_t>(rank) * words + word]; }
};

/// One operation of the rank `by`, carried out for real where this is that rank, and in the model everywhere.
void step(SymmetricHeap &heap, SymmetricPointer<std::int64_t> base, Model &model, std::mt19937_64 &random, Mode mode,
          int by, int rank, std::size_t word) {
    const auto pointer = base + static_cast<std::ptrdiff_t>(word);
    const auto operand = static_cast<std::int64_t>(random() % 1000) - 300;
    const bool mine = by == worldRank();
    std::int64_t &value = model.at(rank, word);
    const std::int64_t before = value;
    switch (mode) {
    case Mode::Adds:
        value += operand;
        return mine ? heap.add(pointer, operand, rank) : void();
    case Mode::Maxima:
        value = std::max(value, operand);
        return mine ? heap.max(pointer, operand, rank) : void();
    case Mode::Minima:
        value = std::min(value, operand);
        return mine ? heap.min(pointer, operand, rank) : void();
    case Mode::Bits:
        value |= operand;
        return mine ? heap.bitOr(pointer, operand, rank) : void();
    case Mode::OneWriter:
        break;
    }
    const unsigned what = random() % 8;
    const std::int64_t expected = random() % 2 == 0 ? before : before + 1;
    if (what <= 3)
        value = operand; // puts, set, swap
    else if (what == 4)
        value = expected == before ? operand : before;
    else if (what == 5)
        value = before + operand;
    else if (what == 6)
        value = before & operand;
    if (!mine)
        return;
    heap.fence(); // after what this rank did to the word before
    if (what == 0)
        heap.put(pointer, &operand, 1, rank);
    else if (what == 1) {
        heap.putNbi(pointer, &operand, 1, rank);
        heap.quiet(); // the operand goes
    } else if (what == 2)
        heap.set(pointer, operand, rank);
    else if (what == 3) {
        ASSERT_EQ(heap.swap(pointer, operand, rank), before);
    } else if (what == 4) {
        ASSERT_EQ(heap.compareSwap(pointer, expected, operand, rank), before);
    } else if (what == 5) {
        ASSERT_EQ(heap.fetchAdd(pointer, operand, rank), before);
    } else if (what == 6)
        heap.bitAnd(pointer, operand, rank);
    else {
        heap.quiet();
        ASSERT_EQ(heap.getValue(pointer, rank), before);
    }
}

TEST(RandomOperations, EndAsIfDoneOneAfterTheOther) {
    SymmetricHeap heap(MPI_COMM_WORLD, 1 << 14);
    const auto base = heap.allocate<std::int64_t>(words);
    std::fill(base.local(), base.local() + words, 0);
    heap.barrier();
    Model model;
    std::mt19937_64 shared(test::seed()); // the same on all ranks
    for (int round = 0; round < 15; ++round) {
        for (int rank = 0; rank < worldSize(); ++rank)
            for (std::size_t word = 0; word < words; ++word) {
                const Mode mode = static_cast<Mode>(shared() % 5);
                const int writer = static_cast<int>(shared() % static_cast<unsigned>(worldSize()));
                const auto count = static_cast<int>(shared() % 4);
                for (int by = 0; by < worldSize(); ++by)
                    for (int k = 0; k < count && (mode != Mode::OneWriter || by == writer); ++k)
                        ASSERT_NO_FATAL_FAILURE(step(heap, base, model, shared, mode, by, rank, word))
                            << "round " << round;
            }
        heap.barrier();
        for (std::size_t word = 0; word < words; ++word)
            ASSERT_EQ(base.local()[word], model.at(worldRank(), word)) << "round " << round << ", word " << word;
        const int other = (worldRank() + round) % worldSize();
        std::vector<std::int64_t> got(words);
        heap.get(got.data(), base, words, other);
        for (std::size_t word = 0; word < words; ++word)
            ASSERT_EQ(got[word], model.at(other, word));
        heap.barrier();
    }
}

} // namespace
} // namespace DNDS
