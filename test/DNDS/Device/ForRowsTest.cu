// Loops over rows that a kernel moves through shared memory.

#include "DNDS/Storage/ForRows.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Storage/Array.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <utility>

namespace DNDS {
namespace {

/// sum = all of a and b, b = a + i; reads the row after the last through a view of another array.
template <rowsize width>
struct SumAndCopy {
    ArrayView<const real, 1> neighbours;
    DNDS_HOST_DEVICE void operator()(index i, std::span<const real, static_cast<std::size_t>(width)> a,
                                     std::span<real, static_cast<std::size_t>(width)> b, std::span<real, 1> sum) const {
        real total = neighbours(i + 1);
        for (std::size_t k = 0; k < a.size(); ++k) {
            total += a[k] + b[k];
            b[k] = a[k] + static_cast<real>(i);
        }
        sum[0] = total;
    }
};

/// Writes every other element.
struct WriteSome {
    DNDS_HOST_DEVICE void operator()(index i, std::span<int, 4> row) const {
        row[0] = static_cast<int>(i);
        row[2] = -static_cast<int>(i);
    }
};

template <class TArray>
TArray filled(index rows, int seed) {
    TArray array;
    array.setName("array");
    array.resize(rows);
    for (index i = 0; i < rows; ++i)
        for (rowsize k = 0; k < array.rowSize(i); ++k)
            array(i, k) = static_cast<typename TArray::Element>(i * 7 + k * 3 + seed);
    return array;
}

template <rowsize width, int align = NoAlign>
void expectSums(index rows, const Executor *device, const Device::Stream *stream) {
    using Rows = Array<real, width, width, align>;
    Rows a = filled<Rows>(rows, 1);
    Rows b = filled<Rows>(rows, 2);
    auto sums = filled<Array<real, 1>>(rows, 0);
    auto next = filled<Array<real, 1>>(rows + 1, 5);
    if (device != nullptr) {
        a.toDevice(*stream);
        b.toDevice(*stream);
        sums.toDevice(*stream);
        next.toDevice(*stream);
        constexpr auto cuda = DeviceBackend::CUDA;
        forRows(*device, rows, SumAndCopy<width>{std::as_const(next).template deviceView<cuda>()},
                readRows(std::as_const(a).template deviceView<cuda>()), updateRows(b.template deviceView<cuda>()),
                writeRows(sums.template deviceView<cuda>()));
        b.toHost(*stream);
        sums.toHost(*stream);
        device->synchronize();
    } else {
        forRows(Executor::hostThreads(2), rows, SumAndCopy<width>{std::as_const(next).view()},
                readRows(std::as_const(a).view()), updateRows(b.view()), writeRows(sums.view()));
    }
    const auto before = filled<Rows>(rows, 2);
    for (index i = 0; i < rows; ++i) {
        real total = next(i + 1);
        for (rowsize k = 0; k < width; ++k) {
            total += a(i, k) + before(i, k);
            ASSERT_EQ(b(i, k), a(i, k) + static_cast<real>(i)) << "row " << i << " of " << rows << ", element " << k;
        }
        ASSERT_EQ(sums(i), total) << "row " << i << " of " << rows;
    }
}

TEST(ForRows, GivesEachCallItsRowsOnTheHost) {
    for (const index rows : {0, 1, 1000}) {
        expectSums<1>(rows, nullptr, nullptr);
        expectSums<5>(rows, nullptr, nullptr);
        expectSums<3, 64>(rows, nullptr, nullptr);
    }
}

TEST(ForRows, GivesEachCallItsRowsOnTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    const Executor device = Executor::device(stream);
    for (const index rows : {0, 1, 127, 128, 129, 100001}) {
        expectSums<1>(rows, &device, &stream);
        expectSums<4>(rows, &device, &stream);
        expectSums<5>(rows, &device, &stream);
        expectSums<20>(rows, &device, &stream);
        expectSums<3, 64>(rows, &device, &stream);
    }
}

TEST(ForRows, KeepsWhatIsNotWrittenOfUpdatedRows) {
    auto rows = filled<Array<int, 4>>(300, 0);
    forRows(Executor::host(), 299, WriteSome{}, updateRows(rows.view()));
    if (Device::available()) {
        const Device::Stream stream;
        rows = filled<Array<int, 4>>(300, 0);
        rows.toDevice(stream);
        forRows(Executor::device(stream), 299, WriteSome{}, updateRows(rows.deviceView<DeviceBackend::CUDA>()));
        rows.toHost(stream);
        stream.synchronize();
    }
    const auto before = filled<Array<int, 4>>(300, 0);
    for (int i = 0; i < 300; ++i)
        for (int k = 0; k < 4; ++k) {
            const int expected = i < 299 && k % 2 == 0 ? (k == 0 ? i : -i) : before(i, k);
            ASSERT_EQ(rows(i, k), expected) << "row " << i << ", element " << k;
        }
}

TEST(ForRows, WantsAsManyRowsAsItLoopsOver) {
    auto rows = filled<Array<int, 4>>(3, 0);
    EXPECT_THROW(forRows(Executor::host(), 4, WriteSome{}, updateRows(rows.view())), IndexError);
}

} // namespace
} // namespace DNDS
