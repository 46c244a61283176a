#include "DNDS/Geom/Write/WriteMesh.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace DNDS::Geom {
namespace {

BoxMeshOptions boxOf(BoxCells fill, bool periodic) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {5, 3, 2};
    options.jitter = 0.1;
    options.shuffled = true;
    options.periodic = {false, periodic, periodic && fill != BoxCells::Quadrilaterals};
    options.seed = DNDS::test::seed();
    return options;
}

/// A face's nodes, beginning with the smallest.
std::vector<index> rotated(std::span<const index> nodes) {
    std::vector<index> result(nodes.begin(), nodes.end());
    std::rotate(result.begin(), std::min_element(result.begin(), result.end()), result.end());
    return result;
}

/// The faces of a polyhedron as a set, so that it does not matter where their lists begin.
std::set<std::vector<index>> facesOf(std::span<const index> list) {
    std::set<std::vector<index>> faces;
    for (std::size_t at = 0; at < list.size(); at += static_cast<std::size_t>(list[at]) + 1)
        faces.insert(rotated(list.subspan(at + 1, static_cast<std::size_t>(list[at]))));
    return faces;
}

void expectSameCells(const ElementBlock &found, const ElementBlock &expected) {
    ASSERT_EQ(found.types, expected.types);
    EXPECT_EQ(found.fileIds, expected.fileIds);
    EXPECT_EQ(found.starts, expected.starts);
    for (index c = 0; c < expected.size(); c++) {
        const auto a = found.nodesOf(c);
        const auto b = expected.nodesOf(c);
        if (expected.types[static_cast<std::size_t>(c)] == ElementType::Polyhedron)
            EXPECT_EQ(facesOf(a), facesOf(b)) << "cell " << c;
        else
            EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << "cell " << c;
    }
}

/// Marks and nodes of faces, in any order.
std::multiset<std::pair<int, std::set<index>>> markedFaces(const SourceMesh &mesh) {
    std::multiset<std::pair<int, std::set<index>>> faces;
    for (index f = 0; f < mesh.faces.size(); f++) {
        const auto nodes = mesh.faces.nodesOf(f);
        faces.insert({mesh.faceMarks[static_cast<std::size_t>(f)], {nodes.begin(), nodes.end()}});
    }
    return faces;
}

class FileOrders : public ::testing::TestWithParam<std::tuple<BoxCells, bool, Partitioner>> {};

TEST_P(FileOrders, GiveBackTheMeshThatWasReadAndFieldsWithIt) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto [fill, periodic, partitioner] = GetParam();
    const SourceMesh source = makeBoxMesh(boxOf(fill, periodic), comm);
    const SourceMesh expected = test::gatherMesh(comm, source);
    MeshOptions options;
    options.partitioner = partitioner;
    const UnstructuredMesh mesh = buildMesh(comm, SourceMesh(source), options);
    const FileOrder order(mesh);
    const SourceMesh found = test::gatherMesh(comm, order.mesh());

    EXPECT_EQ(found.cellDimension, expected.cellDimension);
    EXPECT_EQ(found.physicalDimension, expected.physicalDimension);
    EXPECT_EQ(found.coordinates, expected.coordinates);
    expectSameCells(found.cells, expected.cells);
    EXPECT_EQ(markedFaces(found), markedFaces(expected));
    ASSERT_EQ(found.patches.size(), expected.patches.size());
    for (std::size_t p = 0; p < found.patches.size(); p++)
        EXPECT_EQ(found.patches[p].name, expected.patches[p].name);
    EXPECT_LE(comm.allReduce(order.mesh().cells.size(), MPI_MAX) - comm.allReduce(order.mesh().cells.size(), MPI_MIN),
              1);

    std::vector<real> cellField;
    for (index c = 0; c < mesh.cells.owned; c++)
        for (int k = 0; k < 3; k++)
            cellField.push_back(static_cast<real>(10 * mesh.cells.fileNumbers[static_cast<std::size_t>(c)] + k));
    const std::vector<real> cells = order.cellValues(cellField, 3);
    ASSERT_EQ(static_cast<index>(cells.size()), 3 * order.mesh().cells.size());
    for (std::size_t i = 0; i < cells.size(); i++)
        EXPECT_EQ(cells[i], 10 * (order.mesh().cells.first + static_cast<index>(i) / 3) + static_cast<index>(i) % 3);
    std::vector<real> nodeField(mesh.nodes.fileNumbers.begin(), mesh.nodes.fileNumbers.begin() + mesh.nodes.owned);
    const std::vector<real> nodes = order.nodeValues(nodeField, 1);
    ASSERT_EQ(static_cast<index>(nodes.size()), order.mesh().nodes());
    for (std::size_t i = 0; i < nodes.size(); i++)
        EXPECT_EQ(nodes[i], order.mesh().firstNode + static_cast<index>(i));
}

INSTANTIATE_TEST_SUITE_P(Boxes, FileOrders,
                         ::testing::Values(std::tuple{BoxCells::Triangles, false, Partitioner::Graph},
                                           std::tuple{BoxCells::MixedSurface, false, Partitioner::Curve},
                                           std::tuple{BoxCells::Quadrilaterals, true, Partitioner::Graph},
                                           std::tuple{BoxCells::MixedVolume, false, Partitioner::Graph},
                                           std::tuple{BoxCells::Hexahedra, true, Partitioner::Graph},
                                           std::tuple{BoxCells::Tetrahedra, true, Partitioner::Curve},
                                           std::tuple{BoxCells::Polyhedra, false, Partitioner::Graph},
                                           std::tuple{BoxCells::Polyhedra, true, Partitioner::Curve}));

/// Two triangles with corners at nodes 1, 2, 4 and 6; the other nodes belong to no cell.
SourceMesh withUnusedNodes(CommunicatorView comm) {
    SourceMesh mesh;
    mesh.origin = "two triangles";
    mesh.cellDimension = mesh.physicalDimension = 2;
    mesh.globalNodes = 7;
    mesh.cells.globalSize = 2;
    if (comm.rank() == comm.size() - 1) {
        mesh.coordinates = {{9, 9, 0}, {0, 0, 0}, {1, 0, 0}, {9, 9, 0}, {1, 1, 0}, {9, 9, 0}, {0, 1, 0}};
        mesh.cells.types = {ElementType::Tri3, ElementType::Tri3};
        mesh.cells.starts = {0, 3, 6};
        mesh.cells.nodes = {1, 2, 4, 1, 4, 6};
        mesh.cells.fileIds = {1, 2};
    } else {
        mesh.firstNode = mesh.cells.first = 0;
    }
    return mesh;
}

TEST(FileOrder, LeavesOutNodesOfNoCell) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const FileOrder order(buildMesh(comm, withUnusedNodes(comm)));
    const SourceMesh found = test::gatherMesh(comm, order.mesh());
    EXPECT_EQ(found.globalNodes, 4);
    EXPECT_EQ(found.coordinates, (std::vector<std::array<real, 3>>{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}}));
    EXPECT_EQ(found.cells.nodes, (std::vector<index>{0, 1, 2, 0, 2, 3}));
}

TEST(FileOrder, RefusesFieldsOfAnotherLengthOnAllRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(boxOf(BoxCells::Triangles, false), comm));
    const FileOrder order(mesh);
    std::vector<real> values(static_cast<std::size_t>(mesh.cells.owned));
    if (comm.rank() == comm.size() - 1)
        values.push_back(0);
    EXPECT_THROW(order.cellValues(values, 1), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
