#include "DNDS/Geom/Ugrid/UgridReader.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "Geom/Ugrid/UgridFiles.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"
#include "support/TemporaryFolder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using test::failureOf;
using test::TemporaryFile;
using test::UgridFileOptions;

SourceMesh ugridBox(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {4, 3, 2};
    options.jitter = 0.1;
    options.seed = DNDS::test::seed();
    return test::sortedByType(makeBoxMesh(options, 0, 1));
}

/// The suffix and the form of each kind of file.
std::vector<std::pair<std::string, UgridFileOptions>> ugridForms() {
    std::vector<std::pair<std::string, UgridFileOptions>> forms{{".ugrid", {.text = true}}};
    for (const bool bigEndian : {false, true})
        for (const bool records : {false, true})
            for (const int realBytes : {8, 4})
                forms.push_back({fmt::format(".{}{}{}.ugrid", bigEndian ? "" : "l", records ? "r" : "b", realBytes),
                                 {.bigEndian = bigEndian, .records = records, .realBytes = realBytes}});
    return forms;
}

void expectSameMesh(const SourceMesh &mesh, const SourceMesh &expected, bool single) {
    EXPECT_EQ(mesh.cellDimension, 3);
    EXPECT_EQ(mesh.physicalDimension, 3);
    ASSERT_EQ(mesh.nodes(), expected.nodes());
    for (std::size_t i = 0; i < mesh.coordinates.size(); i++)
        for (std::size_t d = 0; d < 3; d++) {
            const real x = expected.coordinates[i][d];
            EXPECT_EQ(mesh.coordinates[i][d], single ? static_cast<real>(static_cast<float>(x)) : x);
        }
    test::expectSame(mesh.cells, expected.cells);
    test::expectSame(mesh.faces, expected.faces);
    EXPECT_EQ(mesh.faceMarks, expected.faceMarks);
    ASSERT_EQ(mesh.patches.size(), 6U);
    for (std::size_t p = 0; p < mesh.patches.size(); p++)
        EXPECT_EQ(mesh.patches[p].name, std::to_string(p + 1));
}

TEST(UgridReader, ReadsAllFormsByNameAndByContent) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Tetrahedra}) {
        const SourceMesh expected = ugridBox(fill);
        for (const auto &[name, form] : ugridForms())
            for (const std::string &suffix : {name, std::string(".any")}) {
                if (fill == BoxCells::Tetrahedra && name != ".ugrid" && name != ".b8.ugrid")
                    continue;
                const TemporaryFile file(suffix, test::ugridFile(expected, form));
                EXPECT_EQ(meshFormat(comm, file.path()), MeshFormat::Ugrid);
                const SourceMesh mesh = test::gatherMesh(comm, readMesh(comm, file.path()));
                expectSameMesh(mesh, expected, form.realBytes == 4);
            }
    }
}

TEST(UgridReader, ReadsSubrecordsLongIntegersAndDataAfterTheMesh) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh expected = ugridBox(BoxCells::MixedVolume);
    const auto read = [&](const std::string &suffix, const std::string &content) {
        const TemporaryFile file(suffix, content);
        expectSameMesh(test::gatherMesh(comm, readMesh(comm, file.path())), expected, false);
    };
    for (const std::size_t length : {std::size_t{28}, std::size_t{100}, std::size_t{1001}}) // inside numbers, too
        read(".r8.ugrid", test::ugridFile(expected, {.bigEndian = true, .records = true, .subrecord = length}));
    for (const bool bigEndian : {false, true})
        read(".any", test::ugridFile(expected, {.bigEndian = bigEndian, .integerBytes = 8}));
    read(".lb8.ugrid", test::ugridFile(expected, {}) + "volume tags");
    std::string text = test::ugridFile(expected, {.text = true}) + "0 1 1 1\n";
    read(".ugrid", text);
    std::ranges::replace(text, 'e', 'D'); // Fortran's exponents
    std::size_t blanks = 0;
    for (char &c : text)
        if (c == ' ' || c == '\n')
            c = ++blanks % 5 == 0 ? '\n' : ' ';
    read(".ugrid", text);
}

/// One element of each type as UG_IO numbers its nodes, beside each other; volumes by hand. FUN3D and refine, too, have
/// the base of a pyramid as 1, 4, 5, 2.
TEST(UgridReader, ElementsOfEveryTypeHaveTheirVolume) {
    const std::vector<std::vector<std::array<real, 3>>> elements{
        {{0, 0, 0}, {6, 0, 0}, {0, 1, 0}, {0, 0, 1}},
        {{0, 0, 0}, {0, 1, 0}, {0.3, 0.4, 3}, {2, 0, 0}, {2, 1, 0}},
        {{0, 0, 0}, {2, 0, 0}, {0, 1, 0}, {0, 0, 1}, {2, 0, 1}, {0, 1, 1}},
        {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}}};
    const std::array<real, 4> volumes{1, 2, 1, 1};
    std::string points;
    std::string cells;
    int count = 0;
    for (std::size_t e = 0; e < elements.size(); e++) {
        for (const auto &[x, y, z] : elements[e]) {
            points += fmt::format("{} {} {}\n", x + 10 * static_cast<real>(e), y, z);
            cells += fmt::format("{} ", ++count);
        }
        cells += "\n";
    }
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".ugrid", fmt::format("{} 0 0 1 1 1 1\n{}{}", count, points, cells));
    const SourceMesh mesh = test::gatherMesh(comm, readMesh(comm, file.path()));
    ASSERT_EQ(mesh.cells.size(), 4);
    for (std::size_t e = 0; e < 4; e++)
        EXPECT_NEAR(test::measure(mesh, static_cast<index>(e)), volumes[e], 1e-12);
}

TEST(UgridReader, BuildsTheMeshOfTheGenerator) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh box = ugridBox(BoxCells::MixedVolume);
    const TemporaryFile file(".b8.ugrid", test::ugridFile(box, {.bigEndian = true}));
    MeshReport report;
    buildMesh(comm, readMesh(comm, file.path()), {.report = &report});
    EXPECT_EQ(report.turnedCells, 0);
    EXPECT_EQ(report.unassignedFaces, 0);
    EXPECT_NEAR(report.measure, 1.0, 1e-12);
    EXPECT_EQ(report.cells.size(), 4U);
    ASSERT_EQ(report.patches.size(), 6U);
    const auto marks = test::facesOfMarks(box);
    for (std::size_t p = 0; p < 6; p++)
        EXPECT_EQ(report.patches[p].faces, marks.at(static_cast<int>(p)));
}

TEST(UgridReader, TakesNamesFromMapbc) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh box = ugridBox(BoxCells::MixedVolume);
    const DNDS::test::TemporaryFolder folder;
    const auto read = [&](const std::string &mapbc) {
        comm.guarded([&] {
            if (comm.rank() != 0)
                return;
            std::ofstream(folder.file("wing.lb8.ugrid"), std::ios::binary) << test::ugridFile(box, {});
            std::ofstream(folder.file("wing.mapbc")) << mapbc;
        });
        return readMesh(comm, folder.file("wing.lb8.ugrid"));
    };
    const SourceMesh mesh = read("# a comment\n  6\n 6 6662 top\n1 4000 wall\n2\t4000 wall \r\n3 5000\n4 9999 odd\n"
                                 "5 3000 wall\n");
    const std::vector<std::array<std::string, 3>> expected{{"wall", "BCWallViscous", "4000"},
                                                           {"3", "BCFarfield", "5000"},
                                                           {"odd", "", "9999"},
                                                           {"wall_5", "BCWallInviscid", "3000"},
                                                           {"top", "BCSymmetryPlane", "6662"}};
    ASSERT_EQ(mesh.patches.size(), expected.size());
    for (std::size_t p = 0; p < expected.size(); p++)
        EXPECT_EQ((std::array{mesh.patches[p].name, mesh.patches[p].kind, mesh.patches[p].family}), expected[p]);
    EXPECT_EQ(mesh.warnings, std::vector<std::string>{});
    auto counts = test::facesOfMarks(box);
    auto merged = test::facesOfMarks(test::gatherMesh(comm, mesh));
    EXPECT_EQ(merged[0], counts[0] + counts[1]);
    EXPECT_EQ(merged[4], counts[5]);
    std::vector<std::string> names;
    const SourceMesh several = read("6\n1 4000 wall\n2 3000 wall\n3 3000 wall\n4 4000 wing upper\n5 4000 wing lower\n"
                                    "6 9999 wall_2\n");
    for (const BoundaryPatch &patch : several.patches)
        names.push_back(patch.name);
    EXPECT_EQ(names, (std::vector<std::string>{"wall", "wall_2", "wing upper", "wing lower", "wall_2_6"}));
    merged = test::facesOfMarks(test::gatherMesh(comm, several));
    EXPECT_EQ(merged[1], counts[1] + counts[2]);
    EXPECT_EQ(read("1\n1 4000 wall\n").warnings.size(), 5U) << "five tags are not in the file";
    for (const auto &[mapbc, message] :
         {std::pair{"2\n1 4000 wall\n", "mapbc, line 3: the file ends where a boundary should be"},
          {"2\n1 4000 a\n1 4000 b\n", "mapbc, line 3: tag 1 is repeated"},
          {"1\n1 wall\n", "mapbc, line 2: a boundary condition is 'wall'"}}) {
        try {
            read(mapbc);
            ADD_FAILURE() << message;
        } catch (const DataError &error) {
            EXPECT_NE(error.message().find(message), std::string::npos) << error.message();
        }
    }
}

TEST(UgridReader, FindsTheNamesOfFilesOfLongIntegers) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const SourceMesh box = ugridBox(BoxCells::MixedVolume);
    const DNDS::test::TemporaryFolder folder;
    const auto read = [&](const std::string &name, const UgridFileOptions &form, const std::string &after) {
        comm.guarded([&] {
            if (comm.rank() != 0)
                return;
            std::ofstream(folder.file(name), std::ios::binary) << test::ugridFile(box, form) << after;
            std::ofstream(folder.file("wing.mapbc")) << "1\n1 4000 wall\n";
        });
        return readMesh(comm, folder.file(name));
    };
    const UgridFileOptions little{.integerBytes = 8};
    const UgridFileOptions big{.bigEndian = true, .integerBytes = 8};
    for (const std::string after : {"", "more"}) { // then the name alone decides
        EXPECT_EQ(read("wing.lb8l.ugrid", little, after).patches.at(0).name, "wall");
        EXPECT_EQ(read("wing.lb8.ugrid64", little, after).patches.at(0).name, "wall");
        EXPECT_EQ(read("wing.b8l.ugrid", big, after).patches.at(0).name, "wall");
    }
    EXPECT_EQ(read("wing.lb8.ugrid", {}, "").notes, std::vector<std::string>{});
    const std::vector<std::string> notes = read("other.lb8l.ugrid", little, "").notes;
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_NE(notes[0].find("called by their tags, as there is no " + folder.file("other.mapbc")), std::string::npos);
}

TEST(UgridReader, SaysWhatIsWrongAndWhere) {
    const std::string good =
        "4 4 0 1 0 0 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 3 2\n1 2 4\n2 3 4\n3 1 4\n7\n7\n8\n9\n1 2 3 4\n";
    EXPECT_EQ(failureOf(good, readUgrid), "");
    const auto with = [&](const std::string &from, const std::string &to) {
        std::string text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    const std::pair<std::string, std::string> cases[] = {
        {with("4 4 0 1", "4 4 0 0"), "is a surface or a two-dimensional mesh (4 triangles, 0 quadrilaterals)"},
        {with("4 4 0 1", "4 4 0 -1"), "line 1: the number of tetrahedra is -1"},
        {with("4 4 0 1", "4 4 x 1"), "line 1: the number of quadrilaterals is 'x'"},
        {with("4 4 0 1", "4 4 0 9999999999999"), "the number of tetrahedra is 9999999999999: it must lie in"},
        {with("4 4 0 1", "4 4 0 2"), "the file ends in its tetrahedra"},
        {with("0 1 0\n", "0 1e999 0\n"), "line 4: a coordinate is '1e999', which is not a finite number"},
        {with("2 3 4\n3", "2 3 5\n3"), "line 8: a node is 5: it must lie in [1, 4]"},
        {with("1 2 3 4", "1 2 3 0"), "line 14: a node is 0: it must lie in [1, 4]"},
        {with("\n8\n", "\nwall\n"), "line 12: a tag is 'wall', which is not an integer"},
        {with("\n8\n", "\n" + std::string(100, '8') + "\n"), "line 12: '8888"},
    };
    for (const auto &[text, expected] : cases) {
        const std::string message = failureOf(text, readUgrid, ".ugrid");
        EXPECT_NE(message.find(expected), std::string::npos) << "'" << message << "' lacks '" << expected << "'";
    }
    const std::string binary = test::ugridFile(ugridBox(BoxCells::MixedVolume), {.bigEndian = true});
    const auto patched = [&](std::size_t at, const std::string &bytes) {
        return std::string(binary).replace(at, bytes.size(), bytes);
    };
    using namespace std::string_literals;
    const std::pair<std::string, std::string> binaries[] = {
        {patched(28, "\x7f\xf0\0\0\0\0\0\0"s), "byte 28: coordinate 1 of node 1 is not a finite number"},
        {patched(44, "\x7f\xf0\0\0\0\0\0\0"s), "byte 44: coordinate 3 of node 1 is not a finite number"},
        {patched(binary.size() - 4, "\0\0\0\0"s),
         fmt::format("byte {}: a node of the hexahedra is 0: it must lie in [1, 66]", binary.size() - 4)},
        {patched(4, "\xff\xff\xff\xff"s), "byte 0: the file announces -1 triangles"},
        {patched(0, "\x7f\xff\xff\xff"s), "byte 0: the file announces 2147483647 nodes"},
        {binary.substr(0, 20), "byte 20: the file ends in its counts"},
        {binary.substr(0, binary.size() - 1), "the file ends in its hexahedra: its counts need 1 bytes more"},
        {binary.substr(0, 30), "byte 0: the file announces 66 nodes, but has 30 bytes"}};
    for (const auto &[bytes, expected] : binaries) {
        const std::string message = failureOf(bytes, readUgrid, ".b8.ugrid");
        EXPECT_NE(message.find(expected), std::string::npos) << "'" << message << "' lacks '" << expected << "'";
    }
    EXPECT_NE(failureOf(binary, readUgrid, ".lr8.ugrid"), "no form but that of its content");
    EXPECT_NE(failureOf(binary + "more", readUgrid).find("explain its size in no binary form"), std::string::npos);
}

TEST(UgridReader, DamagedAndTruncatedFilesFailOrAreRead) {
    std::mt19937_64 random(DNDS::test::seed()); // the same on all ranks
    const SourceMesh box = ugridBox(BoxCells::MixedVolume);
    for (const auto &[suffix, form] : ugridForms()) {
        const std::string good = test::ugridFile(box, form);
        for (int k = 0; k < 2; k++) {
            std::string bad = good;
            bad[random() % bad.size()] = static_cast<char>(random() % 256);
            failureOf(bad, readUgrid, suffix);
            const std::size_t last = good.find_last_not_of(" \n");
            const std::string message = failureOf(std::string_view(good).substr(0, random() % last), readUgrid, suffix);
            EXPECT_NE(message, "") << suffix;
        }
    }
}

} // namespace
} // namespace DNDS::Geom
