// Many matrices of one size in a row.

#include "DNDS/Array/ArrayMatrices.hpp"

#include "DerivedCase.hpp"

#include <cstdint>
#include <type_traits>

namespace DNDS {
namespace {

static_assert(std::is_trivially_copyable_v<ArrayEigenUniMatrixBatch<2, 3>::View>);
static_assert(std::is_trivially_copyable_v<ArrayEigenUniMatrixBatch<>::ConstView>);
static_assert(sizeof(ArrayEigenUniMatrixBatch<2, 3>::View) == sizeof(ArrayView<real, NonUniformSize>));
static_assert(std::is_convertible_v<ArrayEigenUniMatrixBatch<>::View, ArrayEigenUniMatrixBatch<>::ConstView>);

using Sizes = testing::Types<ArrayEigenUniMatrixBatch<2, 3>, ArrayEigenUniMatrixBatch<DynamicSize, 3>,
                             ArrayEigenUniMatrixBatch<2, DynamicSize>, ArrayEigenUniMatrixBatch<>>;
TEST(ArrayEigenUniMatrixBatch, RowsGrowWhileDecompressed) {
    ArrayEigenUniMatrixBatch<> batches("b", test::world());
    batches.resize(2);
    EXPECT_THROW(batches.resizeBatch(0, 1), StateError) << "the size was not chosen";
    EXPECT_EQ(batches.batchSize(0), 0);
    EXPECT_THROW(batches.resize(2, 0, 3), ArgumentError);
    batches.resize(2, 6);
    EXPECT_EQ(batches.batchSize(0), 0) << "elements of unknown matrices";
    batches.resize(2, 2, 3);
    batches.resizeBatch(1, 1);
    batches(1, 0).setOnes();
    batches.resizeBatch(1, 3);
    EXPECT_EQ(batches(1, 0).sum(), 6);
    EXPECT_EQ(batches(1, 2).sum(), 0);
    batches.compress();
    EXPECT_EQ(batches.batchSize(1), 3);
    EXPECT_EQ(batches.view().batchSize(0), 0);
    EXPECT_THROW(batches.resizeBatch(1, 2), StateError);
    EXPECT_THROW(batches(1, 3), IndexError);
    EXPECT_THROW(batches(0, 0), IndexError);
    EXPECT_THROW(batches.resizeBatches(1, [](index) { return index{1} << 40; }), ArgumentError);
    const std::uint64_t before = batches.hash();
    batches.resize(2, 2, 3);
    EXPECT_EQ(batches.batchSize(1), 3) << "the same size keeps the matrices";
    EXPECT_EQ(batches.hash(), before);
    batches.resize(2, 3, 2);
    EXPECT_EQ(batches.batchSize(1), 0) << "another size starts over";
    ArrayEigenUniMatrixBatch<2, 2> fixed("f", test::world());
    EXPECT_THROW(fixed.resize(1, 2, 3), ArgumentError);
}

TEST(ArrayEigenUniMatrixBatch, DifferentSizesOnRanksAreRefusedOnAll) {
    if (test::worldSize() == 1)
        GTEST_SKIP() << "needs two ranks";
    const rowsize rows = test::worldRank() == 0 ? 3 : 2;
    ArrayPair<ArrayEigenUniMatrixBatch<>> pair;
    pair.initPair("b", test::world(), rows, 2);
    pair.father->resizeBatches(1, [](index) { return 1; });
    EXPECT_THROW(pair.father->agreeShape(), LayoutError);
}

} // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(UniBatches, DerivedArray, Sizes);
} // namespace test
} // namespace DNDS
