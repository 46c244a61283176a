// Files written here, for what the public meshes lack: zones, bases, links.

#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "Geom/Cgns/BoxGrid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace DNDS::Geom {
namespace {

using namespace test;

std::array<double, 2> writeTwoZones(CgnsFile &file, const Grid &left, const Grid &right, double shift = 0.0) {
    const double base = file.base("Base", 3, 3);
    std::array<double, 2> zones{};
    for (std::size_t k = 0; k < 2; k++) {
        const Grid &grid = k == 0 ? left : right;
        zones[k] = file.zone(base, k == 0 ? "Left" : "Right", grid.nodes(), grid.cells());
        Points points = grid.points();
        for (auto &point : points)
            point[1] += k == 0 ? 0.0 : shift;
        file.coordinates(zones[k], points);
        file.section(zones[k], "Cells", 17, 1, grid.cells(), grid.hexahedra());
        file.section(zones[k], "Low", 7, grid.cells() + 1, grid.cells() + grid.ny * grid.nz, grid.sideX(false));
        file.section(zones[k], "High", 7, grid.cells() + grid.ny * grid.nz + 1, grid.cells() + 2 * grid.ny * grid.nz,
                     grid.sideX(true));
        file.condition(zones[k], "far", "BCFarfield", "ElementRange",
                       k == 0 ? Ints{grid.cells() + 1, grid.cells() + grid.ny * grid.nz}
                              : Ints{grid.cells() + grid.ny * grid.nz + 1, grid.cells() + 2 * grid.ny * grid.nz});
    }
    return zones;
}

TEST(CgnsWritten, ZonesAreJoinedByVerticesByFacesAndByPlace) {
    const Grid left{2, 2, 3};
    const Grid right{3, 2, 3, 2.0};
    const int sides = left.ny * left.nz;
    const WrittenFile apart;
    apart.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) { writeTwoZones(f, left, right); });
    const WrittenFile byVertices;
    byVertices.write(FileType::Adf, 3.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right);
        f.connection(zones[0], "a", "Right", left.nodesX(true), right.nodesX(false));
        f.connection(zones[1], "b", "Base/Left", right.nodesX(false), left.nodesX(true));
    });
    const WrittenFile byFaces;
    byFaces.write(FileType::Hdf5, 4.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right);
        f.connection(zones[1], "faces", "Left", numbersFrom(right.cells() + 1, sides),
                     numbersFrom(left.cells() + sides + 1, sides), "FaceCenter");
    });
    EXPECT_EQ(readWhole(apart).globalNodes, left.nodes() + right.nodes());
    CgnsOptions byPlace;
    byPlace.joinCoincidentNodes = true;
    const SourceMesh mesh = readWhole(apart, byPlace);
    EXPECT_EQ(mesh.globalNodes, left.nodes() + right.nodes() - 12);
    EXPECT_NEAR(test::measure(mesh), left.cells() + right.cells(), 1e-12);
    ASSERT_EQ(mesh.patches.size(), 1U);
    EXPECT_EQ(facesOf(mesh, "far"), 2 * sides);
    std::set<std::array<real, 3>> places(mesh.coordinates.begin(), mesh.coordinates.end());
    EXPECT_EQ(static_cast<index>(places.size()), mesh.globalNodes);
    test::expectSame(mesh, readWhole(byVertices));
    test::expectSame(mesh, readWhole(byFaces));
}

/// Two flat structured zones of 3 x 5 nodes, joined by place; `pointOf(zone, i, j)`.
template <class PointOf>
SourceMesh joinedZones(PointOf &&pointOf) {
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const double base = f.base("Base", 2, 2);
        for (const int zone : {0, 1}) {
            Points points;
            for (int j = 0; j < 5; j++)
                for (int i = 0; i < 3; i++)
                    points.push_back(pointOf(zone, i, j));
            f.coordinates(f.structuredZone(base, zone == 0 ? "A" : "B", {3, 5}), points, 2);
        }
    });
    CgnsOptions options;
    options.joinCoincidentNodes = true;
    return readWhole(file, options);
}

/// The tolerance is of the whole mesh, and cells at a wall are thinner.
TEST(CgnsWritten, NodesAreJoinedToTheNearest) {
    const std::array<double, 5> heights{0, 1e-7, 2.2e-7, 3.6e-7, 1};
    const SourceMesh mesh = joinedZones([&](int zone, int i, int j) {
        return std::array<double, 3>{100.0 * (i + 2 * zone) - 200, heights[static_cast<std::size_t>(j)], 0};
    });
    EXPECT_EQ(mesh.globalNodes, 25);
    std::set<std::array<real, 3>> places(mesh.coordinates.begin(), mesh.coordinates.end());
    EXPECT_EQ(places.size(), 25U);
    for (index c = 0; c < mesh.cells.size(); c++) {
        const auto nodes = mesh.cells.nodesOf(c);
        EXPECT_EQ((std::set<index>(nodes.begin(), nodes.end()).size()), 4U) << "cell " << c;
    }
}

/// Lines of nodes that lie in one point, the pole of a disc of two halves.
TEST(CgnsWritten, PolesOfZonesAreJoined) {
    const SourceMesh mesh = joinedZones([&](int zone, int i, int j) {
        constexpr std::array<double, 5> cosine{1, 0, -1, 0, 1}; // of quarter turns: exact
        const auto turn = static_cast<std::size_t>(i + 2 * zone);
        return std::array<double, 3>{j * cosine[turn], j * cosine[(turn + 3) % 4], 0};
    });
    EXPECT_EQ(mesh.globalNodes, 1 + 4 * 4);
}

TEST(CgnsWritten, JoinsThatDoNotFitAreReported) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid left{2, 2, 3};
    const Grid right{3, 2, 3, 2.0};
    const WrittenFile byVertices;
    byVertices.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right, 0.25);
        f.connection(zones[0], "a", "Right", left.nodesX(true), right.nodesX(false));
    });
    EXPECT_EQ(readWhole(byVertices).warnings.size(), 1U);
    const WrittenFile byFaces;
    byFaces.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const auto zones = writeTwoZones(f, left, right, 0.25);
        f.connection(zones[1], "misfit", "Left", Ints{right.cells() + 1}, Ints{left.cells() + 7}, "FaceCenter");
    });
    try {
        readCgns(comm, byFaces.path());
        ADD_FAILURE() << "no exception";
    } catch (const DataError &error) {
        EXPECT_NE(error.message().find("connection 'misfit': faces 19 and 19 "), std::string::npos) << error.message();
    }
}

TEST(CgnsWritten, StructuredZonesBecomeHexahedra) {
    const Grid left{2, 3, 4};
    const Grid right{3, 3, 4, 2.0};
    for (const FileType type : bothTypes) {
        const WrittenFile file;
        file.write(type, 3.2F, [&](CgnsFile &f) {
            const double base = f.base("Base", 3, 3);
            std::array<double, 2> zones{};
            for (std::size_t k = 0; k < 2; k++) {
                const Grid &grid = k == 0 ? left : right;
                zones[k] = f.structuredZone(base, k == 0 ? "Left" : "Right", {grid.nx + 1, grid.ny + 1, grid.nz + 1});
                f.coordinates(zones[k], grid.points());
                const int n = grid.nx + 1;
                f.condition(zones[k], k == 0 ? "low" : "high", "BCWall", "PointRange",
                            k == 0 ? Ints{1, 1, 1, 1, 4, 5} : Ints{n, 1, 1, n, 4, 5});
                f.condition(zones[k], "front", "BCWall", "PointRange", Ints{1, 1, 1, n, 1, 5});
                f.condition(zones[k], "back", "BCWall", "PointRange", Ints{1, 4, 1, n, 4, 5});
                f.condition(zones[k], "bottom", "BCWall", "PointRange", Ints{1, 1, 1, n, 4, 1});
                f.condition(zones[k], "top", "BCWall", "PointRange", Ints{1, 1, 5, n, 4, 5});
            }
            const double group = f.add(zones[0], "ZoneGridConnectivity", "ZoneGridConnectivity_t");
            const double join = f.add(group, "join", "GridConnectivity1to1_t", std::string("Right"));
            f.add(join, "PointRange", "IndexRange_t", Ints{3, 1, 1, 3, 4, 5}, {3, 2});
            f.add(join, "PointRangeDonor", "IndexRange_t", Ints{1, 1, 1, 1, 4, 5}, {3, 2});
            f.add(join, "Transform", "\"int[IndexDimension]\"", Ints{1, 2, 3});
        });
        const SourceMesh mesh = readWhole(file);
        EXPECT_EQ(mesh.globalNodes, 6 * 4 * 5);
        EXPECT_EQ(test::countNames(mesh.cells), (std::map<std::string, index>{{"HEXA_8", 5 * 3 * 4}}));
        EXPECT_NEAR(test::measure(mesh), 60.0, 1e-12);
        EXPECT_EQ(facesOf(mesh, "low"), 12);
        EXPECT_EQ(facesOf(mesh, "front"), 20);
        EXPECT_EQ(facesOf(mesh, "top"), 15);
        EXPECT_TRUE(mesh.warnings.empty());
        // The boundary, all faces outward, is closed around the same volume.
        SourceMesh hull = mesh;
        hull.cells.types = {ElementType::Polyhedron};
        hull.cells.nodes.clear();
        for (index face = 0; face < mesh.faces.size(); face++) {
            const auto nodes = mesh.faces.nodesOf(face);
            hull.cells.nodes.push_back(4);
            hull.cells.nodes.insert(hull.cells.nodes.end(), nodes.begin(), nodes.end());
        }
        hull.cells.starts = {0, static_cast<index>(hull.cells.nodes.size())};
        EXPECT_NEAR(test::measure(hull), 60.0, 1e-12);
    }
}

/// Marked faces as sets of corners, with their areas: what does not depend on the order of faces.
std::map<std::string, std::map<std::set<index>, real>> facesByPatch(const SourceMesh &mesh) {
    std::map<std::string, std::map<std::set<index>, real>> all;
    for (index f = 0; f < mesh.faces.size(); f++) {
        const auto nodes = mesh.faces.nodesOf(f);
        const auto at = [&](std::size_t k) { return mesh.coordinates[static_cast<std::size_t>(nodes[k])]; };
        real area = 1.0;
        for (std::size_t d = 0; d < 3; d++) { // rectangles along the axes
            real extent = 0.0;
            for (std::size_t k = 1; k < nodes.size(); k++)
                extent = std::max(extent, std::abs(at(k)[d] - at(0)[d]));
            area *= extent > 0.0 ? extent : 1.0;
        }
        const auto mark = static_cast<std::size_t>(mesh.faceMarks[static_cast<std::size_t>(f)]);
        const bool inserted =
            all[mesh.patches[mark].name].insert({std::set<index>(nodes.begin(), nodes.end()), area}).second;
        EXPECT_TRUE(inserted) << "a face of '" << mesh.patches[mark].name << "' twice";
    }
    return all;
}

struct Condition {
    std::string location;
    std::string set;
    Ints points;
    Ints inward;
};

/// A zone of 2 x 3 x 4 cells (2 x 3 in two dimensions) of sizes 1, 2 and 3 with one boundary condition a side.
SourceMesh readStructured(const std::vector<Condition> &conditions, int dimensions = 3) {
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.4F, [&](CgnsFile &f) {
        const Grid grid{2, 3, dimensions == 3 ? 4 : 0};
        Points points = grid.points();
        for (auto &point : points)
            for (std::size_t d = 0; d < 3; d++)
                point[d] *= static_cast<double>(d + 1);
        const double base = f.base("Base", dimensions, dimensions);
        const double zone = f.structuredZone(base, "Zone", dimensions == 3 ? Ints{3, 4, 5} : Ints{3, 4});
        f.coordinates(zone, points, dimensions);
        for (std::size_t k = 0; k < conditions.size(); k++) {
            const Condition &c = conditions[k];
            const double id = f.condition(zone, "side" + std::to_string(k), "BCWall", c.set, c.points, c.location);
            if (!c.inward.empty())
                f.add(id, "InwardNormalIndex", "\"int[IndexDimension]\"", c.inward);
        }
    });
    return readWhole(file);
}

TEST(CgnsWritten, StructuredBoundaryConditionsFollowTheirGridLocation) {
    const std::vector<Condition> vertices{
        {"Vertex", "PointRange", {1, 1, 1, 1, 4, 5}, {}}, {"", "PointRange", {3, 1, 1, 3, 4, 5}, {}},
        {"Vertex", "PointRange", {1, 1, 1, 3, 1, 5}, {}}, {"Vertex", "PointRange", {1, 4, 1, 3, 4, 5}, {}},
        {"Vertex", "PointRange", {1, 1, 1, 3, 4, 1}, {}}, {"Vertex", "PointRange", {1, 1, 5, 3, 4, 5}, {}}};
    const SourceMesh expected = readStructured(vertices);
    EXPECT_EQ(expected.warnings, (std::vector<std::string>{}));
    EXPECT_EQ(expected.faces.globalSize, 2 * (3 * 4 + 2 * 4 + 2 * 3));
    EXPECT_EQ(facesByPatch(expected)["side0"].size(), 12u);
    EXPECT_EQ(facesByPatch(expected)["side0"].begin()->second, 6.0);

    // Faces are counted, not their corners: the last is one less in the directions along the side.
    const std::vector<Condition> faces{
        {"IFaceCenter", "PointRange", {1, 1, 1, 1, 3, 4}, {}}, {"IFaceCenter", "PointRange", {3, 3, 4, 3, 1, 1}, {}},
        {"JFaceCenter", "PointRange", {1, 1, 1, 2, 1, 4}, {}}, {"JFaceCenter", "PointRange", {1, 4, 1, 2, 4, 4}, {}},
        {"KFaceCenter", "PointRange", {1, 1, 1, 2, 3, 1}, {}}, {"KFaceCenter", "PointRange", {1, 1, 5, 2, 3, 5}, {}}};
    std::vector<Condition> anyFaces = faces;
    for (Condition &condition : anyFaces)
        condition.location = "FaceCenter";
    // The cells at the faces.
    std::vector<Condition> cells = anyFaces;
    for (Condition &condition : cells)
        condition.location = "CellCenter";
    cells[1].points = {2, 1, 1, 2, 3, 4};
    cells[3].points = {1, 3, 1, 2, 3, 4};
    cells[5].points = {1, 1, 4, 2, 3, 4};
    std::vector<Condition> directed = cells;
    for (std::size_t k = 0; k < 6; k++) {
        directed[k].inward = {0, 0, 0};
        directed[k].inward[k / 2] = k % 2 == 0 ? 1 : -1;
    }
    // Lists of the same faces or cells.
    const auto listed = [](std::vector<Condition> conditions) {
        for (Condition &condition : conditions) {
            Ints list;
            const Ints range = condition.points;
            const auto bound = [&](std::size_t d, bool high) {
                return high ? std::max(range[d], range[d + 3]) : std::min(range[d], range[d + 3]);
            };
            for (int k = bound(2, false); k <= bound(2, true); k++)
                for (int j = bound(1, false); j <= bound(1, true); j++)
                    for (int i = bound(0, false); i <= bound(0, true); i++)
                        list.insert(list.end(), {i, j, k});
            condition.set = "PointList";
            condition.points = list;
        }
        return conditions;
    };
    for (const auto &conditions : {faces, anyFaces, cells, directed, listed(faces), listed(directed)}) {
        SCOPED_TRACE(conditions[0].location + " " + conditions[0].set);
        const SourceMesh mesh = readStructured(conditions);
        EXPECT_EQ(mesh.warnings, (std::vector<std::string>{}));
        EXPECT_EQ(facesByPatch(mesh), facesByPatch(expected));
        EXPECT_EQ(mesh.nodeMarks.size(), 0u);
    }
    // The whole boundary: nothing is left without a condition.
    EXPECT_EQ(readStructured(faces).faces.nodes.size(), expected.faces.nodes.size());
}

TEST(CgnsWritten, StructuredBoundaryConditionsOfTwoDimensionsFollowTheirGridLocation) {
    const SourceMesh expected = readStructured({{"Vertex", "PointRange", {1, 1, 1, 4}, {}},
                                                {"Vertex", "PointRange", {3, 1, 3, 4}, {}},
                                                {"Vertex", "PointRange", {1, 1, 3, 1}, {}},
                                                {"Vertex", "PointRange", {1, 4, 3, 4}, {}}},
                                               2);
    EXPECT_EQ(expected.faces.globalSize, 2 * (3 + 2));
    const std::vector<Condition> faces{{"IFaceCenter", "PointRange", {1, 1, 1, 3}, {}},
                                       {"IFaceCenter", "PointRange", {3, 1, 3, 3}, {}},
                                       {"JFaceCenter", "PointRange", {1, 1, 2, 1}, {}},
                                       {"JFaceCenter", "PointRange", {1, 4, 2, 4}, {}}};
    for (const std::string location : {"", "EdgeCenter", "FaceCenter"}) {
        std::vector<Condition> conditions = faces;
        for (Condition &condition : conditions)
            condition.location = location.empty() ? condition.location : location;
        const SourceMesh mesh = readStructured(conditions, 2);
        EXPECT_EQ(mesh.warnings, (std::vector<std::string>{})) << location;
        EXPECT_EQ(facesByPatch(mesh), facesByPatch(expected)) << location;
    }
}

TEST(CgnsWritten, StructuredBoundaryConditionsThatCannotBeToldAreNamed) {
    const auto warningOf = [](const Condition &condition) {
        const SourceMesh mesh = readStructured({condition});
        EXPECT_EQ(mesh.faces.globalSize, 0);
        EXPECT_EQ(mesh.nodeMarks.size(), 0u);
        return mesh.warnings.empty() ? std::string("no warning") : mesh.warnings[0];
    };
    const std::pair<Condition, std::string> doubtful[] = {
        {{"EdgeCenter", "PointRange", {1, 1, 1, 1, 3, 1}, {}}, "where a zone of 3 indices has no faces"},
        {{"FaceCenter", "PointRange", {1, 1, 1, 1, 1, 4}, {}}, "do not determine the direction of its faces"}, // I or J
        {{"FaceCenter", "PointList", {1, 1, 1}, {}}, "do not determine the direction of its faces"},
        {{"CellCenter", "PointRange", {1, 1, 1, 2, 3, 4}, {}}, "do not determine the direction of its faces"},
        {{"CellCenter", "PointRange", {1, 1, 1, 2, 3, 4}, {1, 0, 0}}, "more than one layer"},
        {{"IFaceCenter", "PointRange", {1, 1, 1, 1, 4, 5}, {}}, "its range [1, 1, 1, 1, 4, 5] leaves the faces"},
        {{"FaceCenter", "PointRange", {1, 1, 1, 1, 4, 5}, {}}, "leaves the faces"},
        {{"CellCenter", "PointRange", {3, 1, 1, 3, 3, 4}, {}}, "leaves the cells"}};
    for (const auto &[condition, expected] : doubtful) {
        const std::string warning = warningOf(condition);
        EXPECT_NE(warning.find(expected), std::string::npos) << warning;
        EXPECT_NE(warning.find("zone 'Zone', boundary condition 'side0' is left out"), std::string::npos) << warning;
    }
    const auto failureOf = [](const Condition &condition) {
        try {
            readStructured({condition});
        } catch (const DataError &error) {
            return error.message();
        }
        return std::string("nothing failed");
    };
    const std::pair<Condition, std::string> wrong[] = {
        {{"IFaceCenter", "PointList", {1, 1, 1, 1, 4, 1}, {}}, "face 2 of its list has index 4"},
        {{"CellCenter", "PointList", {3, 1, 1}, {1, 0, 0}}, "face 1 of its list has index 3"}};
    for (const auto &[condition, expected] : wrong) {
        const std::string failure = failureOf(condition);
        EXPECT_NE(failure.find(expected), std::string::npos) << failure;
        EXPECT_NE(failure.find("zone 'Zone', boundary condition 'side0'"), std::string::npos) << failure;
    }
    // One wide faces at the far end can only look one way.
    EXPECT_EQ(readStructured({{"FaceCenter", "PointRange", {3, 1, 1, 3, 1, 4}, {}}}).faces.globalSize, 4);
    // Planes within the zone.
    EXPECT_EQ(readStructured({{"IFaceCenter", "PointRange", {1, 1, 1, 3, 3, 4}, {}}}).faces.globalSize, 36);
}

TEST(CgnsWritten, StructuredZonesOfTwoDimensionsJoinWithTurnedIndices) {
    const WrittenFile file;
    // The right zone's first index runs downward along the join, its second to the right.
    file.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const double base = f.base("Base", 2, 2);
        const double left = f.structuredZone(base, "Left", {3, 4});
        Points points;
        for (int j = 0; j < 4; j++)
            for (int i = 0; i < 3; i++)
                points.push_back({1.0 * i, 1.0 * j, 0.0});
        f.coordinates(left, points, 2);
        const double right = f.structuredZone(base, "Right", {4, 3});
        points.clear();
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 4; i++)
                points.push_back({2.0 + j, 3.0 - i, 0.0});
        f.coordinates(right, points, 2);
        f.condition(left, "left", "BCWall", "PointRange", Ints{1, 1, 1, 4});
        const double group = f.add(left, "ZoneGridConnectivity", "ZoneGridConnectivity_t");
        const double join = f.add(group, "join", "GridConnectivity1to1_t", std::string("Right"));
        f.add(join, "PointRange", "IndexRange_t", Ints{3, 1, 3, 4}, {2, 2});
        f.add(join, "PointRangeDonor", "IndexRange_t", Ints{4, 1, 1, 1}, {2, 2});
        f.add(join, "Transform", "\"int[IndexDimension]\"", Ints{2, -1});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(mesh.globalNodes, 5 * 4);
    EXPECT_NEAR(test::measure(mesh), 12.0, 1e-12);
    EXPECT_TRUE(mesh.warnings.empty());
    EXPECT_EQ(facesOf(mesh, "left"), 3);
}

TEST(CgnsWritten, ChainsOfJoinsMakeOneNode) {
    const WrittenFile file;
    // Squares in the order d, b, c, a, in two rows of two; joined are a-b, b-d, d-c, but not c-a.
    file.write(FileType::Hdf5, 3.2F, [&](CgnsFile &f) {
        const double base = f.base("Base", 2, 2);
        std::map<char, double> zones;
        for (const auto &[name, x, y] :
             {std::tuple{'d', 1.0, 1.0}, {'b', 1.0, 0.0}, {'c', 0.0, 1.0}, {'a', 0.0, 0.0}}) {
            zones[name] = f.zone(base, std::string(1, name), 4, 1);
            f.coordinates(zones[name], {{x, y, 0}, {x + 1, y, 0}, {x + 1, y + 1, 0}, {x, y + 1, 0}}, 2);
            f.section(zones[name], "Cells", 7, 1, 1, Ints{1, 2, 3, 4});
        }
        f.connection(zones['a'], "ab", "b", Ints{2, 3}, Ints{1, 4});
        f.connection(zones['b'], "bd", "d", Ints{3, 4}, Ints{2, 1});
        f.connection(zones['d'], "dc", "c", Ints{1, 4}, Ints{2, 3});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(mesh.globalNodes, 10); // all of a three by three grid, and one that a and c do not share
    const auto centre = [&](index cell, std::size_t corner) { return mesh.cells.nodesOf(cell)[corner]; };
    EXPECT_EQ(centre(0, 0), centre(1, 3));
    EXPECT_EQ(centre(0, 0), centre(2, 1));
    EXPECT_EQ(centre(0, 0), centre(3, 2));
    EXPECT_NEAR(test::measure(mesh), 4.0, 1e-14);
}

TEST(CgnsWritten, OneOfSeveralBasesIsRead) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WrittenFile file;
    file.write(FileType::Adf, 3.2F, [&](CgnsFile &f) {
        f.base("Empty", 3, 3);
        for (const int n : {2, 3}) {
            const Grid grid{n, 1, 1};
            const double zone = f.zone(f.base("Base" + std::to_string(n), 3, 3), "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cells", 17, 1, n, grid.hexahedra());
        }
    });
    CgnsOptions options;
    options.base = "Base2";
    EXPECT_EQ(readWhole(file, options).cells.globalSize, 2);
    options.base = "Base3";
    EXPECT_EQ(readWhole(file, options).cells.globalSize, 3);
    options.base = "Base4";
    EXPECT_THROW(readCgns(comm, file.path(), options), ArgumentError);
    options.base = "Empty";
    EXPECT_THROW(readCgns(comm, file.path(), options), DataError);
}

TEST(CgnsWritten, BasesAreNotDroppedWithoutAWord) {
    const Grid grid{2, 1, 1};
    for (const FileType type : bothTypes) {
        const WrittenFile file;
        const auto write = [&](int bases) {
            file.write(type, 3.2F, [&](CgnsFile &f) {
                f.base("Empty", 3, 3);
                for (int n = 0; n < bases; n++) {
                    const double zone = f.zone(f.base(n == 0 ? "Fluid" : "Solid", 3, 3), "Zone", grid.nodes(), 2);
                    f.coordinates(zone, grid.points());
                    f.section(zone, "Cells", 17, 1, 2, grid.hexahedra());
                }
            });
        };
        write(1);
        EXPECT_EQ(readWhole(file).cells.globalSize, 2) << "one base with cells needs no choice";
        write(2);
        try {
            (void)readWhole(file);
            ADD_FAILURE() << "a base was dropped";
        } catch (const DataError &error) {
            EXPECT_NE(error.message().find("choose one of 'Fluid', 'Solid' (dnds-mesh --base, CgnsOptions::base)"),
                      std::string::npos)
                << error.message();
        }
    }
}

TEST(CgnsWritten, AdfNodesAreFoundWhateverOtherFilesAreOpen) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const Grid grid{3, 2, 2};
    const WrittenFile file;
    file.write(FileType::Adf, 3.2F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
        f.coordinates(zone, grid.points());
        f.section(zone, "Cells", 17, 1, grid.cells(), grid.hexahedra());
    });
    const SourceMesh expected = readWhole(file);
    const WrittenFile other;
    std::optional<CgnsFile> opened; // numbers of nodes hold that of the file in the process
    if (comm.rank() == 0)
        opened.emplace(other.path(), FileType::Adf, 3.2F);
    test::expectSame(readWhole(file), expected);
}

TEST(CgnsWritten, LinksAreFollowedIntoOtherFiles) {
    const Grid grid{3, 2, 2};
    for (const FileType type : bothTypes) {
        const WrittenFile target;
        target.write(type, 3.2F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Grids", 3, 3), "Fine", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            f.section(zone, "Cells", 17, 1, grid.cells(), grid.hexahedra());
        });
        const WrittenFile file;
        const std::string name = std::filesystem::path(target.path()).filename().string();
        file.write(type, 3.2F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
            f.link(zone, "GridCoordinates", target.path(), "/Grids/Fine/GridCoordinates");
            f.link(zone, "Cells", type == FileType::Hdf5 ? name : target.path(), "/Grids/Fine/Cells");
        });
        test::expectSame(readWhole(file), readWhole(target));
    }
}

} // namespace
} // namespace DNDS::Geom
