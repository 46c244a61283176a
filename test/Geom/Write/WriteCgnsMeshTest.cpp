#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "support/GatheredMesh.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

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

} // namespace
} // namespace DNDS::Geom
