// The public meshes whose counts and measures are known from other tools (MANIFEST.md beside them).

#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "support/GatheredMesh.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <numbers>

namespace DNDS::Geom {
namespace {

struct ExpectedPatch {
    std::string name;
    std::string kind;
    std::string family;
    index faces;
    index nodes;
};

struct ExpectedMesh {
    std::string file;
    int cellDimension;
    int physicalDimension;
    std::map<std::string, index> cells;
    index nodes;
    real measure;
    std::array<real, 6> box;
    std::vector<ExpectedPatch> patches;
    std::size_t warnings = 0;
    /// Faces of both sides of each periodic connection, and its transformation.
    std::vector<index> periodicFaces{};
    PeriodicTransform periodic{};
};

std::vector<ExpectedPatch> bumpPatches() {
    return {{"bump", "", "bump", 160, 0},
            {"inlet", "", "inlet", 160, 0},
            {"lower_downstream", "", "lower_downstream", 96, 0},
            {"lower_upstream", "", "lower_upstream", 96, 0},
            {"outlet", "", "outlet", 160, 0},
            {"upper", "", "upper", 352, 0}};
}

std::vector<ExpectedPatch> wedgePatches() {
    return {{"inlet", "", "inlet", 49, 0},
            {"lower", "", "lower", 74, 0},
            {"outlet", "", "outlet", 49, 0},
            {"upper", "", "upper", 74, 0}};
}

std::vector<ExpectedPatch> atbPatches() {
    return {{"wall", "BCWall", "WALL", 46, 0},
            {"top", "UserDefined", "TOP", 46, 0},
            {"aval", "UserDefined", "AVAL", 20, 0},
            {"amont", "UserDefined", "AMONT", 20, 0}};
}

std::vector<ExpectedPatch> cubePatches() {
    std::vector<ExpectedPatch> patches;
    for (int k = 1; k <= 6; k++)
        patches.push_back({"SurfID_" + std::to_string(k), "UserDefined", "", 32, 0});
    return patches;
}

const std::vector<ExpectedMesh> &expectedMeshes() {
    static const std::vector<ExpectedMesh> meshes{
        {"wedge_hdf5.cgns", 2, 3, {{"QUAD_4", 3626}}, 3750, 1.41183650965, {0, 1.5, 0, 1, 0, 0}, wedgePatches()},
        {"wedge_adf.cgns", 2, 3, {{"QUAD_4", 3626}}, 3750, 1.41183650965, {0, 1.5, 0, 1, 0, 0}, wedgePatches()},
        {"naca0012_inv.cgns",
         2,
         2,
         {{"TRI_3", 10216}},
         5233,
         1253.25049999,
         {-20, 20, -19.9605293, 19.9605293, 0, 0},
         {{"airfoil", "", "airfoil", 200, 0}, {"farfield", "", "farfield", 50, 0}}},
        {"bend_mixed.cgns",
         3,
         3,
         {{"TETRA_4", 154}, {"PYRA_5", 333}, {"PENTA_6", 31}, {"HEXA_8", 770}},
         1259,
         2.99911481482,
         {0, 2, 0, 2, 0, 1},
         {{"INLET_2D", "UserDefined", "INLET", 35, 0},
          {"OUTLET_2D", "UserDefined", "OUTLET", 25, 0},
          {"SYMMETRY_2D", "UserDefined", "SYMMETRY", 210, 0},
          {"WALL1_2D", "UserDefined", "WALL1", 101, 0},
          {"WALL2_2D", "UserDefined", "WALL2", 249, 0}}},
        {"cylinder3d_tets.cgns",
         3,
         3,
         {{"TETRA_4", 27591}},
         5696,
         0.246112731016,
         {-6.25e-11, 1, -5.92966178e-11, 0.5, -6.25e-11, 0.5},
         {{"BC1_on_OUT", "BCWall", "OUT", 0, 81},
          {"BC1_on_WALL", "BCWall", "WALL", 0, 306},
          {"BC1_on_IN", "BCWall", "IN", 0, 81},
          {"BC1_on_CYLINDER_DOWN", "BCWall", "CYLINDER_DOWN", 0, 574},
          {"BC1_on_CYLINDER_UP", "BCWall", "CYLINDER_UP", 0, 574},
          {"BC1_on_SIDE", "BCWall", "SIDE", 0, 704}}},
        {"flame_mixed2d_i8.cgns",
         2,
         2,
         {{"QUAD_4", 15000}},
         15461,
         6e-06,
         {-7.98971778e-25, 0.00800000127, 4.16749322e-39, 0.000800012701, 0, 0},
         {{"inlet-velocity-inlet", "BCInflow", "", 0, 41},
          {"wall-wall", "BCWall", "", 0, 91},
          {"symmetry-symmetry", "BCSymmetryPlane", "", 0, 401},
          {"symmetry_2-part-fluid-symmetry", "BCSymmetryPlane", "", 0, 352},
          {"outlet-pressure-outlet", "BCOutflow", "", 0, 41}},
         1},
        {"bump2d_56k_i8.cgns", 2, 2, {{"QUAD_4", 56320}}, 56833, 257.483126653, {-25, 26.5, 0, 5, 0, 0}, bumpPatches()},
        {"tut21_hex.cgns",
         3,
         3,
         {{"HEXA_8", 1584}},
         2106,
         0.000135713567843,
         {0, 0.101599999, 0, 0.152400002, 0, 0.0253999997},
         {{"PipeWall", "BCWall", "", 832, 0},
          {"PipeInlet", "BCInflow", "", 64, 0},
          {"PipeOutlet", "BCOutflow", "", 64, 0}}},
        // 54 nodes in three zones, of which twice 6 are joined
        {"bump3_3zones.cgns",
         3,
         3,
         {{"HEXA_8", 12}},
         42,
         2.98,
         {0, 3, 0, 1, 0, 1},
         {{"bc-inflow", "BCInflowSupersonic", "bc-inflow", 2, 0},
          {"bc-symm-top", "BCSymmetryPlane", "bc-symm-top", 6, 0},
          {"bc-symm-wall", "BCSymmetryPlane", "bc-symm-wall", 6, 0},
          {"bc-symm-z1", "BCSymmetryPlane", "bc-symm-z1", 12, 0},
          {"bc-symm-z2", "BCSymmetryPlane", "bc-symm-z2", 12, 0},
          {"bc-outflow", "BCOutflowSupersonic", "bc-outflow", 2, 0}}},
        {"reservoir_mixed_57k.cgns",
         3,
         3,
         {{"TETRA_4", 53352}, {"PYRA_5", 948}, {"PENTA_6", 924}, {"HEXA_8", 1848}},
         12523,
         3125000,
         {0, 250, 0, 250, 0, 50},
         {{"BC1_on_B_WEST", "BCWall", "B_WEST", 0, 135},
          {"BC1_on_B_EAST", "BCWall", "B_EAST", 0, 131},
          {"BC1_on_B_SOUTH", "BCWall", "B_SOUTH", 0, 134},
          {"BC1_on_B_NORTH", "BCWall", "B_NORTH", 0, 134},
          {"BC1_on_B_BOTTOM", "BCWall", "B_BOTTOM", 0, 516},
          {"BC1_on_B_TOP", "BCWall", "B_TOP", 0, 607}},
         1},
        {"sphere_hexa27.cgns",
         3,
         3,
         {{"HEXA_27", 160}},
         1501,
         3.91255424384,
         {-0.999909521, 0.999909521, -0.999909521, 0.999909521, -1.00000001, 1.00000001},
         {{"BC1_on_WALL", "UserDefined", "WALL", 0, 386}}},
        {"atb45_ngon_v42.cgns",
         3,
         3,
         {{"NFACE_n", 460}},
         792,
         8.43504312187,
         {-3.198855, 4.429148, -0.556692404, 0, 0.371350526, 4},
         atbPatches(),
         0,
         {230, 230},
         {{}, {-8.0 / 180.0 * std::numbers::pi, 0, 0}, {}}},
        {"atb45_ngon_v34.cgns",
         3,
         3,
         {{"NFACE_n", 460}},
         792,
         8.43504312187,
         {-3.198855, 4.429148, -0.556692404, 0, 0.371350526, 4},
         atbPatches(),
         0,
         {230, 230},
         {{}, {-8.0 / 180.0 * std::numbers::pi, 0, 0}, {}}},
        {"cube_wedge_periodic_v42.cgns",
         3,
         3,
         {{"PENTA_6", 256}},
         225,
         281011.375,
         {-0.5, 65, -0.5, 65, -0.5, 65},
         cubePatches(),
         0,
         {32, 32},
         {{}, {}, {0, 0, 65.5}}},
        {"cube_wedge_periodic_v34.cgns",
         3,
         3,
         {{"PENTA_6", 256}},
         225,
         281011.375,
         {-0.5, 65, -0.5, 65, -0.5, 65},
         cubePatches(),
         0,
         {32, 32},
         {{}, {}, {0, 0, 65.5}}},
    };
    return meshes;
}

std::string pathOf(const std::string &file) { return DNDS_TEST_MESHES "/" + file; }

#define SKIP_WITHOUT_MESHES()                                                                                          \
    if (!std::filesystem::exists(pathOf("MANIFEST.md")))                                                               \
    GTEST_SKIP() << "the public meshes are not there: no " << pathOf("MANIFEST.md")

class Manifest : public ::testing::TestWithParam<ExpectedMesh> {};

void expectPatches(const SourceMesh &mesh, const ExpectedMesh &expected) {
    auto faces = test::facesOfMarks(mesh);
    auto nodes = test::nodesOfMarks(mesh);
    ASSERT_EQ(mesh.patches.size(), expected.patches.size());
    for (std::size_t k = 0; k < mesh.patches.size(); k++) {
        SCOPED_TRACE(expected.patches[k].name);
        EXPECT_EQ(mesh.patches[k].name, expected.patches[k].name);
        EXPECT_EQ(mesh.patches[k].kind, expected.patches[k].kind);
        EXPECT_EQ(mesh.patches[k].family, expected.patches[k].family);
        EXPECT_EQ(faces[static_cast<int>(k)], expected.patches[k].faces);
        EXPECT_EQ(nodes[static_cast<int>(k)], expected.patches[k].nodes);
    }
    ASSERT_EQ(mesh.periodic.size(), expected.periodicFaces.size() / 2);
    for (std::size_t k = 0; k < expected.periodicFaces.size(); k++)
        EXPECT_EQ(faces[-1 - static_cast<int>(k)], expected.periodicFaces[k]);
    for (const PeriodicConnection &periodic : mesh.periodic)
        for (std::size_t k = 0; k < 3; k++) {
            EXPECT_NEAR(periodic.transform.centre[k], expected.periodic.centre[k], 1e-7);
            EXPECT_NEAR(periodic.transform.angles[k], expected.periodic.angles[k], 1e-7);
            EXPECT_NEAR(periodic.transform.translation[k], expected.periodic.translation[k], 1e-6);
        }
}

TEST_P(Manifest, HoldsWhatOtherToolsFoundOnAnyNumberOfRanks) {
    SKIP_WITHOUT_MESHES();
    const CommunicatorView comm(MPI_COMM_WORLD);
    const ExpectedMesh &expected = GetParam();
    const SourceMesh mesh = test::gatherMesh(comm, readCgns(comm, pathOf(expected.file)));
    if (comm.rank() != 0)
        return;
    EXPECT_EQ(mesh.cellDimension, expected.cellDimension);
    EXPECT_EQ(mesh.physicalDimension, expected.physicalDimension);
    EXPECT_EQ(test::countNames(mesh.cells), expected.cells);
    EXPECT_EQ(mesh.globalNodes, expected.nodes);
    EXPECT_NEAR(test::measure(mesh), expected.measure, 1e-10 * std::abs(expected.measure));
    const std::array<real, 6> box = test::boundingBox(mesh);
    for (std::size_t k = 0; k < 6; k++)
        EXPECT_NEAR(box[k], expected.box[k], 1e-8 * std::abs(expected.box[k]) + 1e-25) << "bound " << k;
    expectPatches(mesh, expected);
    EXPECT_EQ(mesh.warnings.size() + mesh.notes.size(), expected.warnings)
        << (mesh.warnings.empty() ? "" : mesh.warnings.front());

    const CommunicatorView alone(MPI_COMM_SELF);
    test::expectSame(mesh, test::gatherMesh(alone, readCgns(alone, pathOf(expected.file))));
}

INSTANTIATE_TEST_SUITE_P(Cgns, Manifest, ::testing::ValuesIn(expectedMeshes()),
                         [](const auto &tested) { return tested.param.file.substr(0, tested.param.file.find('.')); });

TEST(ManifestPairs, AdfAndHdf5HoldTheSameMesh) {
    SKIP_WITHOUT_MESHES();
    const CommunicatorView comm(MPI_COMM_WORLD);
    test::expectSame(test::gatherMesh(comm, readCgns(comm, pathOf("wedge_adf.cgns"))),
                     test::gatherMesh(comm, readCgns(comm, pathOf("wedge_hdf5.cgns"))));
}

TEST(ManifestPairs, NodesThatAreJoinedByPlaceAreThoseOfTheConnections) {
    SKIP_WITHOUT_MESHES();
    const CommunicatorView comm(MPI_COMM_WORLD);
    CgnsOptions options;
    options.joinCoincidentNodes = true;
    test::expectSame(test::gatherMesh(comm, readCgns(comm, pathOf("bump3_3zones.cgns"))),
                     test::gatherMesh(comm, readCgns(comm, pathOf("bump3_3zones.cgns"), options)));
}

} // namespace
} // namespace DNDS::Geom
