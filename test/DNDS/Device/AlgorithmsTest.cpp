#include "DNDS/Device/Algorithms.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Device/Graph.hpp"
#include "DNDS/Device/Stream.hpp"

#include "DNDS/Base/Error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace DNDS::Device {
namespace {

template <class T>
DeviceBuffer<T> sent(const std::vector<T> &values) {
    DeviceBuffer<T> buffer(values.size());
    copy(buffer.data(), MemorySpace::Device, values.data(), MemorySpace::Host, values.size() * sizeof(T), nullptr);
    synchronize(nullptr);
    return buffer;
}

template <class T>
std::vector<T> fetched(const DeviceBuffer<T> &buffer) {
    std::vector<T> values(buffer.size());
    copy(values.data(), MemorySpace::Host, buffer.data(), MemorySpace::Device, values.size() * sizeof(T), nullptr);
    synchronize(nullptr);
    return values;
}

template <class T>
std::span<T> spanOf(const DeviceBuffer<T> &buffer) {
    return {buffer.data(), buffer.size()};
}

TEST(DeviceAlgorithms, SayWhyThereIsNoDevice) {
    if (available())
        GTEST_SKIP() << "this build has a device";
    EXPECT_THROW(Minimum(3), NotBuiltError);
    EXPECT_THROW(largestOfColumns(nullptr, {}, {}), NotBuiltError);
    EXPECT_THROW(integerSumsOfColumns(nullptr, {}, {}, {}), NotBuiltError);
}

TEST(DeviceAlgorithms, TheSmallestElementIsFoundInGraphs) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Stream stream;
    for (const std::size_t count : {0U, 1U, 1000U, 100003U}) {
        std::vector<real> values(count);
        for (std::size_t i = 0; i < count; ++i)
            values[i] = static_cast<real>((i * 7919 + 5) % (count + 3)) - 10;
        const DeviceBuffer<real> onDevice = sent(values);
        const DeviceBuffer<real> result = sent(std::vector<real>{-77});
        const Minimum minimum(static_cast<index>(count));
        const Graph graph = Graph::capture(stream, [&] { minimum(stream, spanOf(onDevice), result.data()); });
        for (const real least : {-1000.0, 3000000.0, -5.0}) {
            if (count > 0) {
                values[count / 2] = least;
                copy(onDevice.data(), MemorySpace::Device, values.data(), MemorySpace::Host, count * sizeof(real),
                     stream);
            }
            graph.launch(stream);
            stream.synchronize();
            EXPECT_EQ(fetched(result)[0], count > 0 ? *std::min_element(values.begin(), values.end())
                                                    : std::numeric_limits<real>::infinity());
        }
        EXPECT_THROW(minimum(stream, spanOf(sent(std::vector<real>(count + 1))), result.data()), ArgumentError);
    }
}

TEST(DeviceAlgorithms, ResultsAreOfColumns) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Stream stream;
    const DeviceBuffer<real> rows = sent(std::vector<real>(6));
    const auto columns = FixedPoint::columnsOf(spanOf(rows), 3);
    std::vector<real> largest(2);
    std::vector<FixedPoint::Wide> sums(2);
    const std::vector<std::optional<FixedPoint::Scale>> scales(3);
    EXPECT_THROW(largestOfColumns(stream, columns, largest), ArgumentError);
    EXPECT_THROW(integerSumsOfColumns(stream, columns, scales, sums), ArgumentError);
    EXPECT_THROW(largestOfColumns(stream, {}, {}), ArgumentError);
}

} // namespace
} // namespace DNDS::Device
