#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include "CountingMemory.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Stream.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace DNDS {
namespace {

using test::CountingMemory;

void fill(HostDeviceBuffer &buffer, int first) {
    std::byte *bytes = buffer.write(MemorySpace::Host, "filled");
    for (std::size_t i = 0; i < buffer.bytes(); ++i)
        bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i);
}

std::string text(const HostDeviceBuffer &buffer) {
    const auto *bytes = reinterpret_cast<const char *>(buffer.read(MemorySpace::Host, "read"));
    return bytes ? std::string(bytes, buffer.bytes()) : std::string();
}

/// Stands for a kernel on the device side: adds one to every byte.
void incrementOnDevice(HostDeviceBuffer &buffer) {
    std::byte *device = buffer.write(MemorySpace::Device, "incremented");
    std::string bytes(buffer.bytes(), '\0');
    Device::copy(bytes.data(), MemorySpace::Host, device, MemorySpace::Device, bytes.size(), nullptr);
    Device::synchronize(nullptr);
    for (char &byte : bytes)
        ++byte;
    Device::copy(device, MemorySpace::Device, bytes.data(), MemorySpace::Host, bytes.size(), nullptr);
    Device::synchronize(nullptr);
}

std::string textAt(int first, std::size_t count) {
    std::string bytes(count, '\0');
    for (std::size_t i = 0; i < count; ++i)
        bytes[i] = static_cast<char>(static_cast<std::size_t>(first) + i);
    return bytes;
}

TEST(HostDeviceBuffer, StartsZeroAlignedAndOnTheHost) {
    HostDeviceBuffer buffer(1000);
    EXPECT_EQ(buffer.bytes(), 1000U);
    EXPECT_TRUE(buffer.valid(MemorySpace::Host));
    EXPECT_FALSE(buffer.valid(MemorySpace::Device));
    EXPECT_EQ(text(buffer), std::string(1000, '\0'));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.read(MemorySpace::Host, "")) % HostDeviceBuffer::alignment, 0U);
}

TEST(HostDeviceBuffer, ZeroBytesWorkEverywhere) {
    HostDeviceBuffer buffer;
    for (const MemorySpace space : {MemorySpace::Host, MemorySpace::Device}) {
        EXPECT_TRUE(buffer.valid(space));
        EXPECT_EQ(buffer.read(space, "nothing"), nullptr);
        EXPECT_EQ(buffer.write(space, "nothing"), nullptr);
    }
    buffer.toHost();
    HostDeviceBuffer copied(buffer);
    copied = buffer;
    copied.resize(0);
    copied.renew(0);
    copied.rehost(std::make_shared<CountingMemory>());
    copied.resize(10);
    EXPECT_EQ(text(copied), std::string(10, '\0'));
    copied.resize(0);
    EXPECT_EQ(text(copied), "");
    if (Device::available()) {
        buffer.toDevice();
    } else {
        // a rank without rows must fail like the others
        EXPECT_THROW(buffer.toDevice(), NotBuiltError);
    }
}

TEST(HostDeviceBuffer, TakesHostMemoryFromItsResource) {
    const auto memory = std::make_shared<CountingMemory>();
    {
        HostDeviceBuffer buffer(10, memory);
        EXPECT_EQ(memory->live, 10U);
        buffer.resize(20);
        EXPECT_EQ(memory->live, 20U);
        EXPECT_EQ(buffer.resource(), memory);

        const HostDeviceBuffer copied(buffer);
        EXPECT_EQ(memory->live, 20U) << "copies live in ordinary memory";
        EXPECT_EQ(copied.resource(), nullptr);
        HostDeviceBuffer moved(std::move(buffer));
        EXPECT_EQ(memory->live, 20U);
        EXPECT_EQ(moved.resource(), memory);
        moved = HostDeviceBuffer(30);
        EXPECT_EQ(memory->live, 0U) << "move assignment takes the other's memory resource";
    }
    EXPECT_EQ(memory->live, 0U);
}

TEST(HostDeviceBuffer, RehostKeepsTheContents) {
    const auto memory = std::make_shared<CountingMemory>();
    HostDeviceBuffer buffer(10);
    fill(buffer, 4);
    const std::uint64_t generation = buffer.generation();
    buffer.rehost(memory);
    EXPECT_EQ(text(buffer), textAt(4, 10));
    EXPECT_EQ(memory->live, 10U);
    EXPECT_NE(buffer.generation(), generation);

    const std::uint64_t inMemory = buffer.generation();
    buffer.rehost(memory);
    EXPECT_EQ(buffer.generation(), inMemory);
    EXPECT_EQ(memory->allocations, 1U);

    HostDeviceBuffer other(10);
    fill(other, 9);
    buffer = other;
    EXPECT_EQ(memory->live, 10U) << "copy assignment stays in the memory resource";
    buffer.rehost(nullptr);
    EXPECT_EQ(memory->live, 0U);
    EXPECT_EQ(text(buffer), textAt(9, 10));
}

TEST(HostDeviceBuffer, TwoAreJoinedInOneAllocation) {
    const auto memory = std::make_shared<CountingMemory>();
    HostDeviceBuffer front(24);
    auto back = std::make_unique<HostDeviceBuffer>(100, memory);
    fill(front, 1);
    fill(*back, 2);
    const std::uint64_t version = front.version();
    const std::uint64_t generations[] = {front.generation(), back->generation()};
    EXPECT_FALSE(HostDeviceBuffer::areJoined(front, *back, MemorySpace::Host));
    HostDeviceBuffer::join(front, *back, MemorySpace::Host);
    EXPECT_TRUE(HostDeviceBuffer::areJoined(front, *back, MemorySpace::Host));
    EXPECT_EQ(front.read(MemorySpace::Host, "front") + 24, back->read(MemorySpace::Host, "back"));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back->read(MemorySpace::Host, "back")) % HostDeviceBuffer::alignment,
              0U);
    EXPECT_EQ(text(front), textAt(1, 24));
    EXPECT_EQ(text(*back), textAt(2, 100));
    EXPECT_EQ(front.version(), version);
    EXPECT_NE(front.generation(), generations[0]);
    EXPECT_NE(back->generation(), generations[1]);

    const std::uint64_t before = front.generation();
    HostDeviceBuffer::join(front, *back, MemorySpace::Host);
    EXPECT_EQ(front.generation(), before) << "they are joined already";
    back->rehost(memory);
    EXPECT_TRUE(HostDeviceBuffer::areJoined(front, *back, MemorySpace::Host)) << "it is there already";
    back.reset();
    EXPECT_EQ(text(front), textAt(1, 24)) << "one outlives the other";
    EXPECT_GT(memory->live, 0U);

    HostDeviceBuffer other(100);
    HostDeviceBuffer::join(front, other, MemorySpace::Host);
    EXPECT_EQ(memory->live, 0U);
    other.resize(50);
    EXPECT_FALSE(HostDeviceBuffer::areJoined(front, other, MemorySpace::Host));
    HostDeviceBuffer exhausted(10, memory);
    memory->exhausted = true;
    EXPECT_THROW(HostDeviceBuffer::join(front, exhausted, MemorySpace::Host), MemoryError);
    EXPECT_EQ(text(front), textAt(1, 24));
    HostDeviceBuffer empty;
    HostDeviceBuffer::join(front, empty, MemorySpace::Host);
    EXPECT_TRUE(HostDeviceBuffer::areJoined(front, empty, MemorySpace::Host));
}

TEST(HostDeviceBufferOnDevice, TwoAreJoinedThere) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    HostDeviceBuffer front(10);
    HostDeviceBuffer back(20);
    fill(front, 1);
    fill(back, 2);
    front.toDevice();
    incrementOnDevice(front);
    EXPECT_FALSE(HostDeviceBuffer::areJoined(front, back, MemorySpace::Device));
    HostDeviceBuffer::join(front, back, MemorySpace::Device);
    EXPECT_TRUE(HostDeviceBuffer::areJoined(front, back, MemorySpace::Device));
    EXPECT_FALSE(back.valid(MemorySpace::Device)) << "was not there before";
    back.toDevice();
    incrementOnDevice(back);
    EXPECT_TRUE(HostDeviceBuffer::areJoined(front, back, MemorySpace::Device));
    front.toHost();
    back.toHost();
    EXPECT_EQ(text(front), textAt(2, 10));
    EXPECT_EQ(text(back), textAt(3, 20));
}

TEST(HostDeviceBufferOnDevice, ReallocationKeepsWhatOnlyTheDeviceHas) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    HostDeviceBuffer buffer(10);
    fill(buffer, 1);
    buffer.toDevice();
    incrementOnDevice(buffer);
    buffer.resize(12);
    EXPECT_TRUE(buffer.valid(MemorySpace::Host));
    EXPECT_FALSE(buffer.valid(MemorySpace::Device));
    EXPECT_EQ(text(buffer), textAt(2, 10) + std::string(2, '\0'));

    buffer.toDevice();
    incrementOnDevice(buffer);
    const auto memory = std::make_shared<CountingMemory>();
    buffer.rehost(memory);
    EXPECT_FALSE(buffer.valid(MemorySpace::Host));
    EXPECT_TRUE(buffer.valid(MemorySpace::Device));
    buffer.toHost();
    EXPECT_EQ(memory->live, 12U);
    EXPECT_EQ(text(buffer), textAt(3, 10) + std::string(2, '\1'));
}

TEST(HostDeviceBufferOnDevice, WaitsForQueuedCopiesBeforeItCopiesOrReallocates) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    HostDeviceBuffer buffer(100);
    fill(buffer, 1);
    buffer.toDevice(stream);
    HostDeviceBuffer copied(buffer);
    incrementOnDevice(copied);
    copied.toHost();
    EXPECT_EQ(text(copied), textAt(2, 100));
    fill(buffer, 1);
    buffer.toDevice(stream);
    buffer.resize(50);
    stream.synchronize();
    EXPECT_EQ(text(buffer), textAt(1, 50));
}

TEST(HostDeviceBufferOnDevice, WaitingTransfersFinishThoseThatWereOnlyQueued) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    HostDeviceBuffer buffer(100);
    fill(buffer, 1);
    buffer.toDevice(stream);
    buffer.toDevice(); // valid by name already, but must wait
    incrementOnDevice(buffer);
    buffer.toHost(stream);
    buffer.toHost();
    EXPECT_EQ(text(buffer), textAt(2, 100));
}

TEST(HostDeviceBufferOnDevice, WaitsForItsOwnCopiesOnly) {
    if (Device::name() != "emulated")
        GTEST_SKIP() << "kernels that wait for the host run on the emulated device only";
    const Device::Stream busy;
    std::atomic<bool> mayEnd{false};
    Device::launchHostKernel(busy, 1, [&](index, index) {
        while (!mayEnd)
            std::this_thread::yield();
    });
    const Device::Stream stream;
    HostDeviceBuffer buffer(100);
    fill(buffer, 1);
    buffer.toDevice(stream);
    const HostDeviceBuffer copied(buffer); // would wait for ever if it waited for the kernel
    EXPECT_EQ(text(copied), textAt(1, 100));
    HostDeviceBuffer other(50);
    fill(other, 3);
    other.toDevice(stream);
    other.toDevice();
    mayEnd = true;
}

TEST(HostDeviceBufferOnDevice, FreesNoMemoryThatACopyIsQueuedFor) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Device::Stream stream;
    const auto memory = std::make_shared<CountingMemory>();
    {
        HostDeviceBuffer buffer(100, memory);
        fill(buffer, 1);
        buffer.toDevice();
        incrementOnDevice(buffer);
        buffer.toHost(stream);
        const HostDeviceBuffer moved(std::move(buffer));
    }
    EXPECT_EQ(memory->lastFreed, textAt(2, 100)) << "the copy into the memory ran before the memory was given back";
}

} // namespace
} // namespace DNDS
