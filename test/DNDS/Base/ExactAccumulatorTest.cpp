#include "DNDS/Base/ExactAccumulator.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace DNDS {
namespace {

std::uint64_t bitsOf(const ExactAccumulator &sum) { return std::bit_cast<std::uint64_t>(sum.value()); }

real sumOf(std::initializer_list<real> terms) {
    ExactAccumulator sum;
    for (const real term : terms)
        sum += term;
    return sum.value();
}

/// Terms whose exponents spread over `spread` powers of two.
std::vector<real> randomTerms(std::mt19937_64 &random, std::size_t count, int spread) {
    std::uniform_real_distribution<real> mantissa(-1, 1);
    std::uniform_int_distribution<int> exponent(-spread / 2, spread / 2);
    std::vector<real> terms(count);
    for (real &term : terms)
        term = std::ldexp(mantissa(random), exponent(random));
    return terms;
}

TEST(ExactAccumulator, SumsDoNotDependOnOrderAndPartialSums) {
    std::mt19937_64 random(1);
    for (const int spread : {0, 10, 60, 200, 1900})
        for (int round = 0; round < 50; ++round) {
            std::vector<real> terms = randomTerms(random, 100, spread);
            ExactAccumulator whole;
            for (const real term : terms)
                whole += term;
            std::shuffle(terms.begin(), terms.end(), random);
            const std::size_t parts = 1 + random() % 8;
            std::vector<ExactAccumulator> partial(parts);
            for (const real term : terms)
                partial[random() % parts] += term;
            ExactAccumulator sum;
            for (const ExactAccumulator &part : partial)
                sum += part;
            ASSERT_EQ(bitsOf(sum), bitsOf(whole)) << "exponents over " << spread;
        }
}

TEST(ExactAccumulator, SumsAreRoundedOnce) {
    EXPECT_EQ(sumOf({}), 0);
    EXPECT_EQ(sumOf({0.1}), 0.1);
    EXPECT_EQ(sumOf({-0.1}), -0.1);
    EXPECT_EQ(sumOf({1e16, 1, -1e16}), 1);
    EXPECT_NEAR(sumOf({1, 1e-20, -1}), 1e-20, 0x1p-80);
    EXPECT_EQ(sumOf({1, 1e-40, -1}), 0) << "what is far below the largest term is cut off";
    EXPECT_EQ(sumOf({1, 0x1p-53}), 1) << "ties go to the even";
    EXPECT_EQ(sumOf({1, 0x1p-53, 0x1p-75}), 1 + 0x1p-52);
    EXPECT_EQ(sumOf({-1, -0x1p-53, -0x1p-75}), -1 - 0x1p-52);
    EXPECT_EQ(sumOf({1e308, 1e308, -1e308}), 1e308) << "partial sums do not overflow";
    EXPECT_EQ(sumOf({1e308, 1e308}), std::numeric_limits<real>::infinity());
    const real tiny = std::numeric_limits<real>::denorm_min();
    EXPECT_EQ(sumOf({tiny, tiny, tiny}), 3 * tiny);
    EXPECT_EQ(sumOf({std::numeric_limits<real>::min(), -tiny}), std::numeric_limits<real>::min() - tiny);
    // Integers of many sizes: what __int128 says.
    std::mt19937_64 random(2);
    for (int round = 0; round < 2000; ++round) {
        ExactAccumulator sum;
        FixedPoint::Wide exact = 0;
        for (int k = 0; k < 20; ++k) {
            const auto term = static_cast<std::int64_t>(random()) >> (random() % 64);
            const auto rounded = static_cast<real>(term);
            sum += rounded;
            exact += static_cast<FixedPoint::Wide>(rounded);
        }
        ASSERT_EQ(sum.value(), static_cast<real>(exact));
    }
}

TEST(ExactAccumulator, TermsAreRoundedToTheLowestPartOfTheLargest) {
    std::mt19937_64 random(4);
    std::uniform_real_distribution<real> mantissa(-1, 1);
    for (int round = 0; round < 20000; ++round) {
        const int exponent = static_cast<int>(random() % 1900) - 900;
        const real largest = std::ldexp(mantissa(random) < 0 ? -1.5 : 1.5, exponent);
        const real unit = std::ldexp(1.0, (exponent + 1076) / 40 * 40 - 80 - 1075);
        // Ties among them: few bits.
        const real term =
            std::ldexp(std::round(std::ldexp(mantissa(random), 4 + round % 50)), exponent - 60 - round % 90);
        const real expected = std::nearbyint(term / unit) * unit; // to even
        EXPECT_EQ(sumOf({largest, term, -largest}), expected) << largest << " and " << term;
        EXPECT_EQ(sumOf({term, largest, -largest}), expected) << largest << " and " << term;
    }
}

TEST(ExactAccumulator, RepeatedTermsAreAddedAtOnce) {
    for (const int count : {0, 1, 2, 1000}) {
        WideExactAccumulator sum;
        WideExactAccumulator expected;
        for (WideExactAccumulator *const some : {&sum, &expected})
            *some += 1e-3;
        for (int k = 0; k < count; ++k)
            expected += -0.1;
        sum.addRepeated(-0.1, count);
        EXPECT_EQ(sum.value(), expected.value());
    }
    WideExactAccumulator none;
    none.addRepeated(std::numeric_limits<real>::infinity(), 0);
    EXPECT_EQ(none.value(), 0);
    none.addRepeated(std::numeric_limits<real>::infinity(), 2);
    EXPECT_TRUE(std::isnan(none.value()));
}

TEST(ExactAccumulator, MillionsOfTermsFit) {
    ExactAccumulator sum;
    ExactAccumulator other;
    const real term = std::nextafter(1.0, 0.0);
    for (int k = 0; k < 1 << 22; ++k) {
        sum += term;
        other += -term;
    }
    EXPECT_EQ(sum.value(), std::ldexp(term, 22));
    sum += sum;
    EXPECT_EQ(sum.value(), std::ldexp(term, 23));
    sum += other;
    sum += other;
    EXPECT_EQ(sum.value(), 0);
}

TEST(ExactAccumulator, TermsThatAreNotFiniteMakeTheSumNaN) {
    const real infinity = std::numeric_limits<real>::infinity();
    for (const real odd : {infinity, -infinity, std::numeric_limits<real>::quiet_NaN()}) {
        EXPECT_TRUE(std::isnan(sumOf({1, odd, 2})));
        ExactAccumulator finite;
        finite += 1;
        ExactAccumulator spoilt;
        spoilt += odd;
        finite += spoilt;
        EXPECT_TRUE(std::isnan(finite.value()));
        spoilt += 1;
        EXPECT_TRUE(std::isnan(spoilt.value()));
    }
}

TEST(ExactAccumulator, BytesOfZeroAreTheEmptySum) {
    ExactAccumulator sum;
    sum += 3;
    std::memset(static_cast<void *>(&sum), 0, sizeof sum);
    EXPECT_EQ(sum.value(), 0);
    sum += 0.25;
    sum -= 0.125;
    EXPECT_EQ(sum.value(), 0.125);
}

TEST(WideExactAccumulator, AgreesAndHoldsMoreTerms) {
    std::mt19937_64 random(3);
    ExactAccumulator narrow;
    WideExactAccumulator wide;
    for (int k = 0; k < 10000; ++k) {
        const real term =
            std::ldexp(static_cast<real>(static_cast<std::int64_t>(random())), static_cast<int>(random() % 200) - 150);
        narrow += term;
        wide += term;
    }
    EXPECT_EQ(narrow.value(), wide.value());
    WideExactAccumulator doubled; // the sum of 2^70 terms
    doubled += 1.0 + std::ldexp(1.0, -40);
    for (int k = 0; k < 70; ++k)
        doubled += WideExactAccumulator(doubled);
    EXPECT_EQ(doubled.value(), std::ldexp(1.0, 70) + std::ldexp(1.0, 30));
}

TEST(FixedPoint, ColumnsAreThoseOfWholeRows) {
    const std::vector<real> rows{1, 2, 3, 4, 5, 6};
    const std::vector<FixedPoint::Column> columns = FixedPoint::columnsOf(rows, 3);
    ASSERT_EQ(columns.size(), 3U);
    EXPECT_EQ(columns[1].size, 2);
    EXPECT_EQ(columns[1](1), 5);
    EXPECT_THROW((void)FixedPoint::columnsOf(rows, 4), ArgumentError);
    EXPECT_THROW((void)FixedPoint::columnsOf(rows, 0), ArgumentError);
    EXPECT_EQ(FixedPoint::columnsOf({}, 2).at(1).size, 0);
}

} // namespace
} // namespace DNDS
