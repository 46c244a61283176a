#include "DNDS/Geom/Gmsh/GmshReader.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "Geom/Gmsh/GmshFile.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

namespace DNDS::Geom {
namespace {

using test::failureOf;
using test::gmshFile;
using test::GmshFileOptions;
using test::TemporaryFile;

SourceMesh readWhole(const std::string &content) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".msh", content);
    return test::gatherMesh(comm, readGmsh(comm, file.path()));
}

SourceMesh box(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {4, 3, 2};
    options.jitter = 0.1;
    options.shuffled = true;
    options.seed = DNDS::test::seed();
    return makeBoxMesh(options, 0, 1);
}

std::vector<GmshFileOptions> allForms() {
    std::vector<GmshFileOptions> forms;
    for (const int version : {22, 40, 41})
        for (const bool binary : {false, true})
            for (const bool swapped : {false, true}) {
                GmshFileOptions form;
                form.version = version;
                form.binary = binary;
                form.swapped = swapped;
                if (!binary || !swapped)
                    form.newline = swapped ? "\r\n" : "\n";
                forms.push_back(form);
            }
    return forms;
}

void expectSameMesh(const SourceMesh &mesh, const SourceMesh &expected) {
    EXPECT_EQ(mesh.cellDimension, expected.cellDimension);
    EXPECT_EQ(mesh.physicalDimension, expected.physicalDimension);
    EXPECT_EQ(mesh.globalNodes, expected.globalNodes);
    EXPECT_EQ(mesh.coordinates, expected.coordinates); // to the bit
    EXPECT_EQ(mesh.cells.types, expected.cells.types);
    EXPECT_EQ(mesh.cells.nodes, expected.cells.nodes);
    EXPECT_EQ(mesh.faces.types, expected.faces.types);
    EXPECT_EQ(mesh.faces.nodes, expected.faces.nodes);
    EXPECT_EQ(mesh.faceMarks, expected.faceMarks);
    ASSERT_EQ(mesh.patches.size(), expected.patches.size());
    for (std::size_t p = 0; p < mesh.patches.size(); p++)
        EXPECT_EQ(mesh.patches[p].name, expected.patches[p].name);
    for (index f = 0; f < mesh.faces.size(); f++)
        EXPECT_EQ(mesh.faces.fileIds[static_cast<std::size_t>(f)], f + 1);
    for (index c = 0; c < mesh.cells.size(); c++)
        EXPECT_EQ(mesh.cells.fileIds[static_cast<std::size_t>(c)], mesh.faces.size() + c + 1);
    EXPECT_TRUE(mesh.warnings.empty());
}

TEST(GmshReader, ReadsEveryVersionInTextAndBinary) {
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::MixedSurface, BoxCells::Tetrahedra})
        for (GmshFileOptions form : allForms()) {
            const SourceMesh expected = box(fill);
            SCOPED_TRACE(fmt::format("{}, version {}, binary {}, swapped {}", expected.origin, form.version,
                                     form.binary, form.swapped));
            expectSameMesh(readWhole(gmshFile(expected, form)), expected);
            form.tagOf = [](index node) { return (node * 7919 + 13) % 1000003; }; // sparse and in no order
            expectSameMesh(readWhole(gmshFile(expected, form)), expected);
            form.nodeBlock = 100000;
            expectSameMesh(readWhole(gmshFile(expected, form)), expected);
        }
}

/// A node of a second-order element: the mean of these corners.
using MeanOf = std::vector<int>;

struct SecondOrder {
    ElementType type;
    std::vector<MeanOf> gmsh; ///< nodes after the corners, as Gmsh's manual draws them
    std::vector<MeanOf> cgns; ///< as the CGNS standard does (SIDS, figures of the conventions), counted from 0
};

const std::vector<SecondOrder> &secondOrderTypes() {
    static const std::vector<MeanOf> hexaGmsh{{0, 1},
                                              {0, 3},
                                              {0, 4},
                                              {1, 2},
                                              {1, 5},
                                              {2, 3},
                                              {2, 6},
                                              {3, 7},
                                              {4, 5},
                                              {4, 7},
                                              {5, 6},
                                              {6, 7},
                                              {0, 1, 2, 3},
                                              {0, 1, 4, 5},
                                              {0, 3, 4, 7},
                                              {1, 2, 5, 6},
                                              {2, 3, 6, 7},
                                              {4, 5, 6, 7},
                                              {0, 1, 2, 3, 4, 5, 6, 7}};
    static const std::vector<MeanOf> hexaCgns{{0, 1},
                                              {1, 2},
                                              {2, 3},
                                              {3, 0},
                                              {0, 4},
                                              {1, 5},
                                              {2, 6},
                                              {3, 7},
                                              {4, 5},
                                              {5, 6},
                                              {6, 7},
                                              {7, 4},
                                              {0, 1, 2, 3},
                                              {0, 1, 5, 4},
                                              {1, 2, 6, 5},
                                              {2, 3, 7, 6},
                                              {0, 4, 7, 3},
                                              {4, 5, 6, 7},
                                              {0, 1, 2, 3, 4, 5, 6, 7}};
    static const std::vector<MeanOf> pentaGmsh{{0, 1}, {0, 2}, {0, 3}, {1, 2},       {1, 4},       {2, 5},
                                               {3, 4}, {3, 5}, {4, 5}, {0, 1, 4, 3}, {0, 3, 5, 2}, {1, 2, 5, 4}};
    static const std::vector<MeanOf> pentaCgns{{0, 1}, {1, 2}, {2, 0}, {0, 3},       {1, 4},       {2, 5},
                                               {3, 4}, {4, 5}, {5, 3}, {0, 1, 4, 3}, {1, 2, 5, 4}, {2, 0, 3, 5}};
    static const std::vector<MeanOf> pyraGmsh{{0, 1}, {0, 3}, {0, 4}, {1, 2},      {1, 4},
                                              {2, 3}, {2, 4}, {3, 4}, {0, 1, 2, 3}};
    static const std::vector<MeanOf> pyraCgns{{0, 1}, {1, 2}, {2, 3}, {3, 0},      {0, 4},
                                              {1, 4}, {2, 4}, {3, 4}, {0, 1, 2, 3}};
    const auto head = [](const std::vector<MeanOf> &all, std::size_t count) {
        return std::vector<MeanOf>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    };
    static const std::vector<MeanOf> quad{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 1, 2, 3}};
    static const std::vector<MeanOf> triangle{{0, 1}, {1, 2}, {2, 0}};
    static const std::vector<SecondOrder> types{{ElementType::Tri6, triangle, triangle},
                                                {ElementType::Quad8, head(quad, 4), head(quad, 4)},
                                                {ElementType::Quad9, quad, quad},
                                                {ElementType::Tetra10,
                                                 {{0, 1}, {1, 2}, {0, 2}, {0, 3}, {2, 3}, {1, 3}},
                                                 {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 3}, {2, 3}}},
                                                {ElementType::Hexa20, head(hexaGmsh, 12), head(hexaCgns, 12)},
                                                {ElementType::Hexa27, hexaGmsh, hexaCgns},
                                                {ElementType::Penta15, head(pentaGmsh, 9), head(pentaCgns, 9)},
                                                {ElementType::Penta18, pentaGmsh, pentaCgns},
                                                {ElementType::Pyra13, head(pyraGmsh, 8), head(pyraCgns, 8)},
                                                {ElementType::Pyra14, pyraGmsh, pyraCgns}};
    return types;
}

/// All second-order types of a dimension, one cell each with corners anywhere; `wanted` are the places of their nodes
/// in the order of the standard.
SourceMesh secondOrderCells(int dimension, std::vector<std::vector<std::array<real, 3>>> &wanted) {
    SourceMesh mesh;
    mesh.cellDimension = dimension;
    std::mt19937_64 random(DNDS::test::seed());
    std::uniform_real_distribution<real> anywhere(0, 1);
    for (const SecondOrder &kind : secondOrderTypes()) {
        const ElementInfo &info = elementInfo(kind.type);
        if (info.dimension != dimension)
            continue;
        std::vector<std::array<real, 3>> corners;
        for (int k = 0; k < info.corners; k++)
            corners.push_back({anywhere(random), anywhere(random), anywhere(random)});
        const auto pointsOf = [&](const std::vector<MeanOf> &means) {
            std::vector<std::array<real, 3>> points = corners;
            for (const MeanOf &which : means) {
                points.emplace_back();
                for (const int corner : which)
                    for (std::size_t d = 0; d < 3; d++)
                        points.back()[d] +=
                            corners[static_cast<std::size_t>(corner)][d] / static_cast<real>(which.size());
            }
            return points;
        };
        wanted.push_back(pointsOf(kind.cgns));
        mesh.cells.types.push_back(kind.type);
        for (const auto &point : pointsOf(kind.gmsh)) {
            mesh.cells.nodes.push_back(mesh.nodes());
            mesh.coordinates.push_back(point);
        }
        mesh.cells.starts.push_back(mesh.nodes());
    }
    return mesh;
}

TEST(GmshReader, BringsSecondOrderElementsToTheStandardsOrder) {
    for (const int dimension : {2, 3})
        for (const GmshFileOptions &form : allForms()) {
            std::vector<std::vector<std::array<real, 3>>> wanted;
            const SourceMesh mesh = secondOrderCells(dimension, wanted);
            const SourceMesh read = readWhole(gmshFile(mesh, form));
            ASSERT_EQ(read.cells.types, mesh.cells.types);
            EXPECT_EQ(read.cells.size(), dimension == 2 ? 3 : 7);
            EXPECT_EQ(read.physicalDimension, 3);
            for (index cell = 0; cell < read.cells.size(); cell++) {
                const auto nodes = read.cells.nodesOf(cell);
                const auto &points = wanted[static_cast<std::size_t>(cell)];
                ASSERT_EQ(nodes.size(), points.size());
                for (std::size_t k = 0; k < nodes.size(); k++)
                    for (std::size_t d = 0; d < 3; d++)
                        EXPECT_NEAR(read.coordinates[static_cast<std::size_t>(nodes[k])][d], points[k][d], 1e-15)
                            << "cell " << cell << ", node " << k;
            }
        }
}

TEST(GmshReader, FacesWithoutGroupsArePatchesByEntity) {
    const std::string text =
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n"
        "$Elements\n6\n1 15 2 0 1 1\n2 1 2 0 5 1 2\n3 1 2 0 5 2 3\n4 1 2 0 3 3 4\n5 1 2 0 3 4 1\n"
        "6 3 2 0 1 1 2 3 4\n$EndElements\n";
    const SourceMesh mesh = readWhole(text);
    ASSERT_EQ(mesh.patches.size(), 2u);
    EXPECT_EQ(mesh.patches[0].name, "entity_3");
    EXPECT_EQ(mesh.patches[1].name, "entity_5");
    EXPECT_EQ(mesh.faceMarks, (std::vector<int>{1, 1, 0, 0}));
    EXPECT_EQ(mesh.physicalDimension, 2);
    EXPECT_EQ(mesh.cells.fileIds, (std::vector<index>{6}));
}

TEST(GmshReader, FacesOfSeveralGroupsAreListedWithEach) {
    const std::string text =
        "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n1 4 \"wall\"\n$EndPhysicalNames\n"
        "$Entities\n0 2 1 0\n1 0 0 0 1 1 1 2 7 -4 0\n2 0 0 0 1 1 1 0 0\n1 0 0 0 1 1 1 0 0\n$EndEntities\n"
        "$Nodes\n1 3 1 3\n2 1 0 3\n1\n2\n3\n0 0 0\n1 0 0\n0 1 0\n$EndNodes\n"
        "$Elements\n3 4 1 4\n1 1 1 1\n1 1 2\n1 2 1 2\n2 2 3\n3 3 1\n2 1 2 1\n4 1 2 3\n$EndElements\n";
    const SourceMesh mesh = readWhole(text);
    ASSERT_EQ(mesh.patches.size(), 2u);
    EXPECT_EQ(mesh.patches[0].name, "wall");
    EXPECT_EQ(mesh.patches[1].name, "physical_7");
    EXPECT_EQ(mesh.faceMarks, (std::vector<int>{0, 1})); // faces on entity 2 are in no group
    EXPECT_EQ(mesh.faces.nodes, (std::vector<index>{0, 1, 0, 1}));
}

/// Version 2 has one group an element: Gmsh lists cells once for each of their groups, with other numbers.
TEST(GmshReader, CellsOfSeveralGroupsAreReadOnce) {
    const auto text = [](index entity) {
        std::string cells;
        for (index group = 7; group <= 9; group++)
            for (index x = 0; x < 20; x++) // a strip of squares; the second half is in one group, entity 2
                if (x < 10 || group == 7)
                    cells += fmt::format("{} 3 2 {} {} {} {} {} {}\n", 100 * group + x, group, x < 10 ? 1 : entity,
                                         2 * x + 1, 2 * x + 3, 2 * x + 4, 2 * x + 2);
        std::string nodes;
        for (index x = 0; x <= 20; x++)
            nodes += fmt::format("{} {} 0 0\n{} {} 1 0\n", 2 * x + 1, x, 2 * x + 2, x);
        return fmt::format("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n42\n{}$EndNodes\n$Elements\n40\n{}"
                           "$EndElements\n",
                           nodes, cells);
    };
    for (const index entity : {2, 1}) {
        const SourceMesh mesh = readWhole(text(entity));
        ASSERT_EQ(mesh.cells.size(), 20);
        for (index x = 0; x < 20; x++)
            EXPECT_EQ(mesh.cells.fileIds[static_cast<std::size_t>(x)], 700 + x) << "the first is kept";
        EXPECT_NEAR(test::measure(mesh), 20, 1e-12);
        ASSERT_EQ(mesh.notes.size(), 1U);
        EXPECT_NE(mesh.notes[0].find("20 cells that are listed again"), std::string::npos);
    }
}

TEST(GmshReader, PeriodicLinksBecomeConnections) {
    const real angle = 0.5;
    const std::string map = fmt::format("{:.17g} {:.17g} 0 3 {:.17g} {:.17g} 0 4 0 0 1 5 0 0 0 1", std::cos(angle),
                                        -std::sin(angle), std::sin(angle), std::cos(angle));
    const std::string version2 =
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n1 0 0 0\n2 1 0 0\n3 1 1 0\n$EndNodes\n"
        "$Elements\n4\n1 1 2 9 5 1 2\n2 1 2 9 6 2 3\n3 1 2 9 7 3 1\n4 2 2 0 1 1 2 3\n$EndElements\n"
        "$Periodic\n3\n0 2 1\n1\n2 1\n1 6 5\nAffine " +
        map + "\n2\n2 1\n3 2\n1 7 5\n0\n$EndPeriodic\n";
    const std::string version4 =
        "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 3 1 3\n2 1 0 3\n1\n2\n3\n0 0 0\n1 0 0\n1 1 0\n$EndNodes\n"
        "$Elements\n4 4 1 4\n1 5 1 1\n1 1 2\n1 6 1 1\n2 2 3\n1 7 1 1\n3 3 1\n2 1 2 1\n4 1 2 3\n$EndElements\n"
        "$Periodic\n3\n0 2 1\n0\n1\n2 1\n1 6 5\n16 " +
        map + "\n2\n2 1\n3 2\n1 7 5\n0\n0\n$EndPeriodic\n";
    const std::string version40 =
        "$MeshFormat\n4 0 8\n$EndMeshFormat\n$Nodes\n1 3\n1 2 0 3\n1 0 0 0\n2 1 0 0\n3 1 1 0\n$EndNodes\n"
        "$Elements\n4 4\n5 1 1 1\n1 1 2\n6 1 1 1\n2 2 3\n7 1 1 1\n3 3 1\n1 2 2 1\n4 1 2 3\n$EndElements\n" +
        version2.substr(version2.find("$Periodic"));
    for (const std::string &text : {version2, version40, version4}) {
        const SourceMesh mesh = readWhole(text);
        ASSERT_EQ(mesh.periodic.size(), 1u);
        EXPECT_NEAR(mesh.periodic[0].transform.angles[2], angle, 1e-15);
        EXPECT_EQ(mesh.periodic[0].transform.translation, (std::array<real, 3>{3, 4, 5}));
        EXPECT_EQ(mesh.faceMarks, (std::vector<int>{-1, -2, 0}));
        ASSERT_EQ(mesh.warnings.size(), 1u); // the link without a map
        EXPECT_NE(mesh.warnings[0].find("from entity 5 to 7"), std::string::npos);
    }
}

/// Version 2 has text here in binary files, too; that of 4.1 differs from its text in nothing but widths.
TEST(GmshReader, BinaryPeriodicLinksOfVersion40AreRead) {
    const SourceMesh expected = box(BoxCells::MixedSurface);
    const std::array<int, 4> marks{-1, -2, 0, 1}; // of the four sides
    for (const bool swapped : {false, true}) {
        std::string text = gmshFile(expected, {.version = 40, .binary = true, .swapped = swapped}) + "$Periodic\n";
        const auto append = [&](auto value) {
            std::string bytes(sizeof(value), ' ');
            std::memcpy(bytes.data(), &value, sizeof(value));
            text += swapped ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
        };
        for (const std::int32_t value : {2, 0, 7, 5}) // the second link, of points, has no map
            append(value);
        append(std::int64_t{1});
        for (const std::int32_t value : {1, 2, 1, 2, 1})
            append(value);
        append(std::int64_t{-1});
        for (const real value : {1, 0, 0, 3, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1})
            append(value);
        append(std::int64_t{2});
        for (const std::int32_t value : {1, 2, 3, 4})
            append(value);
        const SourceMesh mesh = readWhole(text + "\n$EndPeriodic\n");
        ASSERT_EQ(mesh.periodic.size(), 1U);
        EXPECT_EQ(mesh.periodic[0].transform.translation, (std::array<real, 3>{3, 0, 0}));
        ASSERT_EQ(mesh.faceMarks.size(), expected.faceMarks.size());
        for (std::size_t f = 0; f < mesh.faceMarks.size(); f++)
            EXPECT_EQ(mesh.faceMarks[f], marks.at(static_cast<std::size_t>(expected.faceMarks[f])));
        EXPECT_NE(failureOf(text, readGmsh), "") << "no end";
        EXPECT_NE(failureOf(std::string_view(text).substr(0, text.size() - 12), readGmsh), "");
    }
}

TEST(GmshReader, NodesThatAreMissingOrTwiceAreNamed) {
    GmshFileOptions form;
    form.tagOf = [](index node) { return node == 17 ? 900001 : 3 * node + 1; };
    std::string text = gmshFile(box(BoxCells::Tetrahedra), form);
    text.replace(text.find("\n900001 "), 8, "\n900002 ");
    const std::string missing = failureOf(text, readGmsh);
    EXPECT_NE(missing.find("refers to node 900001, which is not in $Nodes"), std::string::npos) << missing;
    EXPECT_NE(missing.find(", line "), std::string::npos) << missing;
    text.replace(text.find("\n900002 "), 8, "\n1 ");
    const std::string twice = failureOf(text, readGmsh);
    EXPECT_NE(twice.find("have the same tag 1"), std::string::npos) << twice;
}

TEST(GmshReader, SaysWhatIsWrongAndWhere) {
    const std::string head = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n";
    const std::string nodes = "$Nodes\n3\n1 0 0 0\n2 1 0 0\n3 1 1 0\n$EndNodes\n";
    const std::pair<std::string, std::string> cases[] = {
        {"", "$MeshFormat"},
        {"$MeshFormat\n3.0 0 8\n$EndMeshFormat\n", "line 2: version 3.0"},
        {"$MeshFormat\n4.2 0 8\n$EndMeshFormat\n",
         "version 4.2 of the format is not supported; 2.0 to 2.2, 4.0 and 4.1 are"},
        {"$MeshFormat\n2.2 2 8\n", "the file type is 2"},
        {"$MeshFormat\n2.2 1 8\nabcdefgh", "expected the number 1"},
        {head + nodes, "the file has no $Elements"},
        {head, "the file has no $Nodes"},
        {head + "$Nodes\n3\n1 0 0 0\n2 1 0 0\n", "line 8: the file ends where more lines of nodes should be"},
        {head + "$Nodes\n2\n1 0 0 0\n2 1 0 0\n3 1 1 0\n$EndNodes\n", "line 8: expected $EndNodes"},
        {head + "$Nodes\n9000000000000\n1 0 0 0\n", "the number of nodes is 9000000000000, but"},
        {head + "$Nodes\n99999999999999999999\n1 0 0 0\n", "too large"},
        {head + "$Nodes\n-3\n", "the number of nodes is -3"},
        {head + "$Nodes\nthree\n", "'three', which is not an integer"},
        {head + "$Nodes\n1\n1 0 zero 0\n$EndNodes\n$Elements\n0\n$EndElements\n", "line 6: a coordinate is 'zero'"},
        {head + "$Nodes\n1\n1 0 nan 0\n$EndNodes\n$Elements\n0\n$EndElements\n", "a coordinate is 'nan'"},
        {head + "$Nodes\n1\n1 0 0\n$EndNodes\n$Elements\n0\n$EndElements\n",
         "line 6: the line ends where a coordinate"},
        {head + nodes + "$Elements\n1\n1 2 2 0 1 1 2 3 9\n$EndElements\n", "unexpected '9' at the end of the line"},
        {head + nodes + "$Elements\n1\n1 2 2 0 1 1 2\n$EndElements\n",
         "line 12: the line ends where a node of an element"},
        {head + nodes + "$Elements\n1\n1 2 2 0 1 1 2 4\n$EndElements\n", "line 12: element 1 refers to node 4"},
        {head + nodes + "$Elements\n1\n1 21 2 0 1 1 2 3\n$EndElements\n", "line 12: element 1 is of type 21"},
        {head + nodes + "$Elements\n1\n1 2 123456789 0 1 1 2 3\n$EndElements\n", "the number of tags is 123456789"},
        {head + nodes + "$Elements\n1\n1 1 2 0 1 1 2\n$EndElements\n", "has no cells"},
        {head + nodes + nodes, "unexpected $Nodes"},
        {head + nodes + "$Data\n1\n", "the file ends where $EndData should be"},
        {head + "nodes\n", "line 4: expected the name of a section"},
        {"$MeshFormat\n4 0 8\n$EndMeshFormat\n$Nodes\n2 3\n1 2 0 4\n", "the number of nodes in the block is 4"},
        {"$MeshFormat\n4 0 8\n$EndMeshFormat\n$Nodes\n1 3\n1 7 0 3\n", "line 6: the dimension is 7"},
        {"$MeshFormat\n4 0 8\n$EndMeshFormat\n$Nodes\n1 3 1 3\n", "line 5: unexpected '1 3' at the end of the line"},
        {"$MeshFormat\n4 0 8\n$EndMeshFormat\n$Nodes\n1 3\n1 2 0 2\n1 0 0 0\n2 0 0 1\n$EndNodes\n",
         "the blocks have 2 nodes, and 3 were announced"},
        {"$MeshFormat\n4 0 8\n$EndMeshFormat\n$Nodes\n1 1\n1 1 1 1\n1 0 0 0\n$EndNodes\n$Elements\n0 0\n$EndElements\n",
         "line 7: the line ends where a parameter"},
        {"$MeshFormat\n4 0 8\n$EndMeshFormat\n$Nodes\n1 1\n1 2 0 1\n1 0 0 0\n$EndNodes\n$Elements\n1 1\n1 3 2 1\n",
         "line 11: elements of type 2 on an entity of dimension 3"},
        {"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n2 3 1 3\n2 1 0 4\n", "the number of nodes in the block is 4"},
        {"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 3 1 3\n2 1 0 2\n1\n2\n0 0 0\n0 0 1\n$EndNodes\n",
         "the blocks have 2 nodes, and 3 were announced"},
        {"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 1 1 1\n2 1 0 1\n1\n0 0 0\n$EndNodes\n$Elements\n1 1 1 1\n3 1 "
         "2 1\n",
         "line 12: elements of type 2 on an entity of dimension 3"}};
    for (const auto &[text, expected] : cases) {
        const std::string message = failureOf(text, readGmsh);
        EXPECT_NE(message.find(expected), std::string::npos)
            << "'" << message << "' should contain '" << expected << "'";
    }
    const CommunicatorView comm(MPI_COMM_WORLD);
    EXPECT_THROW(readGmsh(comm, "/no/such/file.msh"), DataError);
    EXPECT_THROW(readGmsh(comm, "/tmp"), DataError);
}

TEST(GmshReader, TruncatedFilesOfEveryFormFailOnAllRanks) {
    for (const GmshFileOptions &form : allForms()) {
        std::string text = gmshFile(box(BoxCells::MixedSurface), form);
        text.resize(text.find("$EndElements"));
        for (std::size_t k = 1; k <= 6; k++)
            EXPECT_NE(failureOf(std::string_view(text).substr(0, text.size() * k / 6), readGmsh), "") << k;
    }
}

TEST(GmshReader, DamagedFilesFailOrAreRead) {
    std::mt19937_64 random(DNDS::test::seed()); // the same on all ranks
    for (const GmshFileOptions &form : allForms()) {
        const std::string good = gmshFile(box(BoxCells::MixedSurface), form);
        for (int k = 0; k < 8; k++) {
            std::string bad = good;
            bad[random() % bad.size()] = static_cast<char>(random() % 256); // of several errors ranks may name others
            failureOf(bad, readGmsh);
        }
    }
}

} // namespace
} // namespace DNDS::Geom
