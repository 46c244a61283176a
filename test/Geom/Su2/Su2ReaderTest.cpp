#include "DNDS/Geom/Su2/Su2Reader.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <string>

namespace DNDS::Geom {
namespace {

using test::failureOf;
using test::TemporaryFile;

SourceMesh readSu2File(CommunicatorView comm, const std::string &path) { return readSu2(comm, path); }

/// A whole mesh as SU2 writes it, with positions at the ends of lines, or without them and markers first.
std::string su2File(const SourceMesh &mesh, bool plain) {
    static const std::map<ElementType, int> numbers{
        {ElementType::Bar2, 3},   {ElementType::Tri3, 5},    {ElementType::Quad4, 9}, {ElementType::Tetra4, 10},
        {ElementType::Hexa8, 12}, {ElementType::Penta6, 13}, {ElementType::Pyra5, 14}};
    const auto element = [&](const ElementBlock &block, index e) {
        const ElementType type = block.types[static_cast<std::size_t>(e)];
        std::string line = std::to_string(numbers.at(type));
        const auto nodes = block.nodesOf(e);
        static constexpr std::array<std::size_t, 6> prism{0, 2, 1, 3, 5, 4}; // VTK's manual: triangles the other way
        for (std::size_t k = 0; k < nodes.size(); k++)
            line += fmt::format("\t{}", nodes[type == ElementType::Penta6 ? prism[k] : k]);
        return line + (plain ? "\n" : fmt::format("\t{}\n", e));
    };
    std::string cells = fmt::format("NELEM= {}\n", mesh.cells.size());
    for (index c = 0; c < mesh.cells.size(); c++)
        cells += element(mesh.cells, c);
    std::string points = fmt::format("NPOIN= {}{}\n", mesh.nodes(), plain ? "" : fmt::format(" {}", mesh.nodes()));
    for (index i = 0; i < mesh.nodes(); i++) {
        for (std::size_t d = 0; d < static_cast<std::size_t>(mesh.cellDimension); d++)
            points += fmt::format("{:.17g} ", mesh.coordinates[static_cast<std::size_t>(i)][d]);
        points += plain ? "\n" : fmt::format("{}\n", i);
    }
    std::string markers = fmt::format("NMARK={}\n", mesh.patches.size());
    for (std::size_t p = 0; p < mesh.patches.size(); p++) {
        std::string faces;
        int count = 0;
        for (index f = 0; f < mesh.faces.size(); f++)
            if (mesh.faceMarks[static_cast<std::size_t>(f)] == static_cast<int>(p)) {
                faces += element(mesh.faces, f);
                count++;
            }
        markers += fmt::format("% a marker\nMARKER_TAG= {}\nMARKER_ELEMS= {}\n{}", mesh.patches[p].name, count, faces);
    }
    const std::string dimension = fmt::format("NDIME= {}\n", mesh.cellDimension);
    if (plain)
        return "% markers first\n\n" + dimension + markers + points + "FFD_NBOX= 1\nanything 1 2\n" + cells;
    return "NZONE= 1\n" + dimension + cells + points + markers;
}

SourceMesh box(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {4, 3, 2};
    options.jitter = 0.1;
    options.seed = DNDS::test::seed();
    return makeBoxMesh(options, 0, 1);
}

TEST(Su2Reader, ReadsAllTypesAndMarkers) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : {BoxCells::MixedSurface, BoxCells::MixedVolume, BoxCells::Hexahedra})
        for (const bool plain : {false, true}) {
            const SourceMesh expected = box(fill); // its faces are in the order of sides, and so are markers
            const TemporaryFile file(".su2", su2File(expected, plain));
            const SourceMesh mesh = test::gatherMesh(comm, readMesh(comm, file.path()));
            EXPECT_EQ(mesh.origin, file.path());
            EXPECT_EQ(mesh.cellDimension, expected.cellDimension);
            EXPECT_EQ(mesh.physicalDimension, expected.cellDimension);
            EXPECT_EQ(mesh.coordinates, expected.coordinates);
            test::expectSame(mesh.cells, expected.cells);
            test::expectSame(mesh.faces, expected.faces);
            EXPECT_EQ(mesh.faceMarks, expected.faceMarks);
            ASSERT_EQ(mesh.patches.size(), expected.patches.size());
            for (std::size_t p = 0; p < mesh.patches.size(); p++)
                EXPECT_EQ(mesh.patches[p].name, expected.patches[p].name);
        }
}

/// One element of each type as SU2's manual numbers it, each with volume 1, one beside the other. SU2 asks for: the
/// base of pyramids and hexahedra looks at the top; the first triangle of a prism looks away from the second.
TEST(Su2Reader, ElementsOfEveryTypeHavePositiveVolume) {
    struct Case {
        int vtk;
        std::vector<std::array<double, 3>> points;
        ElementType type;
    };
    const Case solids[] = {
        {10, {{0, 0, 0}, {6, 0, 0}, {0, 1, 0}, {0, 0, 1}}, ElementType::Tetra4},
        {12,
         {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}},
         ElementType::Hexa8},
        {13, {{0, 0, 0}, {0, 1, 0}, {2, 0, 0}, {0, 0, 1}, {0, 1, 1}, {2, 0, 1}}, ElementType::Penta6},
        {14, {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 3}}, ElementType::Pyra5}};
    const Case surfaces[] = {{5, {{0, 0, 0}, {2, 0, 0}, {0, 1, 0}}, ElementType::Tri3},
                             {9, {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}}, ElementType::Quad4}};
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto read = [&](const auto &cases, int dimension) {
        std::string cells;
        std::string points;
        int count = 0;
        for (const Case &c : cases) {
            cells += std::to_string(c.vtk);
            for (const auto &[x, y, z] : c.points) {
                cells += fmt::format(" {}", count++);
                points += dimension == 3 ? fmt::format("{} {} {}\n", x + 10 * c.vtk, y, z)
                                         : fmt::format("{} {}\n", x + 10 * c.vtk, y);
            }
            cells += "\n";
        }
        const TemporaryFile file(".su2", fmt::format("NDIME= {}\nNELEM= {}\n{}NPOIN= {}\n{}NMARK= 0\n", dimension,
                                                     std::size(cases), cells, count, points));
        return test::gatherMesh(comm, readMesh(comm, file.path()));
    };
    const auto check = [&](const auto &cases, int dimension) {
        const SourceMesh mesh = read(cases, dimension);
        EXPECT_EQ(mesh.warnings, std::vector<std::string>{});
        ASSERT_EQ(mesh.cells.size(), static_cast<index>(std::size(cases)));
        for (std::size_t k = 0; k < std::size(cases); k++) {
            EXPECT_EQ(mesh.cells.types[k], cases[k].type);
            EXPECT_NEAR(test::measure(mesh, static_cast<index>(k)), 1.0, 1e-12) << cases[k].vtk;
        }
    };
    check(solids, 3);
    check(surfaces, 2);
    // A prism in the order of CGNS, as Gmsh writes it.
    Case other = solids[2];
    std::swap(other.points[1], other.points[2]);
    std::swap(other.points[4], other.points[5]);
    const SourceMesh mesh = read(std::array<Case, 3>{solids[0], other, solids[2]}, 3);
    EXPECT_NEAR(test::measure(mesh, 1), 1.0, 1e-12);
    EXPECT_NEAR(test::measure(mesh, 2), 1.0, 1e-12);
    ASSERT_EQ(mesh.warnings.size(), 1u);
    EXPECT_NE(mesh.warnings[0].find("1 of 2 prisms list their nodes in an order other"), std::string::npos);
}

TEST(Su2Reader, ReadsTheAirfoil) {
    const std::string path = std::string(DNDS_TEST_MESHES) + "/naca0012_inv.su2";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << path << " is not there";
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh mesh = test::gatherMesh(comm, readMesh(comm, path));
    EXPECT_EQ(test::countTypes(mesh.cells), (std::map<ElementType, index>{{ElementType::Tri3, 10216}}));
    EXPECT_EQ(mesh.nodes(), 5233);
    ASSERT_EQ(mesh.patches.size(), 2u);
    EXPECT_EQ(mesh.patches[0].name, "airfoil");
    EXPECT_EQ(mesh.patches[1].name, "farfield");
    EXPECT_EQ(test::facesOfMarks(mesh), (std::map<int, index>{{0, 200}, {1, 50}}));
    real area = 0;
    for (index cell = 0; cell < mesh.cells.size(); cell++)
        area += test::measure(mesh, cell);
    EXPECT_NEAR(area, 1253.25049999, 1e-8);
    real lowest = 0;
    real highest = 0;
    for (const auto &p : mesh.coordinates) {
        EXPECT_LE(std::abs(p[0]), 20);
        lowest = std::min(lowest, p[1]);
        highest = std::max(highest, p[1]);
    }
    EXPECT_NEAR(lowest, -19.9605293, 1e-7);
    EXPECT_NEAR(highest, 19.9605293, 1e-7);
    std::map<int, real> lengths;
    for (index f = 0; f < mesh.faces.size(); f++) {
        const auto ends = mesh.faces.nodesOf(f);
        const auto &a = mesh.coordinates[static_cast<std::size_t>(ends[0])];
        const auto &b = mesh.coordinates[static_cast<std::size_t>(ends[1])];
        lengths[mesh.faceMarks[static_cast<std::size_t>(f)]] += std::hypot(a[0] - b[0], a[1] - b[1]);
    }
    EXPECT_NEAR(lengths[0], 2.03950515, 1e-8);
    EXPECT_NEAR(lengths[1], 125.581032, 1e-6);
}

TEST(Su2Reader, SaysWhatIsWrongAndWhere) {
    const std::string points = "NPOIN= 3\n0 0 0\n1 0 1\n0 1 2\n";
    const std::string good =
        "NDIME= 2\nNELEM= 1\n5 0 1 2 0\n" + points + "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 1\n3 0 1\n";
    EXPECT_EQ(failureOf(good, readSu2File), "");
    const auto with = [&](const std::string &from, const std::string &to) {
        std::string text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    const std::pair<std::string, std::string> cases[] = {
        {"", "the file has no NDIME="},
        {with("NDIME= 2\n", ""), "the file has no NDIME="},
        {with("NDIME= 2", "NDIME= 4"), "line 1: NDIME is 4"},
        {with("NDIME= 2", "NZONE= 2\nNDIME= 2"), "line 1: files of several zones"},
        {with("NELEM= 1", "NELEM= 1000000000000000"), "line 2: NELEM= 1000000000000000, but"},
        {with("NELEM= 1", "NELEM= -1"), "line 2: NELEM= -1"},
        {with("NELEM= 1", "NELEM= many"), "'many', which is not an integer"},
        {with("NELEM= 1", "NELEM= 2"), "line 5: expected a keyword and '='"},
        {with("5 0 1 2 0", "6 0 1 2 0"), "line 3: type 6 is not an SU2 element of 2 dimensions"},
        {with("5 0 1 2 0", "5 0 1 3 0"), "line 3: a node is 3: it must lie in [0, 2]"},
        {with("5 0 1 2 0", "5 0 1"), "line 3: the line ends where a node should be"},
        {with("1 0 1\n", "1 0x 1\n"), "line 6: a coordinate is '0x', which is not a finite number"},
        {with("MARKER_ELEMS= 1\n3 0 1\n", "MARKER_ELEMS= 2\n3 0 1\n"), "the file ends where"},
        {with("MARKER_ELEMS= 1\n3 0 1\n", "3 0 1\n"), "expected MARKER_ELEMS="},
        {with("3 0 1\n", "5 0 1 2\n"), "type 5 is not an SU2 element of 1 dimensions"},
        {with("NMARK= 1", "NMARK= 2"), "1 more markers should be"},
        {with("NMARK= 1", "NMARK= 0"), "marker wall exceeds the number in NMARK="},
        {with("NPOIN= 3", "NPOIN= 2"), "line 7: expected a keyword and '='"},
        {good + "NELEM= 1\n", "NELEM= is repeated"}};
    for (const auto &[text, expected] : cases) {
        const std::string message = failureOf(text, readSu2File);
        EXPECT_NE(message.find(expected), std::string::npos)
            << "'" << message << "' should contain '" << expected << "'";
    }
}

TEST(Su2Reader, DamagedFilesFailOrAreRead) {
    std::mt19937_64 random(DNDS::test::seed()); // the same on all ranks
    const std::string good = su2File(box(BoxCells::MixedSurface), false);
    for (int k = 0; k < 40; k++) {
        std::string bad = good;
        bad[random() % bad.size()] = static_cast<char>(random() % 256);
        failureOf(bad, readSu2File);
    }
    const std::size_t cells = good.find("NPOIN");
    for (std::size_t k = 0; k < 12; k++)
        EXPECT_NE(failureOf(std::string_view(good).substr(0, cells * k / 12), readSu2File), "");
}

TEST(ReadMesh, RecognizesFilesOfTheManifest) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::string folder(DNDS_TEST_MESHES);
    if (!std::filesystem::exists(folder))
        GTEST_SKIP() << folder << " is not there";
    EXPECT_EQ(meshFormat(comm, folder + "/wedge_adf.cgns"), MeshFormat::CgnsAdf);
    EXPECT_EQ(meshFormat(comm, folder + "/wedge_hdf5.cgns"), MeshFormat::CgnsHdf5);
    EXPECT_EQ(meshFormat(comm, folder + "/naca0012_inv.su2"), MeshFormat::Su2);
    EXPECT_EQ(meshFormat(comm, folder + "/MANIFEST.md"), MeshFormat::Unknown);
}

TEST(ReadMesh, RecognizesFormatsByTheirContent) {
    using namespace std::string_view_literals;
    EXPECT_EQ(meshFormatOf("\x89HDF\r\n\x1a\n\0\0"sv), MeshFormat::CgnsHdf5);
    EXPECT_EQ(meshFormatOf("@(#)ADF Database Version B02012>"), MeshFormat::CgnsAdf);
    EXPECT_EQ(meshFormatOf("\n$MeshFormat\n2.2 0 8"), MeshFormat::Gmsh);
    EXPECT_EQ(meshFormatOf("% comment\n\n  NDIME= 3\n"), MeshFormat::Su2);
    EXPECT_EQ(meshFormatOf("NDIME 3\n"), MeshFormat::Unknown);
    EXPECT_EQ(meshFormatOf("% only a comment"), MeshFormat::Unknown);
    EXPECT_EQ(meshFormatOf(""), MeshFormat::Unknown);
    const auto read = [](CommunicatorView comm, const std::string &path) { return readMesh(comm, path); };
    EXPECT_NE(failureOf("solid cube\n", read).find("not a mesh file of a known format"), std::string::npos);
    EXPECT_NE(failureOf("\xef\xbb\xbfNDIME= 3\n", read).find("byte order mark"), std::string::npos);
    EXPECT_NE(failureOf("\x1f\x8b\x08", read).find("unpack it"), std::string::npos);
    EXPECT_NE(failureOf("<VTKFile type=", read).find("meshio"), std::string::npos);
    EXPECT_NE(failureOf("", read).find("it is empty"), std::string::npos);
    EXPECT_THROW(readMesh(CommunicatorView(MPI_COMM_WORLD), "/no/such/file"), DataError);
}

} // namespace
} // namespace DNDS::Geom
