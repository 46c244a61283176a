#include "DNDS/OneSided/Atomics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

template <class T>
T applied(T word, AtomicOp op, T operand, T compare = T{}) {
    const T before = word;
    EXPECT_EQ(Atomics::wordOf(Atomics::apply(&word, op, operand, compare)),
              Atomics::wordOf(op == AtomicOp::Set ? operand : before));
    T again = before;
    Atomics::apply(&again, Atomics::request(op, operand, compare));
    EXPECT_EQ(Atomics::wordOf(again), Atomics::wordOf(word)) << "as a request";
    return word;
}

template <class T>
class AtomicsOf : public testing::Test {};
using Words = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                             std::int64_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(AtomicsOf, Words);

TYPED_TEST(AtomicsOf, EachOperationIsThatOfItsName) {
    using T = TypeParam;
    EXPECT_EQ(applied<T>(5, AtomicOp::Fetch, 9), T{5});
    EXPECT_EQ(applied<T>(5, AtomicOp::Set, 9), T{9});
    EXPECT_EQ(applied<T>(5, AtomicOp::Add, 9), T{14});
    EXPECT_EQ(applied<T>(5, AtomicOp::Min, 9), T{5});
    EXPECT_EQ(applied<T>(5, AtomicOp::Min, 3), T{3});
    EXPECT_EQ(applied<T>(5, AtomicOp::Max, 9), T{9});
    EXPECT_EQ(applied<T>(5, AtomicOp::Max, 3), T{5});
    EXPECT_EQ(applied<T>(5, AtomicOp::Swap, 9), T{9});
    EXPECT_EQ(applied<T>(5, AtomicOp::CompareSwap, 9, 5), T{9});
    EXPECT_EQ(applied<T>(5, AtomicOp::CompareSwap, 9, 4), T{5});
    if constexpr (std::is_integral_v<T>) {
        EXPECT_EQ(applied<T>(0b1100, AtomicOp::And, 0b1010), T{0b1000});
        EXPECT_EQ(applied<T>(0b1100, AtomicOp::Or, 0b1010), T{0b1110});
        const T most = std::numeric_limits<T>::max();
        EXPECT_EQ(applied<T>(most, AtomicOp::Add, 1), std::numeric_limits<T>::min()) << "wraps around";
    }
}

TEST(Atomics, NumbersThatAreNotComparableChangeNothing) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(applied(2.0, AtomicOp::Min, nan), 2.0);
    EXPECT_EQ(applied(2.0, AtomicOp::Max, nan), 2.0);
    EXPECT_EQ(std::signbit(applied(0.0, AtomicOp::CompareSwap, 1.0, -0.0)), false) << "bits differ";
    EXPECT_EQ(applied(0.0, AtomicOp::CompareSwap, 1.0, -0.0), 0.0);
}

TEST(Atomics, ComparisonsAreThoseOfTheirNames) {
    for (const int a : {1, 2, 3}) {
        EXPECT_EQ(holds(a, Comparison::Equal, 2), a == 2);
        EXPECT_EQ(holds(a, Comparison::NotEqual, 2), a != 2);
        EXPECT_EQ(holds(a, Comparison::Less, 2), a < 2);
        EXPECT_EQ(holds(a, Comparison::LessOrEqual, 2), a <= 2);
        EXPECT_EQ(holds(a, Comparison::Greater, 2), a > 2);
        EXPECT_EQ(holds(a, Comparison::GreaterOrEqual, 2), a >= 2);
    }
}

} // namespace
} // namespace DNDS
