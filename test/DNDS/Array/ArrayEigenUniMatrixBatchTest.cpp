// Many matrices of one size in a row.

#include "DNDS/Array/ArrayEigenUniMatrixBatch.hpp"

#include "PairCases.hpp"

#include "DNDS/Device/KernelScope.hpp"

#include <cstdint>
#include <type_traits>

namespace DNDS {
namespace {

static_assert(std::is_trivially_copyable_v<ArrayEigenUniMatrixBatch<2, 3>::View>);
static_assert(std::is_trivially_copyable_v<ArrayEigenUniMatrixBatch<>::ConstView>);
static_assert(sizeof(ArrayEigenUniMatrixBatch<2, 3>::View) == sizeof(ArrayView<real, NonUniformSize>));
static_assert(std::is_convertible_v<ArrayEigenUniMatrixBatch<>::View, ArrayEigenUniMatrixBatch<>::ConstView>);

rowsize countOf(index global) { return static_cast<rowsize>(global % 4); }

Eigen::Matrix<real, 2, 3> matrixOf(index global, rowsize k, int round = 0) {
    Eigen::Matrix<real, 2, 3> matrix;
    for (index j = 0; j < matrix.size(); ++j)
        matrix(j) = test::valueOf(global, 10 * k + j, round);
    return matrix;
}

template <class Batches>
class ArrayEigenUniMatrixBatchOfAnySize : public testing::Test {
  public:
    static void giveRows(Batches &batches) {
        batches.resize(0, 2, 3);
        batches.resizeBatches(test::ownedRows(), [](index i) { return countOf(test::firstRow() + i); });
    }
    template <class Any>
    static void fill(Any &batches, index i, index global, int round = 0) {
        for (rowsize k = 0; k < countOf(global); ++k)
            batches(i, k) = matrixOf(global, k, round);
    }
    template <class Any>
    static void expectRow(const Any &batches, index i, index global, int round = 0) {
        for (rowsize k = 0; k < countOf(global); ++k) {
            test::expectEqual(batches(i, k), matrixOf(global, k, round));
            test::expectEqual(batches[i].middleCols(3 * k, 3), matrixOf(global, k, round));
        }
        ASSERT_EQ(batches[i].cols(), 3 * countOf(global));
    }
};
using Sizes = testing::Types<ArrayEigenUniMatrixBatch<2, 3>, ArrayEigenUniMatrixBatch<DynamicSize, 3>,
                             ArrayEigenUniMatrixBatch<2, DynamicSize>, ArrayEigenUniMatrixBatch<>>;
TYPED_TEST_SUITE(ArrayEigenUniMatrixBatchOfAnySize, Sizes);

TYPED_TEST(ArrayEigenUniMatrixBatchOfAnySize, IsPulledByEveryTransport) {
    ArrayPair<TypeParam> pair;
    pair.initPair("fluxes", test::world());
    if (test::ownedRows() > 0)
        this->giveRows(*pair.father);
    test::makeGhosts(pair);
    EXPECT_EQ(pair.father->matrixShape(), (MatrixShape{2, 3}));
    test::pullInEveryWay(
        pair, [&](index i, index global, int round) { this->fill(*pair.father, i, global, round); },
        [&](index i, index global, int round) {
            ASSERT_EQ(pair.son->batchSize(i - test::ownedRows()), countOf(global));
            this->expectRow(std::as_const(pair), i, global, round);
            this->expectRow(std::as_const(pair).view(), i, global, round);
        });
}

TYPED_TEST(ArrayEigenUniMatrixBatchOfAnySize, IsCopiedSwappedAndHashed) {
    TypeParam a("a", test::world());
    this->giveRows(a);
    test::forOwned([&](index i, index global) { this->fill(a, i, global); });
    const auto expectA = [&](const TypeParam &array) {
        EXPECT_EQ(array.hash(), a.hash());
        EXPECT_EQ(array.matrixShape(), a.matrixShape());
        test::forOwned([&](index i, index global) { this->expectRow(array, i, global); });
    };
    TypeParam copied(a);
    expectA(copied);
    TypeParam cloned("cloned", test::world());
    cloned.clone(a);
    expectA(cloned);
    TypeParam other("other", test::world());
    const MatrixShape unset = other.matrixShape();
    swap(other, cloned);
    expectA(other);
    EXPECT_EQ(cloned.matrixShape(), unset);
    cloned.swapData(other);
    expectA(cloned);
    TypeParam moved(std::move(cloned));
    expectA(moved);
    EXPECT_EQ(cloned.matrixShape(), unset); // NOLINT(bugprone-use-after-move): a moved-from array is as new
}

TYPED_TEST(ArrayEigenUniMatrixBatchOfAnySize, KernelsOnTheDeviceSeeTheMatrices) {
    if (Device::name() != "emulated")
        GTEST_SKIP() << "needs host code to stand in for kernels";
    TypeParam a("a", test::world());
    this->giveRows(a);
    test::forOwned([&](index i, index global) { this->fill(a, i, global); });
    a.toDevice();
    const auto view = a.template deviceView<DeviceBackend::CUDA>();
    const Device::KernelScope kernel;
    test::forOwned([&](index i, index global) { this->expectRow(view, i, global); });
}

TEST(ArrayEigenUniMatrixBatch, RowsGrowWhileDecompressed) {
    ArrayEigenUniMatrixBatch<> batches("b", test::world());
    batches.resize(2);
    EXPECT_THROW(batches.resizeBatch(0, 1), StateError) << "the size was not chosen";
    EXPECT_EQ(batches.batchSize(0), 0);
    EXPECT_THROW(batches.resize(2, 0, 3), ArgumentError);
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
} // namespace DNDS
