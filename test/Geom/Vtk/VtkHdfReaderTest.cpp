#include "DNDS/Geom/Vtk/VtkHdfReader.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Vtk/VtkElements.hpp"
#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using test::TemporaryFile;

void expectRefused(const std::string &path, const std::string &expected) {
    try {
        (void)readMesh(CommunicatorView(MPI_COMM_WORLD), path);
        ADD_FAILURE() << "read, but expected: " << expected;
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find(expected), std::string::npos) << error.message();
        EXPECT_NE(error.message().find(path), std::string::npos) << error.message();
    }
}

/// A file as other programs write it: one cell of each list, Type as text of variable length on request.
struct OtherVtkHdf {
    std::string type = "UnstructuredGrid";
    bool variableText = false;
    std::vector<index> pieces; ///< their numbers of points
    std::vector<float> points;
    std::vector<index> types;
    std::vector<index> offsets;
    std::vector<index> connectivity;
    std::vector<index> partsOfSteps; ///< empty: no steps
    std::map<std::string, std::vector<float>> cellData;

    void write(const std::string &path) const {
        const CommunicatorView comm(MPI_COMM_WORLD);
        if (comm.rank() == 0) {
            const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
            const hid_t group = H5Gcreate2(file, "VTKHDF", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            const hid_t text = H5Tcopy(H5T_C_S1);
            H5Tset_size(text, variableText ? H5T_VARIABLE : type.size());
            const hid_t scalar = H5Screate(H5S_SCALAR);
            const hid_t attribute = H5Acreate2(group, "Type", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
            const char *begin = type.c_str();
            H5Awrite(attribute, text, variableText ? static_cast<const void *>(&begin) : begin);
            for (const hid_t id : {attribute})
                H5Aclose(id);
            H5Sclose(scalar);
            H5Tclose(text);
            writeData(group, "NumberOfPoints", H5T_NATIVE_INT64, {pieces.size()}, pieces.data());
            for (const auto &[name, list] :
                 {std::pair{"NumberOfCells", &types}, {"NumberOfConnectivityIds", &connectivity}}) {
                const index size = std::ssize(*list);
                writeData(group, name, H5T_NATIVE_INT64, {1}, &size);
            }
            if (!partsOfSteps.empty()) {
                const hid_t steps = H5Gcreate2(group, "Steps", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                writeData(steps, "NumberOfParts", H5T_NATIVE_INT64, {partsOfSteps.size()}, partsOfSteps.data());
                H5Gclose(steps);
            }
            const hid_t data = H5Gcreate2(group, "CellData", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            for (const auto &[name, values] : cellData)
                writeData(data, name.c_str(), H5T_NATIVE_FLOAT, {values.size()}, values.data());
            H5Gclose(data);
            writeData(group, "Points", H5T_NATIVE_FLOAT, {points.size() / 3, 3}, points.data());
            writeData(group, "Types", H5T_NATIVE_INT64, {types.size()}, types.data());
            writeData(group, "Offsets", H5T_NATIVE_INT64, {offsets.size()}, offsets.data());
            writeData(group, "Connectivity", H5T_NATIVE_INT64, {connectivity.size()}, connectivity.data());
            H5Gclose(group);
            H5Fclose(file);
        }
        comm.barrier();
    }
    static void writeData(hid_t group, const char *name, hid_t type, const std::vector<hsize_t> &size,
                          const void *values) {
        const hid_t space = H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr);
        const hid_t data = H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Dclose(data);
        H5Sclose(space);
    }
};

/// A voxel and a pixel on it: VTK lists their points by rows in x.
OtherVtkHdf voxels() {
    OtherVtkHdf file;
    for (const float z : {0.F, 2.F})
        for (const float y : {0.F, 1.F})
            for (const float x : {0.F, 1.F})
                file.points.insert(file.points.end(), {x, y, z});
    file.pieces = {8};
    file.types = {11, 8};
    file.offsets = {0, 8, 12};
    file.connectivity = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3};
    return file;
}

/// Those of the test below at the time 1: x, the place of each node, and u, the number of each cell and a half.
void expectFieldsOfTheLastStep(const MeshFields &fields, const SourceMesh &part) {
    ASSERT_EQ(fields.nodes.size(), 3U);
    for (std::size_t d = 0; d < 3; d++) {
        EXPECT_EQ(fields.nodes[d].name, std::string("x") + "XYZ"[d]);
        ASSERT_EQ(fields.nodes[d].values.size(), part.coordinates.size());
        for (std::size_t i = 0; i < part.coordinates.size(); i++)
            EXPECT_EQ(fields.nodes[d].values[i], part.coordinates[i][d]);
    }
    ASSERT_EQ(fields.cells.size(), 1U);
    EXPECT_EQ(fields.cells[0].name, "u");
    ASSERT_EQ(std::ssize(fields.cells[0].values), part.cells.size());
    for (index c = 0; c < part.cells.size(); c++)
        EXPECT_EQ(fields.cells[0].values[static_cast<std::size_t>(c)], static_cast<real>(part.cells.first + c) + 0.5);
}

TEST(VtkHdfReader, ReadsWhatTheWriterWrites) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Polyhedra, BoxCells::MixedSurface}) {
        BoxMeshOptions options;
        options.fill = fill;
        options.cells = {4, 3, 2};
        const SourceMesh box = makeBoxMesh(options, comm);
        const TemporaryFile file(".any");
        VtkHdfWriter writer(comm, file.path(), sliceOf(box));
        std::vector<real> places; // a vector at each node
        for (const auto &point : box.coordinates)
            places.insert(places.end(), point.begin(), point.end());
        for (const real time : {0.0, 1.0}) {
            std::vector<real> field;
            for (index c = 0; c < box.cells.size(); c++)
                field.push_back(static_cast<real>(box.cells.first + c) + 0.5 * time);
            writer.writeStep(time, std::array{FieldSlice{"x", 3, places}}, std::array{FieldSlice{"u", 1, field}});
        }
        writer.close();
        EXPECT_EQ(meshFormat(comm, file.path()), MeshFormat::VtkHdf);
        MeshFields fields;
        CgnsOptions withFields;
        withFields.fields = &fields;
        const SourceMesh part = readMesh(comm, file.path(), withFields);
        EXPECT_EQ(part.warnings, std::vector<std::string>{});
        expectFieldsOfTheLastStep(fields, part);
        const SourceMesh mesh = test::gatherMesh(comm, part);
        const SourceMesh expected = test::gatherMesh(comm, box);
        EXPECT_EQ(mesh.cellDimension, expected.cellDimension);
        EXPECT_EQ(mesh.physicalDimension, expected.physicalDimension);
        EXPECT_EQ(mesh.coordinates, expected.coordinates);
        test::expectSame(mesh.cells, expected.cells);
        EXPECT_EQ(mesh.faces.size(), 0);
    }
}

TEST(VtkHdfReader, ReadsSecondOrderCells) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    SourceMesh mesh;
    mesh.cellDimension = mesh.physicalDimension = 3;
    for (const ElementType type : {ElementType::Tetra10, ElementType::Pyra5, ElementType::Pyra13, ElementType::Penta15,
                                   ElementType::Penta18, ElementType::Hexa20, ElementType::Hexa27}) {
        if (comm.rank() != comm.size() - 1)
            break; // other ranks have nothing
        for (int k = 0; k < elementInfo(type).nodes; k++) {
            mesh.cells.nodes.push_back(mesh.nodes());
            mesh.coordinates.push_back({static_cast<real>(k), static_cast<real>(type), 0.5});
        }
        mesh.cells.types.push_back(type);
        mesh.cells.starts.push_back(static_cast<index>(mesh.cells.nodes.size()));
        mesh.cells.fileIds.push_back(mesh.cells.size());
    }
    mesh.globalNodes = comm.allReduce(mesh.nodes(), MPI_SUM);
    mesh.cells.globalSize = comm.allReduce(mesh.cells.size(), MPI_SUM);
    const TemporaryFile file(".vtkhdf");
    VtkHdfWriter(comm, file.path(), sliceOf(mesh)).close();
    const SourceMesh read = test::gatherMesh(comm, readMesh(comm, file.path()));
    const SourceMesh expected = test::gatherMesh(comm, mesh);
    EXPECT_EQ(read.coordinates, expected.coordinates);
    test::expectSame(read.cells, expected.cells);
}

TEST(VtkHdfReader, ReadsFilesOfOtherPrograms) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const bool variableText : {false, true}) {
        const TemporaryFile file(".hdf");
        OtherVtkHdf content = voxels();
        content.variableText = variableText;
        content.cellData = {{"a", {5, 7}}, {"b", {1, 2, 3}}};
        content.write(file.path());
        MeshFields fields;
        CgnsOptions withFields;
        withFields.fields = &fields;
        const SourceMesh mesh = test::gatherMesh(comm, readMesh(comm, file.path(), withFields));
        ASSERT_EQ(fields.cells.size(), 1U) << "of the hexahedron, not of the quadrilateral";
        const std::vector<real> &own = fields.cells[0].values;
        EXPECT_EQ(comm.allReduce(std::accumulate(own.begin(), own.end(), real{0}), MPI_SUM), 5);
        EXPECT_EQ(comm.allReduce(std::ssize(own), MPI_SUM), 1);
        ASSERT_EQ(mesh.warnings.size(), 1U);
        EXPECT_NE(mesh.warnings[0].find("VTKHDF/CellData/b has 3 rows, and not 2 from row 0 on, so it is left out"),
                  std::string::npos);
        ASSERT_EQ(mesh.cells.size(), 1);
        EXPECT_EQ(mesh.cells.types[0], ElementType::Hexa8);
        EXPECT_NEAR(test::measure(mesh, 0), 2, 1e-12);
        ASSERT_EQ(mesh.notes.size(), 1U);
        EXPECT_NE(mesh.notes[0].find("1 cells of fewer than 3 dimensions are left out"), std::string::npos);
    }
}

TEST(VtkHdfReader, SaysWhatIsWrong) {
    const auto expect = [](const OtherVtkHdf &content, const std::string &expected) {
        const TemporaryFile file(".vtkhdf");
        content.write(file.path());
        expectRefused(file.path(), expected);
    };
    OtherVtkHdf bad = voxels();
    bad.type = "ImageData";
    expect(bad, "is a VTKHDF file of type 'ImageData'; only an UnstructuredGrid is a mesh");
    bad = voxels();
    bad.pieces = {4, 4};
    expect(bad, "has 2 pieces, and each lists the nodes between them");
    bad = voxels();
    bad.partsOfSteps = {1, 1};
    bad.points.insert(bad.points.end(), 24, 0.5F); // of the second step
    expect(bad, "VTKHDF/Points has 16 rows, but NumberOfPoints is 8: the mesh changes with time, so save one step");
    bad = voxels();
    bad.types[0] = 6;
    expect(bad, "cell 1 has VTK's type 6, which is not supported");
    for (const index type : {-1, 256}) {
        bad.types[0] = type;
        expect(bad, "cell 1 has VTK's type " + std::to_string(type) + ", which is not supported");
    }
    bad = voxels();
    bad.types[0] = 10;
    expect(bad, "cell 1 has VTK's type 10 and 8 nodes");
    bad = voxels();
    bad.connectivity[3] = 8;
    expect(bad, "cell 1 has point 8 of 8");
    bad = voxels();
    bad.offsets = {0, 9, 8};
    expect(bad, "VTKHDF/Offsets does not ascend");
    bad = voxels();
    bad.offsets = {0, 8};
    expect(bad, "VTKHDF/Offsets has 2 rows, and 3 are needed");
    bad = voxels();
    bad.offsets[2] = 100;
    expect(bad, "VTKHDF/Connectivity has 12 rows, and 100 are needed");
    bad = voxels();
    bad.types = {42, 8};
    expect(bad, "VTKHDF/PolyhedronOffsets is not there");
    bad = voxels();
    bad.types = {3, 3};
    expect(bad, "has no cells of two or three dimensions");
}

TEST(VtkHdfReader, TruncatedFilesFailOnAllRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    voxels().write(file.path());
    std::ifstream whole(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
    comm.barrier();
    for (std::size_t k = 1; k < 12; k++) {
        const TemporaryFile cut(".vtkhdf", std::string_view(bytes).substr(0, bytes.size() * k / 12));
        EXPECT_THROW(readMesh(comm, cut.path()), DataError) << k;
    }
}

} // namespace
} // namespace DNDS::Geom
