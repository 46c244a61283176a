#include "DNDS/Transport/RowList.hpp"

#include <gtest/gtest.h>

namespace DNDS {
namespace {

std::vector<index> rowsOf(const RowList &list) {
    std::vector<index> rows;
    list.forEach([&](index row) { rows.push_back(row); });
    return rows;
}

TEST(RowList, RangesAndListsNameTheirRows) {
    const RowList range(3, 6);
    EXPECT_TRUE(range.isRange());
    EXPECT_EQ(range.first(), 3);
    EXPECT_EQ(range.count(), 3);
    EXPECT_EQ(rowsOf(range), (std::vector<index>{3, 4, 5}));
    const std::vector<index> rows{7, 8, 2, 2};
    const RowList list{rows};
    EXPECT_FALSE(list.isRange());
    EXPECT_EQ(list.first(), 7);
    EXPECT_EQ(list.count(), 4);
    EXPECT_EQ(rowsOf(list), rows);
    EXPECT_EQ(rowsOf(RowList(std::span<const index>())).size(), 0U);
}

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
