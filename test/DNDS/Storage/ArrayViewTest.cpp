#include "DNDS/Storage/ArrayView.hpp"

#include <gtest/gtest.h>

#include <array>
#include <type_traits>
#include <vector>

namespace DNDS {
namespace {

template <class View>
constexpr bool isPlain() {
    return std::is_trivially_copyable_v<View> && std::is_standard_layout_v<typename View::Geometry>;
}

template <rowsize rowSize, rowsize rowMax, int align = NoAlign>
constexpr bool arePlain() {
    return isPlain<ArrayView<real, rowSize, rowMax, align>>() &&
           isPlain<ArrayView<const real, rowSize, rowMax, align>>();
}

static_assert(arePlain<5, 5>() && arePlain<5, 5, 64>());
static_assert(arePlain<DynamicSize, DynamicSize>() && arePlain<DynamicSize, DynamicSize, 64>());
static_assert(arePlain<NonUniformSize, 6>() && arePlain<NonUniformSize, DynamicSize, 64>());
static_assert(arePlain<NonUniformSize, NonUniformSize>());
static_assert(sizeof(ArrayView<real, 5>) == 16, "static widths take no memory");

using Fixed5 = ArrayView<real, 5>;
using ConstFixed5 = ArrayView<const real, 5>;
static_assert(std::is_convertible_v<Fixed5, ConstFixed5> && !std::is_convertible_v<ConstFixed5, Fixed5>);

TEST(ArrayView, OfNothingIsEmpty) {
    const ArrayView<real, NonUniformSize> view;
    EXPECT_EQ(view.size(), 0);
    EXPECT_EQ(view.data(), nullptr);
}

TEST(ArrayView, StaticWidthIsAConstant) {
    std::array<real, 10> memory{};
    const Fixed5 view(memory.data(), 2, {});
    static_assert(std::is_same_v<decltype(view(0, 0)), real &>);
    static_assert(std::is_same_v<decltype(ConstFixed5(view)(0, 0)), const real &>);
    EXPECT_EQ(view.size(), 2);
    EXPECT_EQ(view.rowSize(), 5);
    EXPECT_EQ(view.rowSize(1), 5);
    view(1, 2) = 3.0;
    view(1) = 1.0;
    EXPECT_EQ(memory[7], 3.0);
    EXPECT_EQ(memory[5], 1.0);
    EXPECT_EQ(view[1], memory.data() + 5);
    EXPECT_EQ(view.row(1).data(), memory.data() + 5);
    EXPECT_EQ(view.row(1).size(), 5U);
}

TEST(ArrayView, AlignedRowsAreApart) {
    std::array<real, 16> memory{};
    const ArrayView<real, 5, 5, 64> fixed(memory.data(), 2, {});
    EXPECT_EQ(fixed[1] - fixed[0], 8);
    const ArrayView<real, DynamicSize, DynamicSize, 64> dynamic(memory.data(), 2, {8, 5});
    EXPECT_EQ(dynamic[1] - dynamic[0], 8);
    EXPECT_EQ(dynamic.rowSize(), 5);
}

TEST(ArrayView, PaddedRowsHaveSizesOfTheirOwn) {
    std::vector<real> memory(12);
    const std::vector<rowsize> sizes{1, 0, 4};
    const ArrayView<real, NonUniformSize, 4> view(memory.data(), 3, {sizes.data()});
    EXPECT_EQ(view.rowSize(0), 1);
    EXPECT_EQ(view.rowSize(2), 4);
    EXPECT_EQ(view.row(1).size(), 0U);
    EXPECT_EQ(view[2], memory.data() + 8);
    const ArrayView<real, NonUniformSize, DynamicSize> runTime(memory.data(), 3, {sizes.data(), 4});
    EXPECT_EQ(runTime[2], memory.data() + 8);
    EXPECT_EQ(runTime.rowSize(2), 4);
}

TEST(ArrayView, CsrRowsFollowEachOther) {
    std::vector<real> memory{1, 2, 3, 4};
    const std::vector<index> offsets{0, 3, 3, 4};
    const ArrayView<const real, NonUniformSize> view(memory.data(), 3, {offsets.data()});
    EXPECT_EQ(view.rowSize(0), 3);
    EXPECT_EQ(view.rowSize(1), 0);
    EXPECT_EQ(view(2, 0), 4.0);
    EXPECT_EQ(view(0, 2), 3.0);
}

TEST(ArrayView, ChecksBoundsInDebugBuilds) {
#if defined(DNDS_DEBUG_CHECKS)
    std::vector<real> memory(12);
    const std::vector<rowsize> sizes{1, 0, 4};
    const ArrayView<real, NonUniformSize, 4> view(memory.data(), 3, {sizes.data()});
    EXPECT_THROW(view(-1, 0), IndexError);
    EXPECT_THROW(view(3, 0), IndexError);
    EXPECT_THROW(view(0, 1), IndexError);
    EXPECT_THROW(view(0, -1), IndexError);
    EXPECT_THROW(view(1), IndexError);
    EXPECT_THROW(view[3], IndexError);
    EXPECT_THROW(view.row(3), IndexError);
    EXPECT_THROW(static_cast<void>(view.rowSize(3)), IndexError);
    EXPECT_NO_THROW(view(2, 3));
#else
    GTEST_SKIP() << "views are checked where DNDS_DEBUG_CHECKS is defined";
#endif
}

} // namespace
} // namespace DNDS
