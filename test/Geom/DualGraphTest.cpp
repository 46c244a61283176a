#include "DNDS/Geom/DualGraph.hpp"

#include "DNDS/Geom/TriangleMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace DNDS::Geom {
namespace {

/// A whole mesh: cells of one type as rows of nodes.
struct Cells {
    ElementType type;
    std::vector<index> nodes;

    index width() const { return elementInfo(type).nodes; }
    index size() const { return static_cast<index>(nodes.size()) / width(); }
    std::span<const index> range(index begin, index end) const {
        return std::span<const index>(nodes).subspan(static_cast<std::size_t>(begin * width()),
                                                     static_cast<std::size_t>((end - begin) * width()));
    }
};

/// A box of nx x ny x nz hexahedra, cut into cells of `type`; in two dimensions, nx x ny quadrilaterals.
Cells boxOf(ElementType type, index nx, index ny, index nz) {
    Cells cells{type, {}};
    const auto node = [&](index i, index j, index k) { return (k * (ny + 1) + j) * (nx + 1) + i; };
    const index corners = (nx + 1) * (ny + 1) * (nz + 1);
    index quads = 0;
    for (index k = 0; k < (type == ElementType::Quad4 ? 1 : nz); k++)
        for (index j = 0; j < ny; j++)
            for (index i = 0; i < nx; i++, quads++) {
                const index v[8] = {
                    node(i, j, k),     node(i + 1, j, k),     node(i + 1, j + 1, k),     node(i, j + 1, k),
                    node(i, j, k + 1), node(i + 1, j, k + 1), node(i + 1, j + 1, k + 1), node(i, j + 1, k + 1)};
                const auto add = [&](std::initializer_list<int> pattern) {
                    for (const int p : pattern)
                        cells.nodes.push_back(p < 8 ? v[p] : corners + quads);
                };
                switch (type) {
                case ElementType::Quad4:
                    add({0, 1, 2, 3});
                    break;
                case ElementType::Hexa8:
                    add({0, 1, 2, 3, 4, 5, 6, 7});
                    break;
                case ElementType::Penta6:
                    add({0, 1, 2, 4, 5, 6});
                    add({0, 2, 3, 4, 6, 7});
                    break;
                case ElementType::Pyra5: // node 8 is the hexahedron's centre
                    add({0, 1, 2, 3, 8});
                    add({4, 7, 6, 5, 8});
                    add({0, 4, 5, 1, 8});
                    add({1, 5, 6, 2, 8});
                    add({2, 6, 7, 3, 8});
                    add({3, 7, 4, 0, 8});
                    break;
                case ElementType::Tetra4: // around the diagonal from 0 to 6 (Kuhn's subdivision)
                    add({0, 1, 2, 6});
                    add({0, 2, 3, 6});
                    add({0, 3, 7, 6});
                    add({0, 7, 4, 6});
                    add({0, 4, 5, 6});
                    add({0, 5, 1, 6});
                    break;
                default:
                    ADD_FAILURE() << "a box is not cut into " << elementInfo(type).name;
                }
            }
    return cells;
}

/// The reference, which knows nothing of faces: in a conforming mesh two cells share a face exactly when they have as
/// many nodes in common as the space has dimensions, or more.
std::vector<std::vector<index>> neighboursByCommonNodes(const Cells &cells) {
    std::map<index, std::vector<index>> cellsOfNode;
    for (std::size_t i = 0; i < cells.nodes.size(); i++)
        cellsOfNode[cells.nodes[i]].push_back(static_cast<index>(i) / cells.width());
    std::vector<std::vector<index>> result(static_cast<std::size_t>(cells.size()));
    for (index cell = 0; cell < cells.size(); cell++) {
        std::map<index, int> common;
        for (const index node : cells.range(cell, cell + 1))
            for (const index other : cellsOfNode[node])
                common[other]++;
        for (const auto &[other, count] : common)
            if (other != cell && count >= elementInfo(cells.type).dimension)
                result[static_cast<std::size_t>(cell)].push_back(other);
    }
    return result;
}

/// Gives this rank a range of cells; with `uneven` some ranks get none and others many.
std::pair<index, index> ownRange(CommunicatorView comm, index cells, bool uneven) {
    if (!uneven)
        return {cells * comm.rank() / comm.size(), cells * (comm.rank() + 1) / comm.size()};
    const auto cut = [&](int rank) -> index {
        if (rank == 0)
            return 0;
        return rank >= comm.size() - 1 ? cells
               : rank % 2 == 1         ? cells * rank / comm.size()
                                       : cells * (rank - 1) / comm.size();
    };
    return {cut(comm.rank()), comm.rank() == comm.size() - 1 ? cells : cut(comm.rank() + 1)};
}

void compareWithReference(const Cells &cells) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto reference = neighboursByCommonNodes(cells);
    for (const bool uneven : {false, true}) {
        const auto [begin, end] = ownRange(comm, cells.size(), uneven);
        const DistributedGraph graph = dualGraph(comm, cells.range(begin, end), cells.type);
        ASSERT_EQ(graph.size(), end - begin);
        EXPECT_TRUE(graph.weights.empty());
        for (index cell = begin; cell < end; cell++) {
            const auto row = graph.neighboursOf(cell - begin);
            EXPECT_EQ(std::vector<index>(row.begin(), row.end()), reference[static_cast<std::size_t>(cell)])
                << "cell " << cell << " of " << cells.size();
        }
    }
}

TEST(DualGraph, OfTrianglesEqualsTheSerialReference) {
    for (const index wanted : {1, 18, 2000}) {
        TriangleMeshOptions options;
        options.cells = wanted;
        compareWithReference({ElementType::Tri3, makeTriangleMesh(options, 0, 1).cellNodes});
    }
}

TEST(DualGraph, OfEveryOtherShapeEqualsTheSerialReference) {
    for (const ElementType type :
         {ElementType::Quad4, ElementType::Tetra4, ElementType::Pyra5, ElementType::Penta6, ElementType::Hexa8}) {
        SCOPED_TRACE(std::string(elementInfo(type).name));
        compareWithReference(boxOf(type, 4, 3, 5));
    }
}

TEST(DualGraph, DoesNotDependOnTheOrderOfNodesWithinFaces) {
    Cells cells = boxOf(ElementType::Tetra4, 3, 3, 3);
    std::mt19937_64 random(test::seed()); // the same on all ranks
    for (index cell = 0; cell < cells.size(); cell++)
        std::shuffle(cells.nodes.begin() + 4 * cell, cells.nodes.begin() + 4 * (cell + 1), random);
    compareWithReference(cells);
}

TEST(DualGraph, FaceNeighboursStandAtTheirFaces) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const index n = 5;
    const Cells cells = boxOf(ElementType::Hexa8, n, n, n);
    const auto [begin, end] = ownRange(comm, cells.size(), true);
    const std::vector<index> neighbours = faceNeighbours(comm, cells.range(begin, end), ElementType::Hexa8);
    ASSERT_EQ(static_cast<index>(neighbours.size()), 6 * (end - begin));
    // The standard's order: bottom, front, right, back, left, top.
    const index step[6][3] = {{0, 0, -1}, {0, -1, 0}, {1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, 0, 1}};
    for (index cell = begin; cell < end; cell++)
        for (std::size_t face = 0; face < 6; face++) {
            const index i = cell % n + step[face][0];
            const index j = cell / n % n + step[face][1];
            const index k = cell / n / n + step[face][2];
            const bool inside = std::min({i, j, k}) >= 0 && std::max({i, j, k}) < n;
            EXPECT_EQ(neighbours[static_cast<std::size_t>(6 * (cell - begin)) + face],
                      inside ? (k * n + j) * n + i : InvalidIndex);
        }
}

TEST(DualGraph, OfNoCellsIsEmpty) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    EXPECT_EQ(dualGraph(comm, {}, ElementType::Hexa8).size(), 0);
}

TEST(DualGraph, TakesNodeNumbersBeyond32Bits) {
    Cells cells = boxOf(ElementType::Penta6, 2, 2, 3);
    for (index &node : cells.nodes)
        node = node * ((index{1} << 40) + 1) + 5;
    compareWithReference(cells);
}

TEST(DualGraph, MatchesFacesOfCollapsedCells) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    // A hexahedron whose right side is collapsed to an edge, and one with a whole triangle below it.
    const std::vector<index> wedge{0, 1, 1, 2, 3, 4, 4, 5};
    const std::vector<index> below{6, 7, 7, 8, 0, 1, 1, 2};
    std::vector<index> mine;
    if (comm.rank() == 0)
        mine = wedge;
    if (comm.rank() == comm.size() - 1)
        mine.insert(mine.end(), below.begin(), below.end());
    const std::vector<index> neighbours = faceNeighbours(comm, mine, ElementType::Hexa8);
    for (std::size_t slot = 0; slot < neighbours.size(); slot++) {
        const bool first = comm.rank() == 0 && slot < 6;
        EXPECT_EQ(neighbours[slot], first && slot == 0 ? 1 : !first && slot % 6 == 5 ? 0 : InvalidIndex);
    }
}

TEST(DualGraph, ThrowsOnAllRanksWhenOneRankIsWrong) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const bool wrong = comm.rank() == comm.size() - 1;
    const std::vector<index> good{0, 1, 2};
    const std::vector<index> torn{0, 1, 2, 3};
    const std::vector<index> negative{0, -1, 2};
    EXPECT_THROW(dualGraph(comm, wrong ? torn : good, ElementType::Tri3), ArgumentError);
    EXPECT_THROW(dualGraph(comm, {}, ElementType::Polyhedron), ArgumentError);
    EXPECT_THROW(dualGraph(comm, {}, ElementType::Mixed), ArgumentError);
    EXPECT_THROW(dualGraph(comm, wrong ? negative : std::vector<index>{}, ElementType::Tri3), IndexError);
    const std::vector<index> threeOnOneEdge{0, 1, 2, 1, 0, 3, 0, 1, 4};
    EXPECT_THROW(dualGraph(comm, wrong ? threeOnOneEdge : std::vector<index>{}, ElementType::Tri3), DataError);
}

TEST(DualGraph, GraphOfNeighboursDropsRepeatsAndTheCellItself) {
    const std::vector<index> neighbours{7, InvalidIndex, 7, 10, 11, 9};
    const DistributedGraph graph = graphOfNeighbours(neighbours, 3, 10);
    EXPECT_EQ(graph.starts, (std::vector<index>{0, 1, 3}));
    EXPECT_EQ(graph.neighbours, (std::vector<index>{7, 9, 10}));
}

} // namespace
} // namespace DNDS::Geom
