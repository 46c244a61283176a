#include "DNDS/Exchange/Combine.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

namespace DNDS {
namespace {

template <class T>
std::vector<T> combined(PushOp op, std::vector<T> into, const std::vector<T> &from) {
    // At odd addresses: rows of small elements may begin anywhere.
    std::vector<std::byte> a(into.size() * sizeof(T) + 1);
    std::vector<std::byte> b(a.size());
    std::ranges::copy(std::as_bytes(std::span(into)), a.begin() + 1);
    std::ranges::copy(std::as_bytes(std::span(from)), b.begin() + 1);
    combineFunction(elementKindOf<T>(), op)(a.data() + 1, b.data() + 1, a.size() - 1);
    std::copy(a.begin() + 1, a.end(), std::as_writable_bytes(std::span(into)).begin());
    return into;
}

template <class T>
class CombineOf : public testing::Test {};
using Scalars = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                               std::int64_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(CombineOf, Scalars);

TYPED_TEST(CombineOf, DoesWhatTheOperationSays) {
    using T = TypeParam;
    using L = std::numeric_limits<T>;
    const std::vector<T> a{T{1}, L::max(), L::lowest(), T{7}, T{0}};
    const std::vector<T> b{T{2}, T{0}, T{5}, T{3}, L::max()};
    EXPECT_EQ(combined(PushOp::Replace, a, b), b);
    EXPECT_EQ(combined(PushOp::Min, a, b), (std::vector<T>{T{1}, T{0}, L::lowest(), T{3}, T{0}}));
    EXPECT_EQ(combined(PushOp::Max, a, b), (std::vector<T>{T{2}, L::max(), T{5}, T{7}, L::max()}));
    EXPECT_EQ(combined(PushOp::Sum, a, b),
              (std::vector<T>{T{3}, L::max(), static_cast<T>(L::lowest() + T{5}), T{10}, L::max()}));
}

TEST(Combine, IntegerSumsWrapAround) {
    EXPECT_EQ(combined<std::int32_t>(PushOp::Sum, {std::numeric_limits<std::int32_t>::max()}, {1}),
              (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()}));
    EXPECT_EQ(combined<std::int64_t>(PushOp::Sum, {std::numeric_limits<std::int64_t>::min()}, {-1}),
              (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max()}));
    EXPECT_EQ(combined<std::uint8_t>(PushOp::Sum, {200}, {100}), (std::vector<std::uint8_t>{44}));
    EXPECT_EQ(combined<std::uint16_t>(PushOp::Sum, {65535}, {65535}), (std::vector<std::uint16_t>{65534}));
}

TEST(Combine, NoBytesChangeNothing) {
    EXPECT_TRUE(combined<double>(PushOp::Sum, {}, {}).empty());
    EXPECT_TRUE(combined<double>(PushOp::Replace, {}, {}).empty());
}

TEST(Combine, OpaqueElementsCanOnlyBeReplaced) {
    EXPECT_NO_THROW((void)combineFunction(ElementKind::Opaque, PushOp::Replace));
    for (const PushOp op : {PushOp::Sum, PushOp::Min, PushOp::Max})
        EXPECT_THROW((void)combineFunction(ElementKind::Opaque, op), LayoutError);
}

} // namespace
} // namespace DNDS
