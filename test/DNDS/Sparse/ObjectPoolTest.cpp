#include "DNDS/Sparse/ObjectPool.hpp"

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
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
        ASSERT_LE(16 * (rounded - bytes), bytes);
        ASSERT_EQ(roundedSize(rounded), rounded);
        classes += bytes >= 65'536 && rounded == bytes ? 1 : 0;
    }
    EXPECT_EQ(classes, 9U) << "65536, and eight more of 4096 bytes each";
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

/// As Parthenon's: memory of one class that is cut from a larger resource of the same pool.
TEST(ObjectPool, CreateMayAskThePool) {
    struct Piece {
        int depth = 0;
        ObjectPool<Piece>::Owner larger;
    };
    std::optional<ObjectPool<Piece>> pool;
    pool.emplace("pieces", [&pool](std::size_t bytes) {
        EXPECT_GE(pool->use().live, bytes);
        Piece piece;
        if (bytes < 64) {
            piece.larger = pool->get(2 * bytes);
            piece.depth = piece.larger->depth + 1;
        }
        return piece;
    });
    auto smallest = pool->get(8);
    EXPECT_EQ(smallest->depth, 3);
    EXPECT_EQ(pool->use().live, 8U + 16 + 32 + 64);
    smallest.reset();
    EXPECT_EQ(pool->use().pooled, 8U) << "it keeps the others";
    pool->setLimit(130);
    EXPECT_EQ(pool->get(100)->depth, 0) << "room is made by destroying what owns others";
    EXPECT_EQ(pool->use().liveObjects, 0U);
    (void)pool->get(8);
    pool->trim();
    EXPECT_EQ(pool->use().pooledObjects, 0U);
    EXPECT_EQ(pool->use().live, 0U);
}

/// A resource whose end asks the pool, on any of the ways it may end.
TEST(ObjectPool, DestructorsMayAskThePool) {
    static int ended = 0;
    ended = 0;
    struct Asking {
        ObjectPool<Asking> *pool = nullptr;
        explicit Asking(ObjectPool<Asking> *of) : pool(of) {}
        Asking(Asking &&other) noexcept : pool(std::exchange(other.pool, nullptr)) {}
        Asking(const Asking &) = delete;
        Asking &operator=(const Asking &) = delete;
        Asking &operator=(Asking &&) = delete;
        ~Asking() {
            if (pool != nullptr)
                ended += static_cast<int>(1 + pool->use().pooledObjects);
        }
    };
    std::optional<ObjectPool<Asking>> pool;
    pool.emplace("asking", [&pool](std::size_t) { return Asking(&*pool); });
    (void)pool->get(8);
    pool->trim();
    EXPECT_EQ(ended, 1);
    (void)pool->get(8);
    pool->setLimit(10);
    (void)pool->get(9);
    EXPECT_EQ(ended, 2);
}

TEST(ObjectPool, ResourcesThatOwnEachOtherEndWithThePool) {
    struct Counted {
        std::shared_ptr<int> alive;
        ObjectPool<Counted>::Owner other;
    };
    const auto alive = std::make_shared<int>();
    ObjectPool<Counted>::Owner kept;
    {
        ObjectPool<Counted> pool("counted", [&](std::size_t) { return Counted{alive, {}}; });
        auto first = pool.get(1);
        first->other = pool.get(2);
        first.reset();
        kept = pool.get(3);
        EXPECT_EQ(alive.use_count(), 4);
    }
    EXPECT_EQ(alive.use_count(), 2);
    kept.reset();
    EXPECT_EQ(alive.use_count(), 1);
}

/// A kernel's arguments of a resource.
struct Window {
    double *at = nullptr;
    std::size_t count = 0;
    double sum() const { return std::accumulate(at, at + count, 0.0); }
};

TEST(ObjectPool, HandlesOfViewsAreViews) {
    using Pool = ObjectPool<Window>;
    static_assert(std::is_base_of_v<Window, Pool::Owner> && std::is_base_of_v<Window, Pool::Weak>);
    static_assert(!std::is_base_of_v<std::vector<int>, ObjectPool<std::vector<int>>::Owner>);
    std::vector<double> memory(10, 1.5);
    std::size_t next = 0;
    Pool pool("windows", [&](std::size_t count) {
        return Window{memory.data() + std::exchange(next, next + count), count};
    });
    const auto sumOf = [](const Window &window) { return window.sum(); };
    Pool::Owner owner = pool.get(4);
    owner.at[0] = 2.5;
    EXPECT_EQ(sumOf(owner), 7);
    const Pool::Weak weak = owner.weak();
    EXPECT_EQ(weak.at, memory.data());
    EXPECT_EQ(sumOf(weak), 7);
    Pool::Owner other = pool.get(2);
    other = owner;
    EXPECT_EQ(other.count, 4U);
    EXPECT_EQ(owner.useCount(), 2U);
    EXPECT_EQ(pool.use().pooledObjects, 1U);
}

TEST(ObjectPool, AWeakHandleCanBecomeAnOwner) {
    int made = 0;
    auto pool = numberedPool(made);
    auto owner = pool.get();
    const auto weak = owner.weak();
    decltype(pool)::Owner second(weak);
    EXPECT_EQ(owner.useCount(), 2U);
    owner.reset();
    EXPECT_TRUE(weak.isValid());
    EXPECT_EQ(weak.lock()->number, 0);
    second.reset();
    EXPECT_FALSE(weak.lock().isValid());
    EXPECT_THROW(decltype(pool)::Owner{weak}, StateError);
    const auto again = pool.get();
    EXPECT_FALSE(weak.lock().isValid()) << "the next use is another's";
    EXPECT_THROW((void)weak->number, StateError);
    EXPECT_EQ(again.useCount(), 1U);
    EXPECT_FALSE(decltype(pool)::Weak().lock().isValid());
}

TEST(ObjectPool, WeakHandlesAreLockedWhileOwnersEnd) {
    ObjectPool<std::vector<int>> pool("lists", [](std::size_t n) { return std::vector<int>(n); });
    for (int round = 0; round < 2000; ++round) {
        auto owner = pool.get(8);
        owner->front() = round;
        const auto weak = owner.weak();
        std::thread other([mine = std::move(owner)]() mutable { mine.reset(); });
        if (const auto locked = weak.lock()) {
            EXPECT_EQ(locked->front(), round);
        }
        other.join();
    }
    EXPECT_EQ(pool.use().liveObjects, 0U);
    EXPECT_EQ(pool.use().pooledObjects, 1U);
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
