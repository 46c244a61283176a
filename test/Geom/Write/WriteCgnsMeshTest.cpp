#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "Geom/Build/WholeMesh.hpp"
#include "support/GatheredMesh.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <set>

namespace DNDS::Geom {
namespace {

using test::TemporaryFile;

UnstructuredMesh meshOf(CommunicatorView comm, BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {5, 4, 3};
    options.jitter = 0.1;
    options.shuffled = true;
    return buildMesh(comm, makeBoxMesh(options, comm));
}

class MeshesAsCgns : public ::testing::TestWithParam<BoxCells> {};

TEST_P(MeshesAsCgns, AreReadBackAsTheyWereOnAnyNumberOfRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".cgns");
    const UnstructuredMesh mesh = meshOf(comm, GetParam());
    std::vector<real> numbers(mesh.cells.fileNumbers.begin(), mesh.cells.fileNumbers.begin() + mesh.cells.owned);
    writeCgnsMesh(mesh, file.path(), {.cells = {{"number", 1, numbers}}});
    const SourceMesh expected = test::gatherMesh(comm, FileOrder(mesh).mesh());
    const SourceMesh found = test::gatherMesh(comm, readCgns(comm, file.path()));
    EXPECT_EQ(found.coordinates, expected.coordinates);
    EXPECT_EQ(found.cells.types, expected.cells.types);
    EXPECT_EQ(found.faces.size(), expected.faces.size());
    EXPECT_EQ(test::facesOfMarks(found), test::facesOfMarks(expected));
    EXPECT_NEAR(test::measure(found), 1, 1e-12);
    if (GetParam() != BoxCells::Polyhedra) {
        EXPECT_EQ(found.cells.nodes, expected.cells.nodes);
        EXPECT_EQ(found.faces.nodes, expected.faces.nodes);
        EXPECT_EQ(found.faceMarks, expected.faceMarks);
    }
}

INSTANTIATE_TEST_SUITE_P(Boxes, MeshesAsCgns,
                         ::testing::Values(BoxCells::Triangles, BoxCells::MixedVolume, BoxCells::Polyhedra));

/// A hexahedron collapsed to a wedge beside one listed by its faces: all cells are written by their faces.
TEST(MeshAsCgns, CollapsedCellsBesidePolyhedraHaveNoCollapsedFaces) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    DNDS::test::WholeMesh whole = DNDS::test::makeBox(
        {.counts = {2, 1, 1}, .jitter = false, .shuffle = false, .turnSome = false, .marks = false});
    whole.cells[1].nodes[2] = whole.cells[1].nodes[1];
    whole.cells[1].nodes[6] = whole.cells[1].nodes[5];
    std::vector<index> byFaces;
    for (const auto &face : whole.facesOf(0)) {
        byFaces.push_back(static_cast<index>(face.size()));
        byFaces.insert(byFaces.end(), face.begin(), face.end());
    }
    whole.cells[0] = {ElementType::Polyhedron, byFaces, whole.cells[0].fileId};
    const TemporaryFile file(".cgns");
    writeCgnsMesh(buildMesh(comm, whole.slice(comm)), file.path());
    const SourceMesh found = test::gatherMesh(comm, readCgns(comm, file.path()));
    ASSERT_EQ(found.cells.size(), 2);
    index faces = 0;
    for (index c = 0; c < 2; c++)
        for (std::span<const index> list = found.cells.nodesOf(c); !list.empty();
             list = list.subspan(toSize(list[0]) + 1), faces++) {
            const auto corners = list.subspan(1, toSize(list[0]));
            EXPECT_EQ(std::set<index>(corners.begin(), corners.end()).size(), corners.size()) << "cell " << c;
            EXPECT_GE(corners.size(), 3U);
        }
    EXPECT_EQ(faces, 6 + 5);
    EXPECT_EQ(test::measure(found), 1.5);
}

} // namespace
} // namespace DNDS::Geom
