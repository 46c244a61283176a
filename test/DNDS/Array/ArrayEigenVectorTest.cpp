// Vectors in every layout, and their exchange.

#include "DNDS/Array/ArrayEigenVector.hpp"

#include "PairCases.hpp"

#include <type_traits>

namespace DNDS {
namespace {

static_assert(std::is_trivially_copyable_v<ArrayEigenVector<3>::View>);
static_assert(std::is_trivially_copyable_v<ArrayEigenVector<NonUniformSize>::ConstView>);
static_assert(sizeof(ArrayEigenVector<3>::View) == sizeof(ArrayView<real, 3>));
static_assert(std::is_same_v<ArrayEigenVector<3>::Matrix, Eigen::Vector3d>);
static_assert(std::is_same_v<ArrayEigenVector<DynamicSize>::Matrix, Eigen::VectorXd>);
static_assert(ArrayEigenVector<NonUniformSize, 4>::layout == ArrayLayout::StaticMax);
static_assert(ArrayEigenVector<NonUniformSize, DynamicSize>::layout == ArrayLayout::Max);
static_assert(ArrayEigenVector<NonUniformSize>::layout == ArrayLayout::CSR);

constexpr rowsize caseWidth = 4;

template <class Vectors>
Eigen::VectorXd vectorOf(index global, int round = 0) {
    const index size = isFixedLayout(Vectors::layout) ? caseWidth : global * 3 % (caseWidth + 1);
    Eigen::VectorXd vector(size);
    for (index j = 0; j < size; ++j)
        vector(j) = test::valueOf(global, j, round);
    return vector;
}

template <class Vectors>
void giveRows(Vectors &vectors) {
    const auto sizeOf = [](index i) { return vectorOf<Vectors>(test::firstRow() + i).size(); };
    if constexpr (Vectors::layout == ArrayLayout::StaticFixed)
        vectors.resize(test::ownedRows());
    else if constexpr (Vectors::layout == ArrayLayout::Fixed)
        vectors.resize(test::ownedRows(), caseWidth);
    else if constexpr (Vectors::layout == ArrayLayout::Max)
        vectors.resize(test::ownedRows(), caseWidth, sizeOf);
    else
        vectors.resize(test::ownedRows(), sizeOf);
}

template <class Vectors>
class ArrayEigenVectorOfAnyLayout : public testing::Test {};
using VectorArrays = testing::Types<ArrayEigenVector<caseWidth>, ArrayEigenVector<caseWidth, caseWidth, 64>,
                                    ArrayEigenVector<DynamicSize>, ArrayEigenVector<NonUniformSize, caseWidth>,
                                    ArrayEigenVector<NonUniformSize, DynamicSize>, ArrayEigenVector<NonUniformSize>>;
TYPED_TEST_SUITE(ArrayEigenVectorOfAnyLayout, VectorArrays);

TYPED_TEST(ArrayEigenVectorOfAnyLayout, IsPulledByEveryTransport) {
    ArrayPair<TypeParam> pair;
    pair.initPair("vectors", test::world());
    giveRows(*pair.father);
    test::makeGhosts(pair);
    test::pullInEveryWay(
        pair, [&](index i, index global, int round) { pair[i] = vectorOf<TypeParam>(global, round); },
        [&](index i, index global, int round) {
            test::expectEqual(std::as_const(pair)[i], vectorOf<TypeParam>(global, round));
            const auto view = std::as_const(pair).view();
            test::expectEqual(view[i], vectorOf<TypeParam>(global, round));
            ASSERT_EQ(view.rowSize(i), vectorOf<TypeParam>(global).size());
        });
}

TYPED_TEST(ArrayEigenVectorOfAnyLayout, IsCopiedSwappedAndHashed) {
    TypeParam a("a", test::world());
    giveRows(a);
    test::forOwned([&](index i, index global) { a[i] = vectorOf<TypeParam>(global); });
    TypeParam b(a);
    EXPECT_EQ(b.hash(), a.hash());
    TypeParam c("c", test::world());
    c.clone(a);
    EXPECT_EQ(c.label(), "c");
    EXPECT_EQ(c.hash(), a.hash());
    TypeParam d("d", test::world());
    const std::uint64_t emptyHash = d.hash();
    swap(c, d);
    EXPECT_EQ(d.label(), "c");
    EXPECT_EQ(d.hash(), a.hash());
    EXPECT_EQ(c.hash(), emptyHash);
    test::forOwned([&](index i, index global) { test::expectEqual(std::as_const(d)[i], vectorOf<TypeParam>(global)); });
}

TEST(ArrayEigenVector, ResizesAndAppends) {
    ArrayEigenVector<NonUniformSize> vectors("v", test::world());
    vectors.resize(2);
    vectors.resizeRow(1, 2);
    vectors[1] << 1, 2;
    vectors.appendToRow(1, 3);
    vectors.compress();
    test::expectEqual(vectors[1], Eigen::Vector3d(1, 2, 3));
    EXPECT_EQ(vectors[0].size(), 0);
    EXPECT_THROW(vectors[2], IndexError);
    EXPECT_THROW(vectors.resizeRow(0, 1), StateError);

    ArrayEigenVector<NonUniformSize, 3> padded("p", test::world());
    padded.resize(1);
    padded.resizeRow(0, 3);
    EXPECT_THROW(padded.resizeRow(0, 4), ArgumentError);
    EXPECT_EQ(padded.matrixShape(0), (MatrixShape{3, 1}));
}

} // namespace
} // namespace DNDS
