#include "DNDS/Transport/RowGather.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace DNDS {
namespace {

/// Memory with distinct bytes, and the rows in it.
struct Source {
    std::vector<std::byte> memory;
    std::vector<index> offsets;
    RowPart part;
    index rows = 0;

    explicit Source(std::size_t bytes) : memory(bytes) {
        std::mt19937 random(static_cast<unsigned>(bytes));
        std::generate(memory.begin(), memory.end(), [&] { return static_cast<std::byte>(random()); });
        part.base = memory.data();
    }
    static Source ofStride(index rows, std::size_t stride) {
        Source source(static_cast<std::size_t>(rows) * stride);
        source.rows = rows;
        source.part.stride = stride;
        return source;
    }
    static Source ofSizes(const std::vector<index> &sizes, std::size_t elementBytes) {
        const auto elements = static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), index{0}));
        Source source(elements * elementBytes);
        source.rows = static_cast<index>(sizes.size());
        source.offsets.resize(sizes.size() + 1, 0);
        std::partial_sum(sizes.begin(), sizes.end(), source.offsets.begin() + 1);
        source.part.offsets = source.offsets.data();
        source.part.elementBytes = elementBytes;
        return source;
    }
    Source(const Source &) = delete;
    Source(Source &&) = default;
    Source &operator=(const Source &) = delete;
    Source &operator=(Source &&) = delete;
    ~Source() = default;
};

void expectGathers(const Source &source, const RowGather &gather, const std::vector<index> &rows) {
    std::vector<std::byte> expected;
    for (const index row : rows) {
        const auto begin = source.memory.begin() + static_cast<std::ptrdiff_t>(source.part.begin(row));
        expected.insert(expected.end(), begin,
                        source.memory.begin() + static_cast<std::ptrdiff_t>(source.part.begin(row + 1)));
    }
    ASSERT_EQ(gather.bytes(), expected.size());
    std::vector<std::byte> got(expected.size() + 2, std::byte{0x5A}); // one byte before, one after
    gather.gather(source.part.base, got.data() + 1);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got.begin() + 1));
    EXPECT_EQ(got.front(), std::byte{0x5A});
    EXPECT_EQ(got.back(), std::byte{0x5A});

    std::vector<std::byte> fromBlocks;
    for (const ByteBlock &block : gather.blocks()) {
        const auto begin = source.memory.begin() + static_cast<std::ptrdiff_t>(block.offset);
        fromBlocks.insert(fromBlocks.end(), begin, begin + static_cast<std::ptrdiff_t>(block.bytes));
    }
    EXPECT_EQ(fromBlocks, expected);
    if (gather.contiguous() && !expected.empty()) {
        EXPECT_EQ(std::memcmp(source.part.base + gather.firstByte(), expected.data(), expected.size()), 0);
    }
}

std::vector<std::vector<index>> rowLists(index rows) {
    std::mt19937_64 random(test::seed());
    std::vector<std::vector<index>> lists{{}, {0}, {rows - 1}};
    std::vector<index> all(static_cast<std::size_t>(rows));
    std::iota(all.begin(), all.end(), index{0});
    lists.push_back(all);
    lists.push_back({all.begin() + 3, all.end() - 2}); // one run
    std::vector<index> some;
    for (const index row : all)
        if (random() % 3 != 0)
            some.push_back(row);
    lists.push_back(some);
    std::shuffle(some.begin(), some.end(), random);
    lists.push_back(some);
    lists.push_back({5, 5, 4, 6, 7, 5}); // repeated rows
    return lists;
}

TEST(RowGather, CopiesRowsOfOneWidth) {
    // Every width that has a loop of its own, and others.
    for (const std::size_t stride : {1U,  2U,  3U,  4U,   8U,   12U,  16U,  24U,  32U,  40U,  48U,  56U,  64U,
                                     72U, 80U, 96U, 120U, 128U, 160U, 200U, 256U, 264U, 513U, 800U, 5000U})
        for (const index rows : {index{9}, index{100}}) {
            const Source source = Source::ofStride(rows, stride);
            SCOPED_TRACE(testing::Message() << "stride " << stride << ", DNDS_TEST_SEED=" << test::seed());
            for (const auto &list : rowLists(rows))
                expectGathers(source, RowGather(list, source.part), list);
            for (index first = 0; first <= rows; first += 3) {
                std::vector<index> range(static_cast<std::size_t>(rows - first));
                std::iota(range.begin(), range.end(), first);
                const RowGather gather(first, rows, source.part);
                expectGathers(source, gather, range);
                EXPECT_EQ(gather.contiguous(), first < rows);
            }
        }
}

TEST(RowGather, CopiesRowsOfTheirOwnWidths) {
    std::mt19937_64 random(test::seed());
    for (const std::size_t elementBytes : {1U, 8U, 12U})
        for (const std::uint64_t widest : {1U, 3U, 200U}) {
            std::vector<index> sizes(40);
            for (index &size : sizes)
                size = static_cast<index>(random() % (widest + 1));
            const Source source = Source::ofSizes(sizes, elementBytes);
            SCOPED_TRACE(testing::Message() << "elements of " << elementBytes << ", DNDS_TEST_SEED=" << test::seed());
            for (const auto &list : rowLists(source.rows))
                expectGathers(source, RowGather(list, source.part), list);
        }
}

TEST(RowGather, RowsWithoutBytesAreNothing) {
    RowPart empty;
    const std::vector<index> rows{0, 3, 2};
    const RowGather gather(rows, empty);
    EXPECT_EQ(gather.bytes(), 0U);
    EXPECT_FALSE(gather.contiguous());
    EXPECT_TRUE(gather.blocks().empty());
    gather.gather(nullptr, nullptr);
}

TEST(RowGather, RowsFarApartKeepTheirPlaces) {
    // Places only: the offsets do not fit 32 bits.
    RowPart part;
    part.stride = 16;
    const index far = index{1} << 40;
    const std::vector<index> rows{far + 7, 2, far};
    const auto blocks = RowGather(rows, part).blocks();
    ASSERT_EQ(blocks.size(), 3U);
    EXPECT_EQ(blocks[0].offset, static_cast<std::size_t>(far + 7) * 16);
    EXPECT_EQ(blocks[1].offset, 32U);
    const std::vector<index> near{far + 7, far + 2, far};
    EXPECT_EQ(RowGather(near, part).blocks()[1].offset, static_cast<std::size_t>(far + 2) * 16);
}

} // namespace
} // namespace DNDS
