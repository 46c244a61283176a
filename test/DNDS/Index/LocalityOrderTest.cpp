#include "DNDS/Index/LocalityOrder.hpp"
#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace DNDS {
namespace {

std::size_t runsAfter(const std::vector<index> &order, std::span<const index> rows) {
    const std::vector<index> inverse = inverseOrder(order);
    std::vector<index> renumbered;
    for (const index row : rows)
        renumbered.push_back(inverse[static_cast<std::size_t>(row)]);
    std::sort(renumbered.begin(), renumbered.end());
    std::size_t runs = renumbered.empty() ? 0 : 1;
    for (std::size_t k = 1; k < renumbered.size(); ++k)
        runs += renumbered[k] != renumbered[k - 1] + 1 ? 1U : 0U;
    return runs;
}

TEST(LocalityOrder, innerRowsComeFirstAndKeepTheirOrder) {
    RankLists readers;
    readers.append(1, std::vector<index>{0, 4});
    readers.append(3, std::vector<index>{2, 4});
    EXPECT_EQ(localityOrder(6, readers), (std::vector<index>{1, 3, 5, 0, 4, 2}));
}

TEST(LocalityOrder, twoReadersGetOneRunEach) {
    constexpr index rows = 1000;
    std::mt19937 random(11);
    std::vector<index> all(rows);
    std::iota(all.begin(), all.end(), index{0});
    std::shuffle(all.begin(), all.end(), random);
    std::vector<index> a(all.begin(), all.begin() + 300);
    std::vector<index> b(all.begin() + 200, all.begin() + 500); // 100 rows are read by both
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    RankLists readers;
    readers.append(0, a);
    readers.append(5, b);
    const std::vector<index> order = localityOrder(rows, readers);
    EXPECT_EQ(runsAfter(order, a), 1U);
    EXPECT_EQ(runsAfter(order, b), 1U);
    std::vector<index> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), index{0});
    EXPECT_EQ(sorted, all) << "an order is a permutation";
}

TEST(LocalityOrder, nothingIsToBeDoneWithoutRowsOrReaders) {
    EXPECT_TRUE(localityOrder(0, {}).empty());
    EXPECT_EQ(localityOrder(3, {}), (std::vector<index>{0, 1, 2}));
}

TEST(LocalityOrder, wrongRowsAreErrors) {
    RankLists readers;
    readers.append(1, std::vector<index>{3});
    EXPECT_THROW(localityOrder(3, readers), IndexError);
    EXPECT_THROW(localityOrder(-1, {}), ArgumentError);
}

} // namespace
} // namespace DNDS
