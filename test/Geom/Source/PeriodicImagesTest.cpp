#include "DNDS/Geom/Source/PeriodicImages.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "Geom/Build/WholeMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <utility>

namespace DNDS::Geom {
namespace {

void expectNear(const Point &a, const Point &b, real tolerance = 1e-12) { EXPECT_LT(norm(a - b), tolerance); }

TEST(PeriodicImages, MotionsTurnAboutTheCentreAndUndoThemselves) {
    PeriodicTransform transform;
    transform.centre = {1.0, 2.0, 3.0};
    transform.angles = {0.0, 0.0, std::numbers::pi / 2};
    transform.translation = {0.0, 0.0, 5.0};
    const RigidMotion motion = motionOf(transform);
    expectNear(motion({2.0, 2.0, 3.0}), {1.0, 3.0, 8.0});
    transform.angles = {0.4, -0.3, 1.1};
    const RigidMotion oblique = motionOf(transform);
    const Point x{0.3, -2.0, 0.7};
    expectNear(oblique.inverse()(oblique(x)), x);
    expectNear((oblique * motion)(x), oblique(motion(x)));
    // About x first, then y, then z.
    transform.centre = {};
    transform.translation = {};
    transform.angles = {std::numbers::pi / 2, 0.0, std::numbers::pi / 2};
    expectNear(motionOf(transform)({0.0, 1.0, 0.0}), {0.0, 0.0, 1.0});
    expectNear(motionOf(transform)({1.0, 0.0, 0.0}), {0.0, 1.0, 0.0});
}

TEST(PeriodicImages, AreCountedOnceHoweverTheyAreReached) {
    std::vector<PeriodicConnection> connections(4);
    connections[0].transform.translation = {1.0, 0.0, 0.0};
    connections[1].transform.translation = {0.0, 2.0, 0.0};
    connections[2].transform.translation = {1.0, 0.0, 0.0};  // another part of the same sides
    connections[3].transform.translation = {-1.0, 0.0, 0.0}; // stored the other way round
    ImageTable table(connections, {0, 0, 0}, {1, 2, 1});
    EXPECT_EQ(table.stepAt(2, 0), table.stepAt(0, 0));
    EXPECT_EQ(table.stepAt(3, 1), table.stepAt(0, 0));
    EXPECT_EQ(table.stepAt(0, 1), ImageTable::inverseStep(table.stepAt(0, 0)));
    const int x = table.compose(0, table.stepAt(0, 1));
    const int y = table.compose(0, table.stepAt(1, 1));
    EXPECT_EQ(table.compose(x, table.stepAt(1, 1)), table.compose(y, table.stepAt(0, 1)));
    EXPECT_EQ(table.compose(x, table.stepAt(0, 0)), 0);
    const int twice = table.compose(x, table.stepAt(3, 0));
    expectNear(table.motion(twice)({0, 0, 0}), {2.0, 0.0, 0.0});
    EXPECT_EQ(imageOfKey(imageKey(12345, twice)), twice);
    EXPECT_EQ(numberOfKey(imageKey(12345, twice)), 12345);
}

/// A file of many zones lists one periodic boundary in many connections.
TEST(PeriodicImages, AreLimitedByMotionsNotByConnections) {
    std::vector<PeriodicConnection> connections(300);
    for (PeriodicConnection &connection : connections)
        connection.transform.translation = {1, 0, 0};
    connections.back().transform.translation = {0, 2, 0};
    ImageTable table(connections, {0, 0, 0}, {1, 2, 1});
    EXPECT_EQ(table.stepAt(298, 1), table.stepAt(0, 1));
    const int y = table.compose(0, table.stepAt(299, 1));
    expectNear(table.motion(y)({0, 0, 0}), {0, 2, 0});
    EXPECT_EQ(table.compose(y, table.stepAt(299, 0)), 0);
    EXPECT_EQ(table.images()[toSize(y)].steps[0].connection, 299);
    for (std::size_t c = 0; c < connections.size(); c++)
        connections[c].transform.translation = {1 + static_cast<real>(c), 0, 0};
    ImageTable tooMany(connections, {0, 0, 0}, {1, 2, 1});
    EXPECT_THROW((void)tooMany.stepAt(299, 0), DataError);
}

/// Across each face of a periodic boundary is a cell with the face's corners, at the same places.
void checkPeriodicFaces(const UnstructuredMesh &mesh) {
    const auto pointOf = [&](LocalIndex n) {
        return Point{mesh.coordinates(n, 0), mesh.coordinates(n, 1), mesh.coordinates(n, 2)};
    };
    for (const auto &[face, image] : mesh.periodicFaces) {
        const LocalIndex ghost = mesh.faceCells[face][1];
        ASSERT_GE(ghost, mesh.cells.owned);
        EXPECT_EQ(mesh.cells.images[static_cast<std::size_t>(ghost)], image);
        for (const LocalIndex corner : mesh.faceNodes[face]) {
            real nearest = 1.0;
            for (const LocalIndex n : mesh.cellNodes[ghost])
                nearest = std::min(nearest, norm(pointOf(n) - pointOf(corner)));
            EXPECT_LT(nearest, 1e-9);
        }
    }
}

/// Three translations of which two make the third: several ways lead to each image.
TEST(PeriodicImages, OfAHexagonAreAtDifferentPlaces) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    test::WholeMesh whole;
    whole.dimension = 2;
    whole.points.push_back({0, 0, 0});
    for (int k = 0; k < 6; k++)
        whole.points.push_back({std::cos(k * std::numbers::pi / 3), std::sin(k * std::numbers::pi / 3), 0});
    for (index k = 0; k < 6; k++) {
        const index a = 1 + k, b = 1 + (k + 1) % 6;
        whole.cells.push_back({ElementType::Tri3, {0, a, b}, k + 1});
        whole.faces.push_back({ElementType::Bar2, {a, b}, k + 7});
        whole.faceMarks.push_back(-1 - static_cast<int>(2 * (k % 3) + k / 3));
    }
    for (std::size_t c = 0; c < 3; c++) {
        PeriodicTransform transform;
        for (std::size_t d = 0; d < 2; d++)
            transform.translation[d] = whole.points[1 + (c + 4) % 6][d] - whole.points[1 + c][d];
        whole.periodic.push_back({"side " + std::to_string(c), transform});
    }
    for (const GhostNeighbours by : {GhostNeighbours::Nodes, GhostNeighbours::Faces})
        for (int layers = 1; layers <= 4; layers++) {
            MeshOptions options{.partitioner = Partitioner::Curve, .ghostLayers = layers};
            options.ghostsBy = by;
            const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm), options);
            std::set<std::pair<long, long>> places;
            for (index c = 0; c < mesh.cells.size(); c++) {
                real x = 0, y = 0;
                for (const LocalIndex n : mesh.cellNodes[c]) {
                    x += mesh.coordinates(n, 0);
                    y += mesh.coordinates(n, 1);
                }
                places.insert({std::lround(1e6 * x), std::lround(1e6 * y)});
            }
            EXPECT_EQ(static_cast<index>(places.size()), mesh.cells.size()) << layers << " layers";
            checkPeriodicFaces(mesh);
        }
}

/// A domain much thinner in its periodic direction than wide, as of flat flows.
TEST(PeriodicImages, OfAThinDomainAreApart) {
    for (const real thin : {1e-2, 1e-3, 1e-5}) {
        std::vector<PeriodicConnection> connections(2);
        connections[0].transform.translation = {0, 0, thin};
        connections[1].transform.translation = {0, 0, -thin};
        ImageTable table(connections, {0, 0, 0}, {2000, 2000, thin});
        EXPECT_EQ(table.stepAt(0, 0), table.stepAt(1, 1));
        const int up = table.compose(0, table.stepAt(0, 1));
        const int down = table.compose(0, table.stepAt(0, 0));
        EXPECT_NE(up, down);
        EXPECT_EQ(table.compose(up, table.stepAt(0, 0)), 0);
        EXPECT_NE(table.compose(up, table.stepAt(0, 1)), down);
        expectNear(table.motion(up)({0, 0, 0}), {0, 0, thin});
    }
}

/// Half a turn forwards equals half a turn backwards; two of them are the identity.
TEST(PeriodicImages, OfHalfATurnAreCountedOnce) {
    std::vector<PeriodicConnection> connections(1);
    connections[0].transform.angles = {0, 0, std::numbers::pi};
    ImageTable table(connections, {0, 0, 0}, {1, 2, 1});
    const int there = table.compose(0, table.stepAt(0, 0));
    EXPECT_EQ(table.compose(0, table.stepAt(0, 1)), there);
    EXPECT_EQ(table.compose(there, table.stepAt(0, 0)), 0);
    EXPECT_EQ(table.images().size(), 2U);
}

/// Each is as good as equal to the next, the ends are not: all steps are of motions that stand for others.
TEST(PeriodicImages, OfNearlyEqualMotionsAreThoseOfTheFirst) {
    std::vector<PeriodicConnection> connections(3);
    for (std::size_t c = 0; c < 3; c++)
        connections[c].transform.translation = {1 + 0.8e-6 * static_cast<real>(c), 0, 0};
    ImageTable table(connections, {0, 0, 0}, {1, 0, 0});
    EXPECT_EQ(table.stepAt(1, 0), table.stepAt(0, 0));
    for (int c = 0; c < 3; c++)
        expectNear(table.motion(table.compose(0, table.stepAt(c, 1)))({0, 0, 0}), {1, 0, 0}, 2e-6);
}

TEST(PeriodicTransforms, HaveInversesWhereTwoAxesOfRotationMeet) {
    constexpr real right = std::numbers::pi / 2;
    for (const real side : {-1.0, 1.0})
        for (const real off : {0.0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3})
            for (const auto &[x, z] : {std::pair{0.5, 0.3}, {0.5, -0.3}, {-2.9, 3.1}, {0.0, 1.0}, {1.0, 0.0}}) {
                const PeriodicTransform transform{{1, 0, -1}, {x, side * (right - off), z}, {0, 0.2, 0.4}};
                const RigidMotion there = motionOf(transform);
                const RigidMotion back = motionOf(inverseOf(transform));
                const RigidMotion again = motionOf({{}, anglesOf(there.matrix), {}});
                for (std::size_t k = 0; k < 9; k++)
                    EXPECT_NEAR(again.matrix[k], there.matrix[k], 4e-16) << side << " " << off << " " << x << " " << z;
                for (const Point &point : {Point{0, 0, 0}, Point{1, -2, 3}, Point{10, 20, 5}})
                    expectNear(back(there(point)), point, 3e-14);
            }
}

TEST(PeriodicTransforms, HaveInverses) {
    const std::array<PeriodicTransform, 4> transforms{{{{1, 2, 3}, {0.3, 0, 0}, {0.1, 0.2, 0.3}},
                                                       {{0, 0, 0}, {0, 0, -2.5}, {4, 5, 6}},
                                                       {{1, 0, -1}, {0.5, -0.7, 2.9}, {0, 0, 0.4}},
                                                       {{0, 0, 0}, {0, 0, 0}, {0.1, 0, 0}}}};
    for (const PeriodicTransform &transform : transforms) {
        const RigidMotion there = motionOf(transform);
        const RigidMotion back = motionOf(inverseOf(transform));
        for (const Point &x : {Point{0, 0, 0}, Point{1, -2, 3}, Point{10, 20, 5}})
            expectNear(back(there(x)), x);
    }
    EXPECT_EQ(inverseOf(transforms[0]).angles, (Point{-0.3, 0, 0}));
    EXPECT_EQ(inverseOf(transforms[3]).translation, (Point{-0.1, 0, 0}));
}

TEST(PeriodicImages, OfASectorAreTurned) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const test::BoxCells cells : {test::BoxCells::Hexahedra, test::BoxCells::Tetrahedra}) {
        // The second axis of a box becomes the angle; half a turn holds the four cells.
        test::WholeMesh whole = test::makeBox({.cells = cells, .counts = {3, 4, 2}, .periodic = {false, true, true}});
        for (auto &point : whole.points) {
            const real radius = 1.0 + point[0];
            const real angle = point[1] * std::numbers::pi / 8;
            point = {radius * std::cos(angle), radius * std::sin(angle), point[2]};
        }
        whole.periodic[0].transform = {{}, {0.0, 0.0, std::numbers::pi / 2}, {}};
        MeshReport report;
        MeshOptions options{.partitioner = Partitioner::Curve, .ghostLayers = 2};
        options.report = &report;
        const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm), options);
        const index triangles = cells == test::BoxCells::Tetrahedra ? 2 : 1;
        EXPECT_EQ(report.periodicPairs, triangles * (3 * 2 + 3 * 4));
        EXPECT_EQ(comm.allReduce(static_cast<index>(mesh.periodicFaces.size()), MPI_SUM), 2 * report.periodicPairs);
        EXPECT_EQ(report.unassignedFaces, 0);
        checkPeriodicFaces(mesh);
        const MeshMetrics metrics = computeMetrics(mesh);
        EXPECT_LT(metrics.closure, 1e-13);
        for (index c = mesh.cells.owned; c < mesh.cells.size(); c++)
            EXPECT_GT(metrics.volumes(c, 0), 0.0);
    }
}

TEST(PeriodicImages, FacesWithoutPartnersStayBoundaryFaces) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    test::WholeMesh whole = test::makeBox({.counts = {3, 2, 2}, .periodic = {true, false, false}});
    // The four faces of one side: one is not listed.
    for (std::size_t f = 0; f < whole.faces.size(); f++)
        if (whole.faceMarks[f] == -2) {
            whole.faceMarks.erase(whole.faceMarks.begin() + static_cast<std::ptrdiff_t>(f));
            whole.faces.erase(whole.faces.begin() + static_cast<std::ptrdiff_t>(f));
            break;
        }
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm), options);
    EXPECT_EQ(report.periodicPairs, 3);
    EXPECT_EQ(report.unassignedFaces, 2);
    ASSERT_EQ(report.warnings.size(), 3U); // turned cells, a face without partner, unassigned faces
    EXPECT_NE(report.warnings[1].find("1 faces of periodic connections have no partner"), std::string::npos);
    checkPeriodicFaces(mesh);
}

} // namespace
} // namespace DNDS::Geom
