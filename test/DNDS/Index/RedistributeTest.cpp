#include "DNDS/Index/Mappings.hpp"

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {
namespace {

using test::expectContains;
using test::messageOnAll;
using test::rankSeed;
using test::worldRank;
using test::worldSize;

/// Ranks own 7, 0, 14, 0, ... rows.
index ownRows(int rank) { return rank % 2 == 0 ? 7 * (rank / 2 + 1) : 0; }

std::shared_ptr<const GlobalMapping> rowsOfAll() { return GlobalMapping::create(MPI_COMM_WORLD, ownRows(worldRank())); }

/// Target rank of a global row: any except rank 1, which is empty between others.
int targetOf(index global) {
    const int target = static_cast<int>((global * 5 + global / 3) % worldSize());
    return target == 1 ? 0 : target;
}

std::vector<int> targetsOf(const GlobalMapping &mapping) {
    std::vector<int> targets;
    for (index row = mapping.localBegin(); row < mapping.localBegin() + mapping.localSize(); ++row)
        targets.push_back(targetOf(row));
    return targets;
}

/// Rows owned by a rank after `targetsOf`, in the documented order.
std::vector<index> expectedOn(int rank, index globalSize) {
    std::vector<index> rows;
    for (index row = 0; row < globalSize; ++row) // ascending: by rank, and on one rank by row
        if (targetOf(row) == rank)
            rows.push_back(row);
    return rows;
}

TEST(Redistribute, NumbersRowsByTargetThenSourceThenRow) {
    const auto mapping = rowsOfAll();
    const Redistribute moved = Redistribute::toRanks(mapping, targetsOf(*mapping));
    EXPECT_EQ(moved.before(), mapping);
    std::vector<index> newOf(static_cast<std::size_t>(mapping->globalSize()));
    index next = 0;
    for (int rank = 0; rank < worldSize(); ++rank) {
        const std::vector<index> rows = expectedOn(rank, mapping->globalSize());
        EXPECT_EQ(moved.after()->size(rank), static_cast<index>(rows.size()));
        for (const index row : rows)
            newOf[static_cast<std::size_t>(row)] = next++;
        if (rank == worldRank()) {
            EXPECT_TRUE(std::ranges::equal(moved.oldNumbers(), rows));
        }
    }
    for (index row = 0; row < mapping->localSize(); ++row)
        EXPECT_EQ(moved.newNumbers()[static_cast<std::size_t>(row)],
                  newOf[static_cast<std::size_t>(mapping->localBegin() + row)]);

    // Any rows, of any ranks, some twice, some none.
    std::mt19937_64 random(rankSeed());
    std::vector<index> asked(40);
    for (index &row : asked)
        row = static_cast<index>(random() % static_cast<std::uint64_t>(mapping->globalSize()));
    asked[3] = InvalidIndex;
    asked[5] = asked[4];
    const std::vector<index> found = moved.newNumbers(asked);
    ASSERT_EQ(found.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i)
        EXPECT_EQ(found[i], i == 3 ? InvalidIndex : newOf[static_cast<std::size_t>(asked[i])]);
    EXPECT_EQ(moved.oldNumbers(found), asked);
    EXPECT_TRUE(moved.newNumbers(std::vector<index>()).empty());
}

/// The global rows of this rank.
std::vector<index> ownOf(const GlobalMapping &mapping) {
    std::vector<index> own(static_cast<std::size_t>(mapping.localSize()));
    std::iota(own.begin(), own.end(), mapping.localBegin());
    return own;
}

/// Element `k` of a global row.
template <class T>
T valueOf(index row, index k) {
    return static_cast<T>(row * 100 + k) / static_cast<T>(3);
}
rowsize widthOf(index row) { return static_cast<rowsize>(row % 5); }

/// An array whose row i has the values of global row `rows[i]`.
template <class A>
void fill(A &array, std::span<const index> rows) {
    using T = std::remove_cvref_t<decltype(array(0, 0))>;
    const auto count = static_cast<index>(rows.size());
    const auto sizeOf = [&](index i) { return widthOf(rows[static_cast<std::size_t>(i)]); };
    switch (array.shape().layout) {
    case ArrayLayout::StaticFixed:
        array.ArrayBase::resize(count);
        break;
    case ArrayLayout::Fixed:
        array.ArrayBase::resize(count, 3);
        break;
    case ArrayLayout::Max:
        array.ArrayBase::resize(count, 6, sizeOf);
        break;
    default:
        array.ArrayBase::resize(count, sizeOf);
    }
    for (index i = 0; i < count; ++i)
        for (rowsize k = 0; k < array.rowSize(i); ++k)
            array(i, k) = valueOf<T>(rows[static_cast<std::size_t>(i)], k);
}

/// Moves an array there and back, and compares bits with arrays that are filled in place.
template <class A>
void expectRoundTrip(const Redistribute &moved) {
    const Redistribute back = moved.inverse();
    A before;
    A expected;
    fill(before, ownOf(*moved.before()));
    fill(expected, moved.oldNumbers());
    SCOPED_TRACE(before.layoutSignature());
    A after;
    fill(after, std::vector<index>{1, 2}); // the old contents are discarded
    moved.move(before, after);
    EXPECT_EQ(after.size(), moved.after()->localSize());
    EXPECT_EQ(after.hash(), expected.hash());
    A again;
    back.move(after, again);
    EXPECT_EQ(again.hash(), before.hash());
    A inPlace = before;
    moved.move(inPlace);
    EXPECT_EQ(inPlace.hash(), expected.hash());
    EXPECT_TRUE(inPlace.isCompressed());
}

void expectAllLayoutsMove(const Redistribute &moved) {
    expectRoundTrip<Array<double, 3>>(moved);
    expectRoundTrip<Array<std::uint8_t, 3>>(moved); // rows of no whole words
    expectRoundTrip<Array<float, 3, 3, 32>>(moved); // rows with padding
    expectRoundTrip<Array<double, DynamicSize>>(moved);
    expectRoundTrip<Array<double, NonUniformSize, 5>>(moved);
    expectRoundTrip<Array<std::int16_t, NonUniformSize, DynamicSize>>(moved);
    expectRoundTrip<Array<index, NonUniformSize>>(moved);
    expectRoundTrip<Array<double, 0>>(moved);
}

TEST(Redistribute, MovesRowsOfAllLayoutsThereAndBackBitByBit) {
    const auto mapping = rowsOfAll();
    expectAllLayoutsMove(Redistribute::toRanks(mapping, targetsOf(*mapping)));
}

/// Row i becomes row n - 1 - i.
std::vector<index> reversed(index rows) {
    std::vector<index> places(static_cast<std::size_t>(rows));
    std::iota(places.rbegin(), places.rend(), index{0});
    return places;
}

TEST(Redistribute, PermutesWhatArrives) {
    const auto mapping = rowsOfAll();
    const Redistribute stable = Redistribute::toRanks(mapping, targetsOf(*mapping));
    const Redistribute moved = stable.permuted(reversed(stable.after()->localSize()));
    EXPECT_TRUE(std::equal(moved.oldNumbers().begin(), moved.oldNumbers().end(), stable.oldNumbers().rbegin(),
                           stable.oldNumbers().rend()));
    std::vector<index> own(moved.newNumbers().begin(), moved.newNumbers().end());
    EXPECT_EQ(moved.oldNumbers(own), ownOf(*mapping));
    expectAllLayoutsMove(moved);
    expectAllLayoutsMove(moved.inverse());
}

TEST(Redistribute, MovesAllRowsToOneRank) {
    const auto mapping = rowsOfAll();
    const Redistribute moved = Redistribute::toRanks(
        mapping, std::vector<int>(static_cast<std::size_t>(mapping->localSize()), worldSize() - 1));
    EXPECT_EQ(moved.after()->localSize(), worldRank() == worldSize() - 1 ? mapping->globalSize() : 0);
    expectAllLayoutsMove(moved);
}

TEST(Redistribute, MovesSeveralArraysInOneMessageAndGivesThemTheirNumbering) {
    ParArray<double, 3> state("state", MPI_COMM_WORLD);
    state.resize(ownRows(worldRank()));
    state.createGlobalMapping();
    const Redistribute moved = Redistribute::toRanks(state.globalMapping(), targetsOf(*state.globalMapping()));
    const std::vector<index> own = ownOf(*state.globalMapping());
    fill(state, own);
    Array<index, NonUniformSize> cellNodes;
    fill(cellNodes, own);
    Array<index, NonUniformSize> movedNodes;
    const std::array<Redistribute::Move, 2> both{{{&state, &state}, {&cellNodes, &movedNodes}}};
    moved.move(both);
    state.setGlobalMapping(moved.after());
    Array<double, 3> expected;
    fill(expected, moved.oldNumbers());
    EXPECT_EQ(state.hash(), expected.hash());
    Array<index, NonUniformSize> expectedNodes;
    fill(expectedNodes, moved.oldNumbers());
    EXPECT_EQ(movedNodes.hash(), expectedNodes.hash());
    moved.move(std::span<const Redistribute::Move>()); // nothing
}

TEST(Redistribute, MovesArraysOfDifferentWidthsIntoEachOther) {
    const auto mapping = rowsOfAll();
    const Redistribute moved = Redistribute::toRanks(mapping, targetsOf(*mapping));
    Array<index, DynamicSize> narrow;
    Array<index, DynamicSize> wide;
    narrow.resize(mapping->localSize(), 3);
    wide.resize(mapping->localSize(), 5);
    for (index row = 0; row < mapping->localSize(); ++row)
        for (rowsize k = 0; k < 5; ++k) {
            wide(row, k) = 10 * (mapping->localBegin() + row) + k;
            if (k < 3)
                narrow(row, k) = -wide(row, k);
        }
    const std::array<Redistribute::Move, 2> both{{{&narrow, &wide}, {&wide, &narrow}}};
    moved.move(both);
    ASSERT_EQ(wide.width(), 3);
    ASSERT_EQ(narrow.width(), 5);
    for (index row = 0; row < moved.after()->localSize(); ++row)
        for (rowsize k = 0; k < 5; ++k) {
            const index value = 10 * moved.oldNumbers()[static_cast<std::size_t>(row)] + k;
            EXPECT_EQ(narrow(row, k), value);
            if (k < 3) {
                EXPECT_EQ(wide(row, k), -value);
            }
        }
    // The numbering afterwards is one of the same context, however often rows are moved.
    EXPECT_EQ(moved.after()->context(), mapping->context());
}

TEST(Redistribute, MovesThatDifferBetweenRanksThrowOnAll) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    const auto mapping = rowsOfAll();
    const std::vector<int> toLast(static_cast<std::size_t>(mapping->localSize()), worldSize() - 1);
    const Redistribute moved = Redistribute::toRanks(mapping, toLast);
    const Redistribute other = Redistribute::toRanks(mapping, toLast);
    Array<double, 3> state;
    fill(state, ownOf(*mapping));
    const auto before = state.hash();
    // Rank 0 gives all of its rows away, and names no arrays, or another movement.
    expectContains(messageOnAll<LayoutError>([&] {
                       const Redistribute::Move one{&state, &state};
                       moved.move(std::span<const Redistribute::Move>(&one, worldRank() == 0 ? 0 : 1));
                   }),
                   "pass the same arrays on all ranks");
    expectContains(messageOnAll<StateError>([&] { (worldRank() == 0 ? moved : other).move(state); }),
                   "call move of the same movement on all ranks");
    EXPECT_EQ(state.hash(), before);
}

TEST(Redistribute, NamesTheRowThatHasNoTargetOnAllRanks) {
    const auto mapping = rowsOfAll();
    std::vector<int> targets = targetsOf(*mapping);
    if (worldRank() == 0)
        targets[5] = worldSize();
    const std::string wrong = messageOnAll<IndexError>([&] { Redistribute::toRanks(mapping, targets); });
    expectContains(wrong, "row 5 (global row 5)");
    expectContains(wrong, fmt::format("rank {}", worldSize()));
    if (worldRank() == 0)
        targets[5] = -1;
    expectContains(messageOnAll<IndexError>([&] { Redistribute::toRanks(mapping, targets); }), "rank -1");
    targets.resize(worldRank() == 0 ? 6 : targets.size());
    expectContains(messageOnAll<ArgumentError>([&] { Redistribute::toRanks(mapping, targets); }),
                   "6 targets for 7 rows");
    expectContains(messageOnAll<StateError>([&] { Redistribute::toRanks(nullptr, targets); }), "create theirs first");
}

TEST(Redistribute, RefusesWhatIsNoPermutationOnAllRanks) {
    const auto mapping = rowsOfAll();
    const Redistribute moved = Redistribute::toRanks(mapping, targetsOf(*mapping));
    std::vector<index> arrived = reversed(moved.after()->localSize());
    arrived.resize(worldRank() == 0 ? 0 : arrived.size());
    expectContains(messageOnAll<ArgumentError>([&] { (void)moved.permuted(arrived); }), "0 places for");
    expectContains(messageOnAll<IndexError>([&] {
                       (void)moved.newNumbers(std::vector<index>(worldRank() == 0 ? 1 : 0, mapping->globalSize()));
                   }),
                   "outside");
}

TEST(Redistribute, RefusesArraysThatDoNotFitOnAllRanksAndLeavesThemAsTheyWere) {
    const auto mapping = rowsOfAll();
    const Redistribute moved = Redistribute::toRanks(mapping, targetsOf(*mapping));
    const std::vector<index> own = ownOf(*mapping);

    Array<double, 3> state;
    fill(state, own);
    state.setName("state");
    const auto before = state.hash();
    Array<double, 3> shorter;
    shorter.resize(worldRank() == 0 ? 3 : mapping->localSize());
    shorter.setName("shorter");
    const std::array<Redistribute::Move, 2> both{{{&state, &state}, {&shorter, &shorter}}};
    const std::string wrong = messageOnAll<ArgumentError>([&] { moved.move(both); });
    expectContains(wrong, "shorter has 3 rows");
    EXPECT_EQ(state.hash(), before);

    Array<float, 3> otherType;
    expectContains(messageOnAll<LayoutError>([&] { moved.move(state, otherType); }), "state");
    Array<index, NonUniformSize> loose;
    fill(loose, own);
    if (worldRank() == 0)
        loose.decompress();
    expectContains(messageOnAll<StateError>([&] { moved.move(loose); }), "compress");
}

TEST(Redistribute, RefusesWidthsThatDifferBetweenRanks) {
    if (worldSize() == 1)
        GTEST_SKIP() << "one rank has one width";
    const auto mapping = GlobalMapping::create(MPI_COMM_WORLD, 2);
    const Redistribute moved = Redistribute::toRanks(mapping, std::vector<int>(2, (worldRank() + 1) % worldSize()));
    Array<double, DynamicSize> state;
    state.resize(2, worldRank() == 0 ? 4 : 3);
    expectContains(messageOnAll<LayoutError>([&] { moved.move(state); }), "width");
    EXPECT_EQ(state.size(), 2);
    EXPECT_EQ(state.width(), worldRank() == 0 ? 4 : 3);
}

} // namespace
} // namespace DNDS
