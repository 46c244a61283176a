// Views of all arrays in kernels: what a functor computes from the device's view is what it computes on the host.

#include "PairCases.hpp"

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

constexpr index rows = 700;

/// Sums the elements of each row by span, element and pointer, then doubles them.
template <class View>
struct PlainRows {
    View view;
    ArrayView<real, 2> result;
    DNDS_HOST_DEVICE void operator()(index i) const {
        real sum = 0;
        for (const auto &value : view.row(i))
            sum += static_cast<real>(value);
        for (rowsize j = 0; j < view.rowSize(i); ++j) {
            sum += 3 * static_cast<real>(view(i, j)) + static_cast<real>(view[i][j]);
            view(i, j) = view(i, j) + view(i, j);
        }
        result(i, 0) = sum;
        result(i, 1) = static_cast<real>(view.rowSize(i));
    }
};

/// Products and norms of the maps.
template <class View>
struct Matrices {
    View view;
    ArrayView<real, 2> result;
    DNDS_HOST_DEVICE void operator()(index i) const {
        auto matrix = view[i];
        result(i, 0) = matrix.squaredNorm() + 2 * matrix.sum();
        result(i, 1) = static_cast<real>(matrix.rows() * 100 + matrix.cols());
        matrix *= 2.0;
    }
};

/// All matrices of a batch.
template <class View>
struct Batches {
    View view;
    ArrayView<real, 2> result;
    DNDS_HOST_DEVICE void operator()(index i) const {
        real sum = 0;
        for (rowsize k = 0; k < view.batchSize(i); ++k) {
            auto matrix = view.batch(i, k);
            sum += (k + 1) * (matrix.sum() + matrix.squaredNorm());
            matrix *= 2.0;
        }
        result(i, 0) = sum;
        result(i, 1) = static_cast<real>(view.batchSize(i));
    }
};

/// Runs the functor twice on the host and twice on the device; compares results and final contents.
template <template <class> class Functor, class A>
void expectSameOnDevice(A &array) {
    Array<real, 2> onHost;
    Array<real, 2> onDevice;
    onHost.resize(rows);
    onDevice.resize(rows);
    A copied(array);
    copied.toDevice();
    onDevice.toDevice();
    const Device::Stream stream;
    const auto run = [](const Executor &executor, auto view, ArrayView<real, 2> result) {
        static_assert(std::is_trivially_copyable_v<decltype(view)>);
        parallelFor(executor, rows, Functor<decltype(view)>{view, result});
    };
    for (int round = 0; round < 2; ++round) {
        run(Executor::host(), array.view(), onHost.view());
        run(Executor::device(stream), copied.template deviceView<DeviceBackend::CUDA>(),
            onDevice.deviceView<DeviceBackend::CUDA>());
    }
    stream.synchronize();
    copied.toHost();
    onDevice.toHost();
    real total = 0;
    for (index i = 0; i < rows; ++i) {
        // products of long rows may be added up in another order by Eigen's vectors on the host
        ASSERT_NEAR(onHost(i, 0), onDevice(i, 0), 1e-14 * std::abs(onHost(i, 0))) << "row " << i;
        ASSERT_EQ(onHost(i, 1), onDevice(i, 1)) << "row " << i;
        total += std::abs(onHost(i, 0));
    }
    EXPECT_GT(total, 1.0);
    EXPECT_EQ(std::as_const(array).hash(), std::as_const(copied).hash()) << "both were changed alike";
}

class DeviceViews : public testing::Test {
  public:
    void SetUp() override {
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
    }
};

rowsize widthOf(index i) { return static_cast<rowsize>(i * 7 % 5); }

template <class A>
void fill(A &array) {
    for (index i = 0; i < array.size(); ++i)
        for (rowsize j = 0; j < array.rowSize(i); ++j)
            array(i, j) = static_cast<typename A::Element>((i * 31 + j * 17) % 101 - 20);
}

TEST_F(DeviceViews, AllLayouts) {
    Array<real, 3> staticFixed;
    staticFixed.resize(rows);
    fill(staticFixed);
    expectSameOnDevice<PlainRows>(staticFixed);
    Array<float, 3, 3, 64> aligned;
    aligned.resize(rows);
    fill(aligned);
    expectSameOnDevice<PlainRows>(aligned);
    Array<real, DynamicSize> fixed;
    fixed.resize(rows, 4);
    fill(fixed);
    expectSameOnDevice<PlainRows>(fixed);
    Array<index, NonUniformSize, 4> staticMax;
    staticMax.resize(rows, widthOf);
    fill(staticMax);
    expectSameOnDevice<PlainRows>(staticMax);
    Array<real, NonUniformSize, DynamicSize> max;
    max.resize(rows, 6, widthOf);
    fill(max);
    expectSameOnDevice<PlainRows>(max);
    Array<std::int32_t, NonUniformSize> csr;
    csr.resize(rows, widthOf);
    fill(csr);
    expectSameOnDevice<PlainRows>(csr);
}

TEST_F(DeviceViews, VectorsAndMatrices) {
    ArrayEigenVector<3> vectors("v", test::world());
    vectors.resize(rows);
    ArrayEigenVector<DynamicSize> wide("w", test::world(), 7);
    wide.resize(rows);
    ArrayEigenMatrix<2, 3> matrices("m", test::world());
    matrices.resize(rows);
    ArrayEigenMatrix<NonUniformSize, NonUniformSize> shapes("s", test::world());
    shapes.resize(rows, [](index i) {
        return MatrixShape{static_cast<rowsize>(1 + i % 3), static_cast<rowsize>(i % 4)};
    });
    const auto check = [](auto &array) {
        for (index i = 0; i < rows; ++i)
            for (index k = 0; k < array[i].size(); ++k)
                array[i](k) = static_cast<real>((i * 31 + k * 17) % 101 - 20);
        expectSameOnDevice<Matrices>(array);
    };
    check(vectors);
    check(wide);
    check(matrices);
    check(shapes);
}

TEST_F(DeviceViews, MatrixBatches) {
    ArrayEigenUniMatrixBatch<2, 2> uniform("u", test::world());
    uniform.resizeBatches(rows, [](index i) { return i % 4; });
    ArrayEigenMatrixBatch mixed("b", test::world());
    mixed.resize(rows);
    for (index i = 0; i < rows; ++i) {
        for (rowsize k = 0; k < uniform.batchSize(i); ++k)
            uniform(i, k).setConstant(static_cast<real>(i % 13 + k));
        if (i % 3 == 0)
            mixed.setRow(
                i, std::vector<Eigen::MatrixXd>{Eigen::MatrixXd::Constant(1 + i % 3, 2, 0.5),
                                                Eigen::MatrixXd::Constant(2, 1 + i % 5, static_cast<real>(i % 7))});
    }
    mixed.compress();
    expectSameOnDevice<Batches>(uniform);
    expectSameOnDevice<Batches>(mixed);
}

using Neighbours = ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex>;

/// The sum over the neighbours of each row, owned or ghost.
struct Gather {
    Neighbours::ConstView neighbours;
    ArrayPairView<ArrayView<const real, 2>> field;
    ArrayView<real, 2> result;
    DNDS_HOST_DEVICE void operator()(index i) const {
        real sum = 0;
        for (const LocalIndex j : neighbours[i])
            sum += field(j, 1) + field[j][0] * (field.isGhost(j) ? 10 : 1);
        result(i, 0) = sum;
        result(i, 1) = 0;
    }
};

TEST_F(DeviceViews, PairsAndAdjacency) {
    ArrayPair<ParArray<real, 2>> field;
    field.initPair("f", test::world());
    field.father->resize(rows);
    field.son->resize(50);
    fill(*field.father);
    fill(*field.son);
    Neighbours neighbours("n", test::world());
    neighbours.resize(rows, [](index i) { return 1 + i % 4; });
    for (index i = 0; i < rows; ++i)
        for (rowsize j = 0; j < neighbours.rowSize(i); ++j)
            neighbours(i, j) = static_cast<LocalIndex>((i * 13 + j * 311) % (rows + 50));
    Array<real, 2> onHost;
    Array<real, 2> onDevice;
    onHost.resize(rows);
    onDevice.resize(rows);
    field.toDevice();
    neighbours.toDevice();
    onDevice.toDevice();
    parallelFor(Executor::host(), rows,
                Gather{std::as_const(neighbours).view(), std::as_const(field).view(), onHost.view()});
    const Device::Stream stream;
    parallelFor(Executor::device(stream), rows,
                Gather{std::as_const(neighbours).deviceView<DeviceBackend::CUDA>(),
                       std::as_const(field).deviceView<DeviceBackend::CUDA>(),
                       onDevice.deviceView<DeviceBackend::CUDA>()});
    stream.synchronize();
    onDevice.toHost();
    for (index i = 0; i < rows; ++i)
        ASSERT_EQ(onHost(i, 0), onDevice(i, 0)) << "row " << i;
    EXPECT_TRUE(field.father->valid(MemorySpace::Host)) << "reading makes nothing stale";
}

} // namespace
} // namespace DNDS
