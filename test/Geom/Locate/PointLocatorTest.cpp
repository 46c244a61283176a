#include "DNDS/Geom/Locate/Probe.hpp"

#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "Geom/Locate/LocatedMeshes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

namespace DNDS::Geom {
namespace {

using test::build;
using test::numberOf;
using test::WholeMesh;

CommunicatorView world() { return {MPI_COMM_WORLD}; }

std::vector<index> numbersOf(const std::vector<PointLocation> &locations) {
    std::vector<index> numbers;
    for (const PointLocation &at : locations)
        numbers.push_back(at.number);
    return numbers;
}

/// Centroids of own cells.
std::vector<Point> centresOf(const UnstructuredMesh &mesh) {
    const MeshMetrics metrics = computeMetrics(mesh);
    std::vector<Point> points;
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        points.push_back({metrics.centroids(cell, 0), metrics.centroids(cell, 1), metrics.centroids(cell, 2)});
    return points;
}

TEST(PointLocator, FindsPointsOnBothSidesOfASlit) {
    const UnstructuredMesh mesh = buildMesh(MPI_COMM_SELF, DNDS::test::makeCubeWithSlit().slice(MPI_COMM_SELF));
    const PointLocator locator(mesh);
    for (const real z : {-1.0, -0.05, 0.0, 0.05, 0.2, 0.5})
        EXPECT_EQ(locator.ownCellAt({0, 0, z}), 0) << z;
    EXPECT_EQ(locator.ownCellAt({0, 0, 2.5}), noEntity);
}

TEST(PointLocator, FindsTheCellsOfMappedPoints) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        const UnstructuredMesh mesh = build(world(), whole);
        std::vector<Point> points;
        std::vector<index> cells;
        for (index cell = 0; cell < mesh.cells.owned; cell++) {
            const ElementType type = mesh.cellTypes[toSize(cell)];
            if (elementLayout(type).nodes == 0)
                continue;
            const ElementNodes nodes{mesh.coordinates.view(), std::as_const(mesh.cellNodes).view()[cell]};
            for (const Point &at : test::pointsInside(elementLayout(type).shape, 10)) {
                points.push_back(mapPoint(shapeFunctions(type, at), nodes).position);
                cells.push_back(cell);
            }
        }
        if (name.starts_with("poly")) {
            points = centresOf(mesh);
            for (index cell = 0; cell < mesh.cells.owned; cell++)
                cells.push_back(cell);
        }
        ASSERT_EQ(points.empty(), mesh.cells.owned == 0);
        const PointLocator locator(mesh);
        const std::vector<PointLocation> found = locator.locate(points);
        for (std::size_t i = 0; i < points.size(); i++) {
            ASSERT_TRUE(found[i].found());
            EXPECT_EQ(found[i].number, numberOf(mesh, cells[i]));
            EXPECT_EQ(found[i].rank, world().rank());
            EXPECT_EQ(found[i].cell, cells[i]);
            EXPECT_EQ(locator.ownCellAt(points[i]), cells[i]);
        }
    }
}

TEST(PointLocator, AnswersTheSameOnAnyNumberOfRanks) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        std::vector<Point> points = test::randomPoints(500, {-0.5, -0.5, -0.5}, {4.5, 3.5, 3.5});
        for (const Point &point : whole.points) // on faces of many cells
            points.push_back(point);
        for (std::size_t i = 1; i < whole.points.size(); i++)
            points.push_back(0.5 * (whole.points[i - 1] + whole.points[i]));
        const UnstructuredMesh mesh = build(world(), whole);
        const UnstructuredMesh alone = build(MPI_COMM_SELF, whole);
        const std::vector<PointLocation> found = PointLocator(mesh).locate(points);
        EXPECT_EQ(numbersOf(found), numbersOf(PointLocator(alone).locate(points)));
        index owned = 0;
        for (const PointLocation &at : found)
            if (at.rank == world().rank()) {
                owned++;
                EXPECT_EQ(numberOf(mesh, at.cell), at.number);
            }
        EXPECT_EQ(world().allReduce(owned, MPI_SUM), std::ranges::count_if(found, &PointLocation::found));
    }
}

TEST(PointLocator, GivesPointsBetweenCellsToTheFirstOfThem) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        std::vector<index> first(whole.points.size(), std::numeric_limits<index>::max());
        for (std::size_t cell = 0; cell < whole.cells.size(); cell++)
            for (const index node : whole.nodesOf(cell))
                first[toSize(node)] = std::min(first[toSize(node)], static_cast<index>(cell));
        std::erase(first, std::numeric_limits<index>::max()); // nodes of no cell
        const UnstructuredMesh mesh = build(world(), whole);
        EXPECT_EQ(numbersOf(PointLocator(mesh).locate(test::positionsOf(whole))), first);
    }
}

TEST(PointLocator, FillsABoxWithoutGaps) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        if (name.find(' ') != std::string::npos)
            continue; // curved
        SCOPED_TRACE(name);
        // Moved nodes warp faces at the boundary.
        const std::vector<Point> points = test::randomPoints(1000, {0.3, 0.3, 0.3}, {3.7, 2.7, 2.7});
        const UnstructuredMesh mesh = build(world(), whole);
        for (const PointLocator &locator : {PointLocator(mesh), PointLocator(mesh, 0.0)})
            for (const PointLocation &at : locator.locate(points))
                EXPECT_TRUE(at.found());
    }
}

TEST(PointLocator, IsAsAccurateFarFromTheOrigin) {
    for (auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        for (Point &point : whole.points) {
            point = 1e-3 * point;
            point[0] += 1e6;
            point[1] -= 1e6;
        }
        for (const PointLocation &at : PointLocator(build(world(), whole)).locate(test::positionsOf(whole)))
            EXPECT_TRUE(at.found());
    }
}

TEST(PointLocator, MarksPointsOutside) {
    const UnstructuredMesh mesh = build(world(), test::makeBox({.counts = {4, 3, 3}, .jitter = false}));
    const real nowhere = std::numeric_limits<real>::quiet_NaN();
    const std::vector<Point> points{{-0.1, 1, 1},    {4.1, 1, 1},   {1e30, 0, 0}, {nowhere, 1, 1},
                                    {1, nowhere, 1}, {1, 1, 3.001}, {2, 2, 2},    {0, 0, 0}};
    const std::vector<PointLocation> found = PointLocator(mesh).locate(points);
    for (std::size_t i = 0; i < 6; i++) {
        EXPECT_FALSE(found[i].found());
        EXPECT_EQ(found[i].number, -1);
        EXPECT_EQ(found[i].cell, noEntity);
    }
    EXPECT_TRUE(found[6].found());
    EXPECT_TRUE(found[7].found());
    EXPECT_TRUE(PointLocator(mesh, 0.01).locate(points)[5].found());
    EXPECT_THROW(PointLocator(mesh, -1.0), ArgumentError);
}

TEST(PointLocator, TakesPointsOfPeriodicMeshesWhereTheyAre) {
    const WholeMesh whole = test::makeBox({.counts = {4, 3, 3}, .periodic = {true, true, false}, .jitter = false});
    const UnstructuredMesh mesh = build(world(), whole);
    const std::vector<PointLocation> found =
        PointLocator(mesh).locate(std::vector<Point>{{-0.5, 1.5, 1.5}, {3.5, 1.5, 1.5}, {1.5, 3.5, 1.5}});
    EXPECT_FALSE(found[0].found());
    EXPECT_TRUE(found[1].found());
    EXPECT_FALSE(found[2].found());
}

TEST(PointLocator, HasRanksWithoutCellsOrPoints) {
    const WholeMesh whole = test::makeBox({.cells = DNDS::test::BoxCells::Tetrahedra});
    SourceMesh slice = whole.slice(world());
    MeshOptions options;
    options.partitioner = Partitioner::Given;
    options.givenPart.assign(toSize(slice.cells.size()), world().size() - 1);
    const UnstructuredMesh mesh = buildMesh(world(), std::move(slice), options);
    const std::vector<Point> points = world().rank() == 0 ? whole.points : std::vector<Point>();
    const std::vector<PointLocation> found = PointLocator(mesh).locate(points);
    EXPECT_EQ(found.size(), points.size());
    for (const PointLocation &at : found)
        EXPECT_EQ(at.rank, world().size() - 1);
}

TEST(PointLocator, KnowsCellsThatAreNotConvex) {
    // A polyhedron shaped like an L, and a cube in its corner.
    WholeMesh whole;
    for (const real z : {0.0, 1.0})
        for (const auto &[x, y] : {std::pair{0, 0}, {2, 0}, {2, 1}, {1, 1}, {1, 2}, {0, 2}, {2, 2}})
            whole.points.push_back({static_cast<real>(x), static_cast<real>(y), z});
    std::vector<index> faces{6, 5, 4, 3, 2, 1, 0, 6, 7, 8, 9, 10, 11, 12};
    for (index i = 0; i < 6; i++) {
        const index next = (i + 1) % 6;
        faces.insert(faces.end(), {4, i, next, next + 7, i + 7});
    }
    whole.cells = {{ElementType::Polyhedron, faces, 1}, {ElementType::Hexa8, {3, 2, 6, 4, 10, 9, 13, 11}, 2}};
    const UnstructuredMesh mesh = build(world(), whole);
    const std::vector<Point> points{{0.5, 0.5, 0.5}, {1.5, 0.5, 0.5}, {0.5, 1.5, 0.5}, {1.5, 1.5, 0.5},
                                    {1.0, 1.0, 0.5}, {1.0, 1.5, 0.5}, {2.5, 1.5, 0.5}};
    EXPECT_EQ(numbersOf(PointLocator(mesh).locate(points)), (std::vector<index>{0, 0, 0, 1, 0, 0, -1}));
}

TEST(PointLocator, FindsPointsInCollapsedElements) {
    // A wedge as a hexahedron whose corners coincide in pairs, next to a cube.
    WholeMesh whole;
    whole.points = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1},
                    {1, 0, 1}, {1, 1, 1}, {0, 1, 1}, {2, 0, 0}, {2, 0, 1}};
    whole.cells = {{ElementType::Hexa8, {0, 1, 2, 3, 4, 5, 6, 7}, 1},
                   {ElementType::Hexa8, {1, 8, 2, 2, 5, 9, 6, 6}, 2}};
    const UnstructuredMesh mesh = build(world(), whole);
    std::vector<Point> points = test::randomPoints(200, {0, 0, 0}, {2, 1, 1});
    std::vector<index> expected;
    for (const Point &point : points)
        expected.push_back(point[0] < 1 ? 0 : point[0] + point[1] < 2 ? 1 : -1);
    EXPECT_EQ(numbersOf(PointLocator(mesh).locate(points)), expected);
    // The edge that a face collapses to, between the cells and beside it.
    const std::vector<Point> edge{{1, 1, 0}, {1, 1, 0.3}, {1.001, 0.999, 0.3}, {1 + 1e-6, 1 - 2e-6, 0.7}};
    EXPECT_EQ(numbersOf(PointLocator(mesh).locate(edge)), (std::vector<index>{0, 0, 1, 1}));
}

TEST(PointLocator, FindsPointsOnSurfaces) {
    using Cells = DNDS::test::BoxCells;
    const auto dome = [](const Point &p) { return Point{p[0], p[1], 0.1 * p[0] * p[1] + 0.05 * p[0] * p[0]}; };
    for (const Cells cells : {Cells::Triangles, Cells::Quadrilaterals, Cells::Polygons})
        for (const test::Order order : {test::Order::Linear, test::Order::Complete}) {
            const WholeMesh whole = test::curve(test::makeBox({.cells = cells, .counts = {4, 3, 1}}), order, dome);
            SourceMesh slice = whole.slice(world());
            slice.physicalDimension = 3;
            const UnstructuredMesh mesh = buildMesh(world(), std::move(slice));
            ASSERT_FALSE(mesh.planar);
            const PointLocator locator(mesh);
            std::vector<Point> points = test::positionsOf(whole);
            for (const PointLocation &at : locator.locate(points))
                EXPECT_TRUE(at.found());
            for (Point &point : points)
                point[2] += 0.01;
            for (const PointLocation &at : locator.locate(points))
                EXPECT_FALSE(at.found());
            for (const PointLocation &at : PointLocator(mesh, 0.02).locate(points))
                EXPECT_TRUE(at.found());
        }
}

TEST(PointLocator, IgnoresTheThirdCoordinateInPlanarMeshes) {
    const UnstructuredMesh mesh =
        build(world(), test::makeBox({.cells = DNDS::test::BoxCells::Polygons, .counts = {4, 3, 1}}));
    for (const PointLocation &at : PointLocator(mesh).locate(std::vector<Point>{{1.5, 1.5, 7.0}, {2, 1, -1}}))
        EXPECT_TRUE(at.found());
}

class PointLocatorOfFiles : public testing::TestWithParam<const char *> {};

TEST_P(PointLocatorOfFiles, FindsTheCellsOfCentroids) {
    const std::string path = std::string(DNDS_TEST_MESHES "/") + GetParam();
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << path << " is not here";
    const UnstructuredMesh mesh = buildMesh(world(), readMesh(world(), path));
    const std::vector<PointLocation> found = PointLocator(mesh).locate(centresOf(mesh));
    index missed = 0;
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        missed += found[toSize(cell)].number == numberOf(mesh, cell) ? 0 : 1;
    EXPECT_EQ(missed, 0);
}

INSTANTIATE_TEST_SUITE_P(Public, PointLocatorOfFiles,
                         testing::Values("naca0012_inv.su2", "bend_mixed.cgns", "sphere_hexa27.cgns",
                                         "atb45_ngon_v42.cgns"),
                         [](const auto &file) {
                             std::string name = file.param;
                             return name.substr(0, name.find('.'));
                         });

} // namespace
} // namespace DNDS::Geom
