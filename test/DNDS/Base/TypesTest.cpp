#include "DNDS/Base/Types.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

namespace DNDS {
namespace {

static_assert(std::is_same_v<index, std::int64_t> && std::is_same_v<rowsize, std::int32_t>);
static_assert(std::is_same_v<LocalIndex, std::int32_t> && std::is_same_v<real, double>);
static_assert(DynamicSize < 0 && NonUniformSize < 0 && DynamicSize != NonUniformSize && NoAlign < 0);

TEST(Types, InvalidIndexIsNoRowThatArithmeticReachesByAccident) {
    EXPECT_LT(InvalidIndex, -std::numeric_limits<index>::max());
}

} // namespace
} // namespace DNDS
