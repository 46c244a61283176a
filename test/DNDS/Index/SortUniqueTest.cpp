#include "DNDS/Index/SortUnique.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace DNDS {
namespace {

constexpr index least = std::numeric_limits<index>::min();
constexpr index most = std::numeric_limits<index>::max();

void expectLikeSet(const std::vector<index> &values, const std::string &name) {
    const std::set<index> set(values.begin(), values.end());
    const std::vector<index> expected(set.begin(), set.end());
    EXPECT_EQ(sortedUnique(values), expected) << name << " of " << values.size() << " values";
}

TEST(SortedUnique, EqualsASetForEveryKindOfList) {
    std::mt19937_64 random(test::rankSeed());
    SCOPED_TRACE(testing::Message() << "DNDS_TEST_SEED=" << test::seed());
    // Around the lengths at which the method changes.
    for (const std::size_t length : {0U, 1U, 2U, 3U, 63U, 64U, 65U, 66U, 127U, 1000U, 5000U}) {
        const auto draw = [&](index from, index to) {
            std::uniform_int_distribution<index> value(from, to);
            std::vector<index> values(length);
            std::generate(values.begin(), values.end(), [&] { return value(random); });
            return values;
        };
        const auto n = static_cast<index>(length) + 1;
        expectLikeSet(draw(0, 3), "many duplicates");
        expectLikeSet(draw(7, 7), "all equal");
        expectLikeSet(draw(-n / 2, n / 2), "dense around zero");
        expectLikeSet(draw(1'000'000'000'000, 1'000'000'000'000 + 2 * n), "dense and far");
        expectLikeSet(draw(0, 63 * n), "just dense enough for a bitmap");
        expectLikeSet(draw(0, 65 * n), "just too sparse for a bitmap");
        expectLikeSet(draw(0, n * n), "sparse");
        expectLikeSet(draw(0, most), "non-negative");
        expectLikeSet(draw(least, most), "the whole range");
        auto ends = draw(least, most);
        ends.insert(ends.end(), {most, least, 0, least, most, -1});
        expectLikeSet(ends, "with both ends");

        std::vector<index> sorted = draw(0, 10 * n);
        std::sort(sorted.begin(), sorted.end());
        expectLikeSet(sorted, "sorted with duplicates");
        std::vector<index> strict = sortedUnique(sorted);
        expectLikeSet(strict, "strictly ascending");
        std::reverse(strict.begin(), strict.end());
        expectLikeSet(strict, "strictly descending");
        std::rotate(strict.begin(), strict.begin() + static_cast<std::ptrdiff_t>(strict.size() / 3), strict.end());
        expectLikeSet(strict, "rotated");
    }
}

TEST(SortedUnique, BitmapsCountEveryBitOfAWord) {
    for (index base : {index{0}, index{-64}, index{1}, index{63}}) {
        std::vector<index> values;
        for (index i = 200; i-- > 0;)
            values.push_back(base + i);
        expectLikeSet(values, "every bit");
        for (index i = 0; i < 200; i += 64)
            values.push_back(base + i);
        expectLikeSet(values, "every bit, some twice");
    }
}

TEST(SortedUnique, RangesOfExactlyOneDigitMoreOrLess) {
    // The radix sort takes 11 bits at a time.
    for (int bits : {11, 12, 21, 22, 23, 33, 44, 55, 62}) {
        std::vector<index> values;
        const index top = (index{1} << bits) - 1;
        for (index i = 0; i < 100; ++i) {
            values.push_back(top - i);
            values.push_back(i * (top / 100));
        }
        expectLikeSet(values, "range of " + std::to_string(bits) + " bits");
        values.push_back(top + 1);
        values.push_back(-1);
        expectLikeSet(values, "range of little more than " + std::to_string(bits) + " bits");
    }
}

} // namespace
} // namespace DNDS
