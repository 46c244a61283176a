#include "DNDS/Geom/Locate/Probe.hpp"

#include "DNDS/Geom/Locate/Triangles.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "Geom/Locate/LocatedMeshes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

namespace DNDS::Geom {
namespace {

using test::build;
using test::WholeMesh;

CommunicatorView ranks() { return {MPI_COMM_WORLD}; }

/// Segments, the third corner being the second, or triangles.
using Part = std::array<Point, 3>;

/// All faces of the patches on every rank, moved by `shift`.
std::vector<Part> partsOf(const UnstructuredMesh &mesh, const std::vector<std::string> &patches,
                          const Point &shift = {}) {
    std::vector<Part> mine;
    const auto at = [&](LocalIndex node) {
        return Point{mesh.coordinates(node, 0), mesh.coordinates(node, 1),
                     mesh.planar ? 0.0 : mesh.coordinates(node, 2)} +
               shift;
    };
    for (const std::string &name : patches)
        for (const LocalIndex face : mesh.patch(name).ownFaces()) {
            const auto nodes = std::as_const(mesh.faceNodes).view()[face];
            if (mesh.dimension == 2)
                mine.push_back({at(nodes[0]), at(nodes[1]), at(nodes[1])});
            else
                forEachTriangle(
                    static_cast<std::size_t>(nodes.size()),
                    [&](std::size_t i) { return at(nodes[static_cast<rowsize>(i)]); },
                    [&](const Point &a, const Point &b, const Point &c) {
                        mine.push_back({a, b, c});
                    });
        }
    return mesh.comm.allGatherV(std::span<const Part>(mine));
}

real distance2(const Point &p, const Part &part) {
    return part[1] == part[2] ? distance2ToSegment(p, part[0], part[1])
                              : distance2ToTriangle(p, part[0], part[1], part[2]);
}

real byBruteForce(const Point &p, const std::vector<Part> &parts) {
    real least = std::numeric_limits<real>::infinity();
    for (const Part &part : parts)
        least = std::min(least, distance2(p, part));
    return std::sqrt(least);
}

/// The distance from a triangle another way: the least of a convex function of two barycentric coordinates, by
/// halving a grid around the best point.
real bySearch(const Point &p, const Part &part) {
    real u = 1.0 / 3;
    real v = 1.0 / 3;
    const auto at = [&](real s, real t) {
        return norm(part[0] + s * (part[1] - part[0]) + t * (part[2] - part[0]) - p);
    };
    for (real step = 0.5; step > 1e-10; step *= 0.7) {
        real best = at(u, v);
        const real u0 = u;
        const real v0 = v;
        for (int i = -3; i <= 3; i++)
            for (int j = -3; j <= 3; j++) {
                const real s = std::clamp(u0 + step * i / 3, 0.0, 1.0);
                const real t = std::clamp(v0 + step * j / 3, 0.0, 1.0 - s);
                if (at(s, t) < best) {
                    best = at(s, t);
                    u = s;
                    v = t;
                }
            }
    }
    return at(u, v);
}

TEST(WallDistance, ToATriangleIsTheLeast) {
    const std::vector<Point> points = test::randomPoints(240, {-1, -1, -1}, {1, 1, 1});
    for (std::size_t i = 0; i + 3 < points.size(); i += 4) {
        const Part part{points[i], points[i + 1], points[i + 2]};
        EXPECT_NEAR(std::sqrt(distance2(points[i + 3], part)), bySearch(points[i + 3], part), 1e-6);
        for (const Point &corner : part)
            EXPECT_EQ(distance2(corner, part), 0.0);
        const Point above = (1.0 / 3) * (part[0] + part[1] + part[2]);
        const Point normal = cross(part[1] - part[0], part[2] - part[0]);
        EXPECT_NEAR(std::sqrt(distance2(above + (0.25 / norm(normal)) * normal, part)), 0.25, 1e-14);
    }
    const Point corner{1, 2, 3};
    EXPECT_EQ(distance2ToTriangle({1, 2, 5}, corner, corner, corner), 4.0); // degenerate
    EXPECT_EQ(distance2ToTriangle({0, 1, 0}, {-1, 0, 0}, {3, 0, 0}, {1, 0, 0}), 1.0);
}

/// Expects what brute force finds, to the last bit, and what one rank finds.
void expectExact(const UnstructuredMesh &mesh, const UnstructuredMesh &alone, const std::vector<std::string> &patches,
                 const std::vector<Point> &points) {
    const std::vector<Part> parts = partsOf(mesh, patches);
    const WallDistance walls(mesh, patches);
    const std::vector<NearestFace> found = walls.nearest(points);
    const std::vector<NearestFace> byOne = WallDistance(alone, patches).nearest(points);
    ASSERT_EQ(found.size(), points.size());
    for (std::size_t i = 0; i < points.size(); i++) {
        Point at = points[i];
        if (mesh.planar)
            at[2] = 0;
        EXPECT_EQ(found[i].distance, byBruteForce(at, parts));
        EXPECT_EQ(found[i].distance, byOne[i].distance);
        EXPECT_EQ(found[i].cell, byOne[i].cell);
        if (found[i].rank == mesh.comm.rank()) {
            ASSERT_LT(found[i].face, mesh.faces.owned);
            EXPECT_EQ(test::numberOf(mesh, mesh.faceCells(found[i].face, 0)), found[i].cell);
        }
    }
}

TEST(WallDistance, IsWhatBruteForceFinds) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        const UnstructuredMesh mesh = build(ranks(), whole);
        const UnstructuredMesh alone = build(MPI_COMM_SELF, whole);
        std::vector<Point> points = test::randomPoints(200, {-1, -1, -1}, {5, 4, 4});
        points.insert(points.end(), whole.points.begin(), whole.points.end());
        for (const std::vector<std::string> &patches :
             {std::vector<std::string>{"y0"}, {"x0", "x1", "y1"}, {"x1", "x1"}})
            expectExact(mesh, alone, patches, points);
    }
}

TEST(WallDistance, OfCellsIsThatOfCentroids) {
    const UnstructuredMesh mesh = build(ranks(), test::makeBox({.counts = {4, 3, 3}, .jitter = false}));
    const MeshMetrics metrics = computeMetrics(mesh);
    const std::vector<real> distances = WallDistance(mesh, {"y0", "y1"}).ofCells(metrics);
    ASSERT_EQ(static_cast<index>(distances.size()), mesh.cells.owned);
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        EXPECT_NEAR(distances[toSize(cell)], std::min(metrics.centroids(cell, 1), 3.0 - metrics.centroids(cell, 1)),
                    1e-15);
}

TEST(WallDistance, SaysWhenThereIsNoWall) {
    const UnstructuredMesh mesh = build(ranks(), test::makeBox({}));
    const real nowhere = std::numeric_limits<real>::quiet_NaN();
    for (const NearestFace &face : WallDistance(mesh, {"unassigned"}).nearest(std::vector<Point>{{1, 1, 1}})) {
        EXPECT_TRUE(std::isinf(face.distance));
        EXPECT_EQ(face.rank, -1);
        EXPECT_EQ(face.cell, -1);
    }
    EXPECT_EQ(WallDistance(mesh, {"x0"}).nearest(std::vector<Point>{{nowhere, 1, 1}, {1, 1, 1}})[1].distance, 1.0);
    EXPECT_THROW(WallDistance(mesh, {"x0", "wall"}), ArgumentError);
}

TEST(WallDistance, PointsThatAreNotFiniteHaveNone) {
    constexpr real infinity = std::numeric_limits<real>::infinity();
    const real nowhere = std::numeric_limits<real>::quiet_NaN();
    const UnstructuredMesh mesh =
        build(ranks(), test::makeBox({.cells = DNDS::test::BoxCells::Polygons, .counts = {4, 3, 1}}));
    ASSERT_TRUE(mesh.planar); // the third coordinate is ignored
    const WallDistance walls(mesh, {"x0"});
    const std::vector<NearestFace> found =
        walls.nearest(std::vector<Point>{{1.5, 1.5, nowhere}, {1.25, 1.5, 0}, {infinity, 1, 0}, {nowhere, 1, 0}});
    EXPECT_EQ(found[0].distance, 1.5);
    EXPECT_EQ(found[1].distance, 1.25);
    for (const NearestFace &face : {found[2], found[3]}) {
        EXPECT_TRUE(std::isinf(face.distance));
        EXPECT_EQ(face.rank, -1);
    }
}

TEST(WallDistance, KnowsImagesOfWalls) {
    // The wall y = 0 is left out where x > 1: for x near 4 the nearest wall is across the periodic boundary.
    WholeMesh whole = test::makeBox({.counts = {4, 3, 3}, .periodic = {true, false, true}, .jitter = false});
    WholeMesh kept = whole;
    kept.faces.clear();
    kept.faceMarks.clear();
    for (std::size_t f = 0; f < whole.faces.size(); f++) {
        real middle = 0;
        for (const index node : whole.faces[f].nodes)
            middle += whole.points[toSize(node)][0] / static_cast<real>(whole.faces[f].nodes.size());
        const int mark = whole.faceMarks[f];
        if (mark < 0 || whole.patches[static_cast<std::size_t>(mark)].name != "y0" || middle < 1) {
            kept.faces.push_back(whole.faces[f]);
            kept.faceMarks.push_back(mark);
        }
    }
    const UnstructuredMesh mesh = build(ranks(), kept);
    std::vector<Part> parts;
    for (const real x : {-4.0, 0.0, 4.0})
        for (const real z : {-3.0, 0.0, 3.0})
            for (const Part &part : partsOf(mesh, {"y0"}, {x, 0, z}))
                parts.push_back(part);
    const std::vector<Point> points = test::randomPoints(200, {0, 0, 0}, {4, 3, 3});
    const std::vector<NearestFace> found = WallDistance(mesh, {"y0"}).nearest(points);
    for (std::size_t i = 0; i < points.size(); i++)
        EXPECT_NEAR(found[i].distance, byBruteForce(points[i], parts), 1e-14);
    EXPECT_NEAR(WallDistance(mesh, {"y0"}).nearest(std::vector<Point>{{3.75, 0, 1}})[0].distance, 0.25, 1e-14);
}

TEST(WallDistance, HasRanksWithoutFacesOrPoints) {
    const WholeMesh whole = test::makeBox({.counts = {4, 3, 3}});
    SourceMesh slice = whole.slice(ranks());
    MeshOptions options;
    options.partitioner = Partitioner::Given;
    options.givenPart.assign(toSize(slice.cells.size()), ranks().size() - 1);
    const UnstructuredMesh mesh = buildMesh(ranks(), std::move(slice), options);
    const std::vector<Part> parts = partsOf(mesh, {"x0"});
    const std::vector<Point> points = ranks().rank() == 0 ? whole.points : std::vector<Point>();
    const std::vector<NearestFace> found = WallDistance(mesh, {"x0"}).nearest(points);
    for (std::size_t i = 0; i < points.size(); i++) {
        EXPECT_EQ(found[i].distance, byBruteForce(points[i], parts));
        EXPECT_EQ(found[i].rank, ranks().size() - 1);
    }
}

class WallDistanceOfFiles : public testing::TestWithParam<std::pair<const char *, const char *>> {};

TEST_P(WallDistanceOfFiles, IsWhatBruteForceFinds) {
    const auto [file, patch] = GetParam();
    const std::string path = std::string(DNDS_TEST_MESHES "/") + file;
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << path << " is not here";
    const UnstructuredMesh mesh = buildMesh(ranks(), readMesh(ranks(), path));
    const MeshMetrics metrics = computeMetrics(mesh);
    const std::vector<Part> parts = partsOf(mesh, {patch});
    ASSERT_FALSE(parts.empty());
    const std::vector<real> distances = WallDistance(mesh, {patch}).ofCells(metrics);
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        EXPECT_EQ(
            distances[toSize(cell)],
            byBruteForce({metrics.centroids(cell, 0), metrics.centroids(cell, 1), metrics.centroids(cell, 2)}, parts));
}

INSTANTIATE_TEST_SUITE_P(Public, WallDistanceOfFiles,
                         testing::Values(std::pair{"naca0012_inv.su2", "airfoil"},
                                         std::pair{"bend_mixed.cgns", "WALL2_2D"}),
                         [](const auto &file) {
                             std::string name = file.param.first;
                             return name.substr(0, name.find('.'));
                         });

} // namespace
} // namespace DNDS::Geom
