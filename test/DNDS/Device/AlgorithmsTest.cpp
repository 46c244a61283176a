#include "DNDS/Device/Algorithms.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Stream.hpp"

#include "DNDS/Base/Error.hpp"

#include <Eigen/Core>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
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
    EXPECT_THROW(sum(nullptr, {}), NotBuiltError);
    EXPECT_THROW(Minimum(3), NotBuiltError);
    EXPECT_THROW(exclusiveScan(nullptr, {}, {}), NotBuiltError);
    EXPECT_THROW(sortByKey(nullptr, {}, {}), NotBuiltError);
}

TEST(DeviceAlgorithms, SumsAndScansAreThoseOfTheHost) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Stream stream;
    for (const std::size_t count : {0U, 1U, 1000U, 100003U}) {
        std::vector<real> values(count);
        std::vector<index> counts(count);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = static_cast<real>(i % 17) - 3; // whole numbers: exact in any order
            counts[i] = static_cast<index>(i % 5);
        }
        EXPECT_EQ(sum(stream, spanOf(sent(values))), std::accumulate(values.begin(), values.end(), 0.0));
        const DeviceBuffer<index> onDevice = sent(counts);
        exclusiveScan(stream, spanOf(onDevice), spanOf(onDevice));
        stream.synchronize();
        std::vector<index> starts(count);
        std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), index{0});
        EXPECT_EQ(fetched(onDevice), starts);
    }
    EXPECT_THROW(exclusiveScan(stream, spanOf(sent(std::vector<index>(3))), {}), ArgumentError);
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

TEST(DeviceAlgorithms, SortsAreStable) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Stream stream;
    std::mt19937 random(5);
    std::vector<index> keys(20000);
    std::vector<index> values(keys.size());
    for (index &key : keys)
        key = static_cast<index>(random() % 1000) - 500;
    std::iota(values.begin(), values.end(), index{0});
    const DeviceBuffer<index> keysThere = sent(keys);
    const DeviceBuffer<index> valuesThere = sent(values);
    sortByKey(stream, spanOf(keysThere), spanOf(valuesThere));
    stream.synchronize();
    std::stable_sort(values.begin(), values.end(), [&](index a, index b) {
        return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(fetched(keysThere), keys);
    EXPECT_EQ(fetched(valuesThere), values);
    EXPECT_THROW(sortByKey(stream, spanOf(keysThere), {}), ArgumentError);
}

} // namespace
} // namespace DNDS::Device
