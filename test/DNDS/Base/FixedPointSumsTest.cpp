#include "DNDS/Base/ExactAccumulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace DNDS::FixedPoint {
namespace {

/// `value * 2^shift`, rounded towards zero, from the bits of the number.
Wide expected(real value, int shift) {
    if (value == 0)
        return 0;
    int exponent = 0;
    const auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    const int left = exponent - 53 + shift;
    if (left >= 0)
        return static_cast<Wide>(digits) * (Wide{1} << left);
    return left < -60 ? 0 : digits / (std::int64_t{1} << -left);
}

TEST(FixedPointSums, IntegersAreNumbersCutOffFarBelowTheLargest) {
    std::mt19937_64 random(3);
    std::uniform_real_distribution<real> mantissa(-1, 1);
    const real tiny = std::numeric_limits<real>::denorm_min();
    for (const real largest : {1.0, 0x1.8p3, std::numeric_limits<real>::max(), 0x1p1000, 0x1p-800, 0x1p-821, 0x1p-822,
                               0x1p-950, std::numeric_limits<real>::min(), 0x1p-1050, tiny}) {
        const Scale scale(largest);
        const int shift = resolution - 1 - std::ilogb(largest);
        std::vector<real> values{0.0, -0.0, largest, -largest, std::nextafter(largest, 0.0), tiny, -tiny};
        for (int k = 0; k < 2000; ++k)
            values.push_back(std::ldexp(mantissa(random) * largest, -static_cast<int>(random() % 130)));
        for (const real value : values)
            if (std::abs(value) <= largest) {
                ASSERT_TRUE(scale.toInteger(value) == expected(value, shift)) << value << " of " << largest;
            }
        EXPECT_EQ(scale.toReal(scale.toInteger(largest)), largest);
    }
}

TEST(FixedPointSums, ColumnsAreThoseOfWholeRows) {
    const std::vector<real> rows{1, 2, 3, 4, 5, 6};
    const std::vector<Column> columns = columnsOf(rows, 3);
    ASSERT_EQ(columns.size(), 3U);
    EXPECT_EQ(columns[1].size, 2);
    EXPECT_EQ(columns[1](1), 5);
    EXPECT_THROW((void)columnsOf(rows, 4), ArgumentError);
    EXPECT_THROW((void)columnsOf(rows, 0), ArgumentError);
    EXPECT_EQ(columnsOf({}, 2).at(1).size, 0);
}

} // namespace
} // namespace DNDS::FixedPoint
