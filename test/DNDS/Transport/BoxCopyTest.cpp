// Rows in boxes: random ones against lists of the same rows. Exchanges of them: NodeSharedBoxesTest.cpp

#include "DNDS/Transport/BoxCopy.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Transport/RowGather.hpp"
#include "DNDS/Transport/RowScatter.hpp"
#include "DNDS/Transport/StreamWriter.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

std::vector<index> rowsOf(const RowList &list) {
    std::vector<index> rows;
    list.forEach([&](index row) { rows.push_back(row); });
    return rows;
}

/// Boxes of up to 5 loops of an array, packed in memory; some backwards, some of dimensions in another
/// order, some of them whole.
struct RandomBoxes {
    std::vector<RowBox> boxes;
    std::vector<index> rows; ///< the same by loops written out
    index size = 0;          ///< rows of the array

    explicit RandomBoxes(std::mt19937_64 &random) {
        const auto below = [&](index limit) {
            return static_cast<index>(random() % static_cast<std::uint64_t>(limit));
        };
        for (index k = below(4); k >= 0; --k) {
            std::array<index, RowBox::loops> order{0, 1, 2, 3, 4};
            std::ranges::shuffle(order, random);
            RowBox box;
            box.first = size;
            index stride = 1;
            for (std::size_t d = RowBox::loops; d-- > 0;) {
                const auto loop = static_cast<std::size_t>(random() % 2 == 0 ? order[d] : static_cast<index>(d));
                if (box.counts[loop] != 1 || below(3) == 0)
                    continue;
                const index extent = 1 + below(5);
                const index count = random() % 2 == 0 ? extent : 1 + below(extent);
                box.counts[loop] = count;
                box.first += below(extent - count + 1) * stride;
                box.strides[loop] = stride;
                if (random() % 4 == 0) {
                    box.first += (count - 1) * stride;
                    box.strides[loop] = -stride;
                }
                stride *= extent;
            }
            size += stride;
            boxes.push_back(box);
            if (below(8) == 0)
                boxes.back().counts[2] = 0;
            append(boxes.back());
        }
    }

    void append(const RowBox &box) {
        for (index n = 0; n < box.size(); ++n) {
            index rest = n;
            index row = box.first;
            for (std::size_t d = RowBox::loops; d-- > 0;) {
                row += rest % box.counts[d] * box.strides[d];
                rest /= box.counts[d];
            }
            rows.push_back(row);
        }
    }
};

TEST(BoxCopy, BoxesNameTheRowsOfTheirLoops) {
    std::seed_seq seeds{seed(), std::uint64_t{16}};
    std::mt19937_64 random(seeds);
    for (int round = 0; round < 500; ++round) {
        const RandomBoxes some(random);
        const RowList list = RowList::boxes(some.boxes);
        ASSERT_EQ(rowsOf(list), some.rows);
        ASSERT_EQ(list.count(), static_cast<index>(some.rows.size()));
        EXPECT_FALSE(list.isList());
        EXPECT_TRUE(list.list().empty());
        const RowList asList{some.rows};
        EXPECT_EQ(list.isRange(), some.rows.empty() || (asList.extent().runs == 1)) << "round " << round;
        if (list.isRange())
            continue;
        EXPECT_EQ(list.numbers(), nullptr);
        EXPECT_EQ(list.first(), some.rows.front());
        EXPECT_EQ(list.extent().least, std::ranges::min(some.rows));
        EXPECT_EQ(list.extent().most, std::ranges::max(some.rows));
        EXPECT_GE(list.extent().runs, asList.extent().runs);
    }
    const RowBox wrong{0, {1, 1, 1, -2, 1}, {}};
    EXPECT_THROW((void)RowList::boxes({&wrong, 1}), ArgumentError);
}

TEST(BoxCopy, KeepsTheFewestLoops) {
    const RowBox whole{7, {1, 3, 4, 5, 6}, {0, 120, 30, 6, 1}};
    EXPECT_TRUE(RowList::boxes({&whole, 1}).isRange());
    const std::vector<RowBox> behind{whole, RowBox{7 + 360, {1, 1, 1, 1, 9}, {0, 0, 0, 0, 1}}};
    const RowList range = RowList::boxes(behind);
    ASSERT_TRUE(range.isRange());
    EXPECT_EQ(range.first(), 7);
    EXPECT_EQ(range.count(), 369);
    const RowBox face{0, {1, 100, 100, 100, 1}, {0, 1020000, 10200, 102, 1}}; // a face of a 4-d box is one loop or two
    const RowList rows = RowList::boxes({&face, 1});
    ASSERT_NE(rows.boxes(), nullptr);
    ASSERT_EQ(rows.boxes()->size(), 1U);
    EXPECT_EQ(rows.boxes()->front().counts, (std::array<index, 5>{1, 1, 1, 1, 1000000}));
    EXPECT_EQ(rows.boxes()->front().strides.back(), 102);
}

TEST(BoxCopy, MovesWhatListsOfTheSameRowsMove) {
    std::seed_seq seeds{seed(), std::uint64_t{17}};
    std::mt19937_64 random(seeds);
    for (int round = 0; round < 600; ++round) {
        const RandomBoxes some(random);
        const RowList boxes = RowList::boxes(some.boxes);
        RowPart part;
        part.stride = 1 + static_cast<std::size_t>(round) % 72;
        const std::size_t shift = random() % 9; // of memory: rows lie at any address
        std::vector<std::byte> array(static_cast<std::size_t>(some.size) * part.stride + shift);
        for (std::byte &byte : array)
            byte = static_cast<std::byte>(random());
        const RowGather gather(boxes, part);
        const RowGather wanted(some.rows, part);
        ASSERT_EQ(gather.bytes(), wanted.bytes());
        std::vector<std::byte> packed(gather.bytes() + 3);
        std::vector<std::byte> list(gather.bytes() + 3);
        gather.gather(array.data() + shift, packed.data() + 3);
        wanted.gather(array.data() + shift, list.data() + 3);
        ASSERT_EQ(packed, list) << "rows of " << part.stride << " bytes";
        std::fill(packed.begin(), packed.end(), std::byte{});
        StreamWriter stream(packed.data() + 3);
        gather.gather(array.data() + shift, stream);
        stream.finish();
        ASSERT_EQ(packed, list);

        const RowScatter scatter(boxes, part);
        const RowScatter like(some.rows, part);
        ASSERT_EQ(scatter.bytes(), like.bytes());
        EXPECT_EQ(scatter.contiguous(), like.contiguous());
        std::vector<std::byte> to(array.size(), std::byte{9});
        std::vector<std::byte> expected = to;
        scatter.scatter(packed.data() + 3, to.data() + shift);
        like.scatter(packed.data() + 3, expected.data() + shift);
        ASSERT_EQ(to, expected);
        ASSERT_EQ(scatter.runs().size(), like.runs().size());
    }
}

TEST(BoxCopy, MovesRowsOfTheirOwnWidths) {
    const std::vector<index> offsets{0, 3, 3, 7, 8, 12, 14};
    RowPart part;
    part.offsets = offsets.data();
    const RowBox box{5, {1, 1, 1, 2, 3}, {0, 0, 0, -1, -2}}; // 5, 3, 1, 4, 2, 0
    const RowList boxes = RowList::boxes({&box, 1});
    const std::vector<index> rows = rowsOf(boxes);
    ASSERT_EQ(rows, (std::vector<index>{5, 3, 1, 4, 2, 0}));
    std::vector<std::byte> array(14);
    for (std::size_t k = 0; k < array.size(); ++k)
        array[k] = static_cast<std::byte>(k);
    std::vector<std::byte> packed(14);
    std::vector<std::byte> list(14);
    RowGather(boxes, part).gather(array.data(), packed.data());
    RowGather(rows, part).gather(array.data(), list.data());
    EXPECT_EQ(packed, list);
    std::vector<std::byte> back(14);
    RowScatter(boxes, part).scatter(packed.data(), back.data());
    EXPECT_EQ(back, array);
}

} // namespace
} // namespace DNDS
