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
