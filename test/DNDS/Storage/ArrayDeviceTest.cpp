// Arrays on the device: which sides are current when, and that what kernels write arrives.

#include "DNDS/Storage/Array.hpp"

#include "ArrayCases.hpp"

#include "DNDS/Device/Hooks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace DNDS {
namespace {

using Padded = Array<real, NonUniformSize, 4>;
using Csr = Array<index, NonUniformSize>;

bool isEmulated() { return Device::name() == "emulated"; }

TEST(ArrayWithoutDevice, RefusesToGoThere) {
    Array<real, 3> array;
    array.setName("flux");
    for (const index rows : {index{0}, index{4}}) {
        array.resize(rows);
        if (!Device::available()) {
            EXPECT_THROW(array.toDevice(), NotBuiltError);
        }
    }
    try {
        static_cast<void>(array.deviceView<DeviceBackend::CUDA>());
        FAIL() << "the device never had this array";
    } catch (const StaleError &error) {
        EXPECT_NE(error.message().find("flux"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("toDevice()"), std::string::npos) << error.message();
    }
    EXPECT_NO_THROW(array.toHost());
}

template <class A>
class ArrayOnDevice : public testing::Test {};
TYPED_TEST_SUITE(ArrayOnDevice, test::ArrayTypes);

TYPED_TEST(ArrayOnDevice, KernelsSeeAndChangeTheRows) {
    if (!isEmulated())
        GTEST_SKIP() << "needs host code to stand in for kernels";
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto rows = test::randomRows<TypeParam>(random, 20);
    TypeParam array;
    test::assign(array, rows);
    array.toDevice();
    {
        const auto view = std::as_const(array).template deviceView<DeviceBackend::CUDA>();
        const Device::KernelScope kernel;
        for (index i = 0; i < view.size(); ++i) {
            const auto &row = rows[static_cast<std::size_t>(i)];
            ASSERT_TRUE(std::equal(view.row(i).begin(), view.row(i).end(), row.begin(), row.end())) << "row " << i;
        }
    }
    EXPECT_TRUE(array.valid(MemorySpace::Host)) << "reading makes nothing stale";
    {
        const auto view = array.template deviceView<DeviceBackend::CUDA>();
        const Device::KernelScope kernel;
        for (index i = 0; i < view.size(); ++i)
            for (rowsize j = 0; j < view.rowSize(i); ++j) {
                const auto value = test::makeElement<typename TypeParam::Element>(random());
                view(i, j) = value;
                rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = value;
            }
    }
    if (array.dataSize() > 0) {
        EXPECT_FALSE(array.valid(MemorySpace::Host));
        EXPECT_THROW(array.view(), StaleError);
        EXPECT_THROW(std::as_const(array).view(), StaleError);
        EXPECT_THROW(array[0], StaleError);
        EXPECT_THROW(static_cast<void>(array.hash()), StaleError);
        EXPECT_THROW(static_cast<void>(array.rowLayout(MemorySpace::Host)), StaleError);
        EXPECT_THROW(array.rowLayout(MemorySpace::Host, Access::Write), StaleError);
        EXPECT_NO_THROW(std::as_const(array).template deviceView<DeviceBackend::CUDA>())
            << "what was refused changed nothing";
    }
    TypeParam copied(array); // takes what only the device has
    array.toHost();
    test::expectRows(array, rows);
    copied.toHost();
    test::expectRows(copied, rows);
}

TEST(ArrayOnDevice, HostWritesMakeTheDeviceStaleAndReadsDoNot) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    Array<real, 3> array;
    array.resize(4);
    array.toDevice();
    const Array<real, 3> &constant = array;
    static_cast<void>(constant(0, 0));
    static_cast<void>(constant[0]);
    static_cast<void>(constant.view());
    static_cast<void>(constant.row(0));
    static_cast<void>(constant.data());
    static_cast<void>(constant.hash());
    static_cast<void>(constant.rowLayout(MemorySpace::Host));
    static_cast<void>(array.rowLayout(MemorySpace::Host, Access::Read));
    EXPECT_TRUE(array.valid(MemorySpace::Device));

    array(0, 0) = 1.0;
    EXPECT_FALSE(array.valid(MemorySpace::Device));
    EXPECT_THROW(array.deviceView<DeviceBackend::CUDA>(), StaleError);
    array.toDevice();
    array.view();
    EXPECT_FALSE(array.valid(MemorySpace::Device));
    array.toDevice();
    array.rowLayout(MemorySpace::Host, Access::Write);
    EXPECT_FALSE(array.valid(MemorySpace::Device));
    array.toDevice();
    array.rowLayout(MemorySpace::Device, Access::Write);
    EXPECT_FALSE(array.valid(MemorySpace::Host));
}

TEST(ArrayOnDevice, RowSizesAreResidentToo) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    Padded array;
    array.resize(3, [](index i) { return i; });
    array.toDevice();
    array.resizeRow(0, 4); // the sizes on the device are old now
    EXPECT_THROW(array.deviceView<DeviceBackend::CUDA>(), StaleError);
    array.toDevice();
    EXPECT_NO_THROW(array.deviceView<DeviceBackend::CUDA>());
    EXPECT_EQ(array.rowSize(0), 4) << "a view cannot change sizes, so the host still knows them";
    array.toDevice();
    const RowLayout layout = array.rowLayout(MemorySpace::Device, Access::Write);
    EXPECT_EQ(layout.space, MemorySpace::Device);
    EXPECT_NE(layout.parts[1].base, nullptr);
    EXPECT_THROW(static_cast<void>(array.rowSize(0)), StaleError) << "a transport may have changed them";
    array.toHost();
    EXPECT_EQ(array.rowSize(0), 4);
}

TEST(ArrayOnDevice, CsrOffsetsStayReadableOnTheHost) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    Csr array;
    array.resize(3, [](index i) { return i; });
    array.toDevice();
    const RowLayout layout = array.rowLayout(MemorySpace::Device, Access::Write);
    EXPECT_EQ(layout.parts[0].offsets[3], 3);
    EXPECT_THROW(array.decompress(), StaleError) << "the host has no current values";
    EXPECT_TRUE(array.isCompressed());
    array.toHost();
    array.decompress();
    EXPECT_EQ(array.rowSize(2), 2);
}

TEST(ArrayOnDevice, ResidencyTravelsWithSwaps) {
    if (!isEmulated())
        GTEST_SKIP() << "needs host code to stand in for kernels";
    Array<real, 1> a;
    Array<real, 1> b;
    a.resize(2);
    b.resize(2);
    a.toDevice();
    {
        const auto view = a.deviceView<DeviceBackend::CUDA>();
        const Device::KernelScope kernel;
        view(1) = 5.0;
    }
    b.swapData(a);
    EXPECT_TRUE(a.valid(MemorySpace::Host));
    EXPECT_FALSE(b.valid(MemorySpace::Host));
    b.toHost();
    EXPECT_EQ(b(1), 5.0);
}

TEST(ArrayOnDeviceDeathTest, ForgottenTransfersFault) {
    if (!isEmulated())
        GTEST_SKIP() << "only the emulated device is protected from the host";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Array<real, 3> array;
    array.resize(4);
    array.toDevice();
    const auto view = array.deviceView<DeviceBackend::CUDA>();
    EXPECT_DEATH(view(0, 0) = 1.0, "");
}

} // namespace
} // namespace DNDS
