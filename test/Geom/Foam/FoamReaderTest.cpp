#include "DNDS/Geom/Foam/FoamReader.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "Geom/Foam/FoamCaseFiles.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace DNDS::Geom {
namespace {

using test::FoamCase;
using test::foamFile;
using test::FoamFileOptions;
using test::FoamLists;
using test::foamLists;

const CommunicatorView &world() { return DNDS::test::world(); }

SourceMesh box(BoxCells fill, std::array<index, 3> cells = {4, 3, 2}, std::array<bool, 3> periodic = {}) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = cells;
    options.lengths = {1, 0.75, 0.5};
    options.jitter = 0.1;
    options.periodic = periodic;
    options.seed = DNDS::test::seed();
    return makeBoxMesh(options, 0, 1);
}

SourceMesh readWhole(const std::string &path) { return test::gatherMesh(world(), readMesh(world(), path)); }

/// The faces of a cell as sets of corners.
std::set<test::Face> faceSets(const ElementBlock &cells, index cell) {
    std::set<test::Face> sets;
    for (const test::Face &face : test::facesOf(cells, cell))
        sets.insert(test::sorted(face));
    return sets;
}

/// Expects the same cells, however their nodes are listed.
void expectSameCells(const SourceMesh &mesh, const SourceMesh &expected, real tolerance) {
    ASSERT_EQ(mesh.cells.size(), expected.cells.size());
    for (index cell = 0; cell < mesh.cells.size(); cell++) {
        const ElementType type = expected.cells.types[static_cast<std::size_t>(cell)];
        if (type != ElementType::Polyhedron) {
            EXPECT_EQ(mesh.cells.types[static_cast<std::size_t>(cell)], type) << cell;
        }
        EXPECT_EQ(mesh.cells.fileIds[static_cast<std::size_t>(cell)], cell + 1);
        EXPECT_EQ(faceSets(mesh.cells, cell), faceSets(expected.cells, cell)) << cell;
        EXPECT_NEAR(test::measure(mesh, cell), test::measure(expected, cell), tolerance) << cell;
    }
}

std::map<std::string, index> sizesOf(const SourceMesh &mesh) {
    std::map<std::string, index> sizes;
    for (const auto &[mark, count] : test::facesOfMarks(mesh))
        sizes[mark >= 0 ? mesh.patches[static_cast<std::size_t>(mark)].name
                        : mesh.periodic[static_cast<std::size_t>((-1 - mark) / 2)].name] += count;
    return sizes;
}

MeshReport reportOf(const std::string &path) {
    MeshReport report;
    (void)buildMesh(world(), readMesh(world(), path), {.report = &report});
    return report;
}

constexpr std::array fills{BoxCells::Tetrahedra, BoxCells::Hexahedra, BoxCells::Prisms, BoxCells::MixedVolume,
                           BoxCells::Polyhedra};

TEST(FoamReader, ReadsCellsOfEveryType) {
    for (const BoxCells fill : fills) {
        const SourceMesh expected = box(fill);
        const FoamLists lists = foamLists(expected);
        const FoamCase foam(lists);
        const SourceMesh mesh = readWhole(foam.path());
        EXPECT_EQ(mesh.origin, foam.path());
        EXPECT_EQ(mesh.cellDimension, 3);
        EXPECT_EQ(mesh.physicalDimension, 3);
        EXPECT_EQ(mesh.coordinates, expected.coordinates);
        EXPECT_EQ(mesh.warnings, std::vector<std::string>{});
        expectSameCells(mesh, expected, 1e-14);
        EXPECT_EQ(sizesOf(mesh), sizesOf(expected));
        ASSERT_EQ(mesh.patches.size(), expected.patches.size());
        for (std::size_t p = 0; p < mesh.patches.size(); p++) {
            EXPECT_EQ(mesh.patches[p].name, expected.patches[p].name);
            EXPECT_EQ(mesh.patches[p].family, "patch");
        }
        for (index face = 0; face < mesh.faces.size(); face++)
            EXPECT_EQ(test::cornersOf(mesh.faces, face),
                      lists.faces[static_cast<std::size_t>(mesh.faces.fileIds[static_cast<std::size_t>(face)] - 1)]);
        const MeshReport report = reportOf(foam.path());
        EXPECT_NEAR(report.volume, 0.375, 1e-13);
        EXPECT_EQ(report.turnedCells, 0);
        EXPECT_EQ(report.warnings, std::vector<std::string>{});
    }
}

TEST(FoamReader, FormatsHoldTheSameMesh) {
    const SourceMesh expected = box(BoxCells::MixedVolume, {5, 2, 2});
    const FoamLists lists = foamLists(expected);
    const FoamCase text(lists);
    const SourceMesh first = readWhole(text.path());
    std::vector<FoamFileOptions> kinds;
    for (const bool compact : {true, false})
        for (const bool swapped : {false, true})
            for (const int bits : {32, 64})
                kinds.push_back({.binary = true, .compact = compact, .swapped = swapped, .labelBits = bits});
    kinds.push_back({.binary = true, .arch = false});
    kinds.push_back({.binary = true, .scalarBits = 32});
    for (const FoamFileOptions &options : kinds) {
        const FoamCase foam(lists, options);
        SourceMesh mesh = readWhole(foam.path());
        if (options.scalarBits == 32) {
            for (std::size_t i = 0; i < mesh.coordinates.size(); i++)
                for (std::size_t d = 0; d < 3; d++)
                    EXPECT_EQ(mesh.coordinates[i][d], static_cast<float>(first.coordinates[i][d]));
            mesh.coordinates = first.coordinates;
        }
        test::expectSame(mesh, first);
    }
    // Each file may be of another format.
    const FoamCase mixed(lists);
    mixed.put("constant/polyMesh/owner", foamFile(lists, "owner", {.binary = true, .labelBits = 64}));
    mixed.put("constant/polyMesh/faces", foamFile(lists, "faces", {.binary = true}));
    test::expectSame(readWhole(mixed.path()), first);
}

TEST(FoamReader, ReadsCompressedFiles) {
    if (test::gzipped("content").empty())
        GTEST_SKIP() << "the tests are built without zlib";
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Tetrahedra}) {
        const FoamLists lists = foamLists(box(fill, {8, 6, 5}));
        const FoamCase text(lists);
        const SourceMesh first = readWhole(text.path());
        for (const bool binary : {false, true}) {
            const FoamCase foam(lists, {.binary = binary, .compressed = true});
            test::expectSame(readWhole(foam.path()), first);
            // A file that is not compressed goes first.
            foam.put("constant/polyMesh/points", foamFile(lists, "points"));
            foam.put("constant/polyMesh/points.gz", "damaged");
            test::expectSame(readWhole(foam.path()), first);
        }
    }
}

TEST(FoamReader, OneValueMayStandForAList) {
    const SourceMesh cube = box(BoxCells::Hexahedra, {1, 1, 1});
    const FoamLists lists = foamLists(cube);
    const FoamCase foam(lists);
    const std::string owner = foamFile(lists, "owner");
    foam.put("constant/polyMesh/owner", owner.substr(0, owner.rfind("6\n(")) + "6{0}\n");
    const SourceMesh mesh = readWhole(foam.path());
    EXPECT_EQ(mesh.cells.types, std::vector{ElementType::Hexa8});
    expectSameCells(mesh, cube, 1e-15);
}

TEST(FoamReader, OldFilesHaveANeighbourForEachFace) {
    const SourceMesh expected = box(BoxCells::Prisms);
    FoamLists lists = foamLists(expected);
    lists.neighbour.resize(lists.faces.size(), -1);
    for (const bool binary : {false, true}) {
        const SourceMesh mesh = readWhole(FoamCase(lists, {.binary = binary}).path());
        expectSameCells(mesh, expected, 1e-14);
        EXPECT_EQ(sizesOf(mesh), sizesOf(expected));
    }
}

TEST(FoamReader, PatchesNeedNotBeCounted) {
    const FoamLists lists = foamLists(box(BoxCells::Hexahedra));
    const FoamCase foam(lists);
    const std::string boundary = foamFile(lists, "boundary");
    foam.put("constant/polyMesh/boundary",
             boundary.substr(0, boundary.rfind("6\n(")) + boundary.substr(boundary.rfind("6\n(") + 1));
    EXPECT_EQ(readWhole(foam.path()).patches.size(), 6U);
}

TEST(FoamReader, FoldersAndFilesOfACaseNameItsMesh) {
    const FoamLists lists = foamLists(box(BoxCells::Hexahedra));
    const FoamCase foam(lists);
    foam.put("case.foam", " ");
    foam.put("system/controlDict", foamFile(lists, "boundary"));
    const SourceMesh first = readWhole(foam.path());
    for (const char *name :
         {"constant", "constant/polyMesh", "constant/polyMesh/", "constant/polyMesh/faces", "case.foam"}) {
        EXPECT_EQ(meshFormat(world(), foam.file(name)), MeshFormat::OpenFoam) << name;
        const SourceMesh mesh = readWhole(foam.file(name));
        EXPECT_EQ(mesh.coordinates, first.coordinates);
        test::expectSame(mesh.cells, first.cells);
    }
    EXPECT_EQ(meshFormatOf("FoamFile\n{\n"), MeshFormat::OpenFoam);
    EXPECT_EQ(meshFormatOf("/*---*- C++ -*---*\\\n|  a banner |\n\\*---*/\nFoamFile\n{\n version 2.0;"),
              MeshFormat::OpenFoam);
}

TEST(FoamReader, TypesOfPatchesAreKept) {
    FoamLists lists = foamLists(box(BoxCells::Hexahedra));
    lists.patches[0].type = "wall";
    lists.patches[1].type = "symmetryPlane";
    lists.patches[2].type = "empty";
    lists.patches[3].type = "cyclicAMI";
    lists.patches[3].more = "neighbourPatch other; // not read\n transform { kind unknown; }";
    lists.patches.insert(lists.patches.begin() + 2, {"none", "patch", "", 0, 0});
    const FoamCase foam(lists);
    const SourceMesh mesh = readWhole(foam.path());
    ASSERT_EQ(mesh.patches.size(), 7U);
    EXPECT_EQ(mesh.patches[0].kind, "BCWall");
    EXPECT_EQ(mesh.patches[0].family, "wall");
    EXPECT_EQ(mesh.patches[1].kind, "BCSymmetryPlane");
    EXPECT_EQ(mesh.patches[2].name, "none");
    EXPECT_EQ(mesh.patches[3].family, "empty");
    EXPECT_EQ(mesh.patches[3].kind, "");
    ASSERT_EQ(mesh.warnings.size(), 1U);
    EXPECT_NE(mesh.warnings[0].find("patch 'y+' of type cyclicAMI is not connected"), std::string::npos);
    EXPECT_EQ(test::facesOfMarks(mesh).count(2), 0U);
    EXPECT_EQ(test::facesOfMarks(mesh).at(3), 4 * 2);
}

// ---------------------------------------------------------------------------------------------------------------------
// Cyclic patches

TEST(FoamReader, CyclicPatchesAreTranslations) {
    const SourceMesh expected = box(BoxCells::Tetrahedra, {4, 3, 3}, {true, false, true});
    for (const int digits : {17, 6}) {
        const FoamCase foam(foamLists(expected), {.digits = digits});
        const SourceMesh mesh = readWhole(foam.path());
        ASSERT_EQ(mesh.periodic.size(), 2U);
        EXPECT_EQ(mesh.patches.size(), expected.patches.size());
        EXPECT_EQ(mesh.periodic[0].name, "x_first_x_second");
        const auto &x = mesh.periodic[0].transform;
        const auto &z = mesh.periodic[1].transform;
        EXPECT_EQ(x.angles, (Point{0, 0, 0}));
        EXPECT_NEAR(norm(x.translation - Point{1, 0, 0}), 0, 1e-14);
        EXPECT_NEAR(norm(z.translation - Point{0, 0, 0.5}), 0, 1e-14);
        const MeshReport report = reportOf(foam.path());
        EXPECT_EQ(report.periodicPairs, 2 * 4 * 3 + 2 * 3 * 3);
        EXPECT_EQ(report.warnings, std::vector<std::string>{});
    }
}

/// A box of hexahedra bent around the z axis: y becomes the angle, up to `angle`.
SourceMesh sector(real angle, Point centre = {}) {
    BoxMeshOptions options;
    options.fill = BoxCells::Hexahedra;
    options.cells = {3, 4, 2};
    SourceMesh mesh = makeBoxMesh(options, 0, 1);
    for (auto &[x, y, z] : mesh.coordinates) {
        const real r = 1 + x;
        const real phi = angle * y;
        x = centre[0] + r * std::cos(phi);
        y = centre[1] + r * std::sin(phi);
    }
    return mesh;
}

FoamLists sectorLists(const SourceMesh &mesh, const std::string &more) {
    FoamLists lists = foamLists(mesh);
    for (const std::size_t p : {std::size_t{2}, std::size_t{3}}) { // y- and y+
        lists.patches[p].type = "cyclic";
        lists.patches[p].more = std::string("neighbourPatch ") + (p == 2 ? "y+; " : "y-; ") + more;
    }
    return lists;
}

TEST(FoamReader, CyclicPatchesAreRotations) {
    const Point far{5, -3, 0};
    struct Case {
        real angle;
        Point centre;
        std::string more;
        int digits;
    };
    const Case cases[] = {
        {std::numbers::pi / 3, {}, "", 17},
        {std::numbers::pi / 2, {}, "transform rotational; rotationAxis (0 0 1); rotationCentre (0 0 0);", 6},
        {std::numbers::pi / 3, {}, "transform unknown;", 6},
        {2, far, "", 17},
        {2, far, "transform rotational; rotationAxis (0 0 -3); rotationCentre (5 -3 0.1);", 17},
        {0.01, {}, "", 17},
        {std::numbers::pi, {}, "transform rotational; rotationAxis (0 0 1); rotationCentre (0 0 0);", 17},
    };
    for (const Case &c : cases) {
        const SourceMesh expected = sector(c.angle, c.centre);
        const FoamCase foam(sectorLists(expected, c.more), {.digits = c.digits});
        const SourceMesh mesh = readWhole(foam.path());
        ASSERT_EQ(mesh.periodic.size(), 1U) << c.angle;
        const RigidMotion motion = motionOf(mesh.periodic[0].transform);
        const Point moved = motion(c.centre + Point{1.5, 0, 0.25});
        const Point wanted = c.centre + Point{1.5 * std::cos(c.angle), 1.5 * std::sin(c.angle), 0.25};
        EXPECT_NEAR(norm(moved - wanted), 0, c.digits == 17 ? 1e-12 : 1e-5) << c.angle;
        const MeshReport report = reportOf(foam.path());
        EXPECT_EQ(report.periodicPairs, 3 * 2);
        EXPECT_EQ(report.warnings, std::vector<std::string>{});
    }
}

TEST(FoamReader, HalfATurnNeedsAnAxis) {
    const FoamCase foam(sectorLists(sector(std::numbers::pi), "transform unknown;"));
    const SourceMesh mesh = readWhole(foam.path());
    EXPECT_TRUE(mesh.periodic.empty());
    EXPECT_EQ(mesh.patches.size(), 6U);
    ASSERT_EQ(mesh.warnings.size(), 1U);
    EXPECT_NE(mesh.warnings[0].find("cyclic patches 'y-' and 'y+' are not connected: their faces do not determine"),
              std::string::npos);
}

TEST(FoamReader, ResultsDoNotDependOnTheNumberOfRanks) {
    const FoamCase foam(sectorLists(sector(1), ""));
    const SourceMesh together = readWhole(foam.path());
    if (world().rank() == 0)
        test::expectSame(together, readMesh(CommunicatorView(MPI_COMM_SELF), foam.path()));
}

// ---------------------------------------------------------------------------------------------------------------------
// Faults

/// The message with which reading and building fails: the same on all ranks, and on one rank alone.
std::string failure(const FoamCase &foam, const std::string &region = {}) {
    const auto read = [&](CommunicatorView comm, const std::string &path) {
        CgnsOptions options;
        options.base = region;
        (void)buildMesh(comm, readMesh(comm, path, options));
    };
    const std::string mine = test::failureOn(world(), foam.path(), read);
    std::vector<std::string> message{mine};
    broadcastStrings(world(), message);
    EXPECT_EQ(mine, message[0]);
    if (world().rank() == 0) {
        EXPECT_EQ(test::withoutRank(mine),
                  test::withoutRank(test::failureOn(CommunicatorView(MPI_COMM_SELF), foam.path(), read)));
    }
    world().barrier();
    return mine;
}

void expectFailure(const FoamCase &foam, const std::string &expected, const std::string &region = {}) {
    const std::string message = failure(foam, region);
    EXPECT_NE(message.find(expected), std::string::npos) << "'" << message << "' should contain '" << expected << "'";
}

/// Two cubes; inner face 0, eleven faces, twelve nodes.
FoamLists twoCubes() { return foamLists(box(BoxCells::Hexahedra, {2, 1, 1})); }

std::string replaced(std::string text, const std::string &from, const std::string &to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(FoamReader, BrokenTextIsNamedWithFileAndLine) {
    const FoamLists lists = twoCubes();
    struct Fault {
        std::string file;
        std::string from;
        std::string to;
        std::string expected;
    };
    const Fault faults[] = {
        {"points", "FoamFile", "FoamFil", "points, line 4: expected FoamFile"},
        {"points", "class       vectorField", "class labelList",
         "points, line 13: the header's class is 'labelList', but should be 'vectorField'"},
        {"points", "ascii", "text", "format 'text' in the header: it must be ascii or binary"},
        {"points", "12\n", "13\n", "the list of points ends after 12 of 13"},
        {"points", "12\n", "11\n", "the list of points has more than its 11 entries"},
        {"points", "12\n", "-1\n", "the number of points is -1: it must lie in"},
        {"points", "12\n", "twelve\n", "the number of points is 'twelve', which is not an integer"},
        {"points", "12\n(\n(0 0 0)", "12\n(\n(0 0)", "points, line 18: expected a coordinate before ')'"},
        {"points", "12\n(\n(0 0 0)", "12\n(\n(0 nan 0)",
         "line 18: a coordinate is 'nan', which is not a finite number"},
        {"points", "12\n(\n(0 0 0)", "12\n(\n(0 0 0 0)", "line 18: expected ')' before '0'"},
        {"points", "12\n(\n(0 0 0)", "12\n(\n((0 0 0)", "line 18: a '(' has no ')'"},
        {"points", "arch        \"LSB;label=32", "arch \"LSB;label=16", "'label=16' in the header's arch"},
        {"faces", "class       faceList", "class faceCompactList", "faceCompactList is read in binary files only"},
        {"faces", "\n4(", "\n5(", "faces, line 18: expected a corner before ')'"},
        {"faces", "\n4(", "\n2(", "line 18: the number of corners of a face is 2: it must lie in [3, "},
        {"faces", "\n4(", "\n4(9", "a corner is 9"},
        {"faces", "11\n", "12\n", "the list of faces ends after 11 of 12"},
        {"faces", "11\n(\n", "0()\n", "the mesh has no faces"},
        {"owner", "11\n", "10\n", "the list of owners of faces has more than its 10 entries"},
        {"owner", "11\n", "12\n", "the number of owners of faces is 12: it must lie in [0, 11]"},
        {"owner", "11\n(\n0", "11\n(\n-1", "owner, line 18: the owner of a face is -1: it must lie in [0, 4]"},
        {"owner", "11\n(\n0", "11\n(\n0x", "owner, line 18: the owner of a face is '0x', which is not an integer"},
        {"owner", "11\n(\n0", "11\n(\n1",
         "neighbour, line 18: face 0 has the owner 1 and the neighbour 1, which must be a larger number"},
        {"neighbour", "1\n(\n1", "1\n(\n3", "owner: no face has the owner or neighbour 2"},
        {"neighbour", "1\n(\n1", "1\n(\n77", "neighbour, line 18: the neighbour of a face is 77"},
        {"neighbour", "1\n(\n1\n)", "2\n(\n1\n1\n)",
         "patch 'x-' begins at face 1, but should at 2, where inner faces end"},
        {"boundary", "polyBoundaryMesh", "faceList",
         "the header's class is 'faceList', but should be 'polyBoundaryMesh'"},
        {"boundary", "nFaces          1", "nFaces 2", "patch 'x+' begins at face 2, but should at 3, where those"},
        {"boundary", "nFaces          1", "nFaces 99", "nFaces of patch 'x-' is 99: it must lie in [0, 10]"},
        {"boundary", "nFaces          1;", "", "patch 'x-' has no nFaces"},
        {"boundary", "nFaces          1;", "nFaces 1", "unexpected 'startFace 1' at the end"},
        {"boundary", "nFaces          1;", "nFaces (1;", "expected ';' before ')'"},
        {"boundary", "nFaces          1;", "#include \"sizes\"", "'#include' is not followed"},
        {"boundary", "x+", "x-", "there are two patches 'x-'"},
        {"boundary", "6\n(", "7\n(", "the list ends after 6 of 7 patches"},
        {"boundary", "6\n(", "5\n(", "expected ')' before 'z'"},
        {"boundary", "type            patch", "type processor",
         "patch 'x-' of type processor belongs to a decomposed case, of which this is a part; reconstructParMesh"},
        {"boundary", "type            patch", "type cyclic",
         "cyclic patch 'x-' has no neighbourPatch: both sides are in"},
        {"boundary", "type            patch", "neighbourPatch x+; type cyclic",
         "cyclic patch 'x-' has the neighbourPatch 'x+', which is no cyclic patch with 'x-' as its neighbour"},
        {"boundary", "type            patch", "rotationAxis 3; type patch",
         "rotationAxis of patch 'x-' is '3', which is"},
    };
    const FoamCase foam(lists);
    for (const Fault &fault : faults) {
        const std::string content = foamFile(lists, fault.file);
        foam.put("constant/polyMesh/" + fault.file, replaced(content, fault.from, fault.to));
        expectFailure(foam, fault.expected);
        foam.put("constant/polyMesh/" + fault.file, content);
    }
    EXPECT_EQ(failure(foam), "");
}

TEST(FoamReader, BrokenBinaryFilesAreNamedWithFileAndByte) {
    const FoamLists lists = twoCubes();
    const FoamFileOptions binary{.binary = true};
    const FoamCase foam(lists, binary);
    const auto broken = [&](const std::string &file, const FoamLists &changed, const FoamFileOptions &options,
                            const std::function<std::string(std::string)> &edit, const std::string &expected) {
        foam.put("constant/polyMesh/" + file, edit(foamFile(changed, file, options)));
        expectFailure(foam, expected);
        foam.put("constant/polyMesh/" + file, foamFile(lists, file, binary));
    };
    const auto same = [](std::string text) { return text; };
    broken(
        "points", lists, binary, [](std::string text) { return replaced(text, "scalar=64", "scalar=32"); },
        "a list of 12 entries of 12 bytes does not end with ')' here");
    broken(
        "points", lists, binary, [](std::string text) { return replaced(text, "12\n(", "13\n("); }, "points, byte ");
    FoamLists other = lists;
    other.points[5][1] = std::nan("");
    broken("points", other, binary, same, "a coordinate is nan, which is not a finite number");
    other = lists;
    other.faces[3][2] = 12;
    broken("faces", other, binary, same, "a corner is 12: it must lie in [0, 11]");
    broken("faces", other, {.binary = true, .compact = false}, same, "a corner is 12: it must lie in [0, 11]");
    other = lists;
    other.faces[3].resize(2);
    broken("faces", other, binary, same, "where the corners of a face begin is 14: it must lie in [15, ");
    other = lists;
    other.owner[2] = -7;
    broken("owner", other, binary, same, "the owner of a face is -7: it must lie in [0, 4]");
    EXPECT_EQ(failure(foam), "");
}

TEST(FoamReader, BrokenCompressedFilesAreNamed) {
    const FoamLists lists = foamLists(box(BoxCells::Tetrahedra, {6, 6, 6}));
    const std::string name = "constant/polyMesh/points.gz";
    if (test::gzipped("content").empty()) {
        const FoamCase foam(lists);
        foam.put(name, "anything");
        foam.put("constant/polyMesh/points", "");
        return expectFailure(foam, "points.gz is compressed (gzip), which this build cannot read");
    }
    const FoamCase foam(lists, {.compressed = true});
    const std::string whole = test::gzipped(foamFile(lists, "points"));
    foam.put(name, whole.substr(0, whole.size() / 2));
    expectFailure(foam, "points.gz is damaged: its compressed content ends early");
    std::string wrong = whole;
    wrong[whole.size() - 6] = static_cast<char>(wrong[whole.size() - 6] + 1);
    foam.put(name, wrong);
    expectFailure(foam, "points.gz cannot be decompressed: ");
    foam.put(name, "");
    expectFailure(foam, "polyMesh has no file points");
}

TEST(FoamReader, CasesWithoutOneMeshAreRefused) {
    const FoamLists lists = twoCubes();
    const FoamCase foam;
    expectFailure(foam, "is not a file");
    foam.put("constant/polyMesh/points", foamFile(lists, "points"));
    expectFailure(foam, "has no mesh of OpenFOAM: no files faces and owner in constant/polyMesh");
    foam.put("processor0/constant/polyMesh/points", foamFile(lists, "points"));
    expectFailure(foam, "is a decomposed case without a whole mesh; reconstructParMesh -constant of OpenFOAM makes it");
    for (const std::string region : {"solid", "fluid"})
        for (const std::string name : test::foamNames)
            foam.put("constant/" + region + "/polyMesh/" + name, foamFile(lists, name));
    expectFailure(foam, "regions are read one at a time: choose one of 'fluid', 'solid' (dnds-mesh --base");
    expectFailure(foam, "has no region 'air': there is no folder", "air");
    EXPECT_EQ(failure(foam, "solid"), "");
    foam.put("constant/polyMesh/faces", replaced(foamFile(lists, "faces"), "faceList", "decomposedBlockData"));
    foam.put("constant/polyMesh/owner", foamFile(lists, "owner"));
    expectFailure(foam, "the file is collated, as decomposed cases have it; reconstructParMesh");
}

TEST(FoamReader, CellsThatDoNotCloseAreRefused) {
    FoamLists lists = foamLists(box(BoxCells::Hexahedra, {3, 1, 1}));
    std::swap(lists.owner[2], lists.owner[5]); // faces at x- and y- of two cells
    expectFailure(FoamCase(lists), "2 polyhedra are open");
}

/// Whatever is lost or changed, the mesh is read or an error says why, on all ranks alike.
TEST(FoamReader, DamageIsAnErrorOfEveryRank) {
    const FoamLists lists = foamLists(box(BoxCells::MixedVolume, {4, 1, 1}));
    std::mt19937_64 random(DNDS::test::seed());
    for (const bool binary : {false, true}) {
        const FoamFileOptions options{.binary = binary};
        const FoamCase foam(lists, options);
        for (const std::string name : test::foamNames) {
            const std::string whole = foamFile(lists, name, options);
            for (int trial = 0; trial < 24; trial++) {
                std::string damaged = whole;
                if (trial % 2 == 0)
                    damaged.resize(whole.size() * static_cast<std::size_t>(trial + 1) / 25);
                else
                    for (int k = 0; k < 3; k++)
                        damaged[random() % damaged.size()] = static_cast<char>(random());
                foam.put("constant/polyMesh/" + name, damaged);
                (void)failure(foam);
            }
            foam.put("constant/polyMesh/" + name, whole);
        }
        EXPECT_EQ(failure(foam), "");
    }
}

} // namespace
} // namespace DNDS::Geom
