#include "DNDS/Sparse/ObjectPool.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Device/Transfers.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

struct Numbered {
    int number;
};

ObjectPool<Numbered> numberedPool(int &made) {
    return ObjectPool<Numbered>("numbers", [&made](std::size_t) { return Numbered{made++}; });
}

TEST(ObjectPool, RecyclesBySizeClass) {
    int made = 0;
    auto pool = numberedPool(made);
    auto small = pool.get(8);
    auto large = pool.get(64);
    EXPECT_EQ(small->number, 0);
    EXPECT_EQ(large->number, 1);
    small.reset();
    EXPECT_EQ(pool.get(64)->number, 2) << "one of another class waits";
    EXPECT_EQ(pool.get(8)->number, 0);
    const PoolUse use = pool.use();
    EXPECT_EQ(use.liveObjects, 1U);
    EXPECT_EQ(use.live, 64U);
    EXPECT_EQ(use.pooledObjects, 2U);
    EXPECT_EQ(use.pooled, 72U);
    EXPECT_EQ(use.peakLive, 128U);
    EXPECT_EQ(use.peak, 136U);
}

TEST(ObjectPool, RoundedSizes) {
    std::size_t classes = 0;
    for (std::size_t bytes = 1; bytes < 100'000; ++bytes) {
        const std::size_t rounded = roundedSize(bytes);
        ASSERT_GE(rounded, bytes);
        ASSERT_LE(8 * (rounded - bytes), bytes);
        ASSERT_EQ(roundedSize(rounded), rounded);
        classes += bytes >= 65'536 && rounded == bytes ? 1 : 0;
    }
    EXPECT_EQ(classes, 5U) << "65536, and four more of 8192 bytes each";
    EXPECT_EQ(roundedSize(0), 0U);
}

TEST(ObjectPool, LastOwnerGivesBack) {
    int made = 0;
    auto pool = numberedPool(made);
    auto first = pool.get();
    auto second = first;
    Numbered &plain = second; // an owner stands for what it owns
    EXPECT_EQ(plain.number, 0);
    EXPECT_EQ(first.useCount(), 2U);
    first.reset();
    EXPECT_FALSE(first.isValid());
    EXPECT_THROW((void)first.get(), StateError);
    EXPECT_EQ(pool.use().liveObjects, 1U);
    second = {};
    EXPECT_EQ(pool.use().liveObjects, 0U);
}

TEST(ObjectPool, WeakHandlesNeverSeeTheNextUse) {
    int made = 0;
    auto pool = numberedPool(made);
    auto owner = pool.get();
    const auto weak = owner.weak();
    EXPECT_TRUE(weak.isValid());
    EXPECT_EQ(static_cast<Numbered &>(weak).number, 0);
    EXPECT_EQ(owner.useCount(), 1U);
    owner.reset();
    EXPECT_FALSE(weak.isValid());
    const auto again = pool.get();
    EXPECT_EQ(again->number, 0) << "the same resource";
    EXPECT_FALSE(weak.isValid());
    EXPECT_THROW((void)weak->number, StateError);
    EXPECT_TRUE(again.weak().isValid());
    EXPECT_FALSE(decltype(pool)::Weak().isValid());
}

TEST(ObjectPool, HandlesOutliveThePool) {
    ObjectPool<std::vector<int>>::Owner kept;
    ObjectPool<std::vector<int>>::Weak weak;
    {
        ObjectPool<std::vector<int>> pool("lists", [](std::size_t n) { return std::vector<int>(n, 7); });
        kept = pool.get(100);
        weak = kept.weak();
    }
    EXPECT_EQ(kept->at(99), 7);
    kept.reset();
    EXPECT_FALSE(weak.isValid());
}

TEST(ObjectPool, LimitSaysWhatIsUsed) {
    ObjectPool<std::vector<char>> pool("blocks", [](std::size_t n) { return std::vector<char>(n); });
    pool.setLimit(1000);
    auto a = pool.get(600);
    try {
        (void)pool.get(500);
        FAIL() << "there is no room";
    } catch (const MemoryError &error) {
        const std::string text = error.what();
        for (const char *part : {"'blocks'", "1000 bytes", "600 are in use by 1", "500 more"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    a.reset();
    const auto b = pool.get(500); // what was pooled makes room
    EXPECT_EQ(pool.use().pooled, 0U);
    pool.setLimit(2000);
    (void)pool.get(600);
    EXPECT_EQ(pool.use().pooled, 600U);
    pool.trim();
    EXPECT_EQ(pool.use().pooled, 0U);
    EXPECT_EQ(pool.use().live, 500U);
}

TEST(ObjectPool, AFailedCreationChangesNothing) {
    bool fails = true;
    ObjectPool<int> pool("ints", [&](std::size_t) -> int {
        DNDS_CHECK(!fails, MemoryError, "none left");
        return 1;
    });
    EXPECT_THROW((void)pool.get(4), MemoryError);
    EXPECT_EQ(pool.use().live, 0U);
    fails = false;
    EXPECT_EQ(*pool.get(4), 1);
}

TEST(ObjectPool, AMillionRandomGetsAndFrees) {
    ObjectPool<std::vector<std::uint64_t>> pool(
        "blocks", [](std::size_t n) { return std::vector<std::uint64_t>(n / sizeof(std::uint64_t)); });
    std::mt19937_64 random(1);
    struct Held {
        ObjectPool<std::vector<std::uint64_t>>::Owner owner;
        std::uint64_t mark = 0;
    };
    std::vector<Held> held(64);
    std::vector<ObjectPool<std::vector<std::uint64_t>>::Weak> gone(64);
    for (std::uint64_t step = 1; step <= 1'000'000; ++step) {
        const std::uint64_t draw = random();
        Held &one = held[draw % held.size()];
        if (one.owner.isValid()) {
            ASSERT_EQ(one.owner->front(), one.mark) << "somebody else has written";
            gone[draw % held.size()] = one.owner.weak();
            one.owner.reset();
        } else {
            one.owner = pool.get(std::size_t{8} << (draw >> 20) % 4);
            one.mark = one.owner->front() = step;
        }
        ASSERT_FALSE(gone[draw % held.size()].isValid() && !one.owner.isValid());
    }
    EXPECT_LE(pool.use().peak, 64U * 64 * 4);
    EXPECT_LE(pool.use().liveObjects + pool.use().pooledObjects, 256U) << "at most 64 of each class at a time";
    held.clear();
    EXPECT_EQ(pool.use().live, 0U);
}

TEST(ObjectPool, ThreadsGetAndGiveBack) {
    ObjectPool<int> pool("ints", [](std::size_t) { return 0; });
    const auto work = [&pool] {
        for (int k = 0; k < 2000; ++k) {
            auto mine = pool.get(4);
            const int before = ++*mine;
            auto copy = mine;
            mine.reset();
            ASSERT_EQ(*copy, before);
        }
    };
    std::thread other(work);
    work();
    other.join();
    EXPECT_EQ(pool.use().liveObjects, 0U);
    EXPECT_LE(pool.use().pooledObjects, 2U);
}

TEST(ObjectPool, DeviceMemoryIsNotReusedBeforeItsStream) {
    try {
        Device::requireDevice("test pools");
    } catch (const NotBuiltError &error) {
        GTEST_SKIP() << error.what();
    }
    ObjectPool<HostDeviceBuffer> pool("blocks", [](std::size_t bytes) { return HostDeviceBuffer(bytes); });
    const Device::Stream stream;
    auto block = pool.get(4096);
    block->write(MemorySpace::Host, "block")[17] = std::byte{5};
    block->toDevice(stream);
    const std::byte *const there = block->read(MemorySpace::Device, "block");
    std::byte back{};
    Device::copy(&back, MemorySpace::Host, there + 17, MemorySpace::Device, 1, stream);
    block.usedOn(stream);
    block.reset();
    auto again = pool.get(4096); // waits
    EXPECT_EQ(again->read(MemorySpace::Device, "block"), there);
    EXPECT_EQ(back, std::byte{5});
}

} // namespace
} // namespace DNDS
