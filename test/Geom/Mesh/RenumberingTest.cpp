#include "DNDS/Geom/Mesh/Renumbering.hpp"

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace DNDS::Geom {
namespace {

TEST(NumberTable, FindsWhatWasAdded) {
    NumberTable table;
    const IndexPermutation permutation(5000, test::seed());
    for (index i = 0; i < 5000; i++)
        EXPECT_EQ(table.add(1000 * permutation(i)), std::pair(static_cast<LocalIndex>(i), true));
    for (index i = 0; i < 5000; i++) {
        EXPECT_EQ(table.find(1000 * permutation(i)), i);
        EXPECT_EQ(table.add(1000 * permutation(i)), std::pair(static_cast<LocalIndex>(i), false));
        EXPECT_EQ(table.find(1000 * i + 1), NumberTable::none);
        EXPECT_EQ(table[static_cast<LocalIndex>(i)], 1000 * permutation(i));
    }
}

TEST(Renumbering, ReverseCuthillMcKeeNarrowsTheBand) {
    // Two shuffled grids of 20 x 20 that are not connected, and a vertex alone.
    const index n = 20;
    const index vertices = 2 * n * n + 1;
    const IndexPermutation number(vertices, test::seed());
    std::vector<std::vector<LocalIndex>> rows(toSize(vertices));
    const auto join = [&](index a, index b) {
        rows[toSize(number(a))].push_back(static_cast<LocalIndex>(number(b)));
        rows[toSize(number(b))].push_back(static_cast<LocalIndex>(number(a)));
    };
    for (index g = 0; g < 2; g++)
        for (index j = 0; j < n; j++)
            for (index i = 0; i < n; i++) {
                const index v = (g * n + j) * n + i;
                if (i + 1 < n)
                    join(v, v + 1);
                if (j + 1 < n)
                    join(v, v + n);
            }
    rows[0].push_back(-1); // the boundary, and a ghost
    rows[1].push_back(static_cast<LocalIndex>(vertices + 3));
    std::vector<index> starts{0};
    std::vector<LocalIndex> neighbours;
    for (const auto &row : rows) {
        neighbours.insert(neighbours.end(), row.begin(), row.end());
        starts.push_back(static_cast<index>(neighbours.size()));
    }
    const auto order = reverseCuthillMcKee(starts, neighbours);
    std::vector<index> place(toSize(vertices), -1);
    for (index k = 0; k < vertices; k++)
        place[toSize(order[toSize(k)])] = k;
    EXPECT_EQ(std::count(place.begin(), place.end(), -1), 0);
    index band = 0;
    for (index v = 0; v < vertices; v++)
        for (const LocalIndex other : rows[toSize(v)])
            if (other >= 0 && other < vertices)
                band = std::max(band, std::abs(place[toSize(v)] - place[static_cast<std::size_t>(other)]));
    EXPECT_LE(band, n + 1);
}

TEST(Adjacency, GoesFromGlobalToLocalAndBack) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto global = GlobalMapping::create(comm, 3);
    const index next = (global->localBegin() + 3) % global->globalSize();
    const std::vector<index> wanted{next};
    const auto mapping = GhostMapping::fromPullList(global, wanted);
    GlobalAdjacency rows("rows", comm);
    rows.resize(2, [](index i) { return static_cast<rowsize>(2 - i); });
    rows(0, 0) = global->localBegin() + 2;
    rows(0, 1) = InvalidIndex;
    rows(1, 0) = comm.size() == 1 ? 1 : next;
    const LocalAdjacency local = toLocal(rows, *mapping);
    EXPECT_EQ(local(0, 0), 2);
    EXPECT_EQ(local(0, 1), noEntity);
    EXPECT_EQ(local(1, 0), comm.size() == 1 ? 1 : 3);
    const GlobalAdjacency back = toGlobal(local, *mapping);
    for (const auto &[i, k] : {std::pair<index, rowsize>{0, 0}, {0, 1}, {1, 0}})
        EXPECT_EQ(back(i, k), rows(i, k));
    rows(1, 0) = comm.size() > 2 ? (next + 3) % global->globalSize() : global->globalSize();
    EXPECT_THROW((void)toLocal(rows, *mapping), IndexError);
}

TEST(Adjacency, TransposesRowsInTheOrderGiven) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const LocalAdjacency rows =
        makeAdjacency("rows", comm, std::vector<index>{0, 2, 2, 5}, std::vector<LocalIndex>{2, 0, 2, noEntity, 3});
    const LocalAdjacency columns = transpose("columns", rows, 5, std::vector<LocalIndex>{1, 2, 0});
    ASSERT_EQ(columns.size(), 5);
    const std::vector<std::vector<LocalIndex>> expected{{0}, {}, {2, 0}, {2}, {}};
    for (index c = 0; c < 5; c++)
        EXPECT_EQ(std::vector<LocalIndex>(columns[c].begin(), columns[c].end()), expected[toSize(c)]);
}

/// A row that is wanted twice is a ghost twice, and what is pushed back meets both.
TEST(GhostMapping, CopiesRepeatedRowsTwice) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto global = GlobalMapping::create(comm, 4);
    std::vector<index> wanted{1, 1, global->globalSize() - 1};
    const auto mapping = GhostMapping::fromRepeatedPullList(global, wanted);
    EXPECT_EQ(mapping->ghostSize(), 3);
    EXPECT_EQ(mapping->findGhost(1), 0);
    std::vector<index> descending{2, 1};
    EXPECT_THROW((void)GhostMapping::fromRepeatedPullList(global, descending), ArgumentError);
    std::vector<index> outside{global->globalSize()};
    EXPECT_THROW((void)GhostMapping::fromRepeatedPullList(global, outside), IndexError);
}

} // namespace
} // namespace DNDS::Geom
