#include "DNDS/Transport/TransportTypes.hpp"

#include <gtest/gtest.h>

namespace DNDS {
namespace {

TEST(RowList, CountsRunsAndNumbersFromTheLeastRow) {
    const index far = index{1} << 40U;
    const std::vector<index> rows{far + 7, far + 8, far + 2, far + 2};
    const RowList list{rows};
    EXPECT_EQ(list.extent().least, far + 2);
    EXPECT_EQ(list.extent().most, far + 8);
    EXPECT_EQ(list.extent().runs, 3U);
    ASSERT_NE(list.numbers(), nullptr);
    EXPECT_EQ(*list.numbers(), (std::vector<std::uint32_t>{5, 6, 0, 0}));
    EXPECT_EQ(list.numbers().get(), list.numbers().get());
    EXPECT_EQ(RowList(list).numbers(), list.numbers()); // copies share them
}

TEST(RowList, HasNoNumbersBeyond32Bits) {
    const std::vector<index> rows{0, index{1} << 32U};
    const RowList list{rows};
    EXPECT_EQ(list.numbers(), nullptr);
    const std::vector<index> last{0, (index{1} << 32U) - 1};
    EXPECT_NE(RowList(last).numbers(), nullptr);
}

} // namespace
} // namespace DNDS
