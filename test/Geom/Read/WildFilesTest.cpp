// Gmsh and SU2 files as other programs write them: not as the manuals say, but as Gmsh and SU2 read them.

#include "DNDS/Geom/Gmsh/GmshReader.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Su2/Su2Reader.hpp"
#include "support/GatheredMesh.hpp"
#include "support/TemporaryFile.hpp"
#include "support/TemporaryFolder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace DNDS::Geom {
namespace {

using test::failureOf;
using test::TemporaryFile;

SourceMesh readWhole(const std::string &content, const CgnsOptions &options = {}) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".any", content);
    return test::gatherMesh(comm, readMesh(comm, file.path(), options));
}

std::string failure(const std::string &content) {
    return failureOf(content, [](CommunicatorView comm, const std::string &path) { return readMesh(comm, path); });
}

void expectFailure(const std::string &content, const std::string &expected) {
    const std::string message = failure(content);
    EXPECT_NE(message.find(expected), std::string::npos) << "'" << message << "' should contain '" << expected << "'";
}

void expectFailureOfFile(const std::string &path, const std::string &expected) {
    try {
        (void)readMesh(CommunicatorView(MPI_COMM_WORLD), path);
        ADD_FAILURE() << "nothing failed";
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find(expected), std::string::npos) << error.message();
    }
}

std::vector<std::string> namesOf(const SourceMesh &mesh) {
    std::vector<std::string> names;
    for (const BoundaryPatch &patch : mesh.patches)
        names.push_back(patch.name);
    return names;
}

using Names = std::vector<std::string>;

// ---------------------------------------------------------------------------------------------------------------------
// Gmsh

/// A square with edges in the groups 1 to 4.
const std::string square = "$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n"
                           "$Elements\n5\n1 1 2 1 1 1 2\n2 1 2 2 2 2 3\n3 1 2 3 3 3 4\n4 1 2 4 4 4 1\n"
                           "5 3 2 9 1 1 2 3 4\n$EndElements\n";
const std::string format2 = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n";

TEST(WildGmsh, SectionsMayComeBeforeTheFormat) {
    const std::string names = "$PhysicalNames\n1\n1 1 \"south\"\n$EndPhysicalNames\n";
    for (const std::string &before :
         {std::string("$Comments\nmade by a program\n$EndComments\n"), names + "\n$Anything\n1 2 3\n$EndAnything\n"}) {
        const SourceMesh mesh = readWhole(before + format2 + square);
        EXPECT_EQ(mesh.cells.size(), 1);
        const bool named = before.find("south") != std::string::npos;
        EXPECT_EQ(namesOf(mesh), (Names{named ? "south" : "physical_1", "physical_2", "physical_3", "physical_4"}));
    }
    expectFailure(square + format2, "line 1: expected $MeshFormat before '$Nodes'");
    expectFailure("$Comments\nno end\n", "the file ends where $EndComments should be");
    expectFailure("$Comments\n$EndComments\n", "the file ends where $MeshFormat should be");
}

TEST(WildGmsh, CommentsMayComeBeforeABinaryFile) {
    std::string file = "$Comments\nbinary\n$EndComments\n$MeshFormat\n2.2 1 8\n";
    const auto append = [&](auto value) {
        std::array<char, sizeof(value)> bytes;
        std::memcpy(bytes.data(), &value, sizeof(value));
        file.append(bytes.data(), bytes.size());
    };
    append(1);
    file += "\n$EndMeshFormat\n$Nodes\n3\n";
    const double points[3][2] = {{0, 0}, {1, 0}, {0, 1}};
    for (int node = 1; node <= 3; node++) {
        append(node);
        for (const double x : {points[node - 1][0], points[node - 1][1], 0.0})
            append(x);
    }
    file += "\n$EndNodes\n$Elements\n1\n";
    for (const int word : {2, 1, 2, 1, 0, 1, 1, 2, 3})
        append(word);
    file += "\n$EndElements\n";
    EXPECT_EQ(readWhole(file).cells.nodes, (std::vector<index>{0, 1, 2}));
}

TEST(WildGmsh, OtherVersionsAreNamedWithWhatToDo) {
    expectFailure("$NOD\n1\n1 0 0 0\n$ENDNOD\n", "line 1: $NOD belongs to version 1 of the format, which is not");
    for (const std::string version : {"1", "3", "3.0", "4.2", "5.0"}) {
        const std::string text = "$MeshFormat\n" + version + " 0 8\n$EndMeshFormat\n" + square;
        expectFailure(text,
                      "line 2: version " + version + " of the format is not supported; 2.0 to 2.2, 4.0 and 4.1 are");
        expectFailure(text, "-save -format msh41");
    }
}

TEST(WildGmsh, VersionsAreReadAsNumbers) {
    for (const std::string version : {"2.200000", "2.2000000000000002", "2", "2.0", "2.10"})
        EXPECT_EQ(failure("$MeshFormat\n" + version + " 0 8\n$EndMeshFormat\n" + square), "") << version;
    for (const std::string version : {"2.25", "2.2x", "nan", "-2.2", "1e999"})
        expectFailure("$MeshFormat\n" + version + " 0 8\n$EndMeshFormat\n" + square,
                      "version " + version + " of the format is not supported");
}

TEST(WildGmsh, HigherOrderIsNamedWithWhatToDo) {
    std::string text = format2 + square;
    const std::string element = "5 3 2 9 1 1 2 3 4";
    text.replace(text.find(element), element.size(), "5 36 2 9 1 1 2 3 4 1 2 3 4 1 2 3 4 1 2 3 4");
    expectFailure(text, "element 5 is of type 36 (quadrilaterals of order 3), which is not supported: only linear and "
                        "second-order types are; save the mesh with Mesh.ElementOrder = 1 or 2");
    expectFailure("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 1 1 1\n2 1 0 1\n1\n0 0 0\n$EndNodes\n$Elements\n"
                  "1 1 1 1\n2 1 21 1\n",
                  "elements of type 21 (triangles of order 3) are not supported");
}

TEST(WildGmsh, PhysicalNamesMayLackDimensionsAndHaveTextAfterThem) {
    const std::string names = "$PhysicalNames\n4\n1 \"south side\"\n2 east\n1 3 \"north\" # a note \"here\"\n"
                              "2 4 \"a surface, not a curve\"\n$EndPhysicalNames\n";
    const SourceMesh mesh = readWhole("$MeshFormat\n2.0 0 8\n$EndMeshFormat\n" + names + square);
    EXPECT_EQ(namesOf(mesh), (Names{"south side", "east", "north", "physical_4"}));
    expectFailure(format2 + "$PhysicalNames\n1\n7 1 \"name\"\n$EndPhysicalNames\n" + square,
                  "line 6: the dimension is 7");
}

TEST(WildGmsh, GroupsOfOneNameAreOnePatch) {
    const std::string names = "$PhysicalNames\n3\n1 1 \"wall\"\n1 2 \"east\"\n1 3 \"wall\"\n$EndPhysicalNames\n";
    const SourceMesh mesh = readWhole(format2 + names + square);
    EXPECT_EQ(namesOf(mesh), (Names{"wall", "east", "physical_4"}));
    EXPECT_EQ(mesh.faceMarks, (std::vector<int>{0, 1, 0, 2}));
}

TEST(WildGmsh, CoordinatesBeyondAllNumbersAreRefused) {
    const auto with = [](const std::string &coordinate) {
        std::string text = square;
        return format2 + text.replace(text.find("2 1 0 0"), 7, "2 " + coordinate + " 0 0");
    };
    EXPECT_EQ(failure(with("1e-400")), "") << "it is 0";
    for (const char *large : {"1e400", "-1e400", "1e999999999"})
        expectFailure(with(large), fmt::format("a coordinate is '{}', which is not a finite number", large));
}

TEST(WildGmsh, TextThatCannotBePrintedIsNotRepeated) {
    const std::string message = failure(format2 + "$Odd\x01\x1b[31m" + std::string(1000, 'x') + "\nno end\n");
    EXPECT_NE(message.find("the file ends where $EndOdd??[31mx"), std::string::npos) << message;
    EXPECT_LT(message.size(), 200U);
}

/// A strip of two squares, divided between them: curve 1 into 11 and 12, curve 2 not at all; 13 separates the parts.
std::string partitioned(bool withParentGroups, bool withPieceGroups, bool version40 = false) {
    const auto groups = [](bool with, int group) { return with ? fmt::format("1 {}", group) : std::string("0"); };
    std::string text = version40 ? "$MeshFormat\n4.0 0 8\n" : "$MeshFormat\n4.1 0 8\n";
    text += "$EndMeshFormat\n$PhysicalNames\n2\n1 5 \"wall\"\n1 6 \"part of wall\"\n"
            "$EndPhysicalNames\n$Entities\n0 2 1 0\n";
    text += fmt::format("1 0 0 0 2 0 0 {} 0\n2 0 0 0 2 1 0 0 0\n1 0 0 0 2 1 0 0 0\n$EndEntities\n",
                        groups(withParentGroups, 5));
    text += fmt::format("$PartitionedEntities\n2\n1\n21 1\n0 3 2 0\n11 1 1 1 1 0 0 0 1 0 0 {0} 0\n"
                        "12 1 1 1 2 1 0 0 2 0 0 {0} 0\n13 2 1 2 1 2 1 0 0 1 1 0 1 6 0\n"
                        "11 2 1 1 1 0 0 0 1 1 0 0 0\n12 2 1 1 2 1 0 0 2 1 0 0 0\n$EndPartitionedEntities\n",
                        groups(withPieceGroups, withParentGroups ? 6 : 5));
    if (version40)
        return text + "$Nodes\n1 6\n11 2 0 6\n1 0 0 0\n2 1 0 0\n3 2 0 0\n4 0 1 0\n5 1 1 0\n6 2 1 0\n$EndNodes\n"
                      "$Elements\n6 6\n11 1 1 1\n1 1 2\n12 1 1 1\n2 2 3\n13 1 1 1\n3 2 5\n2 1 1 1\n4 4 5\n"
                      "11 2 3 1\n5 1 2 5 4\n12 2 3 1\n6 2 3 6 5\n$EndElements\n";
    text += "$Nodes\n1 6 1 6\n2 11 0 6\n1\n2\n3\n4\n5\n6\n0 0 0\n1 0 0\n2 0 0\n0 1 0\n1 1 0\n2 1 0\n$EndNodes\n";
    text += "$Elements\n6 6 1 6\n1 11 1 1\n1 1 2\n1 12 1 1\n2 2 3\n1 13 1 1\n3 2 5\n1 2 1 1\n4 4 5\n"
            "2 11 3 1\n5 1 2 5 4\n2 12 3 1\n6 2 3 6 5\n$EndElements\n";
    return text;
}

TEST(WildGmsh, PartitionedFilesKeepTheirGroups) {
    for (const bool version40 : {true, false})
        for (const bool withPieceGroups : {true, false}) {
            const SourceMesh mesh = readWhole(partitioned(true, withPieceGroups, version40));
            EXPECT_EQ(namesOf(mesh), Names{"wall"}); // that of the parent, not those of parts or between them
            EXPECT_EQ(mesh.faces.nodes, (std::vector<index>{0, 1, 1, 2}));
            EXPECT_EQ(mesh.cells.size(), 2);
            EXPECT_TRUE(mesh.warnings.empty());
        }
    const SourceMesh ofPieces = readWhole(partitioned(false, true));
    EXPECT_EQ(namesOf(ofPieces), Names{"wall"});
    EXPECT_EQ(ofPieces.faces.nodes, (std::vector<index>{0, 1, 1, 2}));
    const SourceMesh none = readWhole(partitioned(false, false));
    EXPECT_EQ(namesOf(none), (Names{"entity_1", "entity_2"}));
    EXPECT_EQ(none.faceMarks, (std::vector<int>{0, 0, 1}));

    std::string cut = partitioned(true, true);
    cut.replace(cut.find("12 1 1 1 2 1 0 0 2"), 18, "12 1 1 9 2 1 0 0 2");
    expectFailure(cut, "line 21: ");
    expectFailure(format2 + "$PartitionedEntities\n1\n", "line 4: $PartitionedEntities belongs to version 4");
}

TEST(WildGmsh, PeriodicLinksWithoutElementsAreReported) {
    const std::string map = "Affine 1 0 0 0 0 1 0 1 0 0 1 0 0 0 0 1\n";
    const auto withLink = [&](const std::string &ends) {
        return format2 + square + "$Periodic\n1\n1 " + ends + "\n" + map + "2\n1 4\n2 3\n$EndPeriodic\n";
    };
    const SourceMesh good = readWhole(withLink("3 1"));
    EXPECT_EQ(good.periodic.size(), 1u);
    EXPECT_TRUE(good.warnings.empty());
    for (const std::string ends : {"3 8", "7 1"}) { // one side has no elements: then the other is a patch
        const SourceMesh mesh = readWhole(withLink(ends));
        EXPECT_TRUE(mesh.periodic.empty());
        EXPECT_EQ(mesh.patches.size(), 4u);
        ASSERT_EQ(mesh.warnings.size(), 1u);
        EXPECT_NE(mesh.warnings[0].find("has no line elements in the file; save it with all elements"),
                  std::string::npos)
            << mesh.warnings[0];
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// SU2

const std::string triangle = "NDIME= 2\nNELEM= 1\n5 0 1 2\nNPOIN= 3\n0 0\n1 0\n0 1\n";

TEST(WildSu2, MarkersMayBeSpelledAsSu2ReadsThem) {
    const SourceMesh mesh = readWhole(triangle + "NMARK= 3\nMARKERTAG= upper wall\nMARKER_ELEMS= 1\n3 0 1\n"
                                                 "Marker_Tag = wall1 % a comment\nMARKERELEMS= 1\n3 1 2\n"
                                                 "MARKER_TAG=upper side\nMarker_Elements= 1\n3 2 0\n");
    EXPECT_EQ(namesOf(mesh), (Names{"upperwall", "wall1", "upperside"})); // not one "upper"
    EXPECT_EQ(mesh.faceMarks, (std::vector<int>{0, 1, 2}));
    expectFailure(triangle + "NMARK= 1\nMARKERTAG= a\nMARK_LENGTH= 1\n3 0 1\n",
                  "line 10: expected MARKER_ELEMS= of marker a");
    expectFailure(triangle + "NMARK= 1\nMARKER_TAG= SEND_RECEIVE\nMARKER_ELEMS= 0\n",
                  "read the file from which they were made");
}

TEST(WildSu2, CommentsMayFollowNumbers) {
    const std::string text = "NDIME= 2% dimensions\nNELEM= 1% one\n5 0 1 2 0\nNPOIN= 3% three\n0 0 0\n1 0 1\n0 1 2\n"
                             "NMARK= 1%\nMARKER_TAG= wall\nMARKER_ELEMS= 1%\n3 0 1\n";
    EXPECT_EQ(failure(text), "");
    expectFailure(triangle + "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 2\n3 0 1\n% a comment\n3 1 2\n",
                  "or a comment inside");
}

TEST(WildSu2, MarkersHaveNoMoreElementsThanAnnounced) {
    expectFailure(triangle + "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 1\n3 0 1\n3 1 2\n",
                  "line 12: expected a keyword and '='");
    EXPECT_EQ(failure(triangle + "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 1\n3 0 1\nSEND_TO= 2\n3 1 2\n"), "")
        << "lines of other keywords";
}

TEST(WildSu2, KeywordsMayBeInLowerCaseAndMarkersUncounted) {
    const std::string marker = "MARKER_TAG= Wall\nMARKER_ELEMS= 1\n3 0 1\n";
    EXPECT_EQ(namesOf(readWhole(triangle + marker)), Names{"Wall"});
    EXPECT_EQ(namesOf(readWhole("ndime= 2\nnelem= 1\n5 0 1 2\nnpoin= 3\n0 0\n1 0\n0 1\nnmark= 1\n" + marker)),
              Names{"Wall"});
    expectFailure(triangle + "NMARK= 0\n" + marker, "marker Wall exceeds the number in NMARK=");
    expectFailure("NDIME= 2\nNELEM= 9\n5 0 1 2\nNPOIN= 3\n0 0\n1 0\n0 1\nNMARK= 1\n" + marker,
                  "the file has no NPOIN=, or it was taken for a line of the list before: NELEM= 9 may be too many");
}

TEST(WildFiles, ABaseIsRefusedWhereThereAreNone) {
    CgnsOptions options;
    options.base = "other";
    const auto messageOf = [&](const std::string &content) {
        return failureOf(content,
                         [&](CommunicatorView comm, const std::string &path) { return readMesh(comm, path, options); });
    };
    EXPECT_NE(messageOf(format2 + square).find("is a Gmsh file, which has no 'other'"), std::string::npos);
    EXPECT_NE(messageOf("4 0 0 1 0 0 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 2 3 4\n").find("is a UGRID file, which has no"),
              std::string::npos);
    EXPECT_NE(messageOf(triangle).find("there is no zone 'other': the file has one"), std::string::npos);
    options.base = "1";
    EXPECT_EQ(messageOf(triangle), "");
}

TEST(WildFiles, KindsOfOtherFilesAreNamedWithWhatConvertsThem) {
    const std::string nothing(4, '\0');
    const auto words = [](std::initializer_list<std::int32_t> values) {
        return std::string(reinterpret_cast<const char *>(values.begin()), 4 * values.size());
    };
    const std::pair<std::string, std::string> kinds[] = {
        {"", "it is empty"},
        {"\xef\xbb\xbf$MeshFormat\n", "it is text with a byte order mark; save it as text without one"},
        {"\x1f\x8b more", "it is compressed (gzip); unpack it"},
        {"# vtk DataFile Version 3.0\n", "it is a VTK file; meshio converts it"},
        {"<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\">", "it is a VTK file; meshio converts it"},
        {"<?xml version=\"1.0\"?>\n<VTKFile type=\"PUnstructuredGrid\">",
         "it is a list of VTK files (.pvtu); read its pieces (.vtu) one at a time"},
        {"<?xml version=\"1.0\"?>\n<!DOCTYPE Xdmf>\n<Xdmf>", "it is an XDMF file; meshio converts it"},
        {"<?xml version=\"1.0\"?>\n<html>", "it is XML"},
        {"CDF\x01" + nothing + "num_nodes num_elem", "it is an Exodus mesh; meshio converts it"},
        {"CDF\x02" + nothing + "time lat lon", "it is a NetCDF file without an Exodus mesh"},
        {"solid cube\nfacet normal", "it is a surface in STL, which has no cells"},
        {"ISO-10303-21;\nHEADER;", "it is a geometry in STEP; mesh it first"},
        {"TITLE = \"a flow\"\nVARIABLES = \"X\"", "it is a Tecplot file; meshio converts it"},
        {"(0 \"GAMBIT to Fluent File\")\n\n(2 3)\n", "it is a Fluent mesh; Fluent exports CGNS"},
        {"\nMeshVersionFormatted 2\nDimension 3\n", "it is a Medit mesh; Gmsh converts it"},
        {words({1, 3, 3, 36}), "it is a Medit mesh; Gmsh converts it"},
        {words({0x01000000, 0x03000000}), "it is a Medit mesh; Gmsh converts it"},
        {"$pyNastran: version=msc\n$NODES\nGRID           1              0.      0.      0.\n",
         "it is a Nastran file; Gmsh converts it"},
        {"SOL 101\nCEND\nBEGIN BULK\nGRID,1,,0.,0.,0.\n", "it is a Nastran file; Gmsh converts it"},
        {"*KEYWORD\n*NODE\n", "it is an LS-DYNA file"},
        {"*Heading\n a part\n*NODE\n1, 0., 0., 0.\n", "it is an Abaqus or CalculiX file; meshio converts it"},
        {"** a comment\n*NODE\n1, 0., 0., 0.\n", "it is an Abaqus or CalculiX file; meshio converts it"},
        {"    -1\n  2411\n         1         1         1        11\n", "it is an I-DEAS universal file (UNV)"},
        {"mesh3d\ndimension\n3\n", "it is a Netgen mesh; meshio converts it"},
        {"4 2 4\n0 0 1\n1 0 1\n1 1 1\n0 1 1\n1 2 3 0\n", "it is a FreeFem mesh; savemesh(Th, \"NEW.mesh\")"},
        {"no format of anybody", "(CGNS, Gmsh, OpenFOAM, SU2, UGRID, VTKHDF, VTU)"},
    };
    for (const auto &[content, expected] : kinds) {
        expectFailure(content, "is not a mesh file of a known format (CGNS, Gmsh, OpenFOAM, SU2, UGRID, VTKHDF, VTU)");
        expectFailure(content, expected);
    }
}

TEST(WildFiles, FilesOfOpenFoamAreReadFromTheirFolders) {
    expectFailure("/*---*- C++ -*---*\\\n|  a banner |\n\\*---*/\nFoamFile\n{\n version 2.0;",
                  "has no mesh of OpenFOAM: no files faces and owner in constant/polyMesh");
    const CommunicatorView comm(MPI_COMM_WORLD);
    const DNDS::test::TemporaryFolder folder;
    expectFailureOfFile(folder.path(), "is not a file");
    comm.guarded([&] {
        if (comm.rank() == 0)
            std::filesystem::create_directories(folder.path() + "/constant/polyMesh");
    });
    expectFailureOfFile(folder.path(), "has no mesh of OpenFOAM");
}

TEST(WildGmsh, NamesWithoutEntitiesAreToldToBeUseless) {
    const SourceMesh mesh =
        readWhole("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n1 7 \"wall\"\n$EndPhysicalNames\n"
                  "$Nodes\n1 3 1 3\n2 1 0 3\n1\n2\n3\n0 0 0\n1 0 0\n0 1 0\n$EndNodes\n"
                  "$Elements\n2 2 1 2\n2 1 2 1\n1 1 2 3\n1 1 1 1\n2 1 2\n$EndElements\n");
    ASSERT_EQ(mesh.warnings.size(), 1U);
    EXPECT_NE(mesh.warnings[0].find("$PhysicalNames without $Entities"), std::string::npos);
    EXPECT_EQ(namesOf(mesh), Names{"entity_1"});
}

TEST(WildSu2, KeywordsOfOthersMayComeFirst) {
    EXPECT_EQ(failure("FFD_NBOX= 1\nFFD_LEVEL= 0\n" + triangle), "");
    EXPECT_EQ(failure(std::string(6000, '%') + "\n" + triangle), "") << "a long comment";
}

TEST(WildFiles, OptionsThatDifferBetweenRanksAreRefused) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    if (comm.size() == 1)
        GTEST_SKIP() << "for several ranks";
    const TemporaryFile file(".su2", triangle);
    const bool last = comm.rank() == comm.size() - 1;
    MeshFields fields;
    for (int which = 0; which < 3; which++) {
        CgnsOptions options;
        options.base = last && which == 0 ? "other" : "";
        options.joinCoincidentNodes = last && which == 1;
        options.fields = last && which == 2 ? &fields : nullptr;
        try {
            (void)readMesh(comm, file.path(), options);
            ADD_FAILURE() << "no error";
        } catch (const ArgumentError &error) {
            EXPECT_NE(std::string(error.what()).find("options differ between ranks"), std::string::npos)
                << error.what();
        }
    }
}

TEST(WildSu2, OneOfSeveralZonesIsRead) {
    const std::string other = "NDIME= 2\nNELEM= 1\n9 0 1 2 3\nNPOIN= 4\n0 0\n2 0\n2 2\n0 2\n"
                              "NMARK= 1\nMARKER_TAG= side\nMARKER_ELEMS= 1\n3 1 2\n";
    const std::string first = triangle + "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 2\n3 0 1\n3 1 2\n";
    const std::string text = "NZONE= 2\n\nIZONE= 1\n" + first + "% between\nIZONE= 2\n" + other;
    CgnsOptions options;
    options.base = "1";
    const SourceMesh one = readWhole(text, options);
    EXPECT_EQ(one.cells.types, std::vector{ElementType::Tri3});
    EXPECT_EQ(namesOf(one), Names{"wall"});
    EXPECT_EQ(one.faces.size(), 2);
    options.base = "2";
    const SourceMesh two = readWhole(text, options);
    EXPECT_EQ(two.cells.types, std::vector{ElementType::Quad4});
    EXPECT_EQ(two.coordinates[2], (std::array<real, 3>{2, 2, 0}));
    EXPECT_EQ(namesOf(two), Names{"side"});

    expectFailure(text, "line 1: files of several zones are read one zone at a time: choose one from 1 to 2");
    const auto failureWith = [&](const std::string &content, const std::string &zone) {
        return failureOf(content,
                         [&](CommunicatorView comm, const std::string &path) { return readSu2(comm, path, zone); });
    };
    for (const std::string zone : {"0", "3", "two", "2x"})
        EXPECT_NE(failureWith(text, zone).find("there is no zone '" + zone + "'"), std::string::npos);
    EXPECT_NE(failureWith("NZONE= 2\nIZONE= 1\n" + first, "2").find("the file has no IZONE= 2"), std::string::npos);
    EXPECT_NE(failureWith("NZONE= 2\nIZONE= 1\n" + first + "IZONE= 1\n" + first, "1").find("IZONE= 1 is repeated"),
              std::string::npos);
}

} // namespace
} // namespace DNDS::Geom
