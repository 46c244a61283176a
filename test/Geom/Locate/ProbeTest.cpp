#include "DNDS/Geom/Locate/Probe.hpp"

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "Geom/Locate/LocatedMeshes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace DNDS::Geom {
namespace {

using test::build;
using test::numberOf;

CommunicatorView everybody() { return {MPI_COMM_WORLD}; }

real linear(const Point &p) { return 1.0 + 2.0 * p[0] - 3.0 * p[1] + 0.5 * p[2]; }

/// Points of this rank alone, some of them outside.
std::vector<Point> somePoints(const UnstructuredMesh &mesh) {
    std::vector<Point> points = test::randomPoints(300, {0.2, 0.2, 0.2}, {4.2, 3.2, 2.8});
    const auto step = static_cast<std::size_t>(mesh.comm.size());
    std::vector<Point> mine;
    for (std::size_t i = static_cast<std::size_t>(mesh.comm.rank()); i < points.size(); i += step)
        mine.push_back(mesh.planar ? Point{points[i][0], points[i][1], 0.0} : points[i]);
    return mine;
}

template <class Function>
auto nodeField(const UnstructuredMesh &mesh, Function &&valueAt) {
    auto field = mesh.nodes.field<2>("at nodes");
    for (index node = 0; node < mesh.nodes.owned; node++) {
        const Point at{mesh.coordinates(node, 0), mesh.coordinates(node, 1), mesh.coordinates(node, 2)};
        field(node, 0) = valueAt(at);
        field(node, 1) = -2.0 * valueAt(at);
    }
    field.pull();
    return field;
}

TEST(Probe, ReadsTheCellOfAPoint) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        const UnstructuredMesh mesh = build(everybody(), whole);
        auto wide = mesh.field<2, float>("wide");
        auto chosen = mesh.field("chosen", 3);
        auto dof = mesh.field<ArrayDof<2>>("dof");
        const std::vector<Point> points = somePoints(mesh);
        Probe probe(PointLocator(mesh), points);
        for (const real factor : {1.0, 2.0}) { // made once, read often
            for (index cell = 0; cell < mesh.cells.owned; cell++) {
                const real number = factor * static_cast<real>(numberOf(mesh, cell));
                wide(cell, 1) = static_cast<float>(number);
                chosen(cell, 2) = number;
                dof[cell](1) = number;
            }
            const std::vector<real> ofWide = probe.cellValues(wide);
            const std::vector<real> ofChosen = probe.cellValues(chosen);
            const std::vector<real> ofDof = probe.cellValues(dof);
            ASSERT_EQ(ofWide.size(), 2 * points.size());
            ASSERT_EQ(ofChosen.size(), 3 * points.size());
            for (std::size_t i = 0; i < points.size(); i++) {
                const PointLocation &at = probe.locations()[i];
                if (!at.found()) {
                    EXPECT_TRUE(std::isnan(ofWide[2 * i + 1]) && std::isnan(ofChosen[3 * i + 2]));
                    continue;
                }
                EXPECT_EQ(ofWide[2 * i], 0.0);
                EXPECT_EQ(ofWide[2 * i + 1], factor * static_cast<real>(at.number));
                EXPECT_EQ(ofChosen[3 * i + 2], factor * static_cast<real>(at.number));
                EXPECT_EQ(ofDof[2 * i + 1], factor * static_cast<real>(at.number));
            }
        }
    }
}

TEST(Probe, IsExactForLinearFields) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        const UnstructuredMesh mesh = build(everybody(), whole);
        const MeshMetrics metrics = computeMetrics(mesh);
        auto u = mesh.field<2>("u");
        auto gradients = mesh.field<6>("gradients");
        for (index cell = 0; cell < mesh.cells.owned; cell++) {
            u(cell, 1) = linear({metrics.centroids(cell, 0), metrics.centroids(cell, 1), metrics.centroids(cell, 2)});
            gradients(cell, 3) = 2.0;
            gradients(cell, 4) = -3.0;
            gradients(cell, 5) = 0.5;
        }
        const auto nodal = nodeField(mesh, linear);
        std::vector<Point> points = somePoints(mesh);
        const std::size_t others = points.size();
        for (const real height : {1e-9, 1e-7, 3e-6, 1e-5}) // above faces
            points.push_back({1.3, 1.4, height});
        Probe probe(PointLocator(mesh), points);
        const std::vector<real> ofCells = probe.linearValues(u, gradients, metrics);
        const std::vector<real> ofNodes = probe.nodeValues(nodal);
        for (std::size_t i = 0; i < points.size(); i++)
            if (probe.locations()[i].found() && !(mesh.planar && i >= others)) {
                EXPECT_NEAR(ofCells[2 * i + 1], linear(points[i]), 1e-12);
                EXPECT_NEAR(ofNodes[2 * i], linear(points[i]), i < others ? 1e-11 : 1e-9);
                EXPECT_NEAR(ofNodes[2 * i + 1], -2.0 * linear(points[i]), i < others ? 2e-11 : 1e-9);
            }
    }
}

TEST(Probe, InterpolatesAtNodesAndOnFaces) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        const UnstructuredMesh mesh = build(everybody(), whole);
        const auto valueAt = [](const Point &p) { return std::sin(p[0]) * std::cos(p[1]) + p[2] * p[2]; };
        const auto field = nodeField(mesh, valueAt);
        const std::vector<Point> nodes = test::positionsOf(whole);
        Probe probe(PointLocator(mesh), nodes);
        const std::vector<real> values = probe.nodeValues(field);
        for (std::size_t i = 0; i < nodes.size(); i++)
            EXPECT_NEAR(values[2 * i], valueAt(nodes[i]), 1e-7);
        std::vector<Point> middles; // of edges: linear elements are linear there
        std::vector<real> expected;
        if (name.find(' ') == std::string::npos)
            for (std::size_t cell = 0; cell < whole.cells.size(); cell++)
                for (const auto &face : whole.facesOf(cell)) {
                    middles.push_back(0.5 * (whole.points[toSize(face[0])] + whole.points[toSize(face[1])]));
                    expected.push_back(
                        0.5 * (valueAt(whole.points[toSize(face[0])]) + valueAt(whole.points[toSize(face[1])])));
                }
        Probe edges(PointLocator(mesh), middles);
        const std::vector<real> onEdges = edges.nodeValues(field);
        for (std::size_t i = 0; i < middles.size(); i++)
            EXPECT_NEAR(onEdges[2 * i], expected[i], 1e-6);
    }
}

TEST(Probe, HasTheSameBitsOnAnyNumberOfRanks) {
    for (const auto &[name, whole] : test::meshesOfAllTypes()) {
        SCOPED_TRACE(name);
        const auto valueAt = [](const Point &p) { return std::exp(0.3 * p[0] - 0.2 * p[1] * p[2]); };
        const std::vector<Point> points = test::randomPoints(200, {0.2, 0.2, 0.2}, {4.0, 3.0, 3.0});
        const auto probed = [&, &whole = whole](CommunicatorView comm) {
            const UnstructuredMesh mesh = build(comm, whole);
            const auto field = nodeField(mesh, valueAt);
            Probe probe(PointLocator(mesh), points);
            std::vector<real> values = probe.nodeValues(field);
            std::ranges::replace_if(
                values, [](real value) { return std::isnan(value); }, 1e9);
            return values;
        };
        EXPECT_EQ(probed(MPI_COMM_WORLD), probed(MPI_COMM_SELF));
    }
}

TEST(Probe, GathersOnTheRankThatAsks) {
    const UnstructuredMesh mesh = build(everybody(), test::makeBox({.counts = {4, 3, 3}, .jitter = false}));
    auto field = mesh.field<1>("number");
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        field(cell, 0) = static_cast<real>(numberOf(mesh, cell));
    const bool asks = everybody().rank() == 0;
    const std::vector<Point> line = pointsOnLine({0, 1.5, 1.5}, {4, 1.5, 1.5}, 9);
    EXPECT_EQ(line.size(), 9U);
    EXPECT_EQ(line[2], (Point{1.0, 1.5, 1.5}));
    EXPECT_EQ(line[8], (Point{4.0, 1.5, 1.5}));
    Probe probe(PointLocator(mesh), asks ? line : std::vector<Point>());
    const std::vector<real> values = probe.cellValues(field);
    ASSERT_EQ(values.size(), asks ? 9U : 0U);
    for (std::size_t i = 0; i < values.size(); i++)
        EXPECT_EQ(values[i], static_cast<real>(probe.locations()[i].number));
    EXPECT_EQ(everybody().allReduce(probe.samples(), MPI_SUM), 9);
    EXPECT_EQ(pointsOnLine({1, 2, 3}, {4, 5, 6}, 1), (std::vector<Point>{{1, 2, 3}}));
    EXPECT_TRUE(pointsOnLine({1, 2, 3}, {4, 5, 6}, 0).empty());
}

TEST(Probe, RefusesOtherFields) {
    const UnstructuredMesh mesh = build(everybody(), test::makeBox({}));
    const MeshMetrics metrics = computeMetrics(mesh);
    const auto u = mesh.field<1>("u");
    const auto gradients = mesh.field<2>("gradients");
    Probe probe(PointLocator(mesh), std::vector<Point>{{1.5, 1.5, 1.5}});
    EXPECT_THROW((void)probe.linearValues(u, gradients, metrics), LayoutError);
    EXPECT_EQ(probe.cellValues(u)[0], 0.0); // the probe stays usable
    const auto ofNodes = mesh.nodes.field<1>("of nodes");
    EXPECT_ANY_THROW((void)probe.cellValues(ofNodes)); // ArgumentError, or RevokedError where the numbers are equal
    recover(everybody());
    EXPECT_EQ(probe.cellValues(u)[0], 0.0);
}

} // namespace
} // namespace DNDS::Geom
