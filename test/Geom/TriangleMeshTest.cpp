#include "DNDS/Geom/TriangleMesh.hpp"

#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

namespace DNDS::Geom {
namespace {

TriangleMesh wholeMesh(const TriangleMeshOptions &options) { return makeTriangleMesh(options, 0, 1); }

real signedArea(const TriangleMesh &mesh, index cell) {
    const index *nodes = mesh.cellNodes.data() + 3 * cell;
    const auto x = [&](int k) { return mesh.coordinates[static_cast<std::size_t>(2 * nodes[k])]; };
    const auto y = [&](int k) { return mesh.coordinates[static_cast<std::size_t>(2 * nodes[k] + 1)]; };
    return 0.5 * ((x(1) - x(0)) * (y(2) - y(0)) - (x(2) - x(0)) * (y(1) - y(0)));
}

std::vector<TriangleMeshOptions> variants() {
    std::vector<TriangleMeshOptions> all;
    for (const index cells : {1, 2, 8, 100, 5000})
        for (const real jitter : {0.0, 0.25, 0.4})
            for (const real refinement : {0.0, 0.6})
                for (const bool shuffled : {false, true})
                    all.push_back({cells, jitter, refinement, shuffled, 3});
    return all;
}

TEST(TriangleMesh, BlocksOfAllRanksAreTheMeshThatOneRankMakes) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const TriangleMeshOptions &options : variants()) {
        const TriangleMesh mine = makeTriangleMesh(options, comm);
        const TriangleMesh whole = wholeMesh(options);
        ASSERT_EQ(mine.globalCells, whole.cells());
        ASSERT_EQ(mine.globalNodes, whole.nodes());
        EXPECT_EQ(comm.allReduce(mine.cells(), MPI_SUM), whole.cells());
        EXPECT_EQ(comm.allReduce(mine.nodes(), MPI_SUM), whole.nodes());
        ASSERT_LE(mine.firstCell + mine.cells(), whole.cells());
        ASSERT_LE(mine.firstNode + mine.nodes(), whole.nodes());
        EXPECT_TRUE(
            std::equal(mine.cellNodes.begin(), mine.cellNodes.end(), whole.cellNodes.begin() + 3 * mine.firstCell));
        EXPECT_TRUE(std::equal(mine.coordinates.begin(), mine.coordinates.end(),
                               whole.coordinates.begin() + 2 * mine.firstNode));
    }
}

TEST(TriangleMesh, BlocksFollowEachOtherWithoutGaps) {
    TriangleMeshOptions options;
    options.cells = 50;
    for (const int parts : {1, 2, 7, 60, 200}) {
        index cells = 0;
        index nodes = 0;
        for (int part = 0; part < parts; part++) {
            const TriangleMesh block = makeTriangleMesh(options, part, parts);
            EXPECT_EQ(block.firstCell, cells);
            EXPECT_EQ(block.firstNode, nodes);
            EXPECT_EQ(block.firstCell, block.globalCells * part / parts);
            cells += block.cells();
            nodes += block.nodes();
        }
        EXPECT_EQ(cells, 50);
        EXPECT_EQ(nodes, 36);
    }
}

TEST(TriangleMesh, CoversTheUnitSquareWithPositiveAreas) {
    for (const TriangleMeshOptions &options : variants()) {
        const TriangleMesh mesh = wholeMesh(options);
        real total = 0.0;
        real smallest = 1.0;
        for (index cell = 0; cell < mesh.cells(); cell++) {
            total += signedArea(mesh, cell);
            smallest = std::min(smallest, signedArea(mesh, cell));
        }
        EXPECT_NEAR(total, 1.0, 1e-12);
        EXPECT_GT(smallest, 0.0) << options.cells << " cells, jitter " << options.jitter << ", refinement "
                                 << options.refinement;
    }
}

TEST(TriangleMesh, IsConformingAndClosed) {
    for (const TriangleMeshOptions &options : variants()) {
        const TriangleMesh mesh = wholeMesh(options);
        std::map<std::array<index, 2>, int> directedEdges;
        std::set<index> used;
        for (index cell = 0; cell < mesh.cells(); cell++)
            for (std::size_t k = 0; k < 3; k++) {
                const auto begin = static_cast<std::size_t>(3 * cell);
                const index from = mesh.cellNodes[begin + k];
                const index to = mesh.cellNodes[begin + (k + 1) % 3];
                used.insert(from);
                const std::array edge{from, to};
                EXPECT_EQ(++directedEdges[edge], 1);
            }
        const auto onBoundary = [&](index node, std::size_t axis) {
            const real value = mesh.coordinates[static_cast<std::size_t>(2 * node) + axis];
            return value == 0.0 || value == 1.0;
        };
        index boundary = 0;
        for (const auto &[edge, count] : directedEdges)
            if (directedEdges.count({edge[1], edge[0]}) == 0) {
                boundary++;
                EXPECT_TRUE((onBoundary(edge[0], 0) && onBoundary(edge[1], 0)) ||
                            (onBoundary(edge[0], 1) && onBoundary(edge[1], 1)));
            }
        EXPECT_EQ(static_cast<index>(used.size()), mesh.nodes());
        // Euler's formula for a disc: nodes - edges + cells = 1.
        const auto edges = (static_cast<index>(directedEdges.size()) + boundary) / 2;
        EXPECT_EQ(mesh.nodes() - edges + mesh.cells(), 1);
        EXPECT_EQ(boundary * boundary, 8 * mesh.cells()); // 4 n edges around 2 n^2 cells
    }
}

TEST(TriangleMesh, IsUnstructuredAndShuffled) {
    TriangleMeshOptions options;
    options.cells = 5000;
    const TriangleMesh mesh = wholeMesh(options);
    std::vector<int> cellsOfNode(static_cast<std::size_t>(mesh.nodes()), 0);
    for (const index node : mesh.cellNodes)
        cellsOfNode[static_cast<std::size_t>(node)]++;
    std::set<int> degrees(cellsOfNode.begin(), cellsOfNode.end());
    EXPECT_GE(degrees.size(), 5U);
    EXPECT_LE(*degrees.rbegin(), 8);

    // Consecutive cells of a shuffled mesh hardly ever touch.
    index touching = 0;
    for (index cell = 0; cell + 1 < mesh.cells(); cell++) {
        const auto begin = mesh.cellNodes.begin() + 3 * cell;
        touching += std::find_first_of(begin, begin + 3, begin + 3, begin + 6) != begin + 3;
    }
    EXPECT_LT(touching, mesh.cells() / 50);
}

TEST(TriangleMesh, RefusesOptionsOutOfRange) {
    EXPECT_THROW(makeTriangleMesh({0, 0.2, 0.5, true, 1}, 0, 1), ArgumentError);
    EXPECT_THROW(makeTriangleMesh({10, 0.5, 0.5, true, 1}, 0, 1), ArgumentError);
    EXPECT_THROW(makeTriangleMesh({10, 0.2, 1.0, true, 1}, 0, 1), ArgumentError);
    EXPECT_THROW(makeTriangleMesh({10, 0.2, 0.5, true, 1}, 1, 1), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
