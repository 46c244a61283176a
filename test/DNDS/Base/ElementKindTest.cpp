#include "DNDS/Base/ExactAccumulator.hpp"

#include "DNDS/Base/Types.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace DNDS {
namespace {

TEST(ElementKind, KnowsScalarsAndTheirArrays) {
    enum class Flag : unsigned char { No, Yes };
    EXPECT_EQ(elementKindName(elementKindOf<real>()), "float64");
    EXPECT_EQ(elementKindName(elementKindOf<index>()), "int64");
    EXPECT_EQ(elementKindName(elementKindOf<std::uint16_t>()), "uint16");
    EXPECT_EQ(elementKindName(elementKindOf<std::array<std::array<float, 3>, 3>>()), "float32");
    EXPECT_EQ(elementKindName(elementKindOf<Flag>()), "opaque");
    EXPECT_EQ(elementKindName(elementKindOf<bool>()), "opaque");
    EXPECT_EQ(elementKindName(ElementKind::Opaque), "opaque");
    EXPECT_EQ(elementKindName(ElementKind::Float64), "float64");
}

} // namespace
} // namespace DNDS
