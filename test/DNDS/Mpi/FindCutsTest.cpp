#include "DNDS/Mpi/FindCuts.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace DNDS {
namespace {

CommunicatorView world() { return CommunicatorView(MPI_COMM_WORLD); }

/// All numbers on every rank, of which rank r counts every `ranks`-th.
void expectCuts(std::vector<std::uint64_t> numbers, int goals) {
    std::sort(numbers.begin(), numbers.end());
    std::vector<index> wanted(static_cast<std::size_t>(goals));
    for (std::size_t k = 0; k < wanted.size(); k++)
        wanted[k] = static_cast<index>(numbers.size()) * static_cast<index>(k) / goals;
    const auto mine = [&](std::uint64_t x) {
        const index all = std::lower_bound(numbers.begin(), numbers.end(), x) - numbers.begin();
        return (all + world().size() - 1 - world().rank()) / world().size();
    };
    const auto cuts = findCuts(world(), wanted, numbers.front(), numbers.back(), mine);
    ASSERT_EQ(cuts.size(), wanted.size());
    for (std::size_t k = 0; k < cuts.size(); k++) {
        // The least number with so many below it is one more than that of the last of these.
        const std::uint64_t expected =
            wanted[k] == 0 ? numbers.front()
                           : std::min(numbers.back(), numbers[static_cast<std::size_t>(wanted[k]) - 1] + 1);
        ASSERT_EQ(cuts[k], expected) << k << " of " << goals;
    }
}

TEST(FindCuts, CutsWhereverNumbersAre) {
    std::mt19937_64 random(17);
    for (const std::uint64_t most :
         {std::uint64_t{10}, std::uint64_t{1} << 40U, std::numeric_limits<std::uint64_t>::max()}) {
        std::vector<std::uint64_t> numbers(2000);
        for (std::uint64_t &number : numbers)
            number = std::uniform_int_distribution<std::uint64_t>(0, most)(random);
        for (const int goals : {1, 7, most == 10 ? 5000 : 50}) // 15 trials a reduction for few, one for very many
            expectCuts(numbers, goals);
        for (std::uint64_t &number : numbers)
            number = most - number / 1'000'000;
        expectCuts(numbers, 13);
    }
}

TEST(FindCuts, HasNothingToCut) {
    const auto none = [](std::uint64_t) { return index{0}; };
    EXPECT_TRUE(findCuts(world(), {}, 0, 100, none).empty());
    const std::vector<index> goals{0, 1};
    EXPECT_EQ(findCuts(world(), goals, 5, 100, none), (std::vector<std::uint64_t>{5, 100}));
    EXPECT_EQ(findCuts(world(), goals, 5, 5, none), (std::vector<std::uint64_t>{5, 5}));
}

} // namespace
} // namespace DNDS
