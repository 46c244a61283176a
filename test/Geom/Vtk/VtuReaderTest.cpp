#include "DNDS/Geom/Vtk/VtuReader.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "Geom/Vtk/VtuFiles.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using test::TemporaryFile;
using test::vtuFile;
using test::VtuOptions;

/// A whole mesh on every rank.
SourceMesh wholeBox(BoxCells fill, bool secondOrder = false) {
    BoxMeshOptions options;
    options.fill = fill;
    options.secondOrder = secondOrder;
    options.cells = {4, 3, 2};
    return makeBoxMesh(options, 0, 1);
}

std::vector<VtuOptions> allForms() {
    std::vector<VtuOptions> forms{{}, {.single = true}};
    for (const auto &[format, base64] : {std::pair{"binary", true}, {"appended", false}, {"appended", true}})
        for (const bool bigEndian : {false, true})
            for (const bool wideHeaders : {false, true})
                for (const bool compressed : {false, true})
                    forms.push_back({format, base64, bigEndian, wideHeaders, compressed, wideHeaders == bigEndian});
    return forms;
}

/// The fields that `vtuFile` writes.
void expectFields(const MeshFields &fields, const SourceMesh &part) {
    ASSERT_EQ(fields.nodes.size(), 3U);
    for (std::size_t d = 0; d < 3; d++) {
        EXPECT_EQ(fields.nodes[d].name, std::string("place") + "XYZ"[d]);
        ASSERT_EQ(fields.nodes[d].values.size(), part.coordinates.size());
        for (std::size_t i = 0; i < part.coordinates.size(); i++)
            EXPECT_EQ(fields.nodes[d].values[i], part.coordinates[i][d]);
    }
    ASSERT_EQ(fields.cells.size(), 1U);
    EXPECT_EQ(fields.cells[0].name, "a < b");
    EXPECT_EQ(fields.cells[0].solution, "CellData");
    ASSERT_EQ(std::ssize(fields.cells[0].values), part.cells.size());
    for (index c = 0; c < part.cells.size(); c++)
        EXPECT_EQ(fields.cells[0].values[static_cast<std::size_t>(c)], static_cast<real>(part.cells.first + c) + 0.5);
}

void expectReads(const SourceMesh &whole, const VtuOptions &options) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".any", vtuFile(whole, options));
    EXPECT_EQ(meshFormat(comm, file.path()), MeshFormat::Vtu);
    MeshFields fields;
    CgnsOptions withFields;
    withFields.fields = &fields;
    const SourceMesh part = readMesh(comm, file.path(), withFields);
    EXPECT_EQ(part.warnings, std::vector<std::string>{});
    EXPECT_EQ(part.notes, std::vector<std::string>{});
    expectFields(fields, part);
    const SourceMesh mesh = test::gatherMesh(comm, part);
    EXPECT_EQ(mesh.cellDimension, whole.cellDimension);
    EXPECT_EQ(mesh.physicalDimension, whole.physicalDimension);
    ASSERT_EQ(mesh.coordinates.size(), whole.coordinates.size());
    for (std::size_t i = 0; i < mesh.coordinates.size(); i++)
        for (std::size_t d = 0; d < 3; d++)
            EXPECT_EQ(mesh.coordinates[i][d], options.single
                                                  ? static_cast<real>(static_cast<float>(whole.coordinates[i][d]))
                                                  : whole.coordinates[i][d]);
    test::expectSame(mesh.cells, whole.cells);
    EXPECT_EQ(mesh.faces.size(), 0);
}

/// Forms that this build reads.
bool readable(const VtuOptions &options) {
#ifdef DNDS_TEST_ZLIB
    return !options.compressed || options.format != "ascii";
#else
    return !options.compressed;
#endif
}

std::string failure(const std::string &content) {
    return test::failureOf(content, [](const CommunicatorView &comm, const std::string &path) {
        MeshFields fields;
        (void)readVtu(comm, path, &fields);
    });
}

void expectFailure(const std::string &content, const std::string &expected) {
    const std::string message = failure(content);
    EXPECT_NE(message.find(expected), std::string::npos) << message << "\nexpected: " << expected;
}

/// A whole file of one hexahedron's corners in text, and the same with a part replaced.
std::string squares() {
    SourceMesh mesh = wholeBox(BoxCells::Quadrilaterals);
    return vtuFile(mesh, {});
}
std::string replaced(std::string text, const std::string &from, const std::string &to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(VtuReader, ReadsAllFormsOfMixedCells) {
    const SourceMesh box = wholeBox(BoxCells::MixedVolume);
    for (const VtuOptions &options : allForms())
        if (readable(options))
            expectReads(box, options);
}

TEST(VtuReader, ReadsPolyhedraSurfacesAndSecondOrder) {
    for (const VtuOptions &options : {VtuOptions{}, VtuOptions{.format = "binary", .bigEndian = true},
                                      VtuOptions{.format = "appended", .wideHeaders = true, .numberedFaces = true}}) {
        for (const BoxCells fill : {BoxCells::Polyhedra, BoxCells::MixedSurface})
            expectReads(wholeBox(fill), options);
        for (const BoxCells fill : {BoxCells::Tetrahedra, BoxCells::Hexahedra, BoxCells::Prisms})
            expectReads(wholeBox(fill, true), options);
    }
}

TEST(VtuReader, RefusesCompressedArraysWithoutZlibAndByOthers) {
    const std::string file = vtuFile(wholeBox(BoxCells::MixedSurface), {.format = "binary", .compressed = true});
#ifndef DNDS_TEST_ZLIB
    expectFailure(file, "it was made without zlib; save the file without compression");
#endif
    expectFailure(replaced(file, "vtkZLibData", "vtkLZ4Data"),
                  "is compressed by vtkLZ4DataCompressor, which is not supported: save the file without compression");
}

TEST(VtuReader, SaysWhatIsWrong) {
    const std::string sound = squares();
    expectFailure(replaced(sound, "</Piece>", "</Piece><Piece></Piece>"),
                  "has 2 pieces, and only files of one are read");
    expectFailure(replaced(sound, "NumberOfCells=\"", "NumberOfCells=\"9"), "numbers, and 9");
    expectFailure(replaced(sound, "NumberOfCells=\"", "NumberOfCells=\"x"), "attribute NumberOfCells of Piece is 'x");
    expectFailure(replaced(sound, "NumberOfPoints=\"", "NumberOfPoints=\"99999999999"), "more than a file of");
    expectFailure(replaced(sound, "Name=\"offsets\"", "Name=\"ends\""), "its piece has no array 'offsets' in Cells");
    expectFailure(replaced(sound, "type=\"Int64\" Name=\"offsets\"", "type=\"Float32\" Name=\"offsets\""),
                  "array 'offsets' in Cells (byte ");
    expectFailure(replaced(sound, "type=\"Int64\" Name=\"offsets\"", "type=\"Float32\" Name=\"offsets\""),
                  "is of type Float32, and whole numbers are needed");
    expectFailure(replaced(sound, "type=\"UInt8\"", "type=\"Bit\""), "is of type 'Bit', which has no numbers");
    expectFailure(replaced(sound, "</Piece>", "</Peace>"), "</Peace> does not close what is open");
    expectFailure(replaced(sound, "<Points>", "<Points x=y>"), "the value of attribute x is not in quotes");
    expectFailure(replaced(sound, "a &lt; b", "a &other; b"), "an entity other than");
    expectFailure(replaced(sound, "<UnstructuredGrid>", "<UnstructuredGrid><![CDATA[]]>"), "CDATA is not supported");
    expectFailure(replaced(sound, "UnstructuredGrid", "PolyData"), "expected <VTKFile type=\"UnstructuredGrid\">");
    expectFailure(replaced(sound, "format=\"ascii\"", "format=\"hex\""), "is of format 'hex'");
    expectFailure(replaced(sound, "Name=\"place\"", "Name=\"place\" TimeStep=\"0\""), "has several time steps");
    const std::string polyhedra = vtuFile(wholeBox(BoxCells::Polyhedra), {});
    expectFailure(replaced(polyhedra, "Name=\"faceoffsets\"", "Name=\"other\""), "no array 'faceoffsets' in Cells");
    const std::string numbered = vtuFile(wholeBox(BoxCells::Polyhedra), {.numberedFaces = true});
    expectFailure(replaced(numbered, "Name=\"face_offsets\"", "Name=\"other\""), "no array 'face_offsets' in Cells");
    const std::size_t first = numbered.find("</InformationKey>", numbered.find("polyhedron_to_faces")) + 18;
    expectFailure(std::string(numbered).insert(first, "99999"), "has face 999990 of ");
    const std::size_t faces = polyhedra.find("</InformationKey>", polyhedra.find("Name=\"faces\"")) + 18;
    expectFailure(std::string(polyhedra).insert(faces, "1"), "has faces of cell 1 that do not end at");
    expectFailure(std::string(polyhedra).insert(faces, "-"), "has faces of cell 1 that do not end at");
}

TEST(VtuReader, SaysWhatIsWrongInBinaryArrays) {
    const SourceMesh box = wholeBox(BoxCells::Quadrilaterals);
    const std::string raw = vtuFile(box, {.format = "appended"});
    expectFailure(replaced(raw, "offset=\"0\"", "offset=\"99999\""), "has offset 99999 in ");
    expectFailure(replaced(raw, "  _", "  "), "appended data does not begin with '_'");
    expectFailure(replaced(raw, "\"Int64\"", "\"Int32\""), "array 'connectivity' in Cells");
    expectFailure(replaced(raw, "LittleEndian", "BigEndian"), "ends early: ");
    const std::string inText = vtuFile(box, {.format = "binary"});
    const std::size_t data = inText.find("</InformationKey>", inText.find("Name=\"Points\"")) + 18;
    expectFailure(std::string(inText).replace(data + 20, 1, "*"), "array 'Points' in Points");
    expectFailure(std::string(inText).replace(data + 20, 1, "*"), "has '*' in its base64");
#ifdef DNDS_TEST_ZLIB
    const std::string zlib = vtuFile(box, {.format = "appended", .compressed = true});
    const std::size_t begin = zlib.find("  _") + 3;
    for (std::size_t at = begin; at < zlib.size() - 40; at += 7) {
        std::string damaged = zlib;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
        EXPECT_NE(failure(damaged), "") << "byte " << at;
    }
#endif
}

TEST(VtuReader, LeavesOutWhatIsNoFieldAndCellsOfFewerDimensions) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    VtuOptions options;
    options.cellArrays = "<Array type=\"String\" Name=\"words\" format=\"ascii\">65 0</Array>\n"
                         "<DataArray type=\"Float32\" Name=\"short\" format=\"ascii\">1 2 3</DataArray>\n";
    SourceMesh mesh = wholeBox(BoxCells::Quadrilaterals);
    mesh.cells.types.push_back(ElementType::Bar2);
    mesh.cells.nodes.insert(mesh.cells.nodes.end(), {0, 1});
    mesh.cells.starts.push_back(std::ssize(mesh.cells.nodes));
    mesh.cells.fileIds.push_back(mesh.cells.size());
    const TemporaryFile file(".vtu", vtuFile(mesh, options));
    MeshFields fields;
    const SourceMesh read = readVtu(comm, file.path(), &fields);
    EXPECT_EQ(read.cells.globalSize, mesh.cells.size() - 1);
    ASSERT_EQ(read.notes.size(), 1U);
    EXPECT_NE(read.notes[0].find("1 cells of fewer than 2 dimensions are left out"), std::string::npos);
    ASSERT_EQ(read.warnings.size(), 2U);
    EXPECT_NE(read.warnings[0].find("'words' in CellData is of type 'String', which has no numbers, so it is left out"),
              std::string::npos)
        << read.warnings[0];
    EXPECT_NE(read.warnings[1].find("'short' in CellData has 3 numbers, and not 1 for each of"), std::string::npos)
        << read.warnings[1];
    ASSERT_EQ(fields.cells.size(), 1U);
    EXPECT_EQ(std::ssize(fields.cells[0].values), read.cells.size());
}

TEST(VtuReader, TruncatedFilesFailOnAllRanks) {
    for (const VtuOptions &options : {VtuOptions{}, VtuOptions{.format = "binary"}, VtuOptions{.format = "appended"},
                                      VtuOptions{.format = "appended", .base64 = true}}) {
        const std::string whole = vtuFile(wholeBox(BoxCells::MixedSurface), options);
        for (std::size_t k = 0; k < 40; k++) {
            const std::string cut = whole.substr(0, whole.size() * k / 40);
            expectFailure(cut, "the file ends without </VTKFile>: it is not complete");
            EXPECT_NE(failure(cut + "</VTKFile>"), "") << options.format << ' ' << k;
        }
    }
}

} // namespace
} // namespace DNDS::Geom
