// Vectors in every layout, and their exchange.

#include "DNDS/Array/ArrayMatrices.hpp"

#include "DerivedCase.hpp"

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

using VectorArrays = testing::Types<ArrayEigenVector<caseWidth>, ArrayEigenVector<caseWidth, caseWidth, 64>,
                                    ArrayEigenVector<DynamicSize>, ArrayEigenVector<NonUniformSize, caseWidth>,
                                    ArrayEigenVector<NonUniformSize, DynamicSize>, ArrayEigenVector<NonUniformSize>>;

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

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Vectors, DerivedArray, VectorArrays);
} // namespace test
} // namespace DNDS
