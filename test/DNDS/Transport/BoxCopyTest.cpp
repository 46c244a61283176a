// Rows in boxes: random ones against lists of the same rows, and exchanges within one array over every transport.

#include "DNDS/Transport/BoxCopy.hpp"

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Exchange/FieldCase.hpp"
#include "DNDS/Exchange/RingField.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Transport/RowScatter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

/// Boxes of up to 5 loops of an array, in memory one behind the other; some backwards, some of dimensions in another
/// order, some of them whole.
struct RandomBoxes {
    std::vector<RowBox> boxes;
    std::vector<index> rows; ///< what they are, by loops written out
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

/// A ring of ranks, each with a block of cells whose ghosts lie around them in the same array: 3 x 4 cells, ghosts on
/// both sides of each dimension, of which those of the first or of the last one are exchanged.
struct BlockRing {
    static constexpr index n0 = 3;
    static constexpr index n1 = 4;
    static constexpr index size = (n0 + 2) * (n1 + 2);

    bool fast; ///< the ring goes along the dimension that runs fastest

    static index row(index i, index j) { return (i + 1) * (n1 + 2) + j + 1; }
    /// A layer of cells: number `at` of the dimension that the ring goes along.
    RowBox layer(index at) const {
        return fast ? RowBox{row(0, at), {1, 1, 1, n0, 1}, {0, 0, 0, n1 + 2, 1}}
                    : RowBox{row(at, 0), {1, 1, 1, 1, n1}, {0, 0, 0, 0, 1}};
    }
    /// The same backwards: neighbours may count the other way round.
    RowBox turned(index at) const {
        RowBox box = layer(at);
        const std::size_t loop = fast ? 3 : 4;
        box.first += (box.counts[loop] - 1) * box.strides[loop];
        box.strides[loop] *= -1;
        return box;
    }
    index last() const { return fast ? n1 : n0; }
    static int left() { return (worldRank() + worldSize() - 1) % worldSize(); }
    static int right() { return (worldRank() + 1) % worldSize(); }

    /// What this rank's lower ghosts get from the left, turned, and the upper ones from the right.
    ExchangePattern::Boxes boxes() const {
        ExchangePattern::Boxes all;
        all.fatherSize = all.sonSize = size;
        for (int peer = 0; peer < worldSize(); ++peer) {
            std::vector<RowBox> given;
            std::vector<RowBox> received;
            if (peer == right()) // its lower ghosts first
                given.push_back(turned(last() - 1));
            if (peer == left())
                given.push_back(layer(0));
            if (peer == left())
                received.push_back(layer(-1));
            if (peer == right())
                received.push_back(layer(last()));
            all.given.append(peer, RowList::boxes(given)); // none for some: empty ranges
            all.received.append(peer, RowList::boxes(received));
        }
        return all;
    }
    std::shared_ptr<const ExchangePattern> pattern() const {
        return ExchangePattern::fromBoxes(CommunicatorContext::of(MPI_COMM_WORLD), [&] { return boxes(); });
    }

    static real value(int rank, index row, rowsize j, int version) {
        return static_cast<real>(10000 * (rank + 1) + 1000 * version + 10 * row) + static_cast<real>(j);
    }
    /// The rank and the row that a row is a copy of: itself where it is no ghost of the ring.
    std::pair<int, index> source(index r) const {
        for (index k = 0; k < (fast ? n0 : n1); ++k) {
            const index back = (fast ? n0 : n1) - 1 - k;
            if (r == (fast ? row(k, -1) : row(-1, k)))
                return {left(), fast ? row(back, last() - 1) : row(last() - 1, back)};
            if (r == (fast ? row(k, last()) : row(last(), k)))
                return {right(), fast ? row(k, 0) : row(0, k)};
        }
        return {worldRank(), r};
    }
};

using RingArray = ParArray<real, 5>;

ExchangeMember memberOf(const std::shared_ptr<RingArray> &array) {
    const auto layout = [array](MemorySpace space, Access access, RowLayout &into) {
        array->rowLayout(space, access, into);
    };
    return {.name = "block",
            .father = layout,
            .son = layout,
            .onDevice = [array] { return array->valid(MemorySpace::Device); },
            .pattern = nullptr};
}

/// Ghosts of every version are those of the neighbours; nothing else changes. Collective.
void expectRing(
    const BlockRing &ring, const ExchangeOptions &options, const std::shared_ptr<RingArray> &array,
    const std::function<bool(index)> &moved = [](index) { return true; },
    std::shared_ptr<const ExchangePattern> pattern = nullptr) {
    if (!pattern)
        pattern = ring.pattern();
    if (options.space == ExchangeSpace::Device)
        array->toDevice();
    Exchange pull(pattern, Direction::Pull, {memberOf(array)}, options);
    for (int version = 1; version <= 3; ++version) {
        array->toHost();
        for (index row = 0; row < BlockRing::size; ++row)
            for (rowsize j = 0; j < 5; ++j)
                (*array)(row, j) = BlockRing::value(worldRank(), row, j, version);
        if (options.space == ExchangeSpace::Device)
            array->toDevice();
        pull.start();
        pull.wait();
        array->toHost();
        for (index row = 0; row < BlockRing::size; ++row) {
            const auto [rank, from] = moved(row) ? ring.source(row) : std::pair{worldRank(), row};
            for (rowsize j = 0; j < 5; ++j)
                ASSERT_EQ(std::as_const(*array)(row, j), BlockRing::value(rank, from, j, version))
                    << "row " << row << ", version " << version;
        }
    }
}

class BoxExchange : public testing::TestWithParam<bool> {
  protected:
    BlockRing ring_{GetParam()};

    static std::shared_ptr<RingArray> array() {
        auto made = emptyPair<RealField>().father;
        made->resize(BlockRing::size);
        return made;
    }
};
INSTANTIATE_TEST_SUITE_P(Ring, BoxExchange, testing::Bool(),
                         [](const auto &fast) { return fast.param ? "AlongTheFastest" : "AlongTheSlowest"; });

TEST_P(BoxExchange, MovesGhostsWithinOneArrayOverEveryTransport) {
    forEachTransport([&](const ExchangeOptions &options) { expectRing(ring_, options, array()); });
}

TEST_P(BoxExchange, MovesGhostsOnTheDevice) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    expectRing(ring_, {.space = ExchangeSpace::Device}, array());
}

TEST_P(BoxExchange, IsRestricted) {
    const auto pattern = ring_.pattern();
    const auto chosen = [&](index row) {
        return ring_.source(row) != std::pair{worldRank(), row} && (row * 7 + worldRank()) % 3 == 0;
    };
    std::vector<index> some;
    for (index row = 0; row < BlockRing::size; ++row)
        if (chosen(row))
            some.push_back(row);
    expectRing(ring_, {}, array(), chosen, pattern->restrictedTo(some));
}

TEST_P(BoxExchange, KnowsBoundaryRows) {
    const auto pattern = ring_.pattern();
    std::vector<index> boundary;
    for (const index at : {index{0}, ring_.last() - 1}) {
        const RowBox box = ring_.layer(at);
        const auto rows = rowsOf(RowList::boxes({&box, 1}));
        boundary.insert(boundary.end(), rows.begin(), rows.end());
    }
    std::ranges::sort(boundary);
    EXPECT_TRUE(std::ranges::equal(pattern->boundaryRows(), boundary));
}

TEST_P(BoxExchange, WrongBoxesOfOneRankThrowOnAll) {
    const auto made = [&](auto &&spoil) {
        return [&, spoil] {
            (void)ExchangePattern::fromBoxes(CommunicatorContext::of(MPI_COMM_WORLD), [&] {
                auto boxes = ring_.boxes();
                if (worldRank() == 0)
                    spoil(boxes);
                return boxes;
            });
        };
    };
    const auto peer = static_cast<std::size_t>(BlockRing::right());
    expectContains(messageOnAll<IndexError>(made([&](auto &boxes) {
                       const RowBox wrong{-1, {1, 1, 1, 1, 2}, {0, 0, 0, 0, 7}};
                       boxes.received.lists[0] = RowList::boxes({&wrong, 1});
                   })),
                   "row -1 is in the boxes of received rows");
    expectContains(messageOnAll<IndexError>(made([&](auto &boxes) { boxes.given.lists[0] = RowList(5, 99); })),
                   "row 98 is in the boxes of given rows");
    expectContains(messageOnAll<ArgumentError>(made([&](auto &boxes) {
                       const RowBox twice{1, {1, 1, 1, 2, 2}, {0, 0, 0, 1, 1}};
                       boxes.received.lists[0] = RowList::boxes({&twice, 1});
                   })),
                   "ghost 2 is received twice");
    const std::vector<index> rows{3, 1};
    expectContains(messageOnAll<ArgumentError>(made([&](auto &boxes) { boxes.given.lists[0] = RowList(rows); })),
                   "make boxes or a range");
    expectContains(messageOnAll<StateError>(made([&](auto &boxes) { boxes.given.lists[peer] = RowList(0, 1); })),
                   "rank 0 gives 1 rows to rank");
    (void)ring_.pattern(); // and the next one is made
}

} // namespace
} // namespace DNDS
