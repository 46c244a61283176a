#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>
#include <vector>

namespace DNDS::Geom {
namespace {

TEST(IndexPermutation, IsABijectionOfEverySmallRange) {
    for (index size = 0; size <= 300; size++)
        for (std::uint64_t seed = 0; seed < 3; seed++) {
            const IndexPermutation permutation(size, seed);
            std::set<index> images;
            for (index i = 0; i < size; i++) {
                const index image = permutation(i);
                ASSERT_GE(image, 0);
                ASSERT_LT(image, size);
                ASSERT_EQ(permutation.inverse(image), i) << "size " << size;
                images.insert(image);
            }
            ASSERT_EQ(static_cast<index>(images.size()), size);
        }
}

TEST(IndexPermutation, InvertsInHugeRanges) {
    for (const index size : {index{1} << 31, (index{1} << 40) + 7, index{1} << 62, std::numeric_limits<index>::max()}) {
        const IndexPermutation permutation(size, 5);
        for (const index i : {index{0}, index{1}, size / 3, size - 2, size - 1}) {
            const index image = permutation(i);
            EXPECT_GE(image, 0);
            EXPECT_LT(image, size);
            EXPECT_EQ(permutation.inverse(image), i);
        }
    }
}

TEST(IndexPermutation, MixesAndDependsOnTheSeed) {
    const index size = 10000;
    const IndexPermutation one(size, 1);
    const IndexPermutation two(size, 2);
    index close = 0;
    index equal = 0;
    for (index i = 0; i + 1 < size; i++) {
        close += std::abs(one(i) - one(i + 1)) < size / 10 ? 1 : 0;
        equal += one(i) == two(i) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(close), 0.19 * static_cast<double>(size), 0.02 * static_cast<double>(size));
    EXPECT_LT(equal, 10);
}

TEST(IndexPermutation, RefusesNegativeSizes) { EXPECT_THROW(IndexPermutation(-1, 0), ArgumentError); }

} // namespace
} // namespace DNDS::Geom
