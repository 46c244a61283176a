// Lists of row numbers in every layout and both widths of number, and their exchange.

#include "DNDS/Array/ArrayAdjacency.hpp"

#include "DerivedCase.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <type_traits>

namespace DNDS {
namespace {

static_assert(std::is_trivially_copyable_v<ArrayAdjacency<>::View>);
static_assert(std::is_trivially_copyable_v<ArrayAdjacency<4, 4, LocalIndex>::ConstView>);
static_assert(std::is_trivially_copyable_v<AdjacencyRow<index>>);
static_assert(std::is_convertible_v<ArrayAdjacency<>::View, ArrayAdjacency<>::ConstView>);
static_assert(!std::is_convertible_v<ArrayAdjacency<>::ConstView, ArrayAdjacency<>::View>);

constexpr rowsize caseWidth = 5;

using Adjacencies = testing::Types<ArrayAdjacency<>, ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex>,
                                   ArrayAdjacency<caseWidth>, ArrayAdjacency<caseWidth, caseWidth, LocalIndex>,
                                   ArrayAdjacency<DynamicSize>, ArrayAdjacency<NonUniformSize, caseWidth>,
                                   ArrayAdjacency<NonUniformSize, DynamicSize, LocalIndex>>;
TEST(ArrayAdjacency, RowsAreRanges) {
    ArrayAdjacency<> adjacency("cell nodes", test::world());
    adjacency.resize(2, [](index i) { return 3 * i; });
    EXPECT_TRUE(adjacency[0].empty());
    AdjacencyRow<index> row = adjacency[1];
    std::iota(row.begin(), row.end(), 4);
    row[2] = 9;
    const std::span<const index> span = std::as_const(adjacency)[1];
    EXPECT_EQ((std::vector<index>(span.begin(), span.end())), (std::vector<index>{4, 5, 9}));
    EXPECT_EQ(std::count(row.begin(), row.end(), 5), 1);
    EXPECT_THROW(adjacency[2], IndexError);
    const AdjacencyRow<const index> constRow = row;
    EXPECT_EQ(constRow.size(), 3);
#ifdef DNDS_DEBUG_CHECKS
    EXPECT_THROW(static_cast<void>(row[3]), IndexError);
#endif
}

TEST(ArrayAdjacency, RunTimeWidthIsGivenToTheConstructor) {
    ArrayPair<ArrayAdjacency<DynamicSize>> pair;
    pair.initPair("edges", test::world(), 2);
    pair.father->resize(test::ownedRows());
    test::makeGhosts(pair);
    EXPECT_EQ(pair.father->rowSize(), 2);
    EXPECT_EQ(pair.son->rowSize(), 2);
}

} // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Adjacencies, DerivedArray, Adjacencies);
} // namespace test
} // namespace DNDS
