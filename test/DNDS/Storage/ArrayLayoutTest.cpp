#include "DNDS/Storage/ArrayView.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>

namespace DNDS {
namespace {

TEST(ArrayLayout, FollowsTheTable) {
    for (const rowsize rowMax : {7, 0, DynamicSize, NonUniformSize}) {
        EXPECT_EQ(arrayLayoutOf(5, rowMax), ArrayLayout::StaticFixed);
        EXPECT_EQ(arrayLayoutOf(0, rowMax), ArrayLayout::StaticFixed);
        EXPECT_EQ(arrayLayoutOf(DynamicSize, rowMax), ArrayLayout::Fixed);
    }
    EXPECT_EQ(arrayLayoutOf(NonUniformSize, 7), ArrayLayout::StaticMax);
    EXPECT_EQ(arrayLayoutOf(NonUniformSize, 0), ArrayLayout::StaticMax);
    EXPECT_EQ(arrayLayoutOf(NonUniformSize, DynamicSize), ArrayLayout::Max);
    EXPECT_EQ(arrayLayoutOf(NonUniformSize, NonUniformSize), ArrayLayout::CSR);
}

TEST(ArrayLayout, StrideIsAWholeNumberOfElementsAndOfAlignments) {
    EXPECT_EQ(rowStrideOf(5, 8, NoAlign), 5);
    EXPECT_EQ(rowStrideOf(5, 8, 8), 5);
    EXPECT_EQ(rowStrideOf(5, 8, 16), 6);
    EXPECT_EQ(rowStrideOf(5, 8, 64), 8);
    EXPECT_EQ(rowStrideOf(8, 8, 64), 8);
    EXPECT_EQ(rowStrideOf(9, 8, 64), 16);
    EXPECT_EQ(rowStrideOf(1, 12, 64), 16) << "12-byte elements meet 64 bytes every 16 elements";
    EXPECT_EQ(rowStrideOf(17, 12, 64), 32);
    EXPECT_EQ(rowStrideOf(0, 8, 64), 0);
}

TEST(ArrayShape, SignatureIsReadableAndTellsTypesApart) {
    EXPECT_EQ((arrayShapeOf<real, NonUniformSize, NonUniformSize, NoAlign>().signature()), "float64[8]:CSR:-2:-2:-1");
    EXPECT_EQ((arrayShapeOf<std::array<float, 3>, 2, 2, 16>().signature()), "float32[12]:StaticFixed:2:2:16");
    const std::set<std::uint64_t> hashes{
        arrayShapeOf<real, 5, 5, NoAlign>().hash(),
        arrayShapeOf<real, 4, 4, NoAlign>().hash(),
        arrayShapeOf<float, 5, 5, NoAlign>().hash(),
        arrayShapeOf<std::int64_t, 5, 5, NoAlign>().hash(),
        arrayShapeOf<std::uint64_t, 5, 5, NoAlign>().hash(),
        arrayShapeOf<std::array<real, 2>, 5, 5, NoAlign>().hash(),
        arrayShapeOf<real, 5, 5, 64>().hash(),
        arrayShapeOf<real, NonUniformSize, 5, NoAlign>().hash(),
        arrayShapeOf<real, NonUniformSize, DynamicSize, NoAlign>().hash(),
        arrayShapeOf<real, NonUniformSize, NonUniformSize, NoAlign>().hash(),
        arrayShapeOf<real, DynamicSize, DynamicSize, NoAlign>().hash(),
    };
    EXPECT_EQ(hashes.size(), 11U);
}

TEST(ArrayShape, IgnoresParametersThatDoNotMatter) {
    EXPECT_EQ((arrayShapeOf<real, 5, 9, NoAlign>().hash()), (arrayShapeOf<real, 5, 5, NoAlign>().hash()));
    EXPECT_EQ((arrayShapeOf<real, DynamicSize, 9, NoAlign>().hash()),
              (arrayShapeOf<real, DynamicSize, DynamicSize, NoAlign>().hash()));
}

} // namespace
} // namespace DNDS
