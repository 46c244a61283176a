// The public meshes, from the file to a distributed mesh and through dnds-mesh: what other tools found in them (numbers
// of MANIFEST.md beside them) on any number of ranks.

#include "MeshTool.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "Json.hpp"
#include "support/GatheredMesh.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <sstream>

namespace DNDS::Geom {
namespace {

using test::Json;
using test::keysOf;

struct Patch {
    std::string name;
    index faces;
    real area;
};

struct PublicMesh {
    std::string file;
    std::vector<std::pair<std::string, index>> cells;
    index nodes;
    real measure;
    std::array<real, 6> box; ///< x low, x high, y low, ...
    std::vector<Patch> patches;
    index innerFaces;
    index boundaryFaces;
    index periodicPairs = 0;
    std::size_t warnings = 0;
};

// Boundary conditions by vertices: the boundary faces all of whose nodes are in the set.
const std::vector<Patch> wedgePatches{
    {"inlet", 49, 1}, {"lower", 74, 1.51542661}, {"outlet", 49, 0.823673019}, {"upper", 74, 1.5}};
const std::vector<Patch> airfoilPatches{{"airfoil", 200, 2.03950515}, {"farfield", 50, 125.581032}};
const std::vector<Patch> atbPatches{
    {"wall", 46, 0.409572395}, {"top", 46, 4.25941545}, {"aval", 20, 1.10629408}, {"amont", 20, 1.10629408}};
const std::vector<Patch> cubePatches{{"SurfID_1", 32, 4290.25}, {"SurfID_2", 32, 4290.25}, {"SurfID_3", 32, 4290.25},
                                     {"SurfID_4", 32, 4290.25}, {"SurfID_5", 32, 4290.25}, {"SurfID_6", 32, 4290.25}};

const std::vector<PublicMesh> publicMeshes{
    // clang-format off
    {"wedge_hdf5.cgns", {{"QUAD_4", 3626}}, 3750, 1.41183650965,
     {0, 1.5, 0, 1, 0, 0}, wedgePatches, 7129, 246},
    {"wedge_adf.cgns", {{"QUAD_4", 3626}}, 3750, 1.41183650965,
     {0, 1.5, 0, 1, 0, 0}, wedgePatches, 7129, 246},
    {"naca0012_inv.cgns", {{"TRI_3", 10216}}, 5233, 1253.25049999,
     {-20, 20, -19.9605293, 19.9605293, 0, 0}, airfoilPatches, 15199, 250},
    {"naca0012_inv.su2", {{"TRI_3", 10216}}, 5233, 1253.25049999,
     {-20, 20, -19.9605293, 19.9605293, 0, 0}, airfoilPatches, 15199, 250},
    {"bend_mixed.cgns", {{"TETRA_4", 154}, {"PYRA_5", 333}, {"PENTA_6", 31}, {"HEXA_8", 770}}, 1259, 2.99911481482,
     {0, 2, 0, 2, 0, 1},
     {{"INLET_2D", 35, 1}, {"OUTLET_2D", 25, 1}, {"SYMMETRY_2D", 210, 5.99542894}, {"WALL1_2D", 101, 1.94612749},
      {"WALL2_2D", 249, 3.94142135}},
     3218, 620},
    {"cylinder3d_tets.cgns", {{"TETRA_4", 27591}}, 5696, 0.246112731016,
     {-6.25e-11, 1, -5.92966178e-11, 0.5, -6.25e-11, 0.5},
     {{"BC1_on_OUT", 128, 0.25}, {"BC1_on_WALL", 512, 1}, {"BC1_on_IN", 128, 0.25},
      {"BC1_on_CYLINDER_DOWN", 1040, 0.078332631}, {"BC1_on_CYLINDER_UP", 1040, 0.0783326173},
      {"BC1_on_SIDE", 1260, 0.984450925}},
     53128, 4108},
    // It states cells among which it counts its boundary elements.
    {"flame_mixed2d_i8.cgns", {{"QUAD_4", 15000}}, 15461, 6e-06,
     {-7.98971778e-25, 0.00800000127, 4.16749322e-39, 0.000800012701, 0, 0},
     {{"inlet-velocity-inlet", 40, 0.0008}, {"wall-wall", 90, 0.0018}, {"symmetry-symmetry", 400, 0.008},
      {"symmetry_2-part-fluid-symmetry", 350, 0.007}, {"outlet-pressure-outlet", 40, 0.0008}},
     29540, 920, 0, 1},
    {"bump2d_56k_i8.cgns", {{"QUAD_4", 56320}}, 56833, 257.483126653,
     {-25, 26.5, 0, 5, 0, 0},
     {{"bump", 160, 1.50847709}, {"inlet", 160, 5}, {"lower_downstream", 96, 25}, {"lower_upstream", 96, 25},
      {"outlet", 160, 5}, {"upper", 352, 51.5}},
     112128, 1024},
    {"tut21_hex.cgns", {{"HEXA_8", 1584}}, 2106, 0.000135713567843,
     {0, 0.101599999, 0, 0.152400002, 0, 0.0253999997},
     {{"PipeWall", 832, 0.0218676403}, {"PipeInlet", 64, 0.000645159984}, {"PipeOutlet", 64, 0.000645159937}},
     4272, 960},
    // Three zones of 18 nodes, 4 inner and 16 boundary faces, joined twice at 6 nodes and 2 faces.
    {"bump3_3zones.cgns", {{"HEXA_8", 12}}, 42, 2.98,
     {0, 3, 0, 1, 0, 1},
     {{"bc-inflow", 2, 1}, {"bc-symm-top", 6, 3}, {"bc-symm-wall", 6, 3.0031949}, {"bc-symm-z1", 12, 2.98},
      {"bc-symm-z2", 12, 2.98}, {"bc-outflow", 2, 1}},
     16, 40},
    // A line of bars in the volume is left out.
    {"reservoir_mixed_57k.cgns", {{"TETRA_4", 53352}, {"PYRA_5", 948}, {"PENTA_6", 924}, {"HEXA_8", 1848}}, 12523,
     3125000,
     {0, 250, 0, 250, 0, 50},
     {{"BC1_on_B_WEST", 214, 12500}, {"BC1_on_B_EAST", 206, 12500}, {"BC1_on_B_SOUTH", 212, 12500},
      {"BC1_on_B_NORTH", 212, 12500}, {"BC1_on_B_BOTTOM", 942, 62500}, {"BC1_on_B_TOP", 1100, 62500}},
     115485, 2886, 0, 1},
    {"sphere_hexa27.cgns", {{"HEXA_27", 160}}, 1501, 3.91255424384,
     {-0.999909521, 0.999909521, -0.999909521, 0.999909521, -1.00000001, 1.00000001},
     {{"BC1_on_WALL", 96, 12.1453036}},
     432, 96},
    // 1084 faces of two cells and 230 pairs
    {"atb45_ngon_v42.cgns", {{"NFACE_n", 460}}, 792, 8.43504312187,
     {-3.198855, 4.429148, -0.556692404, 0, 0.371350526, 4}, atbPatches, 1084, 592, 230},
    {"atb45_ngon_v34.cgns", {{"NFACE_n", 460}}, 792, 8.43504312187,
     {-3.198855, 4.429148, -0.556692404, 0, 0.371350526, 4}, atbPatches, 1084, 592, 230},
    {"cube_wedge_periodic_v42.cgns", {{"PENTA_6", 256}}, 225, 281011.375,
     {-0.5, 65, -0.5, 65, -0.5, 65}, cubePatches, 544, 192, 32},
    {"cube_wedge_periodic_v34.cgns", {{"PENTA_6", 256}}, 225, 281011.375,
     {-0.5, 65, -0.5, 65, -0.5, 65}, cubePatches, 544, 192, 32},
    // clang-format on
};

std::string pathOf(const std::string &file) { return DNDS_TEST_MESHES "/" + file; }

#define SKIP_WITHOUT_MESHES()                                                                                          \
    if (!std::filesystem::exists(pathOf("MANIFEST.md")))                                                               \
    GTEST_SKIP() << "the public meshes are not there: no " << pathOf("MANIFEST.md")

void expectNear(real found, real expected, real relative, const std::string &what) {
    EXPECT_NEAR(found, expected, relative * std::abs(expected) + 1e-25) << what;
}

/// Number of these faces over all ranks, and their area.
std::pair<index, real> sumFaces(const UnstructuredMesh &mesh, const MeshMetrics &metrics,
                                std::span<const LocalIndex> faces) {
    index count = 0;
    std::vector<real> areas;
    for (const LocalIndex face : faces)
        if (face < mesh.faces.owned) {
            count++;
            areas.push_back(metrics.areas.view()(face));
        }
    return {mesh.comm.allReduce(count, MPI_SUM), exactSum(mesh.comm, areas)};
}

class PublicMeshes : public ::testing::TestWithParam<PublicMesh> {};

TEST_P(PublicMeshes, BecomeDistributedMeshesThatHoldWhatOtherToolsFound) {
    SKIP_WITHOUT_MESHES();
    const CommunicatorView comm(MPI_COMM_WORLD);
    const PublicMesh &expected = GetParam();
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(comm, readMesh(comm, pathOf(expected.file)), options);
    const MeshMetrics metrics = computeMetrics(mesh);

    std::map<std::string, index> cells;
    for (const auto &[name, count] : expected.cells) {
        index own = 0;
        for (index c = 0; c < mesh.cells.owned; c++)
            own += elementInfo(mesh.cellTypes[static_cast<std::size_t>(c)]).name == name;
        EXPECT_EQ(comm.allReduce(own, MPI_SUM), count) << name;
    }
    EXPECT_EQ(comm.allReduce(mesh.nodes.owned, MPI_SUM), expected.nodes);
    std::vector<real> volumes(metrics.volumes.data(), metrics.volumes.data() + mesh.cells.owned);
    for (const real volume : volumes)
        EXPECT_GT(volume, 0);
    expectNear(exactSum(comm, volumes), expected.measure, 1e-10, "volume");
    EXPECT_LT(metrics.closure, 1e-12) << "the faces of a cell do not close";

    ASSERT_EQ(mesh.patches.size(), expected.patches.size() + 1);
    for (std::size_t p = 0; p < expected.patches.size(); p++) {
        EXPECT_EQ(mesh.patches[p].name, expected.patches[p].name);
        const auto [faces, area] = sumFaces(mesh, metrics, mesh.patches[p].faces);
        EXPECT_EQ(faces, expected.patches[p].faces) << mesh.patches[p].name;
        expectNear(area, expected.patches[p].area, 1e-8, "area of " + mesh.patches[p].name);
    }
    EXPECT_EQ(sumFaces(mesh, metrics, mesh.patches.back().faces).first, 0);
    const auto [boundary, ignored] = sumFaces(mesh, metrics, mesh.boundaryFaces);
    EXPECT_EQ(boundary + 2 * expected.periodicPairs, expected.boundaryFaces);
    const index periodic = comm.allReduce(static_cast<index>(mesh.periodicFaces.size()), MPI_SUM);
    EXPECT_EQ(periodic, 2 * expected.periodicPairs);
    EXPECT_EQ(comm.allReduce(mesh.faces.owned, MPI_SUM), expected.innerFaces + expected.boundaryFaces);
    EXPECT_EQ(report.warnings.size() + report.notes.size(), expected.warnings);
}

std::string infoOf(CommunicatorView comm, const std::string &file) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(runMeshTool(comm, {"info", pathOf(file), "--json"}, out, err, Progress::Style::None), fine) << err.str();
    EXPECT_EQ(err.str(), "");
    return out.str();
}

TEST_P(PublicMeshes, AreDescribedByTheToolAlikeOnAnyNumberOfRanks) {
    SKIP_WITHOUT_MESHES();
    const CommunicatorView comm(MPI_COMM_WORLD);
    const PublicMesh &expected = GetParam();
    const std::string text = infoOf(comm, expected.file);
    if (comm.rank() != 0) {
        EXPECT_EQ(text, "");
        return;
    }
    EXPECT_EQ(text, infoOf(CommunicatorView(MPI_COMM_SELF), expected.file)) << "one rank says something else";
    const Json json = Json::parse(text);
    EXPECT_EQ(keysOf(json), (std::vector<std::string>{"cells", "cells_total", "nodes", "measure", "volume", "bbox",
                                                      "boundaries", "faces_inner", "faces_boundary", "faces_unassigned",
                                                      "periodic_pairs", "warnings", "notes"}));
    index total = 0;
    ASSERT_EQ(json.at("cells").size(), expected.cells.size());
    for (const auto &[name, count] : expected.cells) {
        EXPECT_EQ(json.at("cells").at(name).get<double>(), count) << name;
        total += count;
    }
    EXPECT_EQ(json.at("cells_total").get<double>(), total);
    EXPECT_EQ(json.at("nodes").get<double>(), expected.nodes);
    expectNear(json.at("measure").get<double>(), expected.measure, 1e-10, "measure");
    expectNear(json.at("volume").get<double>(), expected.measure, 1e-10, "volume");
    for (std::size_t k = 0; k < 6; k++)
        expectNear(json.at("bbox").at(k / 2).at(k % 2).get<double>(), expected.box[k], 1e-8, "box");
    ASSERT_EQ(json.at("boundaries").size(), expected.patches.size());
    for (const Patch &patch : expected.patches)
        EXPECT_EQ(json.at("boundaries").at(patch.name).get<double>(), patch.faces) << patch.name;
    EXPECT_EQ(json.at("faces_inner").get<double>(), expected.innerFaces);
    EXPECT_EQ(json.at("faces_boundary").get<double>(), expected.boundaryFaces);
    EXPECT_EQ(json.at("faces_unassigned").get<double>(), 0);
    EXPECT_EQ(json.at("periodic_pairs").get<double>(), expected.periodicPairs);
    EXPECT_EQ(json.at("warnings").size() + json.at("notes").size(), expected.warnings);
}

INSTANTIATE_TEST_SUITE_P(Files, PublicMeshes, ::testing::ValuesIn(publicMeshes), [](const auto &tested) {
    std::string name = tested.param.file;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
});

class TwinMeshes : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

/// The mesh after partitioning, brought back to the order of the file, on every rank.
SourceMesh rebuilt(CommunicatorView comm, const std::string &file) {
    SourceMesh whole = test::gatherMesh(comm, FileOrder(buildMesh(comm, readMesh(comm, pathOf(file)))).mesh());
    whole.origin.clear();
    return whole;
}

TEST_P(TwinMeshes, AreTheSameMesh) {
    SKIP_WITHOUT_MESHES();
    const CommunicatorView comm(MPI_COMM_WORLD);
    SourceMesh first = rebuilt(comm, GetParam().first);
    const SourceMesh second = rebuilt(comm, GetParam().second);
    ASSERT_EQ(first.periodic.size(), second.periodic.size());
    for (std::size_t k = 0; k < first.periodic.size(); k++) { // one of atb45 holds the angle in single precision
        EXPECT_NEAR(first.periodic[k].transform.angles[0], second.periodic[k].transform.angles[0], 1e-8);
        first.periodic[k].transform.angles[0] = second.periodic[k].transform.angles[0];
    }
    test::expectSame(first, second);
    EXPECT_EQ(infoOf(comm, GetParam().first), infoOf(comm, GetParam().second));
}

INSTANTIATE_TEST_SUITE_P(Pairs, TwinMeshes,
                         ::testing::Values(std::pair{"wedge_adf.cgns", "wedge_hdf5.cgns"},
                                           std::pair{"atb45_ngon_v34.cgns", "atb45_ngon_v42.cgns"},
                                           std::pair{"cube_wedge_periodic_v34.cgns", "cube_wedge_periodic_v42.cgns"}));

} // namespace
} // namespace DNDS::Geom
