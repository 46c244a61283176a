#include "CUDA/real/MemoryPool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace DNDS::Device {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// A device with some room, whose work the test finishes.
struct FakeDevice {
    std::size_t room = 1024 * mebibyte;
    std::set<void *> slabs;
    std::uintptr_t next = std::uintptr_t{1} << 40; // addresses are never dereferenced
    std::shared_ptr<int> queued = std::make_shared<int>(0);
    std::shared_ptr<int> finished = std::make_shared<int>(0);
    bool goesOn = false; ///< finishes work while it is asked

    MemoryPool::Source source() {
        return {[this](std::size_t bytes) -> void * {
                    if (bytes > room)
                        return nullptr;
                    room -= bytes;
                    void *slab = reinterpret_cast<void *>(next); // NOLINT(performance-no-int-to-ptr)
                    next += bytes;
                    sizes[slab] = bytes;
                    slabs.insert(slab);
                    return slab;
                },
                [this](void *slab) {
                    ASSERT_EQ(slabs.erase(slab), 1U);
                    room += sizes[slab];
                },
                [this] {
                    return [this, until = ++*queued] {
                        *finished += goesOn && *finished < *queued ? 1 : 0;
                        return *finished >= until;
                    };
                }};
    }

    std::map<void *, std::size_t> sizes;
};

TEST(MemoryPool, RangesDoNotOverlapAndAreAligned) {
    FakeDevice device;
    MemoryPool pool(device.source());
    std::mt19937 random(7);
    std::map<std::uintptr_t, std::size_t> live;
    for (int i = 0; i < 3000; ++i) {
        if (live.size() > 20 && random() % 2 == 0) {
            const auto chosen = std::next(live.begin(), static_cast<long>(random() % live.size()));
            ASSERT_TRUE(pool.deallocate(reinterpret_cast<void *>(chosen->first))); // NOLINT
            live.erase(chosen);
            *device.finished = *device.queued;
            continue;
        }
        const std::size_t bytes = random() % 50 == 0 ? 3 * mebibyte : 1 + random() % 5000;
        const auto begin = reinterpret_cast<std::uintptr_t>(pool.allocate(bytes, 256));
        ASSERT_NE(begin, 0U);
        ASSERT_EQ(begin % 256, 0U);
        const auto after = live.lower_bound(begin);
        ASSERT_TRUE(after == live.end() || begin + bytes <= after->first);
        ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= begin);
        live.emplace(begin, bytes);
    }
    EXPECT_LT(pool.slabs(), 10U) << "slabs are shared and used again";
}

TEST(MemoryPool, WhatWasGivenBackIsUsedAgainOnlyBehindTheFence) {
    FakeDevice device;
    MemoryPool pool(device.source());
    void *first = pool.allocate(1000, 256);
    EXPECT_TRUE(pool.deallocate(first));
    void *second = pool.allocate(1000, 256);
    EXPECT_NE(second, first) << "work queued before may still write there";
    *device.finished = *device.queued;
    EXPECT_EQ(pool.allocate(1000, 256), first);
}

TEST(MemoryPool, MistakesAreNoticed) {
    FakeDevice device;
    MemoryPool pool(device.source());
    auto *pointer = static_cast<std::byte *>(pool.allocate(1000, 256));
    EXPECT_FALSE(pool.deallocate(pointer + 256));
    EXPECT_FALSE(pool.deallocate(&device));
    EXPECT_TRUE(pool.deallocate(pointer));
    EXPECT_FALSE(pool.deallocate(pointer)) << "given back twice, behind no fence yet";
    *device.finished = *device.queued;
    EXPECT_TRUE(pool.deallocate(pool.allocate(1, 256)));
}

TEST(MemoryPool, DoesNotWaitForFencesThatWaitForTheCaller) {
    FakeDevice device;
    device.room = 100 * mebibyte;
    bool captures = true;
    auto source = device.source();
    source.blocked = [&] { return captures; };
    MemoryPool pool(source);
    EXPECT_TRUE(pool.deallocate(pool.allocate(10, 256)));
    EXPECT_EQ(pool.allocate(90 * mebibyte, 256), nullptr);
    captures = false;
    device.goesOn = true;
    EXPECT_NE(pool.allocate(90 * mebibyte, 256), nullptr);
}

TEST(MemoryPool, SaysWhichSlabAnAddressLiesIn) {
    FakeDevice device;
    MemoryPool pool(device.source());
    auto *first = static_cast<std::byte *>(pool.allocate(1000, 256));
    auto *second = static_cast<std::byte *>(pool.allocate(1000, 256));
    EXPECT_EQ(pool.locate(first).slab, pool.locate(second).slab);
    EXPECT_EQ(pool.locate(second + 10).offset - pool.locate(first).offset,
              static_cast<std::size_t>(second + 10 - first));
    EXPECT_EQ(pool.locate(&device).slab, nullptr);
}

TEST(MemoryPool, UsesTheRestOfADeviceThatHasNoRoomForASlab) {
    FakeDevice device;
    device.room = 50 * mebibyte;
    MemoryPool pool(device.source());
    EXPECT_NE(pool.allocate(8, 256), nullptr);
    EXPECT_NE(pool.allocate(30 * mebibyte, 256), nullptr);
    EXPECT_EQ(pool.allocate(20 * mebibyte, 256), nullptr);
}

TEST(MemoryPool, GivesBackWhatNobodyUsesBeforeItGivesUp) {
    FakeDevice device;
    device.room = 100 * mebibyte;
    MemoryPool pool(device.source());
    void *small = pool.allocate(10, 256); // one slab of 64
    ASSERT_NE(small, nullptr);
    EXPECT_EQ(pool.allocate(90 * mebibyte, 256), nullptr);
    EXPECT_TRUE(pool.deallocate(small)); // not passed yet: allocating waits
    device.goesOn = true;
    void *large = pool.allocate(90 * mebibyte, 256);
    EXPECT_NE(large, nullptr);
    EXPECT_EQ(device.slabs.size(), 1U);
    EXPECT_EQ(pool.allocate(90 * mebibyte, 256), nullptr);
}

} // namespace
} // namespace DNDS::Device
