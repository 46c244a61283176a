// Several matrices of different shapes in a row.

#include "DNDS/Array/ArrayEigenMatrixBatch.hpp"

#include "PairCases.hpp"

#include "DNDS/Device/KernelScope.hpp"

#include <limits>
#include <type_traits>

namespace DNDS {
namespace {

static_assert(std::is_trivially_copyable_v<ArrayEigenMatrixBatch::View>);
static_assert(std::is_trivially_copyable_v<ArrayEigenMatrixBatch::ConstView>);
static_assert(std::is_convertible_v<ArrayEigenMatrixBatch::View, ArrayEigenMatrixBatch::ConstView>);
static_assert(!std::is_convertible_v<ArrayEigenMatrixBatch::ConstView, ArrayEigenMatrixBatch::View>);

/// 0 to 3 matrices, some of them without elements.
std::vector<Eigen::MatrixXd> matricesOf(index global, int round = 0) {
    std::vector<Eigen::MatrixXd> matrices;
    for (index k = 0; k < global % 4; ++k) {
        Eigen::MatrixXd matrix((global + k) % 3, 1 + global % 2);
        for (index j = 0; j < matrix.size(); ++j)
            matrix(j) = test::valueOf(global, 10 * k + j, round);
        matrices.push_back(matrix);
    }
    return matrices;
}

template <class Batches>
void expectRow(const Batches &batches, index i, const std::vector<Eigen::MatrixXd> &matrices) {
    for (std::size_t k = 0; k < matrices.size(); ++k)
        test::expectEqual(batches(i, static_cast<rowsize>(k)), matrices[k]);
}

TEST(ArrayEigenMatrixBatch, IsPulledByEveryTransport) {
    ArrayPair<ArrayEigenMatrixBatch> pair;
    pair.initPair("weights", test::world());
    pair.father->resize(test::ownedRows());
    test::forOwned([&](index i, index global) { pair.father->setRow(i, matricesOf(global)); });
    pair.father->compress();
    test::makeGhosts(pair);
    test::forGhosts(pair, [&](index i, index) {
        ASSERT_EQ(pair.son->batchSize(i - test::ownedRows()), 0) << "nothing was pulled yet";
    });
    test::pullInEveryWay(
        pair, [&](index i, index global, int round) { pair.father->setRow(i, matricesOf(global, round)); },
        [&](index i, index global, int round) {
            const auto view = std::as_const(pair).view();
            const auto matrices = matricesOf(global, round);
            ASSERT_EQ(pair.son->batchSize(i - test::ownedRows()), static_cast<rowsize>(matrices.size()));
            ASSERT_EQ(view[i].batchSize(), static_cast<rowsize>(matrices.size()));
            expectRow(std::as_const(pair), i, matrices);
            expectRow(view, i, matrices);
        });
}

TEST(ArrayEigenMatrixBatch, IsReplacedButNotSummedByPushes) {
    ArrayPair<ArrayEigenMatrixBatch> pair;
    pair.initPair("weights", test::world());
    pair.father->resize(test::ownedRows());
    test::forOwned([&](index i, index global) { pair.father->setRow(i, matricesOf(global)); });
    pair.father->compress();
    test::makeGhosts(pair);
    pair.trans.pullOnce();
    EXPECT_THROW(pair.trans.pushOnce(PushOp::Sum), LayoutError);
    test::forGhosts(pair,
                    [&](index i, index global) { pair.son->setRow(i - test::ownedRows(), matricesOf(global, 3)); });
    pair.trans.pushOnce();
    const auto &replaced = pair.trans.ghostMapping()->readerPeers().values;
    for (const index row : replaced)
        expectRow(std::as_const(*pair.father), row, matricesOf(test::firstRow() + row, 3));
}

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

TEST(ArrayEigenMatrixBatch, IsCopiedAndSwapped) {
    ArrayEigenMatrixBatch a("a", test::world());
    a.resize(4);
    for (index i = 0; i < 4; ++i)
        a.setRow(i, matricesOf(i));
    ArrayEigenMatrixBatch b(a);
    ArrayEigenMatrixBatch c("c", test::world());
    c.clone(a);
    c.compress();
    ArrayEigenMatrixBatch d("d", test::world());
    swap(c, d);
    EXPECT_EQ(c.size(), 0);
    for (index i = 0; i < 4; ++i) {
        expectRow(std::as_const(b), i, matricesOf(i));
        expectRow(std::as_const(d), i, matricesOf(i));
    }
    EXPECT_EQ(d.hash(), a.hash());
}

TEST(ArrayEigenMatrixBatch, KernelsOnTheDeviceSeeTheMatrices) {
    if (Device::name() != "emulated")
        GTEST_SKIP() << "needs host code to stand in for kernels";
    ArrayEigenMatrixBatch a("a", test::world());
    a.resize(4);
    for (index i = 0; i < 4; ++i)
        a.setRow(i, matricesOf(i));
    a.compress();
    a.toDevice();
    const auto view = std::as_const(a).deviceView<DeviceBackend::CUDA>();
    const Device::KernelScope kernel;
    for (index i = 0; i < 4; ++i)
        expectRow(view, i, matricesOf(i));
}

} // namespace
} // namespace DNDS
