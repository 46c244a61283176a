// ArrayDof on the device: every operation matches the host bit for bit.

#include "DNDS/Array/ArrayDof.hpp"

#include "PairCases.hpp"

#include "DNDS/Device/Stream.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>

namespace DNDS {
namespace {

/// Rows that end in the middle of blocks and tiles; none on rank 1.
constexpr index manyRows = 3333;
index myRows() { return test::worldRank() == 1 ? 0 : manyRows + 10 * test::worldRank(); }

template <class Dof>
Dof make(const std::string &name, unsigned salt, index rows) {
    Dof dof;
    if constexpr (Dof::ArrayType::layout == ArrayLayout::StaticFixed)
        dof.initPair(name, test::world());
    else
        dof.initPair(name, test::world(), 2, 3);
    dof.father->resize(rows);
    std::mt19937 random(salt + 100 * static_cast<unsigned>(test::worldRank()));
    std::uniform_real_distribution<real> value(-2.0, 3.0);
    for (index i = 0; i < dof.father->dataSize(); ++i)
        dof.father->data()[i] = value(random);
    return dof;
}

/// The same bits, NaN included.
void expectSame(real host, real device) {
    EXPECT_EQ(std::memcmp(&host, &device, sizeof(real)), 0) << host << " on the host, " << device << " on the device";
}

template <class Dof>
void expectSame(const Dof &host, Dof &device) {
    device.toHost();
    for (const bool ghosts : {false, true}) {
        const auto &one = ghosts ? *host.son : *host.father;
        const auto &two = ghosts ? std::as_const(*device.son) : std::as_const(*device.father);
        ASSERT_EQ(one.dataSize(), two.dataSize());
        for (index i = 0; i < one.dataSize(); ++i)
            ASSERT_EQ(one.data()[i], two.data()[i]) << "element " << i;
    }
}

template <class Dof>
class ArrayDofOnDevice : public testing::Test {
  public:
    void SetUp() override {
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
        stream_.emplace();
    }
    /// A copy of `host` that lives and works on the device.
    Dof onDevice(const Dof &host) {
        Dof device;
        device.clone(host);
        device.toDevice();
        device.runOn(Executor::device(*stream_));
        return device;
    }

    std::optional<Device::Stream> stream_;
};
using Dofs = testing::Types<ArrayDof<1, 1>, ArrayDof<5, 1>, ArrayDof<5, 7>, ArrayDof<DynamicSize, DynamicSize>>;
TYPED_TEST_SUITE(ArrayDofOnDevice, Dofs);

TYPED_TEST(ArrayDofOnDevice, ChangesAreThoseOfTheHost) {
    auto u = make<TypeParam>("u", 1, test::ownedRows());
    test::makeGhosts(u);
    u.trans.pullOnce();
    auto v = make<TypeParam>("v", 2, test::ownedRows());
    v.borrowAndPull(u);
    auto uDevice = this->onDevice(u);
    auto vDevice = this->onDevice(v);
    const MatrixShape shape = u.father->commonShape();
    const typename TypeParam::Matrix row = TypeParam::Matrix::Random(shape.rows, shape.cols);
    const auto forBoth = [&](const auto &change) {
        change(u, v);
        change(uDevice, vDevice);
    };
    forBoth([](auto &x, const auto &y) { x += y; });
    forBoth([](auto &x, const auto &y) { x *= y; });
    forBoth([](auto &x, const auto &y) { x -= y; });
    forBoth([](auto &x, const auto &y) { x /= y; });
    forBoth([](auto &x, const auto &) { ((x += 0.3) *= 1.7) -= 0.1; });
    forBoth([](auto &x, const auto &) { x /= 3.0; });
    forBoth([](auto &x, const auto &y) { x.addTo(y, -0.37); });
    forBoth([](auto &x, const auto &y) { x.axpy(1.1, y); });
    forBoth([&](auto &x, const auto &) { ((x += row) *= row) -= row; });
    forBoth([&](auto &x, const auto &) { x /= row; });
    expectSame(u, uDevice);
    EXPECT_GT(u.norm2(), 0.0);
    uDevice.toDevice();
    forBoth([](auto &x, const auto &y) { x.copyFrom(y); });
    expectSame(u, uDevice);
    uDevice.toDevice();
    forBoth([](auto &x, const auto &) { x.setConstant(0.7); });
    expectSame(u, uDevice);
    uDevice.toDevice();
    forBoth([&](auto &x, const auto &) { x.setConstant(row); });
    expectSame(u, uDevice);
}

TYPED_TEST(ArrayDofOnDevice, ReductionsAreThoseOfTheHost) {
    auto u = make<TypeParam>("u", 3, myRows());
    auto v = make<TypeParam>("v", 4, myRows());
    auto uDevice = this->onDevice(u);
    auto vDevice = this->onDevice(v);
    const auto expectAll = [&] {
        expectSame(u.dot(v), uDevice.dot(vDevice));
        expectSame(u.norm2(), uDevice.norm2());
        expectSame(u.norm2(v), uDevice.norm2(vDevice));
        expectSame(u.sum(), uDevice.sum());
        EXPECT_EQ(std::isnan(u.min()), std::isnan(uDevice.min()));
        if (!std::isnan(u.min())) {
            expectSame(u.min(), uDevice.min());
            expectSame(u.max(), uDevice.max());
        }
        const auto expectMatrix = [](const auto &one, const auto &two) {
            ASSERT_EQ(one.size(), two.size());
            for (index i = 0; i < one.size(); ++i)
                EXPECT_TRUE(one(i) == two(i) || (std::isnan(one(i)) && std::isnan(two(i)))) << one(i) << ' ' << two(i);
        };
        expectMatrix(u.componentNorm1(), uDevice.componentNorm1());
        expectMatrix(u.componentNorm2(), uDevice.componentNorm2());
        expectMatrix(u.componentNormInf(), uDevice.componentNormInf());
        expectMatrix(u.componentNorm1(v), uDevice.componentNorm1(vDevice));
        expectMatrix(u.componentNorm2(v), uDevice.componentNorm2(vDevice));
        expectMatrix(u.componentNormInf(v), uDevice.componentNormInf(vDevice));
    };
    expectAll();
    EXPECT_NE(u.dot(v), u.norm2()) << "a dot is a dot";
    if (test::worldRank() == 0) {
        (*u.father)[2](0) = std::numeric_limits<real>::quiet_NaN();
        uDevice.runOn(Executor::host());
        uDevice.toHost();
        (*uDevice.father)[2](0) = std::numeric_limits<real>::quiet_NaN();
        uDevice.toDevice();
        uDevice.runOn(Executor::device(*this->stream_));
    }
    EXPECT_TRUE(std::isnan(uDevice.max()));
    EXPECT_TRUE(std::isnan(uDevice.dot(vDevice)));
    auto none = make<TypeParam>("none", 5, 0);
    auto noneDevice = this->onDevice(none);
    EXPECT_EQ(noneDevice.norm2(), 0.0);
    EXPECT_EQ(noneDevice.min(), std::numeric_limits<real>::infinity());
    EXPECT_EQ(noneDevice.componentNorm1(), none.componentNorm1());
}

TEST(ArrayDofOnDeviceErrors, PartnersMustBeThere) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    auto u = make<ArrayDof<5, 1>>("u", 1, 4);
    auto v = make<ArrayDof<5, 1>>("v", 2, 4);
    u.runOn(Executor::device(stream));
    EXPECT_THROW(u += 1.0, StaleError) << "nobody called toDevice()";
    u.toDevice();
    EXPECT_THROW(u += v, StaleError);
    EXPECT_THROW(static_cast<void>(u.dot(v)), StaleError);
    v.toDevice();
    u += v;
    EXPECT_FALSE(u.father->valid(MemorySpace::Host));
    EXPECT_TRUE(v.father->valid(MemorySpace::Host)) << "reading makes nothing stale";
    u.runOn(Executor::host());
    EXPECT_THROW(u += 1.0, StaleError) << "the host has old values";
    stream.synchronize();
}

TEST(ArrayDofOnDeviceErrors, ScalarsScaleRows) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    auto u = make<ArrayDof<5, 1>>("u", 1, 1000);
    auto scalars = make<ArrayDof<1, 1>>("s", 2, 1000);
    ArrayDof<5, 1> device;
    device.clone(u);
    device.toDevice();
    scalars.toDevice();
    device.runOn(Executor::device(stream));
    device *= scalars;
    device /= scalars;
    device *= scalars;
    u *= scalars;
    u /= scalars;
    u *= scalars;
    expectSame(u, device);
}

TEST(ArrayDofWithoutDevice, SaysSo) {
    if (Device::available())
        GTEST_SKIP() << "there is a device";
    auto u = make<ArrayDof<5, 1>>("u", 1, 4);
    EXPECT_THROW(u.toDevice(), NotBuiltError);
    u.runOn(Executor::device(nullptr));
    EXPECT_THROW(u += 1.0, StaleError);
}

} // namespace
} // namespace DNDS
