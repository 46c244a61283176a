// The loops that implement ArrayDof, at every length around their block sizes, against plain loops.

#include "DNDS/Array/DofKernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using DofKernels::Component;
using DofKernels::Operation;

constexpr real infinity = std::numeric_limits<real>::infinity();
constexpr real nan = std::numeric_limits<real>::quiet_NaN();

/// Whole numbers: sums of them are exact, in any order.
std::vector<real> numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<real> values(count);
    for (real &value : values)
        value = static_cast<real>(random() % 2001) - 1000;
    return values;
}

real applied(Operation operation, real a, real b) {
    switch (operation) {
    case Operation::Add:
        return a + b;
    case Operation::Subtract:
        return a - b;
    case Operation::Multiply:
        return a * b;
    case Operation::Divide:
        break;
    }
    return a / b;
}

constexpr Operation operations[] = {Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Divide};

TEST(DofKernels, SumsAreExactForWholeNumbers) {
    for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 127U, 1023U, 1024U, 1025U, 5000U}) {
        const auto x = numbers(count, 1);
        const auto y = numbers(count, 2);
        real dot = 0;
        real distance = 0;
        real sum = 0;
        real least = infinity;
        real most = -infinity;
        for (std::size_t i = 0; i < count; ++i) {
            dot += x[i] * y[i];
            distance += (x[i] - y[i]) * (x[i] - y[i]);
            sum += x[i];
            least = std::min(least, x[i]);
            most = std::max(most, x[i]);
        }
        EXPECT_EQ(DofKernels::dot(x, y), dot) << count;
        EXPECT_EQ(DofKernels::squaredDistance(x, y), distance) << count;
        EXPECT_EQ(DofKernels::sum(x), sum) << count;
        EXPECT_EQ(DofKernels::extremes(x).min, least) << count;
        EXPECT_EQ(DofKernels::extremes(x).max, most) << count;
    }
}

TEST(DofKernels, ExtremesOfNanAreNan) {
    for (const std::size_t at : {0U, 5U, 16U, 18U}) {
        auto x = numbers(19, 3);
        x[at] = nan;
        EXPECT_TRUE(std::isnan(DofKernels::extremes(x).min)) << at;
        EXPECT_TRUE(std::isnan(DofKernels::extremes(x).max)) << at;
    }
}

TEST(DofKernels, CombinesRowsOfEveryWidth) {
    for (const std::size_t width : {1U, 2U, 5U, 64U, 127U, 129U, 300U})
        for (const std::size_t rows : {0U, 1U, 2U, 26U, 70U}) {
            const auto x = numbers(rows * width, 6);
            auto row = numbers(width, 7);
            std::replace(row.begin(), row.end(), 0.0, 1.0);
            const std::vector<real> scalars(rows, 4.0);
            for (const Operation operation : operations) {
                auto byRow = x;
                DofKernels::combineRows(operation, byRow, row);
                auto byScalar = x;
                DofKernels::combineScalars(operation, byScalar, scalars);
                for (std::size_t i = 0; i < x.size(); ++i) {
                    ASSERT_EQ(byRow[i], applied(operation, x[i], row[i % width]));
                    ASSERT_EQ(byScalar[i], applied(operation, x[i], 4.0));
                }
            }
            auto filled = x;
            DofKernels::fillRows(filled, row);
            for (std::size_t i = 0; i < x.size(); ++i)
                ASSERT_EQ(filled[i], row[i % width]);
        }
}

TEST(DofKernels, AccumulatesComponents) {
    for (const std::size_t width : {1U, 3U, 5U, 200U})
        for (const std::size_t rows : {0U, 1U, 40U, 9000U / 5}) {
            const auto x = numbers(rows * width, 8);
            std::vector<real> sums(width);
            std::vector<real> squares(width);
            std::vector<real> largest(width);
            for (std::size_t i = 0; i < x.size(); ++i) {
                sums[i % width] += std::abs(x[i]);
                squares[i % width] += x[i] * x[i];
                largest[i % width] = std::max(largest[i % width], std::abs(x[i]));
            }
            std::vector<real> result(width, 17.0);
            DofKernels::accumulate(Component::AbsoluteSum, x, {}, result);
            EXPECT_EQ(result, sums);
            DofKernels::accumulate(Component::SquareSum, x, {}, result);
            EXPECT_EQ(result, squares);
            DofKernels::accumulate(Component::AbsoluteMax, x, {}, result);
            EXPECT_EQ(result, largest);
        }
    std::vector<real> withNan{1, 2, 3, nan, 5, 6};
    std::vector<real> result(2);
    DofKernels::accumulate(Component::AbsoluteMax, withNan, {}, result);
    EXPECT_EQ(result[0], 5);
    EXPECT_TRUE(std::isnan(result[1]));
}

TEST(DofKernels, RoundingErrorsGrowSlowly) {
    const std::vector<real> x(3000000, 0.1);
    EXPECT_NEAR(DofKernels::sum(x) / 300000.0, 1, 1e-13);
}

} // namespace
} // namespace DNDS
