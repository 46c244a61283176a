// Matrices in every combination of static, run-time and per-row sizes: shapes, their state, and their exchange.

#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include "DerivedCase.hpp"

#include <cstdint>
#include <type_traits>

namespace DNDS {
namespace {

constexpr rowsize any = NonUniformSize;
constexpr rowsize dynamic = DynamicSize;

static_assert(std::is_trivially_copyable_v<ArrayEigenMatrix<3, 2>::View>);
static_assert(std::is_trivially_copyable_v<ArrayEigenMatrix<dynamic, 2>::View>);
static_assert(std::is_trivially_copyable_v<ArrayEigenMatrix<any, any>::ConstView>);
static_assert(sizeof(ArrayEigenMatrix<3, 2>::View) == sizeof(ArrayView<real, 6>), "static shapes take no memory");
static_assert(std::is_convertible_v<ArrayEigenMatrix<any, any>::View, ArrayEigenMatrix<any, any>::ConstView>);
static_assert(std::is_same_v<ArrayEigenMatrix<3, 3>::Matrix, Eigen::Matrix3d>);
static_assert(ArrayEigenMatrix<1, 4>::Matrix::SizeAtCompileTime == 4);
static_assert(ArrayEigenMatrix<any, 2, 3>::layout == ArrayLayout::StaticMax &&
              ArrayEigenMatrix<any, 2, 3>::rowMaxStatic == 6);
static_assert(ArrayEigenMatrix<any, dynamic, 3>::layout == ArrayLayout::Max);
static_assert(ArrayEigenMatrix<any, any, dynamic, dynamic>::layout == ArrayLayout::Max);
static_assert(ArrayEigenMatrix<any, 2>::layout == ArrayLayout::CSR && !ArrayEigenMatrix<any, 2>::shapePerRow);
static_assert(ArrayEigenMatrix<any, any, 3, any>::layout == ArrayLayout::CSR &&
              ArrayEigenMatrix<any, any>::shapePerRow);

using MatrixArrays =
    testing::Types<ArrayEigenMatrix<3, 2>, ArrayEigenMatrix<3, 2, 3, 2, 32>, ArrayEigenMatrix<dynamic, 2>,
                   ArrayEigenMatrix<3, dynamic>, ArrayEigenMatrix<dynamic, dynamic>, ArrayEigenMatrix<any, 2>,
                   ArrayEigenMatrix<3, any>, ArrayEigenMatrix<any, any>, ArrayEigenMatrix<any, dynamic>,
                   ArrayEigenMatrix<any, 2, 3, 2>, ArrayEigenMatrix<any, any, 3, 2, 64>,
                   ArrayEigenMatrix<any, any, 3, any>, ArrayEigenMatrix<any, any, dynamic, dynamic>,
                   ArrayEigenMatrix<any, dynamic, 3, dynamic>>;
TEST(ArrayEigenMatrix, ShapeOfARowChangesWhileDecompressed) {
    ArrayEigenMatrix<any, any> matrices("inverses", test::world());
    matrices.resize(2, [](index i) { return std::pair(2, i); });
    matrices.decompress();
    matrices[1] << 1, 2;
    matrices.resizeMatrix(1, 2, 3); // the column stays
    test::expectEqual(matrices[1], (Eigen::MatrixXd(2, 3) << 1, 0, 0, 2, 0, 0).finished());
    matrices.resizeMatrix(0, 0, 3);
    EXPECT_EQ(matrices.matRowSize(0), 0);
    EXPECT_EQ(matrices.matColSize(0), 3) << "shapes without elements are kept";
    matrices.resize(3);
    EXPECT_EQ(matrices.matrixShape(2), (MatrixShape{0, 0}));
    EXPECT_EQ(matrices.matrixShape(1), (MatrixShape{2, 3}));
    const std::uint64_t before = matrices.hash();
    matrices.compress();
    EXPECT_EQ(matrices.hash(), before);
    EXPECT_THROW(matrices.resizeMatrix(1, 3, 3), StateError);
    matrices.resizeMatrix(1, 3, 2); // as many elements
    EXPECT_NE(matrices.hash(), before) << "other shape, same elements";
    test::expectEqual(matrices[1], (Eigen::MatrixXd(3, 2) << 1, 0, 2, 0, 0, 0).finished());
    EXPECT_THROW(matrices.resizeMatrix(3, 1, 1), IndexError);
    EXPECT_THROW(matrices.resizeMatrix(0, -1, 1), ArgumentError);
    matrices[1](2, 1) = 5;
    EXPECT_EQ(matrices(1, 5), 5.0);
    EXPECT_EQ(matrices.view()(1, 2, 1), 5.0);
    EXPECT_EQ(matrices.view()(1, 1, 0), 2.0);
    EXPECT_EQ(matrices.view()(1, 1), 2.0);
}

TEST(ArrayEigenMatrix, PaddedRowsHaveRoomUpToTheirLimits) {
    ArrayEigenMatrix<any, any, 3, 2> matrices("m", test::world());
    matrices.resize(2);
    matrices.resizeMatrix(0, 3, 1);
    EXPECT_THROW(matrices.resizeMatrix(0, 2, 3), ArgumentError) << "fits the row, but not the limits";
    EXPECT_THROW(matrices.resizeMatrix(0, 4, 1), ArgumentError);
    EXPECT_EQ(matrices.matrixShape(0), (MatrixShape{3, 1}));
    EXPECT_THROW(matrices.resize(2, [](index) { return MatrixShape{1, 3}; }), ArgumentError);

    ArrayEigenMatrix<any, any, dynamic, dynamic> chosen("c", test::world());
    EXPECT_THROW(chosen.resize(1, [](index) { return MatrixShape{1, 1}; }), StateError);
    chosen.resize(1, 4, 4);
    chosen.resizeMatrix(0, 4, 3);
    EXPECT_THROW(chosen.resizeMatrix(0, 5, 1), ArgumentError);
}

TEST(ArrayEigenMatrix, EqualMatricesHashAlikeInEveryLayout) {
    ArrayEigenMatrix<3, 2> fixed("f", test::world());
    ArrayEigenMatrix<any, 2> csr("c", test::world());
    ArrayEigenMatrix<any, 2, dynamic, 2> four("4", test::world(), 4, 2), six("6", test::world(), 6, 2);
    ArrayEigenMatrix<any, any> both("b", test::world());
    const auto fill = [](auto &array) {
        array.resize(3, [](index) { return std::pair(3, 2); });
        array[1](2, 1) = 7;
        return array.hash();
    };
    fixed.resize(3);
    fixed[1](2, 1) = 7;
    EXPECT_EQ(fill(csr), fixed.hash());
    EXPECT_EQ(fill(four), fixed.hash());
    EXPECT_EQ(fill(six), fixed.hash());
    EXPECT_EQ(fill(both), fixed.hash());
    both.resizeMatrix(1, 2, 3);
    EXPECT_NE(both.hash(), fixed.hash());
}

TEST(ArrayEigenMatrix, OneOpenDimensionFollowsFromTheWidthOfRows) {
    ArrayEigenMatrix<dynamic, 2> rows("r", test::world());
    static_cast<ArrayBase &>(rows).resize(2, 6);
    EXPECT_EQ(rows.matrixShape(1), (MatrixShape{3, 2}));
    ArrayEigenMatrix<dynamic, 4> odd("o", test::world());
    EXPECT_THROW(static_cast<ArrayBase &>(odd).resize(2, 6), ArgumentError);
    ArrayEigenMatrix<dynamic, dynamic> open("u", test::world());
    static_cast<ArrayBase &>(open).resize(2, 6);
    EXPECT_FALSE(open.commonShape().chosen());
    ArrayEigenMatrix<any, 2, dynamic, 2> padded("p", test::world());
    static_cast<ArrayBase &>(padded).resize(2, 8);
    EXPECT_EQ(padded.commonShape(), (MatrixShape{4, 2}));
}

TEST(ArrayEigenMatrix, RunTimeSizesAreCheckedAndStartOver) {
    ArrayEigenMatrix<dynamic, 2> matrices("m", test::world());
    EXPECT_THROW(matrices.resize(3), StateError);
    EXPECT_THROW(matrices.resize(3, 2, 3), ArgumentError);
    EXPECT_THROW(matrices.resize(3, -2, 2), ArgumentError);
    matrices.resize(3, 4, 2);
    matrices[2].setOnes();
    matrices.resize(4, 4, 2);
    EXPECT_EQ(matrices[2].sum(), 8) << "the same size keeps the contents";
    EXPECT_EQ(matrices[3].sum(), 0);

    ArrayEigenMatrix<dynamic, dynamic> both("b", test::world(), 2, 3);
    both.resize(1);
    both[0].setOnes();
    const std::uint64_t before = both.hash();
    both.resize(1, 3, 2);
    EXPECT_EQ(both[0].sum(), 0) << "another shape starts over, even with as many elements";
    both[0].setOnes();
    EXPECT_NE(both.hash(), before);

    ArrayEigenMatrix<any, dynamic> rows("r", test::world());
    rows.resize(2, [](index i) { return std::pair(i, 5); });
    EXPECT_EQ(rows.commonShape().cols, 5);
    EXPECT_EQ(rows.matrixShape(0), (MatrixShape{0, 5}));
    EXPECT_THROW(rows.resize(2, [](index i) { return std::pair(1, 5 + i); }), ArgumentError);
    rows.resize(2, 2, 4);
    EXPECT_EQ(rows.matrixShape(1), (MatrixShape{2, 4}));

    const ArrayEigenMatrix<3, 2> high("h", test::world());
    EXPECT_THROW((ArrayEigenMatrix<2, 3>("w", test::world()).adoptShape(high)), LayoutError) << "as many elements";
}

TEST(ArrayEigenMatrix, DifferentShapesOnRanksAreRefusedOnAll) {
    if (test::worldSize() == 1)
        GTEST_SKIP() << "needs two ranks";
    // as many elements, so that only the shapes tell
    const bool odd = test::worldRank() == test::worldSize() - 1;
    ArrayEigenMatrix<dynamic, dynamic> matrices("m", test::world(), odd ? 3 : 2, odd ? 2 : 3);
    matrices.resize(1);
    EXPECT_THROW(matrices.agreeShape(), LayoutError);
}

TEST(ArrayEigenMatrix, SumsNeedEqualShapes) {
    ArrayPair<ArrayEigenMatrix<any, any, 3, 3>> pair;
    pair.initPair("m", test::world());
    pair.father->resize(test::ownedRows(), [](index) { return MatrixShape{2, 3}; });
    test::makeGhosts(pair);
    test::forGhosts(pair, [&](index i, index) { pair.son->resizeMatrix(i - test::ownedRows(), 3, 2); });
    const auto readers = pair.trans.ghostMapping()->readerPeers().values;
    if (test::world().allReduce(readers.empty() ? 0 : 1, MPI_MAX) == 0)
        EXPECT_NO_THROW(pair.trans.pushOnce(PushOp::Sum));
    else if (!readers.empty())
        EXPECT_THROW(pair.trans.pushOnce(PushOp::Sum), Error);
    else // nothing is wrong here; another rank may say so before
        try {
            pair.trans.pushOnce(PushOp::Sum);
        } catch (const RevokedError &) {
        }
    recover(test::world());
    test::forOwned([&](index i, index) { EXPECT_EQ(pair.father->matrixShape(i), (MatrixShape{2, 3})); });
    pair.trans.pushOnce(PushOp::Replace);
    for (const index row : readers)
        EXPECT_EQ(pair.father->matrixShape(row), (MatrixShape{3, 2})) << "replaced rows take the shape of the copy";
}

} // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Matrices, DerivedArray, MatrixArrays);
} // namespace test
} // namespace DNDS
