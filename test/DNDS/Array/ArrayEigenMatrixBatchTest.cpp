// Several matrices of different shapes in a row.

#include "DNDS/Array/ArrayMatrices.hpp"

#include "DerivedCase.hpp"

#include <limits>
#include <type_traits>

namespace DNDS {
namespace {

static_assert(std::is_trivially_copyable_v<ArrayEigenMatrixBatch::View>);
static_assert(std::is_trivially_copyable_v<ArrayEigenMatrixBatch::ConstView>);
static_assert(std::is_convertible_v<ArrayEigenMatrixBatch::View, ArrayEigenMatrixBatch::ConstView>);
static_assert(!std::is_convertible_v<ArrayEigenMatrixBatch::ConstView, ArrayEigenMatrixBatch::View>);

TEST(ArrayEigenMatrixBatch, RowsGrowWhileDecompressed) {
    ArrayEigenMatrixBatch batches("b", test::world());
    batches.resize(2);
    EXPECT_EQ(batches.batchSize(0), 0);
    batches.setRow(0, std::vector{Eigen::Matrix2d::Identity().eval(), Eigen::Matrix2d::Ones().eval()});
    batches.resizeRow(1, {{2, 3}, {0, 4}, {1, 1}});
    batches.batch(1, 0).setConstant(7);
    EXPECT_EQ(batches.batchSize(1), 3);
    EXPECT_EQ(batches(1, 1).cols(), 4);
    EXPECT_EQ(batches.batch(1, 2)(0, 0), 0);
    batches.resizeRow(0, {{1, 2}});
    EXPECT_EQ(batches.batch(0, 0).sum(), 0) << "a row starts over";
    const std::uint64_t before = batches.hash();
    batches.compress();
    EXPECT_EQ(batches.hash(), before);
    EXPECT_EQ(batches.view()(1, 0).sum(), 42);
    EXPECT_EQ(batches[1].batch(0).sum(), 42);

    batches.resizeRow(1, {{3, 2}, {4, 0}, {1, 1}}); // as many elements, so compressed or not
    EXPECT_EQ(batches.batch(1, 0).rows(), 3);
    EXPECT_THROW(batches.resizeRow(1, {{3, 3}}), StateError);
    EXPECT_EQ(batches.batchSize(1), 3) << "a refused change changes nothing";
    EXPECT_THROW(batches.batch(1, 3), IndexError);
    EXPECT_THROW(batches.batch(1, -1), IndexError);
    EXPECT_THROW(batches.batch(2, 0), IndexError);
    EXPECT_THROW(batches.resizeRow(0, {{-1, 2}}), ArgumentError);
    EXPECT_THROW(batches.resizeRow(0, {{std::numeric_limits<rowsize>::max(), 2}}), ArgumentError);
}

} // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Batches, DerivedArray, ArrayEigenMatrixBatch);
} // namespace test
} // namespace DNDS
