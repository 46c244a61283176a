#include "DNDS/Geom/Write/WriteMesh.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <functional>
#include <map>

namespace DNDS::Geom {
namespace {

using test::TemporaryFile;

/// The bytes of each dataset of a file, by its name, read by this rank alone.
std::map<std::string, std::vector<char>> contentOf(const std::string &path) {
    std::map<std::string, std::vector<char>> content;
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    EXPECT_GE(file, 0);
    const auto visit = [](hid_t root, const char *name, const H5O_info_t *info, void *into) -> herr_t {
        if (info->type != H5O_TYPE_DATASET)
            return 0;
        const hid_t data = H5Dopen2(root, name, H5P_DEFAULT);
        const hid_t type = H5Dget_type(data);
        const hid_t space = H5Dget_space(data);
        std::vector<char> bytes(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)) * H5Tget_size(type));
        const herr_t result = H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
        (*static_cast<std::map<std::string, std::vector<char>> *>(into))[name] = std::move(bytes);
        H5Sclose(space);
        H5Tclose(type);
        H5Dclose(data);
        return result;
    };
    EXPECT_GE(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, visit, &content), 0);
    H5Fclose(file);
    return content;
}

std::vector<real> realsOf(const std::vector<char> &bytes) {
    std::vector<real> values(bytes.size() / sizeof(real));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

BoxMeshOptions boxOf(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {5, 4, 3};
    options.jitter = 0.1;
    options.shuffled = true;
    return options;
}

enum class Cells { Stay, Move };

/// Two steps of a field at cells, with ghosts, and one at nodes; before the second one all cells may go to the next
/// rank.
void writeResults(CommunicatorView comm, BoxCells fill, const std::string &path, bool ranks,
                  Cells between = Cells::Stay) {
    UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(boxOf(fill), comm));
    MeshWriter writer(mesh, path, {.ranks = ranks});
    for (int step = 0; step < 2; step++) {
        if (step == 1 && between == Cells::Move) {
            const std::vector<int> targets(static_cast<std::size_t>(mesh.cells.owned), (comm.rank() + 1) % comm.size());
            mesh = MovedMesh(mesh, targets).take();
            writer.moved(mesh);
        }
        auto velocity = mesh.field<3>("velocity");
        ParArray<real, 1> height("height", comm);
        height.resize(mesh.nodes.owned);
        for (index c = 0; c < mesh.cells.owned; c++)
            for (rowsize k = 0; k < 3; k++)
                velocity(c, k) =
                    static_cast<real>(100 * mesh.cells.fileNumbers[static_cast<std::size_t>(c)] + k + step);
        for (index n = 0; n < mesh.nodes.owned; n++)
            height(n) = mesh.coordinates.view()(n, 2);
        writer.writeStep(0.5 * step, {.cells = {fieldOf("velocity", velocity)}, .nodes = {fieldOf("height", height)}});
    }
    writer.close();
}

class WrittenMeshes : public ::testing::TestWithParam<BoxCells> {};

TEST_P(WrittenMeshes, AreTheSameFilesOnAnyNumberOfRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile together(".vtkhdf");
    const TemporaryFile alone(".vtkhdf");
    writeResults(comm, GetParam(), together.path(), false);
    if (comm.rank() != 0)
        return;
    writeResults(CommunicatorView(MPI_COMM_SELF), GetParam(), alone.path(), false);
    const auto content = contentOf(together.path());
    EXPECT_EQ(content, contentOf(alone.path()));
    const SourceMesh whole = makeBoxMesh(boxOf(GetParam()), 0, 1);
    const std::vector<real> points = realsOf(content.at("VTKHDF/Points"));
    const std::vector<real> height = realsOf(content.at("VTKHDF/PointData/height"));
    const std::vector<real> velocity = realsOf(content.at("VTKHDF/CellData/velocity"));
    const auto cells = static_cast<std::size_t>(whole.cells.size());
    ASSERT_EQ(points.size(), 3 * whole.coordinates.size());
    ASSERT_EQ(height.size(), 2 * whole.coordinates.size());
    ASSERT_EQ(velocity.size(), 2 * 3 * cells);
    for (std::size_t n = 0; n < whole.coordinates.size(); n++) {
        for (std::size_t d = 0; d < 3; d++)
            EXPECT_EQ(points[3 * n + d], whole.coordinates[n][d]);
        EXPECT_EQ(height[n], whole.coordinates[n][2]);
    }
    for (std::size_t i = 0; i < velocity.size(); i++)
        EXPECT_EQ(velocity[i], static_cast<real>(100 * (i / 3 % cells) + i % 3 + i / (3 * cells)));
}

TEST_P(WrittenMeshes, StayTheSameWhereCellsMove) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile still(".vtkhdf");
    const TemporaryFile moved(".vtkhdf");
    writeResults(comm, GetParam(), still.path(), false);
    writeResults(comm, GetParam(), moved.path(), false, Cells::Move);
    if (comm.rank() == 0) {
        EXPECT_EQ(contentOf(still.path()), contentOf(moved.path()));
    }
}

INSTANTIATE_TEST_SUITE_P(Boxes, WrittenMeshes,
                         ::testing::Values(BoxCells::MixedSurface, BoxCells::MixedVolume, BoxCells::Polyhedra));

std::string messageOf(const std::function<void()> &body) {
    try {
        body();
    } catch (const ArgumentError &error) {
        return error.message();
    }
    return "nothing";
}

#define EXPECT_SAYS(message, part)                                                                                     \
    do {                                                                                                               \
        const std::string said = message;                                                                              \
        EXPECT_NE(said.find(part), std::string::npos) << said;                                                         \
    } while (false)

TEST(MeshWriter, NamesTheFieldThatDoesNotFit) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(boxOf(BoxCells::Hexahedra), comm));
    const bool last = comm.rank() == comm.size() - 1;
    const std::vector<real> cells(static_cast<std::size_t>(3 * mesh.cells.owned), 1.0);
    const std::vector<real> nodes(static_cast<std::size_t>(mesh.nodes.owned + (last ? 1 : 0)), 1.0);
    const std::vector<FieldSlice> good{{"velocity", 3, cells}};
    {
        MeshWriter writer(mesh, file.path());
        const auto writing = [&](const StepFields &fields) {
            return messageOf([&] { writer.writeStep(0.0, fields); });
        };
        EXPECT_SAYS(writing({.cells = {{"speed", 1, cells}}}), "cell field 'speed' has");
        EXPECT_SAYS(writing({.cells = good, .nodes = {{"height", 1, nodes}}}), "node field 'height' has");
        EXPECT_SAYS(writing({.cells = {{"speed", 0, cells}}}), "cell field 'speed' has 0 components");
        EXPECT_SAYS(writing({.cells = {good[0], good[0]}}), "two cell fields are called 'velocity'");
        if (comm.size() > 1) {
            EXPECT_SAYS(writing({.cells = {{last ? "speed" : "velocity", 3, cells}}}),
                        "here cell field 'speed' of 3 components, on rank 0 cell field 'velocity'");
            EXPECT_SAYS(writing({.cells = last ? std::vector<FieldSlice>{} : good}), "here no more fields");
        }
        writer.writeStep(0.0, {.cells = good});
        EXPECT_SAYS(writing({.cells = {{"pressure", 3, cells}}}), "cell field 'pressure' was not in the first step");
        EXPECT_SAYS(writing({}), "cell field 'velocity' of the first step is missing");
        EXPECT_SAYS(writing({.cells = {good[0], {"more", 3, cells}}}), "cell field 'more' was not in the first step");
        writer.close();
    }
    const UnstructuredMesh other = buildMesh(comm, makeBoxMesh(boxOf(BoxCells::Tetrahedra), comm));
    const TemporaryFile unmoved(".vtkhdf");
    MeshWriter writer(mesh, unmoved.path());
    EXPECT_SAYS(messageOf([&] { writer.moved(other); }), "was repartitioned, but this is another mesh: ");
    UnstructuredMesh bent = buildMesh(comm, makeBoxMesh(boxOf(BoxCells::Hexahedra), comm));
    writer.moved(bent); // the same
    if (bent.nodes.owned > 0)
        bent.coordinates(0, 0) += 1e-9;
    EXPECT_SAYS(messageOf([&] { writer.moved(bent); }), "this is another mesh: it has other cells or coordinates");
    writer.writeStep(0.0, {.cells = good});
    writer.close();
    const TemporaryFile cgns(".cgns");
    EXPECT_SAYS(messageOf([&] {
                    writeCgnsMesh(mesh, cgns.path(), {.cells = {{"speed", 1, cells}}});
                }),
                "cell field 'speed' has");
}

TEST(MeshWriter, AddsTheOwnerOfEachCell) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const TemporaryFile file(".vtkhdf");
    writeResults(comm, BoxCells::Hexahedra, file.path(), true);
    const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(boxOf(BoxCells::Hexahedra), comm));
    std::vector<real> owners(60, 0);
    for (index c = 0; c < mesh.cells.owned; c++)
        owners[static_cast<std::size_t>(mesh.cells.fileNumbers[static_cast<std::size_t>(c)])] = comm.rank();
    comm.allReduce(owners.data(), 60, MPI_SUM);
    if (comm.rank() != 0)
        return;
    std::vector<real> found = realsOf(contentOf(file.path()).at("VTKHDF/CellData/rank"));
    ASSERT_EQ(found.size(), 120U); // two steps
    found.resize(60);
    EXPECT_EQ(found, owners);
}

} // namespace
} // namespace DNDS::Geom
