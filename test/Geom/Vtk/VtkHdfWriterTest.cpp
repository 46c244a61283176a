#include "DNDS/Geom/Vtk/VtkHdfWriter.hpp"

#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Vtk/VtkElements.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace DNDS::Geom {
namespace {

using test::TemporaryFile;

/// A file read by this rank alone.
class Hdf {
  public:
    explicit Hdf(const std::string &path) : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {}
    Hdf(const Hdf &) = delete;
    Hdf &operator=(const Hdf &) = delete;
    ~Hdf() { H5Fclose(file_); }

    bool has(const std::string &name) const { return H5Lexists(file_, name.c_str(), H5P_DEFAULT) > 0; }
    std::vector<index> shape(const std::string &name) const {
        const hid_t data = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
        const hid_t space = H5Dget_space(data);
        std::vector<hsize_t> sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
        H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
        H5Sclose(space);
        H5Dclose(data);
        return {sizes.begin(), sizes.end()};
    }
    template <class T>
    std::vector<T> values(const std::string &name) const {
        index count = 1;
        for (const index size : shape(name))
            count *= size;
        std::vector<T> result(static_cast<std::size_t>(count));
        const hid_t data = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
        const hid_t type = std::is_same_v<T, real> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;
        EXPECT_GE(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.data()), 0) << name;
        H5Dclose(data);
        return result;
    }
    std::vector<index> attribute(const std::string &object, const char *name, std::size_t count) const {
        std::vector<index> result(count);
        const hid_t id = H5Aopen_by_name(file_, object.c_str(), name, H5P_DEFAULT, H5P_DEFAULT);
        EXPECT_GE(H5Aread(id, H5T_NATIVE_INT64, result.data()), 0) << name;
        H5Aclose(id);
        return result;
    }

  private:
    hid_t file_;
};

SourceMesh boxOf(BoxCells fill, CommunicatorView comm) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {4, 3, 2};
    options.jitter = 0.1;
    options.shuffled = true;
    options.seed = DNDS::test::seed();
    return makeBoxMesh(options, comm);
}

/// A value for each row and component that is known everywhere.
std::vector<real> valuesOf(index first, index rows, int components, real time) {
    std::vector<real> values;
    for (index row = first; row < first + rows; row++)
        for (int c = 0; c < components; c++)
            values.push_back(std::sin(static_cast<real>(row * components + c)) + time);
    return values;
}

void writeSteps(CommunicatorView comm, const std::string &path, const SourceMesh &mesh, int steps) {
    VtkHdfWriter writer(comm, path, sliceOf(mesh));
    for (int step = 0; step < steps; step++) {
        const auto pressure = valuesOf(mesh.firstNode, mesh.nodes(), 1, step);
        const auto velocity = valuesOf(mesh.cells.first, mesh.cells.size(), 3, 10 * step);
        const FieldSlice pointFields[] = {{"pressure", 1, pressure}};
        const FieldSlice cellFields[] = {{"velocity", 3, velocity}};
        writer.writeStep(0.5 * step, pointFields, cellFields);
    }
    if (comm.rank() == 0) {
        EXPECT_FALSE(std::filesystem::exists(path));
    }
    writer.close();
    EXPECT_THROW(writer.close(), StateError);
}

TEST(VtkHdfWriter, WritesTheMeshInOnePiece) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    const SourceMesh mesh = boxOf(BoxCells::MixedVolume, comm);
    writeSteps(comm, file.path(), mesh, 0);
    const SourceMesh whole = test::gatherMesh(comm, mesh);
    const Hdf hdf(file.path());
    EXPECT_EQ(hdf.attribute("VTKHDF", "Version", 2), (std::vector<index>{2, 0}));
    EXPECT_EQ(hdf.values<index>("VTKHDF/NumberOfPoints"), (std::vector<index>{whole.nodes()}));
    EXPECT_EQ(hdf.values<index>("VTKHDF/NumberOfCells"), (std::vector<index>{whole.cells.size()}));
    EXPECT_EQ(hdf.shape("VTKHDF/Points"), (std::vector<index>{whole.nodes(), 3}));
    std::vector<real> points;
    for (const auto &p : whole.coordinates)
        points.insert(points.end(), p.begin(), p.end());
    EXPECT_EQ(hdf.values<real>("VTKHDF/Points"), points);
    EXPECT_EQ(hdf.values<index>("VTKHDF/Offsets"), whole.cells.starts);
    const std::map<ElementType, index> numbers{
        {ElementType::Tetra4, 10}, {ElementType::Hexa8, 12}, {ElementType::Penta6, 13}, {ElementType::Pyra5, 14}};
    const std::vector<index> types = hdf.values<index>("VTKHDF/Types");
    const std::vector<index> connectivity = hdf.values<index>("VTKHDF/Connectivity");
    ASSERT_EQ(types.size(), whole.cells.types.size());
    ASSERT_EQ(connectivity.size(), whole.cells.nodes.size());
    EXPECT_EQ(hdf.values<index>("VTKHDF/NumberOfConnectivityIds")[0], static_cast<index>(connectivity.size()));
    for (index c = 0; c < whole.cells.size(); c++) {
        const ElementType type = whole.cells.types[static_cast<std::size_t>(c)];
        EXPECT_EQ(types[static_cast<std::size_t>(c)], numbers.at(type));
        const auto nodes = whole.cells.nodesOf(c);
        const auto at = connectivity.begin() + whole.cells.starts[static_cast<std::size_t>(c)];
        EXPECT_TRUE(std::equal(nodes.begin(), nodes.end(), at)) << "cell " << c;
    }
    EXPECT_FALSE(hdf.has("VTKHDF/Steps"));
    EXPECT_FALSE(std::filesystem::exists(file.path() + ".part"));
}

TEST(VtkHdfWriter, BringsSecondOrderElementsToVtksOrder) {
    // The positions of VTK's nodes after the corners follow from the parametric coordinates of its cells.
    const auto hexahedron = vtkElement(ElementType::Hexa27);
    EXPECT_EQ(hexahedron.type, 29);
    ASSERT_EQ(hexahedron.order.size(), 27u);
    EXPECT_EQ(hexahedron.order[12], 16); // the edge from corner 4 to 5
    EXPECT_EQ(hexahedron.order[16], 12); // from 0 to 4
    EXPECT_EQ(hexahedron.order[20], 24); // the side x-
    const auto wedge = vtkElement(ElementType::Penta18);
    EXPECT_EQ(wedge.type, 32);
    ASSERT_EQ(wedge.order.size(), 18u);
    EXPECT_EQ(wedge.order[9], 12); // the edge from corner 3 to 4
    EXPECT_EQ(wedge.order[12], 9); // from 0 to 3
    EXPECT_EQ(vtkElement(ElementType::Hexa20).order.size(), 20u);
    EXPECT_EQ(vtkElement(ElementType::Pyra14).order.size(), 13u);
    for (const ElementType type :
         {ElementType::Hexa20, ElementType::Hexa27, ElementType::Penta15, ElementType::Penta18}) {
        const auto order = vtkElement(type).order;
        EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), static_cast<std::size_t>(elementInfo(type).nodes));
    }
    EXPECT_THROW(vtkElement(ElementType::Mixed), ArgumentError);
}

TEST(VtkHdfWriter, AppendsFieldsStepByStep) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    const SourceMesh mesh = boxOf(BoxCells::MixedSurface, comm);
    writeSteps(comm, file.path(), mesh, 3);
    const Hdf hdf(file.path());
    EXPECT_EQ(hdf.attribute("VTKHDF/Steps", "NSteps", 1), (std::vector<index>{3}));
    EXPECT_EQ(hdf.values<real>("VTKHDF/Steps/Values"), (std::vector<real>{0, 0.5, 1}));
    EXPECT_EQ(hdf.values<index>("VTKHDF/Steps/NumberOfParts"), (std::vector<index>{1, 1, 1}));
    for (const char *name : {"PartOffsets", "PointOffsets", "CellOffsets", "ConnectivityIdOffsets"})
        EXPECT_EQ(hdf.values<index>(std::string("VTKHDF/Steps/") + name), (std::vector<index>{0, 0, 0})) << name;
    EXPECT_EQ(hdf.shape("VTKHDF/Steps/CellOffsets"), (std::vector<index>{3, 1}));
    const index nodes = mesh.globalNodes;
    const index cells = mesh.cells.globalSize;
    EXPECT_EQ(hdf.values<index>("VTKHDF/Steps/PointDataOffsets/pressure"), (std::vector<index>{0, nodes, 2 * nodes}));
    EXPECT_EQ(hdf.values<index>("VTKHDF/Steps/CellDataOffsets/velocity"), (std::vector<index>{0, cells, 2 * cells}));
    EXPECT_EQ(hdf.shape("VTKHDF/PointData/pressure"), (std::vector<index>{3 * nodes}));
    EXPECT_EQ(hdf.shape("VTKHDF/CellData/velocity"), (std::vector<index>{3 * cells, 3}));
    std::vector<real> pressure;
    std::vector<real> velocity;
    for (int step = 0; step < 3; step++) {
        const auto p = valuesOf(0, nodes, 1, step);
        const auto v = valuesOf(0, cells, 3, 10 * step);
        pressure.insert(pressure.end(), p.begin(), p.end());
        velocity.insert(velocity.end(), v.begin(), v.end());
    }
    EXPECT_EQ(hdf.values<real>("VTKHDF/PointData/pressure"), pressure);
    EXPECT_EQ(hdf.values<real>("VTKHDF/CellData/velocity"), velocity);
}

TEST(VtkHdfWriter, WritesPolyhedraByTheirFaces) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    const SourceMesh mesh = boxOf(BoxCells::Polyhedra, comm);
    writeSteps(comm, file.path(), mesh, 2);
    const SourceMesh whole = test::gatherMesh(comm, mesh);
    const Hdf hdf(file.path());
    const auto faceNodes = hdf.values<index>("VTKHDF/FaceConnectivity");
    const auto faceOffsets = hdf.values<index>("VTKHDF/FaceOffsets");
    const auto faces = hdf.values<index>("VTKHDF/PolyhedronToFaces");
    const auto starts = hdf.values<index>("VTKHDF/PolyhedronOffsets");
    const auto connectivity = hdf.values<index>("VTKHDF/Connectivity");
    const auto offsets = hdf.values<index>("VTKHDF/Offsets");
    ASSERT_EQ(starts.size(), whole.cells.types.size() + 1);
    ASSERT_EQ(offsets.size(), whole.cells.types.size() + 1);
    EXPECT_EQ(hdf.values<index>("VTKHDF/NumberOfFaces")[0], static_cast<index>(faceOffsets.size()) - 1);
    EXPECT_EQ(hdf.values<index>("VTKHDF/NumberOfFaceConnectivityIds")[0], static_cast<index>(faceNodes.size()));
    EXPECT_EQ(hdf.values<index>("VTKHDF/NumberOfPolyhedronToFaceIds")[0], static_cast<index>(faces.size()));
    EXPECT_EQ(hdf.values<index>("VTKHDF/Types"), std::vector<index>(whole.cells.types.size(), 42));
    for (index c = 0; c < whole.cells.size(); c++) {
        const auto i = static_cast<std::size_t>(c);
        const std::vector<test::Face> expected = test::facesOf(whole.cells, c);
        ASSERT_EQ(starts[i + 1] - starts[i], static_cast<index>(expected.size()));
        std::set<index> points;
        for (std::size_t f = 0; f < expected.size(); f++) {
            const auto face = static_cast<std::size_t>(faces[static_cast<std::size_t>(starts[i]) + f]);
            EXPECT_EQ(test::Face(faceNodes.begin() + faceOffsets[face], faceNodes.begin() + faceOffsets[face + 1]),
                      expected[f]);
            points.insert(expected[f].begin(), expected[f].end());
        }
        EXPECT_EQ(std::vector<index>(connectivity.begin() + offsets[i], connectivity.begin() + offsets[i + 1]),
                  std::vector<index>(points.begin(), points.end()));
    }
    EXPECT_EQ(hdf.values<index>("VTKHDF/Steps/PolyhedronToFaceIdOffsets"), (std::vector<index>{0, 0}));
}

void writeStep(VtkHdfWriter &writer, const SourceMesh &mesh, int step) {
    const auto pressure = valuesOf(mesh.firstNode, mesh.nodes(), 1, step);
    const auto velocity = valuesOf(mesh.cells.first, mesh.cells.size(), 3, 10 * step);
    const auto energy = valuesOf(mesh.cells.first, mesh.cells.size(), 1, 20 * step);
    const FieldSlice pointFields[] = {{"pressure", 1, pressure}};
    const FieldSlice cellFields[] = {{"velocity", 3, velocity}, {"energy", 1, energy}};
    writer.writeStep(0.5 * step, pointFields, cellFields);
}

TEST(VtkHdfWriter, ContinuesASeries) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile whole(".vtkhdf"), file(".vtkhdf");
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Polyhedra}) {
        const SourceMesh mesh = boxOf(fill, comm);
        const auto write = [&](const std::string &path, int steps) {
            VtkHdfWriter writer(comm, path, sliceOf(mesh));
            for (int step = 0; step < steps; step++)
                writeStep(writer, mesh, step);
            writer.close();
        };
        write(whole.path(), 5);
        write(file.path(), 4);
        {
            VtkHdfWriter writer(comm, file.path(), sliceOf(mesh));
            EXPECT_EQ(writer.continueFrom(file.path(), 1), 3); // at 0, 0.5 and 1; what is after the checkpoint goes
            EXPECT_THROW(writer.continueFrom(file.path()), StateError) << "has steps";
            for (int step = 3; step < 5; step++)
                writeStep(writer, mesh, step);
            writer.close();
        }
        const Hdf expected(whole.path()), found(file.path());
        EXPECT_EQ(found.attribute("VTKHDF/Steps", "NSteps", 1), (std::vector<index>{5}));
        for (const char *name : {"VTKHDF/Steps/Values", "VTKHDF/PointData/pressure", "VTKHDF/CellData/velocity",
                                 "VTKHDF/CellData/energy"}) {
            EXPECT_EQ(found.shape(name), expected.shape(name)) << name;
            EXPECT_EQ(found.values<real>(name), expected.values<real>(name)) << name;
        }
        for (const char *name : {"VTKHDF/Steps/CellDataOffsets/energy", "VTKHDF/Connectivity"})
            EXPECT_EQ(found.values<index>(name), expected.values<index>(name)) << name;
    }
}

TEST(VtkHdfWriter, ContinuesOnlyWhatFits) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile empty(".vtkhdf"), file(".vtkhdf"), text(".vtkhdf");
    const SourceMesh mesh = boxOf(BoxCells::Hexahedra, comm);
    VtkHdfWriter(comm, empty.path(), sliceOf(mesh)).close();
    if (comm.rank() == 0)
        std::ofstream(text.path()) << "nothing";
    comm.barrier();
    VtkHdfWriter writer(comm, file.path(), sliceOf(mesh));
    EXPECT_EQ(writer.continueFrom(empty.path()), 0) << "no steps";
    EXPECT_THROW(writer.continueFrom(text.path()), DataError);
    try {
        writer.continueFrom(text.path() + ".missing");
        ADD_FAILURE() << "no error";
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find("there is no file"), std::string::npos) << error.message();
    }
    EXPECT_THROW(writer.continueFrom("/no/such/file.vtkhdf"), DataError);
    SourceMesh moved = boxOf(BoxCells::Hexahedra, comm);
    if (comm.rank() == comm.size() - 1)
        moved.coordinates.back()[0] += 1e-9;
    const TemporaryFile other(".vtkhdf");
    VtkHdfWriter(comm, other.path(), sliceOf(moved)).close();
    EXPECT_THROW(writer.continueFrom(other.path()), ArgumentError) << "another mesh of the same counts";
    const SourceMesh cut = boxOf(BoxCells::Tetrahedra, comm);
    VtkHdfWriter(comm, other.path(), sliceOf(cut)).close();
    EXPECT_THROW(writer.continueFrom(other.path()), ArgumentError) << "other counts";
    writeStep(writer, mesh, 0); // refusals have changed nothing
    writer.close();
    EXPECT_EQ(Hdf(file.path()).values<real>("VTKHDF/Steps/Values"), (std::vector<real>{0}));
}

TEST(VtkHdfWriter, AnyNumberOfRanksWritesTheSameBytes) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const auto bytesOf = [](const std::string &path) {
        std::ifstream file(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Polyhedra}) {
        const TemporaryFile together(".vtkhdf");
        const TemporaryFile alone(".vtkhdf");
        writeSteps(comm, together.path(), boxOf(fill, comm), 2);
        if (comm.rank() == 0) {
            const CommunicatorView self(MPI_COMM_SELF);
            writeSteps(self, alone.path(), boxOf(fill, self), 2);
            EXPECT_TRUE(bytesOf(together.path()) == bytesOf(alone.path()));
        }
    }
}

TEST(VtkHdfWriter, SaysThatItWasNotClosed) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    const SourceMesh mesh = boxOf(BoxCells::Hexahedra, comm);
    const auto saidBy = [&](const auto &body) {
        ::testing::internal::CaptureStderr();
        body();
        return ::testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(saidBy([&] {
                  VtkHdfWriter writer(comm, file.path(), sliceOf(mesh));
                  VtkHdfWriter moved = std::move(writer);
                  moved.close();
              }),
              "");
    const std::string said = saidBy([&] { const VtkHdfWriter writer(comm, file.path(), sliceOf(mesh)); });
    EXPECT_EQ(said.find(file.path() + " is not complete: its writer was destroyed without close()") !=
                  std::string::npos,
              comm.rank() == 0)
        << said;
    EXPECT_EQ(said.empty(), comm.rank() != 0);
    comm.barrier();
    if (comm.rank() == 0)
        std::filesystem::remove(file.path() + ".part");
}

TEST(VtkHdfWriter, RefusesWhatDoesNotFit) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    const SourceMesh mesh = boxOf(BoxCells::Hexahedra, comm);
    EXPECT_THROW(VtkHdfWriter(comm, "/no/such/folder/file.vtkhdf", sliceOf(mesh)), DataError);
    const bool last = comm.rank() == comm.size() - 1;
    MeshSlice shifted = sliceOf(mesh);
    shifted.firstCell += last ? 1 : 0;
    EXPECT_THROW(VtkHdfWriter(comm, file.path(), shifted), ArgumentError);
    {
        VtkHdfWriter writer(comm, file.path(), sliceOf(mesh));
        const auto values = valuesOf(mesh.cells.first, mesh.cells.size(), 1, 0);
        const FieldSlice good[] = {{"p", 1, values}};
        const FieldSlice wide[] = {{"p", last ? 2 : 1, values}};
        const FieldSlice other[] = {{last && comm.size() > 1 ? "q" : "p", 1, values}};
        EXPECT_THROW(writer.writeStep(0, {}, wide), ArgumentError);
        if (comm.size() > 1) {
            EXPECT_THROW(writer.writeStep(0, {}, other), ArgumentError);
        }
        writer.writeStep(0, {}, good);
        EXPECT_THROW(writer.writeStep(1, {}, {}), ArgumentError);
    }
    comm.barrier();
    EXPECT_FALSE(std::filesystem::exists(file.path())) << "an unfinished file has the right name";
    comm.barrier();
    if (comm.rank() == 0)
        std::filesystem::remove(file.path() + ".part");
}

} // namespace
} // namespace DNDS::Geom
