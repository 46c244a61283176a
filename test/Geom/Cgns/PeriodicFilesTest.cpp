#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <tuple>

namespace DNDS::Geom {
namespace {

using test::TemporaryFile;

/// Two cells, by their numbers in the file, that meet across a periodic boundary, and the step from one to the other.
using Pair = std::tuple<index, index, int, int>;

/// The periodic pairs of a mesh that this rank alone holds, from the pipeline. Local.
std::multiset<Pair> pairsOf(const SourceMesh &whole) {
    const UnstructuredMesh mesh = buildMesh(CommunicatorView(MPI_COMM_SELF), SourceMesh(whole));
    std::multiset<Pair> pairs;
    for (const auto &[face, image] : mesh.periodicFaces) {
        const MeshImage::Steps step = mesh.images[static_cast<std::size_t>(image)].steps.at(0);
        const auto number = [&, face = face](int side) {
            return mesh.cells.fileNumbers[static_cast<std::size_t>(mesh.faceCells[face][side])];
        };
        pairs.insert({number(0), number(1), step.connection, step.times});
    }
    return pairs;
}

void expectSamePeriodic(const SourceMesh &found, const SourceMesh &expected) {
    ASSERT_EQ(found.periodic.size(), expected.periodic.size());
    for (std::size_t c = 0; c < found.periodic.size(); c++) {
        EXPECT_EQ(found.periodic[c].name, expected.periodic[c].name);
        EXPECT_EQ(found.periodic[c].transform.centre, expected.periodic[c].transform.centre);
        EXPECT_EQ(found.periodic[c].transform.angles, expected.periodic[c].transform.angles);
        EXPECT_EQ(found.periodic[c].transform.translation, expected.periodic[c].transform.translation);
    }
    EXPECT_EQ(test::facesOfMarks(found), test::facesOfMarks(expected));
    EXPECT_EQ(test::nodesOfMarks(found), test::nodesOfMarks(expected));
    EXPECT_EQ(pairsOf(found), pairsOf(expected));
}

BoxMeshOptions boxOf(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {4, 3, 2};
    options.lengths = {1.0, 0.7, 0.3}; // of which single precision holds one
    options.jitter = 0.1;
    options.shuffled = true;
    options.seed = DNDS::test::seed();
    options.periodic = {fill != BoxCells::MixedVolume, true, false};
    return options;
}

/// A box whose second axis becomes an angle, so that its sides turn into each other; they move apart, too.
SourceMesh sectorOf(BoxCells fill, CommunicatorView comm) {
    BoxMeshOptions options = boxOf(fill);
    options.periodic = {false, true, false};
    SourceMesh mesh = makeBoxMesh(options, comm);
    const bool volume = mesh.cellDimension == 3;
    for (auto &x : mesh.coordinates) {
        const real radius = 1.0 + x[0];
        x = {3.0 + radius * std::cos(x[1]), 0.2 + radius * std::sin(x[1]), volume ? x[2] + 0.1 * x[1] : 0.0};
    }
    mesh.periodic[0].transform = {{3.0, 0.2, 0.0}, {0.0, 0.0, 0.7}, {0.0, 0.0, volume ? 0.1 * 0.7 : 0.0}};
    return mesh;
}

class PeriodicFiles : public ::testing::TestWithParam<std::tuple<BoxCells, bool, CgnsFileType>> {
  protected:
    static SourceMesh make(CommunicatorView comm) {
        const auto [fill, sector, type] = GetParam();
        return sector ? sectorOf(fill, comm) : makeBoxMesh(boxOf(fill), comm);
    }
};

TEST_P(PeriodicFiles, HoldTheSamePairs) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".cgns");
    const SourceMesh source = make(comm);
    writeCgns(comm, file.path(), source, {}, {}, {std::get<2>(GetParam()), "Base", "Zone"});
    const SourceMesh expected = test::gatherMesh(comm, source);
    const SourceMesh found = test::gatherMesh(comm, readCgns(comm, file.path()));
    EXPECT_GT(pairsOf(expected).size(), 0U);
    expectSamePeriodic(found, expected);
    if (std::get<0>(GetParam()) != BoxCells::Polyhedra) {
        EXPECT_EQ(found.faces.nodes, expected.faces.nodes);
        EXPECT_EQ(found.faceMarks, expected.faceMarks);
    }
}

TEST_P(PeriodicFiles, HoldTheSamePairsAfterPartitioning) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".cgns");
    const SourceMesh source = make(comm);
    const SourceMesh expected = test::gatherMesh(comm, source);
    writeCgnsMesh(buildMesh(comm, SourceMesh(source)), file.path(), {}, {std::get<2>(GetParam()), "Base", "Zone"});
    expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), expected);
}

INSTANTIATE_TEST_SUITE_P(Boxes, PeriodicFiles,
                         ::testing::Values(std::tuple{BoxCells::Quadrilaterals, false, CgnsFileType::Hdf5},
                                           std::tuple{BoxCells::MixedSurface, true, CgnsFileType::Adf},
                                           std::tuple{BoxCells::Tetrahedra, false, CgnsFileType::Adf},
                                           std::tuple{BoxCells::MixedVolume, true, CgnsFileType::Hdf5},
                                           std::tuple{BoxCells::Hexahedra, true, CgnsFileType::Adf},
                                           std::tuple{BoxCells::Polyhedra, false, CgnsFileType::Hdf5},
                                           std::tuple{BoxCells::Polyhedra, true, CgnsFileType::Hdf5}));

/// Marks the corners of periodic faces instead of the faces.
void markNodes(SourceMesh &mesh) {
    std::set<std::pair<int, index>> marks;
    for (index f = 0; f < mesh.faces.size(); f++)
        for (const index node : mesh.faces.nodesOf(f))
            if (const int mark = mesh.faceMarks[static_cast<std::size_t>(f)]; mark < 0)
                marks.insert({mark, node});
    for (const auto &[mark, node] : marks)
        mesh.nodeMarks.push_back({mark, node});
    mesh.faces = {};
    mesh.faceMarks.clear();
}

TEST(PeriodicFile, HoldsPairsOfNodesWhereTheMeshHasThose) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const bool sector : {false, true}) {
        const TemporaryFile file(".cgns");
        // One rank has all marks; they may be on any.
        SourceMesh whole = sector ? sectorOf(BoxCells::Hexahedra, CommunicatorView(MPI_COMM_SELF))
                                  : makeBoxMesh(boxOf(BoxCells::Hexahedra), CommunicatorView(MPI_COMM_SELF));
        markNodes(whole);
        SourceMesh source =
            sector ? sectorOf(BoxCells::Hexahedra, comm) : makeBoxMesh(boxOf(BoxCells::Hexahedra), comm);
        source.faces = {};
        source.faceMarks.clear();
        source.patches.clear();
        whole.patches.clear();
        if (comm.rank() == comm.size() - 1)
            source.nodeMarks = whole.nodeMarks;
        writeCgns(comm, file.path(), source);
        expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), whole);
    }
}

TEST(PeriodicFile, HasNoPatchesWhereAllSidesArePeriodic) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : {BoxCells::Hexahedra, BoxCells::Polyhedra}) {
        BoxMeshOptions options = boxOf(fill);
        options.periodic = {true, true, true};
        const TemporaryFile file(".cgns");
        const SourceMesh source = makeBoxMesh(options, comm);
        writeCgns(comm, file.path(), source);
        const SourceMesh found = test::gatherMesh(comm, readCgns(comm, file.path()));
        EXPECT_TRUE(found.patches.empty());
        expectSamePeriodic(found, test::gatherMesh(comm, source));
    }
}

TEST(PeriodicFile, KeepsFacesWithoutPartnersAsBoundaryConditions) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".cgns");
    SourceMesh source = makeBoxMesh(boxOf(BoxCells::Hexahedra), comm);
    source.faces = {};
    source.faceMarks.clear();
    const SourceMesh all = makeBoxMesh(boxOf(BoxCells::Hexahedra), CommunicatorView(MPI_COMM_SELF));
    // The last rank has them all, without the first one of the second side of x.
    bool left = false;
    if (comm.rank() == comm.size() - 1)
        for (index f = 0; f < all.faces.size(); f++) {
            const int mark = all.faceMarks[static_cast<std::size_t>(f)];
            if (mark == -2 && !std::exchange(left, true))
                continue;
            const auto nodes = all.faces.nodesOf(f);
            source.faces.types.push_back(all.faces.types[static_cast<std::size_t>(f)]);
            source.faces.nodes.insert(source.faces.nodes.end(), nodes.begin(), nodes.end());
            source.faces.starts.push_back(static_cast<index>(source.faces.nodes.size()));
            source.faces.fileIds.push_back(0);
            source.faceMarks.push_back(mark);
        }
    source.faces.globalSize = all.faces.size() - 1;
    writeCgns(comm, file.path(), source);
    const SourceMesh found = test::gatherMesh(comm, readCgns(comm, file.path()));
    ASSERT_EQ(found.patches.size(), source.patches.size() + 1);
    EXPECT_EQ(found.patches.back().name, "x_first");
    auto marks = test::facesOfMarks(found);
    EXPECT_EQ(marks[static_cast<int>(source.patches.size())], 1);
    EXPECT_EQ(marks[-1], 3 * 2 - 1);
    EXPECT_EQ(marks[-2], 3 * 2 - 1);
    EXPECT_EQ(marks[-3], 4 * 2);
}

/// A box of which the sides in x are two connections of one motion: the second has the faces of larger y, and is stored
/// from x+ to x- if `back`.
SourceMesh withTwoNames(BoxCells fill, bool back, CommunicatorView comm) {
    BoxMeshOptions options = boxOf(fill);
    options.periodic = {true, false, false};
    SourceMesh mesh = makeBoxMesh(options, comm);
    const SourceMesh whole = makeBoxMesh(options, CommunicatorView(MPI_COMM_SELF));
    PeriodicTransform transform = mesh.periodic[0].transform;
    if (back)
        transform.translation[0] = -transform.translation[0];
    mesh.periodic.push_back({"second x", transform});
    for (index f = 0; f < mesh.faces.size(); f++) {
        int &mark = mesh.faceMarks[static_cast<std::size_t>(f)];
        real y = 0.0;
        const auto nodes = mesh.faces.nodesOf(f);
        for (const index node : nodes)
            y += whole.coordinates[static_cast<std::size_t>(node)][1] / static_cast<real>(nodes.size());
        if (mark < 0 && y > 0.4)
            mark = back ? -5 - mark : mark - 2; // -1 and -2 become -4 and -3, or -3 and -4
    }
    return mesh;
}

TEST(PeriodicFile, HoldsTheNamesOfConnectionsThatHaveOneMotion) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : {BoxCells::Hexahedra, BoxCells::Quadrilaterals})
        for (const bool back : {false, true}) {
            const TemporaryFile file(".cgns");
            const SourceMesh source = withTwoNames(fill, back, comm);
            const SourceMesh expected = test::gatherMesh(comm, source);
            auto marks = test::facesOfMarks(expected);
            const index layers = fill == BoxCells::Hexahedra ? 2 : 1;
            EXPECT_EQ(marks[-1], 2 * layers);
            EXPECT_EQ(marks[-3], layers);
            writeCgns(comm, file.path(), source);
            expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), expected);
            writeCgnsMesh(buildMesh(comm, SourceMesh(source)), file.path());
            expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), expected);
        }
}

/// Lists each face twice, one after the other.
void listTwice(SourceMesh &mesh) {
    const ElementBlock once = std::exchange(mesh.faces, {});
    const std::vector<int> marks = std::exchange(mesh.faceMarks, {});
    for (index f = 0; f < once.size(); f++)
        for (int time = 0; time < 2; time++) {
            const auto nodes = once.nodesOf(f);
            mesh.faces.types.push_back(once.types[static_cast<std::size_t>(f)]);
            mesh.faces.nodes.insert(mesh.faces.nodes.end(), nodes.begin(), nodes.end());
            mesh.faces.starts.push_back(static_cast<index>(mesh.faces.nodes.size()));
            mesh.faces.fileIds.push_back(once.fileIds[static_cast<std::size_t>(f)]);
            mesh.faceMarks.push_back(marks[static_cast<std::size_t>(f)]);
        }
    mesh.faces.first = 2 * once.first;
    mesh.faces.globalSize = 2 * once.globalSize;
}

TEST(PeriodicFile, HoldsPairsOnceHoweverOftenTheMeshListsThem) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    {
        const TemporaryFile file(".cgns");
        SourceMesh source = makeBoxMesh(boxOf(BoxCells::Hexahedra), comm);
        const SourceMesh expected = test::gatherMesh(comm, source);
        listTwice(source);
        writeCgns(comm, file.path(), source);
        expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), expected);
    }
    const TemporaryFile file(".cgns");
    SourceMesh expected = makeBoxMesh(boxOf(BoxCells::Hexahedra), CommunicatorView(MPI_COMM_SELF));
    markNodes(expected);
    SourceMesh source = makeBoxMesh(boxOf(BoxCells::Hexahedra), comm);
    source.faces = {};
    source.faceMarks.clear();
    source.patches.clear();
    expected.patches.clear();
    // The first and the last rank have all marks, which may be one rank.
    for (const int rank : {0, comm.size() - 1})
        if (comm.rank() == rank)
            source.nodeMarks.insert(source.nodeMarks.end(), expected.nodeMarks.begin(), expected.nodeMarks.end());
    writeCgns(comm, file.path(), source);
    expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), expected);
}

class PublicPeriodicFiles : public ::testing::TestWithParam<const char *> {};

TEST_P(PublicPeriodicFiles, AreWrittenWithTheSamePairs) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::string path = std::string(DNDS_TEST_MESHES "/") + GetParam();
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << path << " is not there";
    const SourceMesh source = readCgns(comm, path);
    const SourceMesh expected = test::gatherMesh(comm, source);
    EXPECT_GT(pairsOf(expected).size(), 0U);
    const TemporaryFile file(".cgns");
    writeCgns(comm, file.path(), source);
    expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), expected);
    writeCgnsMesh(buildMesh(comm, SourceMesh(source)), file.path());
    expectSamePeriodic(test::gatherMesh(comm, readCgns(comm, file.path())), expected);
}

INSTANTIATE_TEST_SUITE_P(Files, PublicPeriodicFiles,
                         ::testing::Values("atb45_ngon_v34.cgns", "atb45_ngon_v42.cgns", "cube_wedge_periodic_v34.cgns",
                                           "cube_wedge_periodic_v42.cgns"));

} // namespace
} // namespace DNDS::Geom
