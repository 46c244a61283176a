// Vector-space operations and reductions, against serial references; and what happens where arrays do not fit.

#include "DNDS/Array/ArrayDof.hpp"

#include "PairCases.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include "DNDS/Device/Hooks.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace DNDS {
namespace {

constexpr real infinity = std::numeric_limits<real>::infinity();

/// Small whole numbers other than 0, so that results are exact in any order.
real number(index global, index j, int salt) {
    const index value = (global * 13 + j * 5 + salt * 7) % 23 - 11;
    return static_cast<real>(value == 0 ? 12 : value);
}

template <class Dof>
class ArrayDofOfAnySize : public testing::Test {
  public:
    static constexpr bool isStatic = Dof::ArrayType::layout == ArrayLayout::StaticFixed;
    static constexpr MatrixShape declared = Dof::ArrayType::Traits::declared;
    static constexpr MatrixShape shape{declared.rows < 0 ? 2 : declared.rows, declared.cols < 0 ? 3 : declared.cols};

    /// All elements of a global row.
    static Eigen::MatrixXd rowOf(index global, int salt) {
        Eigen::MatrixXd row(shape.rows, shape.cols);
        for (index j = 0; j < row.size(); ++j)
            row(j) = number(global, j, salt);
        return row;
    }
    /// An array with the ghosts of `primary`, or with new ones; current ghosts.
    static Dof make(int salt, const Dof *primary = nullptr) {
        Dof dof;
        if constexpr (isStatic)
            dof.initPair("u" + std::to_string(salt), test::world());
        else
            dof.initPair("u" + std::to_string(salt), test::world(), shape.rows, shape.cols);
        dof.father->resize(test::ownedRows());
        test::forOwned([&](index i, index global) { dof[i] = rowOf(global, salt); });
        if (primary) {
            dof.borrowAndPull(*primary);
        } else {
            test::makeGhosts(dof);
            dof.trans.pullOnce();
        }
        return dof;
    }
    /// Rows and ghosts are `expected(global)`.
    template <class Expected>
    static void expectRows(const Dof &dof, const Expected &expected) {
        const auto check = [&](index i, index global) {
            const Eigen::MatrixXd row = expected(global);
            test::expectEqual(dof[i], row);
        };
        test::forOwned(check);
        test::forGhosts(dof, check);
    }
};
using DofTypes = testing::Types<ArrayDof<5, 1>, ArrayDof<2, 3>, ArrayDof<1, 1>, ArrayDof<DynamicSize, 1>,
                                ArrayDof<DynamicSize, DynamicSize>>;
TYPED_TEST_SUITE(ArrayDofOfAnySize, DofTypes);

TYPED_TEST(ArrayDofOfAnySize, OperationsActOnRowsAndGhosts) {
    const auto row = [](index global, int salt) { return TestFixture::rowOf(global, salt); };
    const auto expect = [](const TypeParam &dof, auto expected) { TestFixture::expectRows(dof, expected); };
    TypeParam u = this->make(1);
    const TypeParam v = this->make(2, &u);
    const auto fresh = [&] { u.copyFrom(v); };

    expect(u, [&](index g) { return row(g, 1); });
    fresh();
    expect(u, [&](index g) { return row(g, 2); });
    u += 3.0;
    expect(u, [&](index g) { return (row(g, 2).array() + 3).matrix().eval(); });
    u -= 1.0;
    u *= 2.0;
    expect(u, [&](index g) { return ((row(g, 2).array() + 2) * 2).matrix().eval(); });
    u /= 4.0;
    expect(u, [&](index g) { return ((row(g, 2).array() + 2) / 2).matrix().eval(); });

    TypeParam w = this->make(3, &u);
    fresh();
    u += w;
    expect(u, [&](index g) { return (row(g, 2) + row(g, 3)).eval(); });
    fresh();
    u -= w;
    expect(u, [&](index g) { return (row(g, 2) - row(g, 3)).eval(); });
    fresh();
    u *= w;
    expect(u, [&](index g) { return row(g, 2).cwiseProduct(row(g, 3)).eval(); });
    fresh();
    u /= w;
    expect(u, [&](index g) { return row(g, 2).cwiseQuotient(row(g, 3)).eval(); });
    fresh();
    u.addTo(w, -0.5).axpy(2.0, w);
    expect(u, [&](index g) { return (row(g, 2) - 0.5 * row(g, 3) + 2.0 * row(g, 3)).eval(); });
    const TypeParam &same = u;
    u -= same;
    expect(u, [&](index g) { return (0 * row(g, 2)).eval(); });

    const Eigen::MatrixXd m = row(0, 9);
    fresh();
    u += m;
    expect(u, [&](index g) { return (row(g, 2) + m).eval(); });
    u -= m;
    u *= m;
    expect(u, [&](index g) { return row(g, 2).cwiseProduct(m).eval(); });
    fresh();
    u /= m;
    expect(u, [&](index g) { return row(g, 2).cwiseQuotient(m).eval(); });
    u.setConstant(m);
    expect(u, [&](index) { return m; });
    u.setConstant(-2.5);
    expect(u, [&](index g) { return (0 * row(g, 2)).array().operator-(2.5).matrix().eval(); });
}

TYPED_TEST(ArrayDofOfAnySize, ReductionsAreThoseOfASerialArray) {
    const TypeParam u = this->make(1);
    const TypeParam v = this->make(2, &u);
    real dot = 0;
    real squares = 0;
    real distance = 0;
    real sum = 0;
    real least = infinity;
    real most = -infinity;
    Eigen::MatrixXd one = Eigen::MatrixXd::Zero(this->shape.rows, this->shape.cols);
    Eigen::MatrixXd two = one;
    Eigen::MatrixXd largest = one;
    Eigen::MatrixXd oneOfDifference = one;
    Eigen::MatrixXd twoOfDifference = one;
    Eigen::MatrixXd largestDifference = one;
    for (index global = 0; global < test::allRows(); ++global) {
        const Eigen::MatrixXd a = this->rowOf(global, 1);
        const Eigen::MatrixXd b = this->rowOf(global, 2);
        dot += a.cwiseProduct(b).sum();
        squares += a.squaredNorm();
        distance += (a - b).squaredNorm();
        sum += a.sum();
        least = std::min(least, a.minCoeff());
        most = std::max(most, a.maxCoeff());
        one += a.cwiseAbs();
        two += a.cwiseAbs2();
        largest = largest.cwiseMax(a.cwiseAbs());
        oneOfDifference += (a - b).cwiseAbs();
        twoOfDifference += (a - b).cwiseAbs2();
        largestDifference = largestDifference.cwiseMax((a - b).cwiseAbs());
    }
    EXPECT_EQ(u.dot(v), dot);
    EXPECT_EQ(v.dot(u), dot);
    EXPECT_EQ(u.dot(u), squares) << "a dot product is no norm";
    EXPECT_EQ(u.norm2(), std::sqrt(squares));
    EXPECT_EQ(u.norm2(v), std::sqrt(distance));
    EXPECT_EQ(u.norm2(u), 0);
    EXPECT_EQ(u.sum(), sum);
    EXPECT_EQ(u.min(), least);
    EXPECT_EQ(u.max(), most);
    test::expectEqual(u.componentNorm1(), one);
    test::expectEqual(u.componentNorm2(), two.cwiseSqrt());
    test::expectEqual(u.componentNormInf(), largest);
    test::expectEqual(u.componentNorm1(v), oneOfDifference);
    test::expectEqual(u.componentNorm2(v), twoOfDifference.cwiseSqrt());
    test::expectEqual(u.componentNormInf(v), largestDifference);
    EXPECT_EQ(u.componentNorm1(u).sum(), 0);
}

TYPED_TEST(ArrayDofOfAnySize, NanAndEmptiness) {
    TypeParam u = this->make(1);
    if (test::worldRank() == test::worldSize() - 1 - (test::ownedRows(test::worldSize() - 1) == 0 ? 1 : 0))
        u.father->data()[0] = std::numeric_limits<real>::quiet_NaN();
    EXPECT_TRUE(std::isnan(u.min()));
    EXPECT_TRUE(std::isnan(u.max()));
    EXPECT_TRUE(std::isnan(u.sum()));
    EXPECT_TRUE(std::isnan(u.norm2()));
    const auto largest = u.componentNormInf();
    EXPECT_TRUE(std::isnan(largest(0)));
    if (largest.size() > 1) {
        EXPECT_FALSE(std::isnan(largest(1)));
    }

    TypeParam empty;
    empty.initPair("empty", test::world());
    EXPECT_EQ(empty.min(), infinity);
    EXPECT_EQ(empty.max(), -infinity);
    EXPECT_EQ(empty.sum(), 0);
    EXPECT_EQ(empty.norm2(), 0);
    EXPECT_EQ(empty.dot(empty), 0);
    EXPECT_EQ(empty.componentNorm1().size(), TestFixture::isStatic ? this->shape.size() : 0);
    EXPECT_EQ(empty.componentNorm1().sum(), 0);
    empty += 1.0;
    empty.setConstant(Eigen::MatrixXd::Zero(this->shape.rows, this->shape.cols));
}

TYPED_TEST(ArrayDofOfAnySize, RowsThatDoNotFitAreRefused) {
    TypeParam u = this->make(1);
    const TypeParam v = this->make(2);
    EXPECT_EQ(u.dot(v), v.dot(u)) << "reductions leave ghosts alone";
    if (u.son->size() > 0 && v.son->size() > 0) {
        EXPECT_THROW(u += v, StateError) << "ghosts of another mapping";
    }

    TypeParam longer = this->make(3);
    const bool odd = test::worldRank() == 0;
    if (odd)
        longer.father->resize(test::ownedRows() + 1);
    const std::uint64_t before = u.hash();
    if (odd) {
        EXPECT_THROW(u += longer, LayoutError);
        EXPECT_THROW(u.copyFrom(longer), LayoutError);
        EXPECT_THROW(u.addTo(longer, 1.0), LayoutError);
    }
    EXPECT_EQ(u.hash(), before) << "a refused operation changes nothing";
    for (int k = 0; k < 2; ++k) { // the ranks stay in step
        EXPECT_THROW(u.dot(longer), LayoutError);
        EXPECT_THROW(u.norm2(longer), LayoutError);
    }
    EXPECT_EQ(u.dot(v), v.dot(u));
}

TEST(ArrayDof, MatricesOfOtherSizesAreRefused) {
    ArrayDof<DynamicSize, DynamicSize> u;
    u.initPair("u", test::world(), 2, 3);
    u.father->resize(test::ownedRows());
    ArrayDof<DynamicSize, DynamicSize> v;
    v.initPair("v", test::world(), 3, 2); // as many elements
    v.father->resize(test::ownedRows());
    EXPECT_THROW(u.dot(v), LayoutError) << "on all ranks, those without rows too";
    EXPECT_THROW(u.componentNorm1(v), LayoutError);
    if (test::ownedRows() > 0) {
        EXPECT_THROW(u += v, LayoutError);
        EXPECT_THROW(u.setConstant(Eigen::MatrixXd::Zero(3, 2)), LayoutError);
        EXPECT_THROW(u += Eigen::MatrixXd::Zero(2, 2), LayoutError);
    }
    ArrayDof<DynamicSize, 1> w;
    w.initPair("w", test::world());
    if (test::worldSize() > 2) {
        if (test::ownedRows() > 0)
            w.father->resize(test::ownedRows(), test::worldRank() == 2 ? 3 : 2, 1);
        EXPECT_THROW(w.componentNorm1(), LayoutError);
    }
}

TEST(ArrayDof, RanksWithoutRowsNeedNoShape) {
    ArrayDof<DynamicSize, 1> u;
    u.initPair("u", test::world());
    if (test::ownedRows() > 0)
        u.father->resize(test::ownedRows(), 4, 1);
    u.setConstant(2.0);
    EXPECT_EQ(u.sum(), 8.0 * static_cast<real>(test::allRows()));
    EXPECT_EQ(u.dot(u), 16.0 * static_cast<real>(test::allRows()));
    test::expectEqual(u.componentNormInf(), Eigen::Vector4d::Constant(2));
}

TEST(ArrayDof, RowsAreScaledByAColumn) {
    ArrayDof<2, 3> u;
    u.initPair("u", test::world());
    u.father->resize(test::ownedRows());
    test::makeGhosts(u);
    u.setConstant(6.0);
    ArrayDof<1, 1> scale;
    scale.initPair("scale", test::world());
    scale.father->resize(test::ownedRows());
    test::forOwned([&](index i, index global) { scale[i](0) = static_cast<real>(global + 1); });
    scale.borrowAndPull(u);
    u *= scale;
    const auto check = [&](real expected, index i) {
        test::expectEqual(std::as_const(u)[i], Eigen::MatrixXd::Constant(2, 3, expected));
    };
    const auto times = [&](index i, index global) { check(6.0 * static_cast<real>(global + 1), i); };
    test::forOwned(times);
    test::forGhosts(u, times);
    u /= scale;
    const auto same = [&](index i, index) { check(6.0, i); };
    test::forOwned(same);
    test::forGhosts(u, same);
    scale *= scale; // component-wise
    EXPECT_EQ(scale.max(), static_cast<real>(test::allRows() * test::allRows()));
    ArrayDof<1, 1> shorter;
    shorter.initPair("shorter", test::world());
    if (test::ownedRows() > 0) {
        EXPECT_THROW(u *= shorter, LayoutError);
    }
}

TEST(ArrayDof, NeedsItsArrays) {
    ArrayDof<2, 1> u;
    EXPECT_THROW(u += 1.0, StateError);
    EXPECT_THROW(u.norm2(), StateError);
    EXPECT_THROW(u.componentNorm1(), StateError);
    ArrayDof<2, 1> v;
    v.initPair("v", test::world());
    EXPECT_THROW(v += u, StateError);
    EXPECT_THROW(v.dot(u), StateError);
}

TEST(ArrayDof, StaleHostSidesAreNoticedOnAllRanks) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    ArrayDof<2, 1> u;
    u.initPair("u", test::world());
    u.father->resize(2);
    u.setConstant(1.0);
    if (test::worldRank() == 0) {
        u.father->toDevice();
        static_cast<void>(u.father->deviceView<DeviceBackend::CUDA>());
        EXPECT_THROW(u += 1.0, StaleError);
    }
    EXPECT_THROW(u.norm2(), StaleError);
    EXPECT_THROW(u.componentNorm2(), StaleError);
    if (test::worldRank() == 0)
        u.father->toHost();
    EXPECT_EQ(u.sum(), 4.0 * test::worldSize());
    u.toDevice();
    EXPECT_EQ(u.sum(), 4.0 * test::worldSize());
    EXPECT_TRUE(u.father->valid(MemorySpace::Device)) << "reductions make nothing stale";
}

TEST(ArrayDof, ReductionsSayThatTheCommunicatorWasFreed) {
    std::optional<Communicator> comm = Communicator::duplicate(MPI_COMM_WORLD);
    ArrayDof<2, 1> u;
    u.initPair("u", comm->view());
    u.father->resize(3);
    u.setConstant(1);
    ArrayDof<DynamicSize, 1> v;
    v.initPair("v", comm->view());
    comm.reset();
    for (const auto &call : std::vector<std::function<void()>>{
             [&] { (void)u.norm2(); }, [&] { (void)u.dot(u); }, [&] { (void)u.min(); }, [&] { (void)u.sum(); },
             [&] { (void)u.componentNorm1(); }, [&] { u.transAttach(); }})
        test::expectContains(test::messageOf<StateError>(call), "the communicator of 'u' was freed");
    test::expectContains(test::messageOf<StateError>([&] { (void)v.componentNorm2(); }), "of 'v' was freed");
    u += 1.0; // local operations still work
    EXPECT_EQ((*u.father)(2, 1), 2.0);
}

} // namespace
} // namespace DNDS
