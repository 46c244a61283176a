#include "DNDS/Mpi/Reductions.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace DNDS {
namespace {

TEST(ExactSum, DoesNotDependOnOrderOrRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    std::mt19937_64 random(test::seed());
    std::uniform_real_distribution<real> mantissa(-1.0, 1.0);
    std::uniform_int_distribution<int> exponent(-30, 5);
    std::vector<real> all(1000);
    for (real &value : all)
        value = std::ldexp(mantissa(random), exponent(random));
    const real serial = exactSum(CommunicatorView(MPI_COMM_SELF), all);
    for (int trial = 0; trial < 3; trial++) {
        std::shuffle(all.begin(), all.end(), random);
        std::vector<real> own;
        for (std::size_t i = 0; i < all.size(); i++)
            if (static_cast<int>(i) % (comm.size() + 1) == comm.rank() ||
                (comm.rank() == 0 && static_cast<int>(i) % (comm.size() + 1) == comm.size()))
                own.push_back(all[i]);
        EXPECT_EQ(exactSum(comm, own), serial);
    }
    long double reference = 0.0L;
    for (const real value : all)
        reference += value;
    EXPECT_NEAR(serial, static_cast<real>(reference), 1e-14 * std::abs(serial) + 1e-15);
}

TEST(ExactSum, CancelsExactlyAndTakesAnyScale) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    EXPECT_EQ(exactSum(comm, std::vector<real>{1e20, 1.0, -1e20}), comm.size());
    EXPECT_EQ(exactSum(comm, std::vector<real>{-3.0, -0.5}), -3.5 * comm.size());
    EXPECT_EQ(exactSum(comm, std::vector<real>{1e-300, 1e-300}), 2e-300 * comm.size());
    EXPECT_EQ(exactSum(comm, {}), 0.0);
    std::vector<real> bad;
    if (comm.rank() == comm.size() - 1)
        bad.push_back(std::numeric_limits<real>::quiet_NaN());
    EXPECT_TRUE(std::isnan(exactSum(comm, bad)));
}

real oneByOne(const std::vector<real> &terms) {
    ExactAccumulator sum;
    for (const real term : terms)
        sum += term;
    return sum.value();
}

/// Many terms are added two at a time, those far from 1 one by one: both round to the same bits.
TEST(ExactSum, TermsAreRoundedAlikeWhateverTheirSize) {
    const CommunicatorView self(MPI_COMM_SELF);
    std::mt19937_64 random(test::seed());
    std::uniform_real_distribution<real> mantissa(-1.0, 1.0);
    std::vector<int> exponents{-1073, -1050, -1030, -1022, 0, 1023};
    for (int near = -45; near < 45; ++near) {
        exponents.push_back(4 * 40 - 1075 + near);                                        // pairs from here on
        exponents.push_back(52 * 40 - 1075 + near > 1023 ? 1023 : 52 * 40 - 1075 + near); // not from here on
    }
    for (const int exponent : exponents)
        for (const std::size_t count : {1U, 2U, 3U, 15U, 16U, 17U, 2048U, 2049U, 5001U}) {
            const real largest = std::ldexp(1 + std::abs(mantissa(random)) / 2, exponent);
            std::vector<real> terms(count);
            for (real &term : terms) // up to the last bits that count; ties, too
                term = std::ldexp(std::ldexp(std::round(std::ldexp(mantissa(random), 20)), -20) * largest,
                                  -static_cast<int>(30 + random() % 90));
            terms[count / 2] = largest;
            if (count > 1) // what is left shows each unit
                terms[random() % (count / 2)] = -largest;
            EXPECT_EQ(exactSum(self, terms), oneByOne(terms)) << count << " terms, 2^" << exponent;
        }
}

TEST(ExactSum, TermsAreRoundedAlikeHoweverTheProcessorRounds) {
    std::vector<real> terms(100, std::ldexp(2 - std::numeric_limits<real>::epsilon(), -49));
    terms.insert(terms.end(), {1.0, -1.0});
    const real expected = oneByOne(terms);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
        WideExactAccumulator sum;
        std::fesetround(mode);
        sum.addAll(terms);
        std::fesetround(FE_TONEAREST);
        EXPECT_EQ(sum.value(), expected) << "rounding mode " << mode;
    }
}

TEST(ExactSum, AnyTermThatIsNotFiniteMakesTheSumNan) {
    const CommunicatorView self(MPI_COMM_SELF);
    for (const real term : {std::numeric_limits<real>::infinity(), -std::numeric_limits<real>::infinity(),
                            std::numeric_limits<real>::quiet_NaN(), -std::numeric_limits<real>::quiet_NaN()})
        for (std::size_t at = 0; at < 5; ++at) {
            std::vector<real> terms{std::numeric_limits<real>::max(), -1, 0, 1e-320, 1};
            terms[at] = term;
            EXPECT_TRUE(std::isnan(exactSum(self, terms))) << term << " at " << at;
        }
}

TEST(ExactSum, SumsColumnsByThemselves) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::vector<real> rows{1e20, 3e-5, 0.0, std::numeric_limits<real>::infinity(), -1e20, 3e-5, 0.0, 1.0};
    std::vector<real> sums(4);
    exactSums(comm, rows, sums);
    EXPECT_EQ(sums[0], 0.0);
    EXPECT_EQ(sums[1], exactSum(comm, std::vector<real>{3e-5, 3e-5}));
    EXPECT_EQ(sums[2], 0.0);
    EXPECT_TRUE(std::isnan(sums[3]));
    EXPECT_THROW(exactSums(comm, std::span<const real>(rows).first(comm.rank() == 0 ? 7U : 8U), sums), ArgumentError);
}

TEST(ExactSum, ScalarProductsAreSumsOfProducts) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    std::mt19937_64 random(test::seed() + static_cast<unsigned>(comm.rank()));
    std::uniform_real_distribution<real> number(-1.0, 1.0);
    const std::size_t count = comm.rank() == 1 ? 0 : 5000;
    std::vector<real> x(2 * count), y(2 * count), products(2 * count);
    for (std::size_t i = 0; i < 2 * count; ++i) {
        x[i] = number(random);
        y[i] = number(random);
        products[i] = x[i] * y[i];
    }
    const auto rows = static_cast<index>(count);
    const std::vector<FixedPoint::Column> columns{{x.data(), 2 * rows, 1, y.data()}, // of different lengths
                                                  {x.data() + count, rows},
                                                  {x.data(), rows, 2, y.data()}};
    std::vector<real> sums(3);
    const auto add = [](const std::vector<FixedPoint::Column> &given) {
        return [given](auto own) { FixedPoint::addColumns(given, own); };
    };
    exactSums(comm, add(columns), sums);
    EXPECT_EQ(sums[0], exactSum(comm, products));
    EXPECT_EQ(sums[1], exactSum(comm, std::span(x).subspan(count)));
    std::vector<real> even(2);
    exactSums(comm, products, even);
    EXPECT_EQ(sums[2], even[0]);
    const std::vector missing(columns.begin() + (comm.rank() == 0 ? 1 : 0), columns.end());
    EXPECT_THROW(exactSums(comm, add(missing), sums), ArgumentError);
}

} // namespace
} // namespace DNDS
