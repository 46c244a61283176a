// Boxes copied to boxes against packing and unpacking them: loops in other orders, boxes cut otherwise, slots.

#include "DNDS/Transport/BoxToBox.hpp"

#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Transport/RowGather.hpp"
#include "DNDS/Transport/RowScatter.hpp"
#include "DNDS/Transport/StreamWriter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

RowPart rowsOfBytes(std::size_t stride) {
    RowPart part;
    part.stride = stride;
    return part;
}

/// Boxes with the given counts in memory of their own, packed: dimensions in any order, some backwards,
/// some with room around them.
struct ScatteredBoxes {
    std::vector<RowBox> boxes;
    index size = 0;

    void append(const std::array<index, RowBox::loops> &counts, std::mt19937_64 &random) {
        std::array<std::size_t, RowBox::loops> order{4, 3, 2, 1, 0};
        if (random() % 2 == 0)
            std::ranges::shuffle(order, random);
        RowBox box;
        box.first = size;
        box.counts = counts;
        index stride = 1;
        for (const std::size_t loop : order) {
            const index room = static_cast<index>(random() % 3 == 0 ? random() % 3 : 0);
            box.first += static_cast<index>(random() % static_cast<std::uint64_t>(room + 1)) * stride;
            box.strides[loop] = stride;
            if (random() % 4 == 0) {
                box.first += (counts[loop] - 1) * stride;
                box.strides[loop] = -stride;
            }
            stride *= counts[loop] + room;
        }
        size += stride;
        boxes.push_back(box);
    }
};

/// The result of unpacking packed rows in an array, and that of copying them without that does, with slots or without.
void expectSameAsPacking(const ScatteredBoxes &from, const ScatteredBoxes &to, std::size_t stride,
                         std::mt19937_64 &random) {
    const RowGather gather(RowList::boxes(from.boxes), rowsOfBytes(stride));
    const RowList rows = RowList::boxes(to.boxes);
    const RowScatter scatter(rows, rowsOfBytes(stride));
    const std::size_t shift = random() % 9; // rows lie at any address
    std::vector<std::byte> source(static_cast<std::size_t>(from.size) * stride + shift);
    for (std::byte &byte : source)
        byte = static_cast<std::byte>(random());
    std::vector<std::byte> packed(gather.bytes());
    gather.gather(source.data() + shift, packed.data());
    std::vector<std::byte> expected(static_cast<std::size_t>(to.size) * stride + shift, std::byte{9});
    scatter.scatter(packed.data(), expected.data() + shift);

    const BoxCopy boxes = // rows that turn out to be a range are one run
        scatter.contiguous() ? BoxCopy({ByteBox{RowBox{static_cast<index>(scatter.offset())}, scatter.bytes()}})
                             : scatter.boxes();
    PlacedRows placed = placeByRunLength(boxes);
    for (int round = 0; round < 2; ++round) {
        for (const PlacedBox &box : placed.boxes)
            EXPECT_EQ(round == 0 ? box.inSlot : 0, box.box.bytes < shortestRunInPlace && round == 0 ? 1U : 0U);
        const BoxToBox copy(gather.byteBoxes(), placed.boxes);
        std::vector<std::byte> array(expected.size(), std::byte{9});
        std::vector<std::byte> slot(placed.slot.bytes() + 2, std::byte{7});
        copy.copy(source.data() + shift, array.data() + shift, slot.data() + 1);
        EXPECT_EQ(slot.front(), std::byte{7});
        EXPECT_EQ(slot.back(), std::byte{7});
        placed.slot.scatter(slot.data() + 1, array.data() + shift);
        ASSERT_EQ(array, expected) << "rows of " << stride << " bytes";
        for (PlacedBox &box : placed.boxes) // once more without a slot
            box.inSlot = 0;
        placed.slot = {};
    }
    std::vector<std::byte> array(expected.size(), std::byte{9});
    BoxToBox(gather.byteBoxes(), boxes).copy(source.data() + shift, array.data() + shift, nullptr);
    ASSERT_EQ(array, expected) << "rows of " << stride << " bytes, without a slot";
}

TEST(BoxToBox, MovesWhatPackingAndUnpackingMove) {
    std::seed_seq seeds{seed(), std::uint64_t{18}};
    std::mt19937_64 random(seeds);
    const std::vector<std::size_t> strides{1, 4, 8, 24, 40, 64, 96, 200};
    for (int round = 0; round < 800; ++round) {
        ScatteredBoxes from;
        ScatteredBoxes to;
        for (std::uint64_t boxes = 1 + random() % 4; boxes > 0; --boxes) {
            std::array<index, RowBox::loops> counts{1, 1, 1, 1, 1};
            for (index &count : counts)
                count = static_cast<index>(random() % 2 == 0 ? 1 : 1 + random() % 4);
            from.append(counts, random);
            to.append(counts, random);
        }
        expectSameAsPacking(from, to, strides[random() % strides.size()], random);
    }
}

TEST(BoxToBox, SidesMayBeCutDifferently) {
    std::seed_seq seeds{seed(), std::uint64_t{19}};
    std::mt19937_64 random(seeds);
    using Counts = std::array<index, RowBox::loops>;
    const std::vector<std::vector<Counts>> ways{// 60 rows each
                                                {{1, 1, 1, 1, 60}},
                                                {{1, 1, 3, 4, 5}},
                                                {{1, 1, 5, 3, 4}},
                                                {{1, 1, 1, 7, 5}, {1, 1, 5, 1, 5}},
                                                {{1, 1, 1, 1, 13}, {1, 1, 1, 1, 47}},
                                                {{1, 1, 2, 11, 1}, {2, 1, 1, 1, 19}},
                                                {{1, 1, 1, 6, 6}, {1, 1, 1, 4, 6}}};
    for (const auto &source : ways)
        for (const auto &destination : ways)
            for (int round = 0; round < 8; ++round) {
                ScatteredBoxes from;
                ScatteredBoxes to;
                for (const Counts &counts : source)
                    from.append(counts, random);
                for (const Counts &counts : destination)
                    to.append(counts, random);
                expectSameAsPacking(from, to, round % 2 == 0 ? 8 : 40, random);
            }
}

TEST(BoxToBox, LargeCopiesGoPastTheCaches) {
    constexpr std::size_t stride = 9; // at any place in a cache line
    constexpr index planes = 2, lines = 1030, cells = 1021;
    const auto boxOf = [&](index first, index width) {
        return ScatteredBoxes{{RowBox{first, {1, 1, planes, lines, cells}, {0, 0, lines * width, width, 1}}},
                              first + planes * lines * width};
    };
    static_assert(isStreamed(cells * stride, planes * lines * cells * stride));
    std::mt19937_64 random(seed());
    expectSameAsPacking(boxOf(3, 1025), boxOf(1, 1027), stride, random);
    expectSameAsPacking(boxOf(0, cells), boxOf(2, 1022), stride, random);
}

TEST(BoxToBox, KeepsAFewLoopsABox) {
    // A layer of 100 x 100 cells of 102^3: turned about the first axis, and as it is; each one loop nest.
    const RowBox layer{0, {1, 1, 1, 100, 100}, {0, 0, 0, 102, 1}};
    const RowBox turned{0, {1, 1, 1, 100, 100}, {0, 0, 0, 1, 102}};
    for (const RowBox &source : {layer, turned}) {
        const RowGather gather(RowList::boxes({&source, 1}), rowsOfBytes(8));
        const PlacedRows placed = placeByRunLength(BoxCopy(RowList::boxes({&layer, 1}), 8));
        ASSERT_EQ(placed.boxes.size(), 1U);
        EXPECT_EQ(placed.boxes[0].box.bytes, 800U);
        EXPECT_EQ(placed.boxes[0].inSlot, 0U);
        EXPECT_EQ(BoxToBox(gather.byteBoxes(), placed.boxes).pieces(), 1U);
    }
}

TEST(BoxToBox, SidesOfOtherSizesThrow) {
    const std::vector<ByteBox> from{{RowBox{0}, 96}};
    const std::vector<PlacedBox> to{{{RowBox{0}, 104}, 0}};
    EXPECT_THROW(BoxToBox(from, to), ArgumentError);
    EXPECT_TRUE(BoxToBox().empty());
}

} // namespace
} // namespace DNDS
