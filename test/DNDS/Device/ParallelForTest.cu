// One functor on the host, in host threads and on the device.

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"

#include "DNDS/Storage/Array.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace DNDS {
namespace {

/// u(i, k) = 2 u(i, k) + i
struct DoubleAndAdd {
    ArrayView<real, 3> u;
    DNDS_HOST_DEVICE void operator()(index i) const {
        for (real &value : u.row(i))
            value = 2 * value + static_cast<real>(i);
    }
};

/// The functor of docs/guides/gpu.md: a view of fixed shape, and a number after it.
struct Scale {
    ArrayView<real, 3> u;
    real factor;
    DNDS_HOST_DEVICE void operator()(index cell) const {
        for (real &value : u.row(cell))
            value *= factor;
    }
};

Array<real, 3> numbered(index rows) {
    Array<real, 3> u;
    u.setName("u");
    u.resize(rows);
    for (index i = 0; i < rows; ++i)
        for (rowsize k = 0; k < 3; ++k)
            u(i, k) = static_cast<real>(i * 3 + k);
    return u;
}

void expectDoubled(const Array<real, 3> &u, int times) {
    for (index i = 0; i < u.size(); ++i)
        for (rowsize k = 0; k < 3; ++k) {
            real value = static_cast<real>(i * 3 + k);
            for (int t = 0; t < times; ++t)
                value = 2 * value + static_cast<real>(i);
            ASSERT_EQ(u(i, k), value) << "row " << i;
        }
}

TEST(ParallelFor, CallsEveryNumberOnceOnTheHost) {
    for (const index rows : {0, 1, 1000}) {
        Array<real, 3> u = numbered(rows);
        parallelFor(Executor::host(), rows, DoubleAndAdd{u.view()});
        parallelFor(Executor::hostThreads(3), rows, DoubleAndAdd{u.view()});
        expectDoubled(u, 2);
    }
    EXPECT_THROW(Executor::hostThreads(0), ArgumentError);
}

TEST(ParallelFor, CallsEveryNumberOnceOnTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    for (const index rows : {0, 1, 255, 256, 257, 100000}) {
        Array<real, 3> u = numbered(rows);
        u.toDevice(stream);
        const auto view = u.deviceView<DeviceBackend::CUDA>();
        parallelFor(Executor::device(stream), rows, DoubleAndAdd{view});
        parallelFor(Executor::device(stream), rows, DoubleAndAdd{view});
        u.toHost(stream);
        Executor::device(stream).synchronize();
        expectDoubled(u, 2);
    }
}

/// Host and kernel must agree where members after a view lie.
TEST(ParallelFor, KernelsReadWhatFollowsAViewInAFunctor) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    Array<real, 3> onHost = numbered(1000);
    Array<real, 3> onDevice = numbered(1000);
    parallelFor(Executor::host(), onHost.size(), Scale{onHost.view(), 0.3});
    const Device::Stream stream;
    onDevice.toDevice(stream);
    parallelFor(Executor::device(stream), onDevice.size(), Scale{onDevice.deviceView<DeviceBackend::CUDA>(), 0.3});
    onDevice.toHost(stream);
    stream.synchronize();
    EXPECT_EQ(std::as_const(onHost).hash(), std::as_const(onDevice).hash());
}

TEST(ParallelFor, KernelsAreCaptured) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    Array<real, 3> u = numbered(1000);
    u.toDevice();
    const auto view = u.deviceView<DeviceBackend::CUDA>();
    const auto graph =
        Device::Graph::capture(stream, [&] { parallelFor(Executor::device(stream), view.size(), DoubleAndAdd{view}); });
    for (int i = 0; i < 4; ++i)
        graph.launch(stream);
    stream.synchronize();
    u.toHost();
    expectDoubled(u, 4);
}

TEST(ParallelFor, ExplainsWhyThereIsNoDevice) {
    if (Device::available())
        GTEST_SKIP() << "there is a device";
    Array<real, 3> u = numbered(10);
    try {
        parallelFor(Executor::device(nullptr), 10, DoubleAndAdd{u.view()});
        FAIL() << "ran without a device";
    } catch (const NotBuiltError &error) {
        EXPECT_NE(error.message().find(Device::unavailableReason()), std::string::npos) << error.message();
    }
    expectDoubled(u, 0);
}

} // namespace
} // namespace DNDS
