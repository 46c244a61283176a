#include "DNDS/Task/KernelRows.hpp"

#include "DNDS/Task/PlanFields.hpp"

#include <gtest/gtest.h>

#include <set>

namespace DNDS::Task {
namespace {

using namespace DNDS::test;

std::set<index> rowsOf(const Region &region) {
    std::set<index> rows;
    region.rows()->forEach([&](index row) { rows.insert(row); });
    return rows;
}

std::set<index> range(index first, index last) {
    std::set<index> rows;
    for (index row = first; row < last; ++row)
        rows.insert(row);
    return rows;
}

TEST(RowMask, IsASet) {
    std::mt19937 random(static_cast<unsigned>(seed()));
    for (const index size : {0, 1, 63, 64, 65, 128, 200}) {
        std::set<index> a, b;
        RowMask maskA(size), maskB(size);
        for (index k = 0; k < size; ++k) {
            if (random() % 2 == 0) {
                a.insert(k);
                maskA.set(k);
            }
            if (random() % 3 == 0) {
                b.insert(k);
                maskB.set(k);
            }
        }
        const auto expect = [&](const RowMask &mask, const std::set<index> &rows) {
            std::vector<index> found;
            mask.forEach([&](index row) { found.push_back(row); });
            EXPECT_EQ(found, std::vector<index>(rows.begin(), rows.end()));
            EXPECT_EQ(mask.count(), static_cast<index>(rows.size()));
            EXPECT_EQ(mask.any(), !rows.empty());
            const std::vector<LocalIndex> list = mask.list();
            EXPECT_TRUE(std::equal(list.begin(), list.end(), rows.begin(), rows.end()));
            for (index row = 0; row < size; ++row)
                EXPECT_EQ(mask.test(row), rows.contains(row));
        };
        std::set<index> both, either = a, rest;
        either.insert(b.begin(), b.end());
        for (const index row : a)
            (b.contains(row) ? both : rest).insert(row);
        RowMask mask = maskA;
        expect(mask, a);
        expect(mask |= maskB, either);
        mask = maskA;
        expect(mask &= maskB, both);
        mask = maskA;
        expect(mask -= maskB, rest);
        EXPECT_EQ(maskA.intersects(maskB), !both.empty());
        EXPECT_EQ(maskA.contains(maskB), both == b);
        mask.clear();
        expect(mask, {});
        for (index first = 0; first <= size; first += 1 + size / 9)
            for (index last = first; last <= size; last += 1 + size / 7)
                expect(RowMask(size, first, last), range(first, last));
    }
}

TEST(Region, RowsOfAMeshByBruteForce) {
    for (const unsigned seed : {1U, 3U, 4U, 9U}) {
        const PlanWorld world(seed, 60, 1 + static_cast<int>(seed % 3));
        RowSpace cells("cells", world.cells);
        EXPECT_EQ(cells.owned(), world.cells.owned);
        EXPECT_EQ(cells.size(), world.cells.size());
        EXPECT_EQ(rowsOf(cells.region("owned")), range(0, world.cells.owned));
        EXPECT_EQ(rowsOf(cells.region("ghosts")), range(world.cells.owned, world.cells.size()));
        EXPECT_EQ(rowsOf(cells.region("all")), range(0, world.cells.size()));
        // Rows that another rank has as ghosts
        const std::vector<index> ghosts =
            world.comm.allGatherV(std::span<const index>(world.cells.global).subspan(toSize(world.cells.owned)));
        const std::set<index> needed(ghosts.begin(), ghosts.end());
        std::set<index> boundary, inner;
        for (index row = 0; row < world.cells.owned; ++row)
            (needed.contains(world.cells.global[toSize(row)]) ? boundary : inner).insert(row);
        EXPECT_EQ(rowsOf(cells.region("boundary")), boundary);
        EXPECT_EQ(rowsOf(cells.region("inner")), inner);
        EXPECT_EQ(cells.rows().rows(), nullptr);
        EXPECT_EQ(cells.rows().name(), "cells");
    }
}

TEST(Region, OfSpacesWithoutGhosts) {
    RowSpace space("space", 7);
    EXPECT_EQ(rowsOf(space.region("inner")), range(0, 7));
    EXPECT_EQ(rowsOf(space.region("boundary")), range(0, 0));
    EXPECT_EQ(rowsOf(space.region("ghosts")), range(0, 0));
}

TEST(Region, NamesOfUsers) {
    RowSpace space("space", 5, 2);
    const std::vector<index> rows{6, 0, 3, 3};
    const Region inlet = space.define("inlet", rows);
    EXPECT_EQ(inlet.name(), "inlet");
    EXPECT_EQ(inlet.space().name(), "space");
    EXPECT_EQ(rowsOf(inlet), (std::set<index>{0, 3, 6}));
    EXPECT_EQ(rowsOf(space.region("inlet")), rowsOf(inlet));
    EXPECT_TRUE(rowsOf(space.define("none", {})).empty());

    expectContains(messageOf<ArgumentError>([&] { (void)space.define("inlet", rows); }),
                   "has a region 'inlet' already");
    for (const char *taken : {"owned", "ghosts", "inner", "boundary", "all"})
        expectContains(messageOf<ArgumentError>([&] { (void)space.define(taken, rows); }), taken);
    const std::string text = messageOf<ArgumentError>([&] { (void)space.region("outlet"); });
    for (const char *part : {"'space'", "'outlet'", "owned, ghosts, inner, boundary, all, inlet, none"})
        expectContains(text, part);
    for (const index wrong : {index{-1}, index{7}}) {
        const std::string outside = messageOf<IndexError>([&] {
            (void)space.define("wrong", std::vector<index>{0, wrong});
        });
        expectContains(outside, fmt::format("region 'wrong' of 'space': row {} is outside [0, 7)", wrong));
    }
    EXPECT_NO_THROW((void)space.define("wrong", rows)) << "what failed has defined nothing";
}

TEST(Region, ARowIsInFrontOfItsNeighboursOnce) {
    const std::vector<LocalIndex> neighbours{4, -1, 2};
    const Adjacency adjacency{"cells", 5, [&](index) { return std::span<const LocalIndex>(neighbours); }};
    for (const Adjacency &around : {withItself(adjacency), withItself(withItself(adjacency))}) {
        EXPECT_EQ(around.name, "cells and itself");
        const std::span<const LocalIndex> seen = around.row(3);
        EXPECT_EQ(std::vector<LocalIndex>(seen.begin(), seen.end()), (std::vector<LocalIndex>{3, 4, -1, 2}));
    }
}

TEST(Region, SpacesThatCannotBe) {
    expectContains(messageOf<ArgumentError>([] { RowSpace("space", -1); }), "'space' cannot have -1 owned rows");
    expectContains(messageOf<ArgumentError>([] { RowSpace("space", 3, -2); }), "-2 ghosts");
    expectContains(messageOf<ArgumentError>([] { RowSpace("space", index{1} << 31U, 0); }), "a rank has at most");
    const PlanWorld world;
    const std::string text =
        messageOf<ArgumentError>([&] { RowSpace("space", world.cells.owned + 1, 0, world.cells.pattern); });
    expectContains(text, "but its pattern has");
}

} // namespace
} // namespace DNDS::Task
