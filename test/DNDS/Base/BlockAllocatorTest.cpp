#include "DNDS/Base/BlockAllocator.hpp"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

TEST(BlockAllocator, rangesNeverOverlapAndJoinAgain) {
    constexpr std::size_t size = 10'000;
    BlockAllocator blocks(size);
    std::vector<std::pair<std::size_t, std::size_t>> taken;
    std::vector<int> use(size, 0);
    std::minstd_rand random(3);
    for (int step = 0; step < 5'000; ++step) {
        if (!taken.empty() && random() % 3 == 0) {
            const std::size_t which = random() % taken.size();
            const auto [begin, bytes] = taken[which];
            for (std::size_t i = begin; i < begin + bytes; ++i)
                --use[i];
            blocks.release(begin, bytes);
            taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
            continue;
        }
        const std::size_t bytes = 1 + random() % 600;
        const std::size_t alignment = std::size_t{1} << (random() % 8);
        const auto begin = blocks.allocate(bytes, alignment);
        if (!begin)
            continue;
        ASSERT_EQ(*begin % alignment, 0U);
        ASSERT_LE(*begin + bytes, size);
        for (std::size_t i = *begin; i < *begin + bytes; ++i)
            ASSERT_EQ(use[i]++, 0);
        taken.emplace_back(*begin, bytes);
    }
    for (const auto &[begin, bytes] : taken)
        blocks.release(begin, bytes);
    EXPECT_EQ(blocks.allocate(size, 1), std::size_t{0}) << "all free ranges must have joined";
}

TEST(BlockAllocator, saysHowMuchIsFree) {
    BlockAllocator blocks(100);
    EXPECT_EQ(blocks.freeBytes(), 100U);
    const auto first = blocks.allocate(30, 1);
    blocks.allocate(20, 1);
    blocks.release(*first, 30);
    EXPECT_EQ(blocks.freeBytes(), 80U);
    EXPECT_EQ(blocks.largestFree(), 50U);
    blocks.allocate(50, 1);
    blocks.allocate(30, 1);
    EXPECT_EQ(blocks.freeBytes(), 0U);
    EXPECT_EQ(blocks.largestFree(), 0U);
}

TEST(BlockAllocator, refusesWhatDoesNotFit) {
    BlockAllocator blocks(100);
    EXPECT_FALSE(blocks.allocate(101, 1).has_value());
    EXPECT_EQ(blocks.allocate(1, 1), std::size_t{0});
    EXPECT_EQ(blocks.allocate(10, 64), std::size_t{64});
    EXPECT_FALSE(blocks.allocate(64, 1).has_value());
    EXPECT_EQ(blocks.allocate(63, 1), std::size_t{1});
}

} // namespace
} // namespace DNDS
