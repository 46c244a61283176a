// Lists of row numbers in every layout and both widths of number, and their exchange.

#include "DNDS/Array/ArrayAdjacency.hpp"

#include "PairCases.hpp"

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

/// How many entries a global row has.
template <class Adjacency>
rowsize entriesOf(index global) {
    return isFixedLayout(Adjacency::layout) ? caseWidth : static_cast<rowsize>(global * 7 % (caseWidth + 1));
}

template <class Adjacency>
void giveRows(Adjacency &adjacency) {
    const auto sizeOf = [](index i) { return entriesOf<Adjacency>(test::firstRow() + i); };
    if constexpr (Adjacency::layout == ArrayLayout::StaticFixed)
        adjacency.resize(test::ownedRows());
    else if constexpr (Adjacency::layout == ArrayLayout::Fixed)
        adjacency.resize(test::ownedRows(), caseWidth);
    else if constexpr (Adjacency::layout == ArrayLayout::Max)
        adjacency.resize(test::ownedRows(), caseWidth, sizeOf);
    else
        adjacency.resize(test::ownedRows(), sizeOf);
}

template <class Adjacency>
class ArrayAdjacencyOfAnyLayout : public testing::Test {};
using Adjacencies = testing::Types<ArrayAdjacency<>, ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex>,
                                   ArrayAdjacency<caseWidth>, ArrayAdjacency<caseWidth, caseWidth, LocalIndex>,
                                   ArrayAdjacency<DynamicSize>, ArrayAdjacency<NonUniformSize, caseWidth>,
                                   ArrayAdjacency<NonUniformSize, DynamicSize, LocalIndex>>;
TYPED_TEST_SUITE(ArrayAdjacencyOfAnyLayout, Adjacencies);

TYPED_TEST(ArrayAdjacencyOfAnyLayout, IsPulledByEveryTransport) {
    using Index = typename TypeParam::Element;
    ArrayPair<TypeParam> pair;
    pair.initPair("adjacency", test::world());
    giveRows(*pair.father);
    test::makeGhosts(pair);
    const auto entry = [](index global, rowsize j, int round) {
        return static_cast<Index>(global * 100 + j + round * 10000);
    };
    test::pullInEveryWay(
        pair,
        [&](index i, index global, int round) {
            rowsize j = 0;
            for (Index &to : (*pair.father)[i])
                to = entry(global, j++, round);
        },
        [&](index i, index global, int round) {
            const auto row = std::as_const(pair)[i];
            const auto view = std::as_const(pair).view();
            ASSERT_EQ(row.size(), entriesOf<TypeParam>(global));
            ASSERT_EQ(view[i].size(), row.size());
            ASSERT_EQ(view[i].data(), row.data());
            for (rowsize j = 0; j < row.size(); ++j) {
                ASSERT_EQ(row[j], entry(global, j, round));
                ASSERT_EQ(view(i, j), row[j]);
            }
        });
}

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

TEST(ArrayAdjacency, GrowsWhileDecompressed) {
    ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex> adjacency("cells of a node", test::world());
    adjacency.resize(3);
    for (LocalIndex k = 0; k < 6; ++k)
        adjacency.appendToRow(k % 3, k);
    EXPECT_EQ(adjacency[2][1], 5);
    adjacency.compress();
    EXPECT_EQ(adjacency.view()[2][1], 5);
    EXPECT_THROW(adjacency.resizeRow(0, 7), StateError);
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
} // namespace DNDS
