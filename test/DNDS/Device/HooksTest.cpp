#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/KernelLoading.hpp"
#include "DNDS/Device/Stream.hpp"

#include "DeviceWords.hpp"
#include "Gate.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <string>

namespace DNDS::Device {
namespace {

using test::countingWords;
using test::DeviceWords;
using test::isEmulated;
using test::Words;

TEST(Hooks, SayWhichBackEndIsLinkedAndWhyItCannotBeUsed) {
    EXPECT_TRUE(name() == "absent" || name() == "emulated" || name() == "cuda") << name();
    EXPECT_EQ(available(), unavailableReason().empty());
    if (name() == "absent") {
        EXPECT_FALSE(available());
        EXPECT_NE(unavailableReason().find("preset"), std::string::npos) << unavailableReason();
    }
}

TEST(Hooks, ThrowNotBuiltWithoutDevice) {
    if (available())
        GTEST_SKIP() << "this build has a device";
    std::array<int, 4> memory{};
    EXPECT_THROW(allocate(8), NotBuiltError);
    EXPECT_THROW(createStream(), NotBuiltError);
    EXPECT_THROW(Stream(), NotBuiltError);
    EXPECT_THROW(createEvent(), NotBuiltError);
    EXPECT_THROW(beginCapture(nullptr), NotBuiltError);
    EXPECT_THROW(allocatePinned(8), NotBuiltError);
    EXPECT_THROW(pin(memory.data(), sizeof(memory)), NotBuiltError);
    EXPECT_THROW(share(memory.data()), NotBuiltError);
    EXPECT_THROW(openShared({}), NotBuiltError);
    EXPECT_THROW(deviceInfo(), NotBuiltError);
    EXPECT_THROW(useDevice(0), NotBuiltError);
    EXPECT_THROW(requireDevice("run"), NotBuiltError);
    EXPECT_THROW(recordUse(nullptr), NotBuiltError);
    EXPECT_THROW(loadsKernelsLazily(), NotBuiltError);
    EXPECT_THROW(launchHostKernel(nullptr, 1, [](index, index) {}), NotBuiltError);
    EXPECT_THROW(copy(memory.data(), MemorySpace::Device, memory.data(), MemorySpace::Host, 4, nullptr), NotBuiltError);
    EXPECT_NO_THROW(synchronize(nullptr));
    EXPECT_NO_THROW(synchronizeAll());
    deallocate(nullptr);
}

TEST(Hooks, CopiesGoThereAndBack) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Words words = countingWords(10000, 7);
    const DeviceWords first(words);
    EXPECT_EQ(first.fetch(), words);

    const DeviceWords second(Words(10000, 0));
    copy(second.get(), MemorySpace::Device, first.get(), MemorySpace::Device, first.bytes(), nullptr);
    synchronize(nullptr);
    EXPECT_EQ(second.fetch(), words);
}

TEST(Hooks, AllocationsAreAlignedAndEmptyOnesAreNull) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}}) {
        void *pointer = allocate(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % allocationAlignment, 0U);
        deallocate(pointer);
    }
    EXPECT_EQ(allocate(0), nullptr);
    EXPECT_NO_THROW(copy(nullptr, MemorySpace::Device, nullptr, MemorySpace::Host, 0, nullptr));
    EXPECT_THROW(allocate(SIZE_MAX / 2), MemoryError);
}

TEST(Hooks, InteriorPointersAreDeviceMemory) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const DeviceWords device(countingWords(100, 0));
    Words middle(10);
    copy(middle.data(), MemorySpace::Host, device.get() + 90, MemorySpace::Device, 40, nullptr);
    synchronize(nullptr);
    EXPECT_EQ(middle, countingWords(10, 90));
}

TEST(Hooks, SynchronizeAllFinishesEveryStream) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Stream one;
    const Stream two;
    const DeviceWords device(countingWords(50, 5));
    std::array<Words, 3> results{Words(50), Words(50), Words(50)};
    copy(results[0].data(), MemorySpace::Host, device.get(), MemorySpace::Device, device.bytes(), one);
    copy(results[1].data(), MemorySpace::Host, device.get(), MemorySpace::Device, device.bytes(), two);
    copy(results[2].data(), MemorySpace::Host, device.get(), MemorySpace::Device, device.bytes(), nullptr);
    synchronizeAll();
    for (const Words &result : results)
        EXPECT_EQ(result, countingWords(50, 5));
}

TEST(Hooks, PinnedMemoryServesCopiesArraysAndKernels) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    EXPECT_EQ(allocatePinned(0), nullptr);
    const DeviceWords device(countingWords(100, 5));
    {
        std::pmr::vector<std::uint32_t> words(100, pinnedHostMemory().get());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(words.data()) % allocationAlignment, 0U);
        const Stream stream(Priority::High);
        copy(words.data(), MemorySpace::Host, device.get(), MemorySpace::Device, device.bytes(), stream);
        stream.synchronize();
        EXPECT_TRUE(std::equal(words.begin(), words.end(), countingWords(100, 5).begin()));
    }
    alignas(4096) static std::array<std::byte, 8192> own{};
    pin(own.data(), own.size());
    unpin(own.data());
    unpin(nullptr);
}

TEST(Hooks, TheDeviceIsDescribed) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    EXPECT_THROW(useDevice(-1), ArgumentError);
    useDevice(0);
    const DeviceInfo info = deviceInfo();
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.identity.empty());
    EXPECT_GT(info.memoryBytes, std::size_t{1} << 20);
    EXPECT_LT(info.number, info.count);
}

TEST(Hooks, MemoryIsUsedAgainOnlyAfterQueuedWork) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    const Stream writer;
    const Words words = countingWords(1000, 3);
    for (int i = 0; i < 50; ++i) {
        auto *old = static_cast<std::uint32_t *>(allocate(4000));
        copy(old, MemorySpace::Device, words.data(), MemorySpace::Host, 4000, writer);
        deallocate(old);
        const DeviceWords next(Words(1000, 1));
        writer.synchronize();
        ASSERT_EQ(next.fetch(), Words(1000, 1));
    }
}

TEST(Hooks, RecordedUseKeepsMemoryUntilTheStreamHasRun) {
    if (!available())
        GTEST_SKIP() << unavailableReason();
    recordUse(nullptr);
    const Stream writer;
    const Words words = countingWords(1000, 3);
    auto *old = static_cast<std::uint32_t *>(allocate(4000));
    copy(old, MemorySpace::Device, words.data(), MemorySpace::Host, 4000, writer);
    recordUse(writer);
    deallocate(old);
    const DeviceWords next(Words(1000, 1));
    writer.synchronize();
    EXPECT_EQ(next.fetch(), Words(1000, 1));
    beginCapture(writer);
    EXPECT_THROW(recordUse(writer), StateError);
    destroyGraph(endCapture(writer)); // not void
    int stranger = 0;
    if (isEmulated()) {
        EXPECT_THROW(recordUse(&stranger), ArgumentError);
    }
}

TEST(EmulatedDevice, StreamsRunBesideEachOtherAndOnlyWaitingIsSafe) {
    if (!isEmulated())
        GTEST_SKIP() << "only the emulated device has kernels that the host compiler compiled";
    const Stream stream;
    const Stream other;
    const DeviceWords device(countingWords(4, 1));
    Words result(4, 77);
    test::Gate gate(stream);
    copy(result.data(), MemorySpace::Host, device.get(), MemorySpace::Device, device.bytes(), stream);
    other.synchronize();
    synchronize(nullptr);
    EXPECT_EQ(result, Words(4, 77));
    gate.open();
    stream.synchronize();
    EXPECT_EQ(result, countingWords(4, 1));
}

TEST(EmulatedDevice, StreamsRunInNoParticularOrder) {
    if (!isEmulated())
        GTEST_SKIP() << "chance is the emulated device's";
    const Stream one;
    const Stream two;
    int onesFirst = 0;
    constexpr int tries = 200;
    for (int i = 0; i < tries; ++i) {
        std::atomic<int> order{0};
        int ofOne = 0;
        launchHostKernel(one, 1, [&](index, index) { ofOne = order++; });
        launchHostKernel(two, 1, [&](index, index) { order++; });
        synchronizeAll();
        onesFirst += ofOne == 0 ? 1 : 0;
    }
    EXPECT_GT(onesFirst, 0);
    EXPECT_LT(onesFirst, tries);
}

TEST(EmulatedDevice, DeallocateRunsQueuedCopiesFirst) {
    if (!isEmulated())
        GTEST_SKIP() << "a real device gives the memory back later";
    const Stream stream;
    Words result(4, 77);
    {
        const DeviceWords device(countingWords(4, 1));
        copy(result.data(), MemorySpace::Host, device.get(), MemorySpace::Device, device.bytes(), stream);
    }
    EXPECT_EQ(result, countingWords(4, 1));
}

TEST(EmulatedDevice, ExceptionsOfKernelsAreThrownByTheNextWait) {
    if (!isEmulated())
        GTEST_SKIP() << "kernels of a real device cannot throw";
    const Stream stream;
    const Stream other;
    launchHostKernel(stream, 1, [](index, index) { throw DataError("no density in cell 7"); });
    EXPECT_NO_THROW(other.synchronize());
    EXPECT_THROW(stream.synchronize(), DataError);
    EXPECT_NO_THROW(stream.synchronize()) << "told once";
    launchHostKernel(other, 1, [](index, index) { throw DataError("no density in cell 7"); });
    EXPECT_THROW(synchronizeAll(), DataError);
}

TEST(EmulatedDevice, RejectsPointersThatAreNotItsMemory) {
    if (!isEmulated())
        GTEST_SKIP() << "only the emulated device knows its allocations";
    Words host(4);
    const DeviceWords device(host);
    EXPECT_THROW(copy(host.data(), MemorySpace::Device, host.data(), MemorySpace::Host, 16, nullptr), ArgumentError);
    EXPECT_THROW(copy(host.data(), MemorySpace::Host, device.get(), MemorySpace::Device, 17, nullptr), ArgumentError);
    EXPECT_THROW(copy(host.data(), MemorySpace::Host, device.get() + 5, MemorySpace::Device, 4, nullptr),
                 ArgumentError);
    synchronizeAll();
}

TEST(EmulatedDevice, KernelsReachDeviceMemoryAndWhatWasQueuedBefore) {
    if (!isEmulated())
        GTEST_SKIP() << "only on the emulated device may host code stand in for a kernel";
    const Stream stream;
    const DeviceWords device(Words(4, 0));
    const Words words = countingWords(4, 10);
    copy(device.get(), MemorySpace::Device, words.data(), MemorySpace::Host, device.bytes(), stream);
    {
        const KernelScope kernel(stream);
        for (std::size_t i = 0; i < 4; ++i)
            device.get()[i] *= 2;
        void *allocatedInside = allocate(8);
        *static_cast<char *>(allocatedInside) = 1;
        deallocate(allocatedInside);
        {
            const KernelScope nested;
            device.get()[0] += 1;
        }
        device.get()[0] += 1;
    }
    EXPECT_EQ(device.fetch(), (Words{22, 22, 24, 26}));
}

TEST(EmulatedDeviceDeathTest, HostAccessFaultsOutsideKernels) {
    if (!isEmulated())
        GTEST_SKIP() << "only the emulated device is protected from the host";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const DeviceWords device(Words(4, 0));
    volatile std::uint32_t *memory = device.get();
    EXPECT_DEATH(static_cast<void>(memory[0]), "");
    EXPECT_DEATH(memory[0] = 1, "");
    { const KernelScope kernel; }
    EXPECT_DEATH(memory[0] = 1, "");
    // and with copies in flight
    Words words(4, 3);
    copy(device.get(), MemorySpace::Device, words.data(), MemorySpace::Host, device.bytes(), nullptr);
    EXPECT_DEATH(memory[0] = 1, "");
    synchronize(nullptr);
    EXPECT_EQ(device.fetch(), words);
}

TEST(EmulatedDeviceDeathTest, FreeingTwiceIsFatal) {
    if (!isEmulated())
        GTEST_SKIP() << "only the emulated device knows its allocations";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    void *pointer = allocate(8);
    deallocate(pointer);
    EXPECT_DEATH(deallocate(pointer), "");
}

} // namespace
} // namespace DNDS::Device
