#include "DNDS/Mpi/SegmentPages.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

constexpr std::size_t g = SegmentPages::granule;
using Ranges = std::vector<std::pair<std::size_t, std::size_t>>; ///< begin and size, in granules

struct Segment {
    SegmentPages pages{16 * g};

    /// Ranges that the segment reserves for a block.
    Ranges take(std::size_t begin, std::size_t bytes) {
        Ranges reserved;
        pages.take(begin, bytes, [&](const SegmentPages::Range &range) {
            EXPECT_EQ(range.begin % g + range.bytes % g, 0U);
            reserved.emplace_back(range.begin / g, range.bytes / g);
        });
        return reserved;
    }
    std::pair<std::size_t, std::size_t> release(std::size_t begin, std::size_t bytes) {
        const SegmentPages::Range range = pages.release(begin, bytes);
        return {range.bytes == 0 ? 0 : range.begin / g, range.bytes / g};
    }
};

TEST(SegmentPages, GranulesAreUnusedWhenTheirLastBlockGoes) {
    Segment segment;
    segment.take(0, 100);
    segment.take(100, 2 * g); // granules 0, 1, 2
    segment.take(2 * g + 100, 100);
    EXPECT_EQ(segment.release(100, 2 * g), std::make_pair(std::size_t{1}, std::size_t{1}));
    EXPECT_EQ(segment.pages.unusedBytes(), g);
    EXPECT_EQ(segment.release(0, 100), std::make_pair(std::size_t{0}, std::size_t{2}));
    EXPECT_EQ(segment.release(2 * g + 100, 100), std::make_pair(std::size_t{0}, std::size_t{3}));
    EXPECT_EQ(segment.pages.unusedBytes(), 3 * g);
    EXPECT_EQ(segment.take(g, 4 * g), (Ranges{{3, 2}})) << "what is left is used again";
    EXPECT_EQ(segment.pages.unusedBytes(), g);
}

TEST(SegmentPages, ABlockWithoutMemoryIsNotThere) {
    Segment segment;
    segment.take(2 * g, g);
    int calls = 0;
    const auto failSecond = [&](const SegmentPages::Range &) {
        if (++calls == 2)
            throw std::bad_alloc();
    };
    EXPECT_THROW(segment.pages.take(0, 5 * g, failSecond), std::bad_alloc);
    EXPECT_EQ(segment.pages.unusedBytes(), 2 * g) << "the range before keeps its memory";
    EXPECT_EQ(segment.take(0, 5 * g), (Ranges{{3, 2}}));
    EXPECT_EQ(segment.pages.unusedBytes(), 0U);
}

} // namespace
} // namespace DNDS
