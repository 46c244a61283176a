// Metrics from corners and from the maps of curved elements.

#include "DNDS/Geom/Mesh/MeshView.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "Geom/Mesh/CurvedMeshes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace DNDS::Geom {
namespace {

using std::numbers::pi;
using test::BoxOptions;
using test::curve;
using test::makeBox;
using test::Order;
using test::WholeMesh;
using Box = test::BoxCells;

CommunicatorView world() { return CommunicatorView(MPI_COMM_WORLD); }

/// Collects cells by the positions of their corners.
class MeshMaker {
  public:
    explicit MeshMaker(int dimension) { mesh_.dimension = dimension; }
    void add(ElementType type, const std::vector<Point> &corners) {
        std::vector<index> list;
        for (const Point &corner : corners) {
            std::array<index, 3> key{};
            for (std::size_t d = 0; d < 3; d++)
                key[d] = std::lround(1e6 * corner[d]);
            const auto [it, isNew] = nodes_.try_emplace(key, static_cast<index>(mesh_.points.size()));
            if (isNew)
                mesh_.points.push_back(corner);
            list.push_back(it->second);
        }
        mesh_.cells.push_back({type, list, static_cast<index>(mesh_.cells.size()) + 1});
    }
    WholeMesh take() { return std::move(mesh_); }

  private:
    WholeMesh mesh_;
    std::map<std::array<index, 3>, index> nodes_;
};

/// A core of n x n quadrilaterals in [-1, 1]^2, and n layers around it up to [-2, 2]^2, along the diagonals.
std::vector<std::array<Point, 4>> butterfly(int n) {
    std::vector<std::array<Point, 4>> quads;
    const auto at = [&](int i) { return -1.0 + 2.0 * i / n; };
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            quads.push_back({Point{at(i), at(j), 0.0}, Point{at(i + 1), at(j), 0.0}, Point{at(i + 1), at(j + 1), 0.0},
                             Point{at(i), at(j + 1), 0.0}});
    for (int side = 0; side < 4; side++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                const auto place = [&](int along, int out) {
                    const real s = 1.0 + static_cast<real>(out) / n;
                    real x = s;
                    real y = s * at(along);
                    for (int turn = 0; turn < side; turn++) {
                        std::swap(x, y);
                        x = -x;
                    }
                    return Point{x, y, 0.0};
                };
                quads.push_back({place(i, k), place(i, k + 1), place(i + 1, k + 1), place(i + 1, k)});
            }
    return quads;
}

/// From the square of `butterfly` to the unit disk.
Point toDisk(const Point &p) {
    const real s = std::max(std::fabs(p[0]), std::fabs(p[1]));
    if (s <= 1.0)
        return {0.5 * p[0], 0.5 * p[1], p[2]};
    const real w = s - 1.0;
    const real x = p[0] / s;
    const real y = p[1] / s;
    const real factor = 0.5 * (1.0 - w) + w / std::hypot(x, y);
    return {factor * x, factor * y, p[2]};
}

WholeMesh cylinder(int n, Order order, bool prisms) {
    MeshMaker maker(3);
    for (const auto &quad : butterfly(n))
        for (int k = 0; k < 2; k++) {
            const auto corner = [&](int i, int layer) {
                Point p = quad[static_cast<std::size_t>(i)];
                p[2] = 0.5 * (k + layer);
                return p;
            };
            const auto column = [&](ElementType type, const std::vector<int> &list) {
                std::vector<Point> corners;
                for (int layer = 0; layer < 2; layer++)
                    for (const int i : list)
                        corners.push_back(corner(i, layer));
                maker.add(type, corners);
            };
            if (!prisms) {
                column(ElementType::Hexa8, {0, 1, 2, 3});
            } else {
                column(ElementType::Penta6, {0, 1, 2});
                column(ElementType::Penta6, {0, 2, 3});
            }
        }
    return curve(maker.take(), order, toDisk);
}

/// Divides a simplex by the middles of its edges `times` times.
void subdivide(MeshMaker &maker, const std::vector<Point> &p, int times) {
    if (times == 0) {
        maker.add(p.size() == 4 ? ElementType::Tetra4 : ElementType::Tri3, p);
        return;
    }
    const auto mid = [&](std::size_t a, std::size_t b) { return 0.5 * (p[a] + p[b]); };
    const Point m01 = mid(0, 1);
    const Point m12 = mid(1, 2);
    const Point m02 = mid(0, 2);
    if (p.size() == 3) {
        for (const auto &part :
             std::vector<std::vector<Point>>{{p[0], m01, m02}, {m01, p[1], m12}, {m02, m12, p[2]}, {m01, m12, m02}})
            subdivide(maker, part, times - 1);
        return;
    }
    const Point m03 = mid(0, 3);
    const Point m13 = mid(1, 3);
    const Point m23 = mid(2, 3);
    for (const auto &part : std::vector<std::vector<Point>>{{p[0], m01, m02, m03},
                                                            {m01, p[1], m12, m13},
                                                            {m02, m12, p[2], m23},
                                                            {m03, m13, m23, p[3]},
                                                            {m01, m02, m03, m13},
                                                            {m01, m12, m02, m13},
                                                            {m02, m13, m03, m23},
                                                            {m02, m12, m13, m23}})
        subdivide(maker, part, times - 1);
}

/// From the octahedron to the unit ball, along rays.
Point toBall(const Point &p) {
    const real length = norm(p);
    return length > 0.0 ? ((std::fabs(p[0]) + std::fabs(p[1]) + std::fabs(p[2])) / length) * p : p;
}

/// The ball of tetrahedra, or the sphere of triangles.
WholeMesh ball(int dimension, int times, Order order) {
    MeshMaker maker(dimension);
    for (const real x : {-1.0, 1.0})
        for (const real y : {-1.0, 1.0})
            for (const real z : {-1.0, 1.0}) {
                std::vector<Point> corners{{x, 0.0, 0.0}, {0.0, y, 0.0}, {0.0, 0.0, z}};
                if (x * y * z < 0.0)
                    std::swap(corners[0], corners[1]);
                if (dimension == 3)
                    corners.push_back({0.0, 0.0, 0.0});
                subdivide(maker, corners, times);
            }
    return curve(maker.take(), order, toBall);
}

struct Totals {
    real volume = 0.0;
    real surface = 0.0;     ///< area of the boundary faces that pass the filter
    real areaVectors = 0.0; ///< lengths of their area vectors
    Point moment{};
    MeshMetrics metrics;
};

/// Builds a mesh and adds up its metrics. Collective.
Totals measured(
    SourceMesh source, bool curved,
    const std::function<bool(const Point &)> &filter = [](const Point &) { return true; }) {
    const UnstructuredMesh mesh = buildMesh(world(), std::move(source));
    Totals totals{0.0, 0.0, 0.0, {}, computeMetrics(mesh, {.curved = curved})};
    const MeshMetrics &metrics = totals.metrics;
    for (index c = 0; c < mesh.cells.owned; c++) {
        const real volume = metrics.volumes(c, 0);
        totals.volume += volume;
        for (rowsize d = 0; d < 3; d++)
            totals.moment[static_cast<std::size_t>(d)] += volume * metrics.centroids(c, d);
    }
    for (const LocalIndex f : mesh.boundaryFaces) {
        if (f >= mesh.faces.owned ||
            !filter({metrics.faceCentres(f, 0), metrics.faceCentres(f, 1), metrics.faceCentres(f, 2)}))
            continue;
        totals.surface += curved ? metrics.surfaceAreas(f, 0) : metrics.areas(f, 0);
        totals.areaVectors += metrics.areas(f, 0);
    }
    for (real *value : {&totals.volume, &totals.surface, &totals.areaVectors, &totals.moment[0], &totals.moment[1],
                        &totals.moment[2]})
        *value = world().allReduce(*value, MPI_SUM);
    return totals;
}

/// Keeps volumes: x depends on y, z on x and y only.
Point sheared(const Point &p) { return {p[0] + 0.05 * p[1] * p[1], p[1], p[2] + 0.04 * p[0] * p[1]}; }

TEST(MeshMetrics, OfCurvedBoxesAreExact) {
    for (const Order order : {Order::Serendipity, Order::Complete})
        for (const Box cells : {Box::Hexahedra, Box::Tetrahedra, Box::Mixed}) {
            SCOPED_TRACE(testing::Message()
                         << "cells " << static_cast<int>(cells) << ", order " << static_cast<int>(order));
            // Serendipity elements follow a quadratic map only from parallelepipeds.
            const BoxOptions options{.cells = cells, .jitter = order == Order::Complete};
            const Totals box = measured(curve(makeBox(options), order, sheared).slice(world(), true), true);
            EXPECT_NEAR(box.volume, 27.0, 1e-12);
            // The integral of x + y^2 / 20, of y, and of z + x y / 25 over [0, 3]^3.
            EXPECT_NEAR(box.moment[0], 40.5 + 0.05 * 81.0, 1e-11);
            EXPECT_NEAR(box.moment[1], 40.5, 1e-11);
            EXPECT_NEAR(box.moment[2], 40.5 + 0.04 * 60.75, 1e-11);
            EXPECT_LT(box.metrics.closure, 1e-15);
            EXPECT_EQ(box.metrics.invertedCells, 0);
            EXPECT_GT(box.surface, box.areaVectors + 1e-3);
        }
}

TEST(MeshMetrics, OfCurvedCellsCloseAcrossPeriodicBoundaries) {
    const Totals box = measured(
        makeBox({.cells = Box::Hexahedra27, .counts = {4, 3, 3}, .periodic = {true, false, true}}).slice(world()),
        true);
    EXPECT_NEAR(box.volume, 36.0, 1e-12);
    EXPECT_LT(box.metrics.closure, 1e-15);
}

TEST(MeshMetrics, OfCurvedCellsNeedNoGhosts) {
    SourceMesh source = curve(makeBox({.cells = Box::Mixed}), Order::Complete, sheared).slice(world());
    const UnstructuredMesh mesh = buildMesh(world(), std::move(source), {.ghostLayers = 0});
    const MeshMetrics metrics = computeMetrics(mesh, {.curved = true});
    EXPECT_LT(metrics.closure, 1e-15);
    const auto faceCells = mesh.faceCells.view();
    for (index f = 0; f < mesh.faces.size(); f++) {
        const LocalIndex cell = faceCells(f, 0) >= 0 ? faceCells(f, 0) : faceCells(f, 1);
        real outward = 0.0;
        for (rowsize d = 0; d < 3; d++)
            outward += metrics.areaVectors(f, d) * (metrics.faceCentres(f, d) - metrics.centroids(cell, d));
        EXPECT_GT(faceCells(f, 0) >= 0 ? outward : -outward, 0.0) << "face " << f;
    }
}

TEST(MeshMetrics, OfLinearTetrahedraAreThoseOfCorners) {
    const UnstructuredMesh mesh =
        buildMesh(world(), makeBoxMesh({.fill = BoxCells::Tetrahedra, .cells = {4, 3, 3}, .jitter = 0.1}, world()));
    const MeshMetrics corners = computeMetrics(mesh);
    const MeshMetrics curved = computeMetrics(mesh, {.curved = true});
    EXPECT_EQ(corners.surfaceAreas.size(), 0);
    ASSERT_EQ(curved.surfaceAreas.size(), mesh.faces.size());
    for (index c = 0; c < mesh.cells.size(); c++) {
        EXPECT_EQ(corners.volumes(c, 0), curved.volumes(c, 0));
        for (rowsize d = 0; d < 3; d++)
            EXPECT_EQ(corners.centroids(c, d), curved.centroids(c, d));
    }
    for (index f = 0; f < mesh.faces.size(); f++) {
        EXPECT_EQ(corners.areas(f, 0), curved.areas(f, 0));
        EXPECT_EQ(corners.areas(f, 0), curved.surfaceAreas(f, 0));
    }
}

TEST(MeshMetrics, OfFlatFacesAreThoseOfCorners) {
    for (const BoxCells fill : {BoxCells::MixedVolume, BoxCells::Polyhedra, BoxCells::MixedSurface}) {
        const UnstructuredMesh mesh = buildMesh(world(), makeBoxMesh({.fill = fill, .cells = {4, 3, 3}}, world()));
        const MeshMetrics corners = computeMetrics(mesh);
        const MeshMetrics curved = computeMetrics(mesh, {.curved = true});
        EXPECT_LT(curved.closure, 1e-15);
        EXPECT_EQ(curved.invertedCells, 0);
        for (index c = 0; c < mesh.cells.size(); c++) {
            EXPECT_NEAR(corners.volumes(c, 0), curved.volumes(c, 0), 1e-15);
            for (rowsize d = 0; d < 3; d++)
                EXPECT_NEAR(corners.centroids(c, d), curved.centroids(c, d), 1e-14);
        }
        for (index f = 0; f < mesh.faces.size(); f++) {
            EXPECT_NEAR(corners.areas(f, 0), curved.surfaceAreas(f, 0), 1e-15);
            for (rowsize d = 0; d < 3; d++) {
                EXPECT_NEAR(corners.areaVectors(f, d), curved.areaVectors(f, d), 1e-15);
                EXPECT_NEAR(corners.faceCentres(f, d), curved.faceCentres(f, d), 1e-14);
            }
        }
    }
}

TEST(MeshMetrics, HaveTheSameBitsOnBothSidesOfARankBoundary) {
    const WholeMesh whole = curve(makeBox({.cells = Box::Mixed}), Order::Complete, sheared);
    const UnstructuredMesh mesh = buildMesh(world(), whole.slice(world()));
    const MeshMetrics metrics = computeMetrics(mesh, {.curved = true});
    auto owners = mesh.faces.field<8>("metrics of the owner");
    const auto row = [&](index f) {
        std::array<real, 8> values{metrics.areas(f, 0), metrics.surfaceAreas(f, 0)};
        for (rowsize d = 0; d < 3; d++) {
            values[static_cast<std::size_t>(2 + d)] = metrics.areaVectors(f, d);
            values[static_cast<std::size_t>(5 + d)] = metrics.faceCentres(f, d);
        }
        return values;
    };
    for (index f = 0; f < mesh.faces.owned; f++)
        for (rowsize k = 0; k < 8; k++)
            owners(f, k) = row(f)[static_cast<std::size_t>(k)];
    owners.trans.pullOnce();
    for (const LocalIndex f : mesh.sharedFaces)
        for (rowsize k = 0; k < 8; k++)
            EXPECT_EQ(owners(f, k), row(f)[static_cast<std::size_t>(k)]) << "face " << f;
    auto volumes = mesh.field<1>("volumes of the owner");
    for (index c = 0; c < mesh.cells.owned; c++)
        volumes(c, 0) = metrics.volumes(c, 0);
    volumes.trans.pullOnce();
    for (index c = 0; c < mesh.cells.size(); c++)
        EXPECT_EQ(volumes(c, 0), metrics.volumes(c, 0));
}

/// Errors of two meshes, the second twice as fine, fall as h^order.
void expectOrder(const std::vector<real> &errors, real order) {
    EXPECT_NEAR(std::log2(errors[0] / errors[1]), order, 0.2) << errors[0] << " then " << errors[1];
}

TEST(MeshMetrics, OfACylinderConverge) {
    const auto onWall = [](const Point &p) { return std::hypot(p[0], p[1]) > 0.9 && p[2] > 1e-9 && p[2] < 1.0 - 1e-9; };
    for (const bool prisms : {false, true})
        for (const Order order : {Order::Linear, Order::Serendipity, Order::Complete}) {
            SCOPED_TRACE(testing::Message()
                         << (prisms ? "prisms" : "hexahedra") << ", order " << static_cast<int>(order));
            std::vector<real> volumes;
            std::vector<real> walls;
            for (const int n : {4, 8}) {
                const Totals made = measured(cylinder(n, order, prisms).slice(world()), true, onWall);
                volumes.push_back(std::fabs(made.volume - pi));
                walls.push_back(std::fabs(made.surface - 2.0 * pi));
                EXPECT_LT(made.metrics.closure, 1e-15);
                EXPECT_EQ(made.metrics.invertedCells, 0);
            }
            expectOrder(volumes, order == Order::Linear ? 2.0 : 4.0);
            expectOrder(walls, order == Order::Linear ? 2.0 : 4.0);
        }
}

TEST(MeshMetrics, OfCornersKeepTheVolumeOfThePolygon) {
    const SourceMesh source = cylinder(4, Order::Complete, false).slice(world());
    const Totals corners = measured(source, false);
    const Totals linear = measured(cylinder(4, Order::Linear, false).slice(world()), false);
    const Totals curved = measured(source, true);
    EXPECT_NEAR(corners.volume, linear.volume, 1e-12);
    EXPECT_LT(corners.volume, pi - 0.05);
    EXPECT_NEAR(curved.volume, pi, 1e-3);
}

TEST(MeshMetrics, OfABallConverge) {
    for (const Order order : {Order::Linear, Order::Complete}) {
        std::vector<real> volumes;
        std::vector<real> surfaces;
        for (const int times : {2, 3}) {
            const Totals made = measured(ball(3, times, order).slice(world()), true);
            volumes.push_back(std::fabs(made.volume - 4.0 / 3.0 * pi));
            surfaces.push_back(std::fabs(made.surface - 4.0 * pi));
            EXPECT_LT(made.metrics.closure, 1e-15);
            EXPECT_EQ(made.metrics.invertedCells, 0);
            EXPECT_NEAR(norm(made.moment), 0.0, 1e-13);
        }
        expectOrder(volumes, order == Order::Linear ? 2.0 : 4.0);
        expectOrder(surfaces, order == Order::Linear ? 2.0 : 4.0);
    }
}

TEST(MeshMetrics, OfASphereConverge) {
    for (const Order order : {Order::Linear, Order::Complete}) {
        std::vector<real> areas;
        for (const int times : {2, 3}) {
            SourceMesh source = ball(2, times, order).slice(world());
            source.physicalDimension = 3;
            areas.push_back(std::fabs(measured(source, true).volume - 4.0 * pi));
        }
        expectOrder(areas, order == Order::Linear ? 2.0 : 4.0);
    }
}

TEST(MeshMetrics, OfADiskConverge) {
    for (const bool triangles : {false, true})
        for (const Order order : {Order::Linear, Order::Serendipity, Order::Complete}) {
            std::vector<real> areas;
            std::vector<real> lengths;
            for (const int n : {4, 8}) {
                MeshMaker maker(2);
                for (const auto &quad : butterfly(n)) {
                    if (triangles) {
                        maker.add(ElementType::Tri3, {quad[0], quad[1], quad[2]});
                        maker.add(ElementType::Tri3, {quad[0], quad[2], quad[3]});
                    } else {
                        maker.add(ElementType::Quad4, {quad.begin(), quad.end()});
                    }
                }
                const Totals disk = measured(curve(maker.take(), order, toDisk).slice(world()), true);
                areas.push_back(std::fabs(disk.volume - pi));
                lengths.push_back(std::fabs(disk.surface - 2.0 * pi));
                EXPECT_LT(disk.metrics.closure, 1e-15);
                EXPECT_EQ(disk.metrics.invertedCells, 0);
            }
            expectOrder(areas, order == Order::Linear ? 2.0 : 4.0);
            expectOrder(lengths, order == Order::Linear ? 2.0 : 4.0);
        }
}

TEST(MeshMetrics, CountInvertedCells) {
    WholeMesh whole = curve(makeBox({.jitter = false, .shuffle = false, .turnSome = false}), Order::Complete,
                            [](const Point &p) { return p; });
    EXPECT_EQ(measured(whole.slice(world()), true).metrics.invertedCells, 0);
    whole.points[toSize(whole.cells[0].nodes[26])] = {-3.0, 0.5, 0.5}; // the middle of the first cell leaves it
    EXPECT_EQ(measured(whole.slice(world()), true).metrics.invertedCells, 1);
    EXPECT_EQ(measured(whole.slice(world()), false).metrics.invertedCells, 0);
}

TEST(MeshMetrics, OfCollapsedHexahedraClose) {
    // A wedge as a hexahedron whose corners coincide in pairs, next to a cube.
    WholeMesh whole;
    whole.points = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1},
                    {1, 0, 1}, {1, 1, 1}, {0, 1, 1}, {2, 0, 0}, {2, 0, 1}};
    whole.cells = {{ElementType::Hexa8, {0, 1, 2, 3, 4, 5, 6, 7}, 1},
                   {ElementType::Hexa8, {1, 8, 2, 2, 5, 9, 6, 6}, 2}};
    const Totals made = measured(whole.slice(world()), true);
    EXPECT_NEAR(made.volume, 1.5, 1e-14);
    EXPECT_NEAR(made.moment[0], 0.5 + 0.5 * 4.0 / 3.0, 1e-14);
    EXPECT_LT(made.metrics.closure, 1e-15);
}

TEST(MeshMetrics, OfThePublicSphere) {
    const std::string path = DNDS_TEST_MESHES "/sphere_hexa27.cgns";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << "no " << path;
    const SourceMesh source = readMesh(world(), path);
    EXPECT_NEAR(measured(source, false).volume, 3.91255424384, 1e-10); // as another program finds, MANIFEST.md
    const Totals curved = measured(source, true);
    EXPECT_NEAR(curved.volume, 4.0 / 3.0 * pi, 5e-3);
    EXPECT_NEAR(curved.surface, 4.0 * pi, 1e-2);
    EXPECT_LT(curved.metrics.closure, 1e-15);
    EXPECT_EQ(curved.metrics.invertedCells, 0);
}

} // namespace
} // namespace DNDS::Geom
