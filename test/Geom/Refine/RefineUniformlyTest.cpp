// Uniform refinement: counts, measures, boundaries, curved cells, and the same mesh on any number of ranks.

#include "DNDS/Geom/Refine/RefineUniformly.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "Geom/Mesh/CurvedMeshes.hpp"
#include "support/GatheredMesh.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace DNDS::Geom {
namespace {

using DNDS::test::BoxOptions;
using DNDS::test::curve;
using DNDS::test::makeBox;
using DNDS::test::Order;
using DNDS::test::WholeMesh;
using Box = DNDS::test::BoxCells;

CommunicatorView world() { return CommunicatorView(MPI_COMM_WORLD); }
/// For what does not depend on ranks, as one test says: each rank makes all of it, and none waits.
CommunicatorView self() { return CommunicatorView(MPI_COMM_SELF); }

constexpr Box refinable[] = {Box::Hexahedra, Box::Tetrahedra, Box::Mixed, Box::Quadrilaterals, Box::Triangles};

/// Keeps volumes; each coordinate is a polynomial of degree 2.
Point bent(const Point &p) { return {p[0] + 0.05 * p[1] * p[1], p[1], p[2] == 0.0 ? 0.0 : p[2] + 0.04 * p[0] * p[1]}; }

/// Measures of a built mesh: sums over all ranks.
struct Measures {
    MeshReport report;
    real volume = 0.0;
    real least = 0.0; ///< the smallest cell
    real closure = 0.0;
    index inverted = 0;
    std::map<std::string, real> areas; ///< areas of patches
};

Measures measured(CommunicatorView comm, SourceMesh source, bool curved = false) {
    Measures result;
    const UnstructuredMesh mesh =
        buildMesh(comm, std::move(source), {.partitioner = Partitioner::Curve, .report = &result.report});
    const MeshMetrics metrics = computeMetrics(mesh, {.curved = curved});
    result.least = 1e300;
    std::vector<real> volumes;
    for (index c = 0; c < mesh.cells.owned; c++) {
        volumes.push_back(metrics.volumes(c, 0));
        result.least = std::min(result.least, metrics.volumes(c, 0));
    }
    result.volume = exactSum(comm, volumes);
    result.least = comm.allReduce(result.least, MPI_MIN);
    result.closure = metrics.closure;
    result.inverted = metrics.invertedCells;
    for (const MeshPatch &patch : mesh.patches) {
        real area = 0.0;
        for (const LocalIndex face : patch.faces)
            area += face < mesh.faces.owned ? metrics.areas(face, 0) : 0.0;
        result.areas[patch.name] = comm.allReduce(area, MPI_SUM);
    }
    return result;
}

/// Numbers of distinct edges and quadrilateral faces (cells themselves in two dimensions).
std::array<index, 2> edgesAndQuads(const SourceMesh &whole) {
    std::set<std::vector<index>> edges;
    std::set<std::vector<index>> quads;
    for (index c = 0; c < whole.cells.size(); c++) {
        const ReferenceTable &table = referenceTable(elementLayout(whole.cells.types[toSize(c)]).shape);
        const auto corners = [&](const std::uint8_t *list, int count) {
            std::vector<index> nodes;
            for (int k = 0; k < count; k++)
                nodes.push_back(whole.cells.nodesOf(c)[list[k]]);
            std::sort(nodes.begin(), nodes.end());
            return nodes;
        };
        for (int e = 0; e < table.edges; e++)
            edges.insert(corners(table.edge[e], 2));
        for (int q = 0; q < table.quads; q++)
            quads.insert(corners(table.quad[q], 4));
    }
    return {static_cast<index>(edges.size()), static_cast<index>(quads.size())};
}

TEST(RefineUniformly, GivesTheSameMeshOnAnyNumberOfRanks) {
    struct Case {
        Box cells;
        Order order;
        int levels;
    };
    bool uneven = false;
    for (const Case &at : {Case{Box::Mixed, Order::Linear, 2}, Case{Box::Mixed, Order::Serendipity, 1},
                           Case{Box::Mixed, Order::Complete, 1}, Case{Box::Triangles, Order::Complete, 1}}) {
        SCOPED_TRACE(testing::Message() << "cells " << static_cast<int>(at.cells) << ", order "
                                        << static_cast<int>(at.order));
        const WholeMesh box = curve(makeBox({.cells = at.cells, .counts = {2, 3, 2}}), at.order, bent);
        const SourceMesh alone = refineUniformly(self(), box.slice(self()), {.levels = at.levels});
        const SourceMesh together = refineUniformly(world(), box.slice(world(), uneven), {.levels = at.levels});
        test::expectSame(test::gatherMesh(world(), together), alone);
        uneven = !uneven;
    }
}

TEST(RefineUniformly, MakesAsManyCellsAndNodesAsItShould) {
    for (const Box cells : refinable) {
        SCOPED_TRACE(testing::Message() << "cells " << static_cast<int>(cells));
        const SourceMesh coarse = makeBox({.cells = cells}).slice(self());
        const SourceMesh fine = refineUniformly(self(), coarse);
        const auto before = test::countTypes(coarse.cells);
        const auto count = [&](ElementType type) { return before.count(type) > 0 ? before.at(type) : 0; };
        std::map<ElementType, index> expected;
        const auto expect = [&](ElementType type, index number) {
            if (number > 0)
                expected[type] = number;
        };
        expect(ElementType::Tri3, 4 * count(ElementType::Tri3));
        expect(ElementType::Quad4, 4 * count(ElementType::Quad4));
        expect(ElementType::Tetra4, 8 * count(ElementType::Tetra4) + 4 * count(ElementType::Pyra5));
        expect(ElementType::Pyra5, 6 * count(ElementType::Pyra5));
        expect(ElementType::Penta6, 8 * count(ElementType::Penta6));
        expect(ElementType::Hexa8, 8 * count(ElementType::Hexa8));
        EXPECT_EQ(test::countTypes(fine.cells), expected);
        const auto [edges, quads] = edgesAndQuads(coarse);
        EXPECT_EQ(fine.globalNodes, coarse.globalNodes + edges + quads + count(ElementType::Hexa8));
        EXPECT_EQ(fine.faces.globalSize, (coarse.cellDimension == 3 ? 4 : 2) * coarse.faces.globalSize);
        for (index n = 0; n < coarse.globalNodes; n++)
            EXPECT_EQ(fine.coordinates[toSize(n)], coarse.coordinates[toSize(n)]) << "node " << n;
    }
}

TEST(RefineUniformly, KeepsMeasuresAndBoundaries) {
    for (const Box cells : refinable) {
        SCOPED_TRACE(testing::Message() << "cells " << static_cast<int>(cells));
        const WholeMesh box = makeBox({.cells = cells, .jitter = false});
        const Measures coarse = measured(self(), box.slice(self()));
        const Measures fine = measured(self(), refineUniformly(self(), box.slice(self()), {.levels = 2}));
        const bool flat = coarse.report.dimension == 2;
        EXPECT_NEAR(fine.volume, coarse.volume, 1e-13 * coarse.volume);
        EXPECT_GT(fine.least, 0.0);
        EXPECT_LT(fine.closure, 1e-14);
        EXPECT_EQ(fine.report.unassignedFaces, 0);
        EXPECT_EQ(fine.report.flatCells, 0);
        EXPECT_EQ(fine.report.unusedNodes, coarse.report.unusedNodes);
        EXPECT_EQ(fine.report.boundaryFaces, (flat ? 4 : 16) * coarse.report.boundaryFaces);
        EXPECT_EQ(fine.report.warnings.size(), coarse.report.warnings.size());
        ASSERT_EQ(fine.report.patches.size(), coarse.report.patches.size());
        for (std::size_t p = 0; p < fine.report.patches.size(); p++) {
            EXPECT_EQ(fine.report.patches[p].name, coarse.report.patches[p].name);
            EXPECT_EQ(fine.report.patches[p].kind, coarse.report.patches[p].kind);
            EXPECT_EQ(fine.report.patches[p].faces, (flat ? 4 : 16) * coarse.report.patches[p].faces);
        }
        for (const auto &[name, area] : coarse.areas)
            EXPECT_NEAR(fine.areas.at(name), area, 1e-13 * area) << name;
    }
}

TEST(RefineUniformly, KeepsBilinearFacesAndTheVolumeBetweenThem) {
    for (const Box cells : refinable) {
        SCOPED_TRACE(testing::Message() << "cells " << static_cast<int>(cells));
        const WholeMesh box = makeBox({.cells = cells, .turnSome = false});
        const Measures coarse = measured(self(), box.slice(self()), true);
        const Measures fine = measured(self(), refineUniformly(self(), box.slice(self())), true);
        EXPECT_NEAR(fine.volume, coarse.volume, 1e-13 * coarse.volume);
        EXPECT_EQ(fine.report.unassignedFaces, 0);
        EXPECT_EQ(fine.report.turnedCells, 0);
        EXPECT_EQ(fine.inverted, 0);
        EXPECT_LT(fine.closure, 1e-14);
    }
}

TEST(RefineUniformly, KeepsTheMapsOfCurvedCells) {
    for (const Box cells : refinable)
        for (const Order order : {Order::Serendipity, Order::Complete}) {
            SCOPED_TRACE(testing::Message()
                         << "cells " << static_cast<int>(cells) << ", order " << static_cast<int>(order));
            const WholeMesh box = curve(makeBox({.cells = cells, .turnSome = false}), order, bent);
            const Measures coarse = measured(self(), box.slice(self()), true);
            const Measures fine = measured(self(), refineUniformly(self(), box.slice(self(), true)), true);
            EXPECT_NEAR(fine.volume, coarse.volume, 2e-13 * coarse.volume);
            EXPECT_LT(fine.closure, 1e-14);
            EXPECT_EQ(fine.inverted, 0);
            EXPECT_EQ(fine.report.unassignedFaces, 0);
            EXPECT_EQ(fine.report.unusedNodes, coarse.report.unusedNodes);
            for (const auto &[name, area] : coarse.areas) // sums of lengths of area vectors
                EXPECT_GE(fine.areas.at(name), area * (1.0 - 1e-13)) << name;
        }
}

TEST(RefineUniformly, KeepsPeriodicPairs) {
    for (const Box cells : {Box::Mixed, Box::Triangles}) {
        SCOPED_TRACE(testing::Message() << "cells " << static_cast<int>(cells));
        const CommunicatorView comm = cells == Box::Mixed ? world() : self();
        // Mixed boxes match across periodic sides only where their pattern repeats.
        const WholeMesh box = makeBox({.cells = cells, .counts = {6, 6, 2}, .periodic = {true, true, true}});
        const Measures coarse = measured(self(), box.slice(self()));
        const Measures fine = measured(comm, refineUniformly(comm, box.slice(comm)));
        EXPECT_GT(coarse.report.periodicPairs, 0);
        EXPECT_EQ(fine.report.periodicPairs, (coarse.report.dimension == 3 ? 4 : 2) * coarse.report.periodicPairs);
        EXPECT_EQ(fine.report.unassignedFaces, 0);
        EXPECT_EQ(fine.report.warnings.size(), coarse.report.warnings.size());
    }
    const WholeMesh curved = makeBox({.cells = Box::Hexahedra27, .counts = {4, 3, 3}, .periodic = {true, false, true}});
    const Measures fine = measured(self(), refineUniformly(self(), curved.slice(self())), true);
    EXPECT_EQ(fine.report.periodicPairs, 4 * (9 + 12));
    EXPECT_NEAR(fine.volume, 36.0, 1e-12);
    EXPECT_LT(fine.closure, 1e-14);
}

TEST(RefineUniformly, KeepsMarksOfNodes) {
    for (const Order order : {Order::Linear, Order::Complete}) {
        const CommunicatorView comm = order == Order::Linear ? self() : world();
        WholeMesh box = makeBox({.cells = Box::Mixed, .jitter = false});
        std::set<std::pair<int, index>> marks;
        for (std::size_t f = 0; f < box.faces.size(); f++)
            for (const index node : box.faces[f].nodes)
                marks.emplace(box.faceMarks[f], node);
        for (const auto &[mark, node] : marks)
            box.nodeMarks.push_back({mark, node});
        box.faces.clear();
        box.faceMarks.clear();
        box = curve(box, order, [](const Point &p) { return p; });
        const Measures coarse = measured(self(), box.slice(self()));
        const Measures fine = measured(comm, refineUniformly(comm, box.slice(comm)));
        EXPECT_EQ(fine.report.unassignedFaces, 0);
        for (const auto &[name, area] : coarse.areas)
            EXPECT_NEAR(fine.areas.at(name), area, 1e-13 * area) << name;
    }
}

/// Two cubes side by side, of these orders; `bulge` bends their common face.
WholeMesh twoCubes(Order left, Order right, real bulge = 0.0) {
    WholeMesh box = makeBox({.counts = {2, 1, 1}, .jitter = false, .shuffle = false, .turnSome = false});
    const WholeMesh high = curve(box, right, [&](const Point &p) {
        return Point{p[0] + bulge * (p[1] * (1.0 - p[1]) + p[2] * (1.0 - p[2])), p[1], p[2]};
    });
    WholeMesh low = curve(box, left, [](const Point &p) { return p; });
    // Complete elements have the nodes of serendipity ones first; linear ones have corners.
    WholeMesh mixed = high;
    mixed.cells[0].type = low.cells[0].type;
    mixed.cells[0].nodes.resize(low.cells[0].nodes.size());
    return mixed;
}

TEST(RefineUniformly, JoinsCellsOfDifferentOrder) {
    for (const auto &[left, right] :
         {std::pair{Order::Linear, Order::Complete}, std::pair{Order::Serendipity, Order::Complete},
          std::pair{Order::Linear, Order::Serendipity}}) {
        const Measures fine = measured(self(), refineUniformly(self(), twoCubes(left, right).slice(self())));
        EXPECT_EQ(fine.report.boundaryFaces, 4 * 10);
        EXPECT_EQ(fine.report.innerFaces, 2 * 12 + 4);
        EXPECT_EQ(fine.report.unassignedFaces, 0);
        EXPECT_NEAR(fine.volume, 2.0, 1e-13);
    }
}

std::string failure(CommunicatorView comm, const SourceMesh &mesh, const RefineOptions &options = {}) {
    try {
        (void)refineUniformly(comm, mesh, options);
    } catch (const Error &error) {
        return error.message();
    }
    return "";
}

void expectFailure(const std::string &message, const std::string &part) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' should contain '" << part << "'";
}

TEST(RefineUniformly, CurvedCellsDecideOnFacesWithFlatOnes) {
    const auto refined = [](CommunicatorView comm, bool flatFirst) {
        WholeMesh cubes = twoCubes(Order::Linear, Order::Serendipity, 0.1);
        if (!flatFirst)
            std::swap(cubes.cells[0], cubes.cells[1]);
        std::vector<Point> points = test::gatherMesh(comm, refineUniformly(comm, cubes.slice(comm))).coordinates;
        std::sort(points.begin(), points.end());
        return points;
    };
    const std::vector<Point> points = refined(self(), true);
    EXPECT_EQ(refined(self(), false), points);
    EXPECT_EQ(refined(world(), true), points);
    EXPECT_EQ(refined(world(), false), points);
    const auto isCentre = [](const Point &p) { return norm(p - Point{1.05, 0.5, 0.5}) < 1e-14; };
    EXPECT_EQ(std::ranges::count_if(points, isCentre), 1);
}

/// Gives the last cell second-order nodes of its own: its neighbours list others.
WholeMesh torn(WholeMesh mesh, real gap) {
    auto &nodes = mesh.cells.back().nodes;
    for (std::size_t k = mesh.cornersOf(mesh.cells.size() - 1).size(); k < nodes.size(); k++) {
        const Point at = mesh.points[toSize(nodes[k])];
        nodes[k] = static_cast<index>(mesh.points.size());
        mesh.points.push_back({at[0], at[1] + gap, at[2]});
    }
    return mesh;
}

TEST(RefineUniformly, JoinsCellsThatListDifferentNodesOfOnePlace) {
    for (const auto &[cells, order] :
         {std::pair{Box::Tetrahedra, Order::Complete}, std::pair{Box::Hexahedra, Order::Complete},
          std::pair{Box::Hexahedra, Order::Serendipity}, std::pair{Box::Triangles, Order::Complete}}) {
        SCOPED_TRACE(testing::Message() << "cells " << static_cast<int>(cells));
        const WholeMesh whole = curve(makeBox({.cells = cells, .counts = {2, 1, 1}, .shuffle = false}), order, bent);
        const Measures expected = measured(self(), refineUniformly(self(), whole.slice(self()), {.levels = 2}), true);
        const auto refined = [&](CommunicatorView comm, real gap) {
            return refineUniformly(comm, torn(whole, gap).slice(comm), {.levels = 2});
        };
        for (const real gap : {0.0, 1e-9}) {
            const Measures fine = measured(world(), refined(world(), gap), true);
            EXPECT_EQ(fine.report.innerFaces, expected.report.innerFaces);
            EXPECT_EQ(fine.report.boundaryFaces, expected.report.boundaryFaces);
            EXPECT_EQ(fine.report.unassignedFaces, 0);
            EXPECT_NEAR(fine.volume, expected.volume, 1e-8);
        }
        test::expectSame(test::gatherMesh(world(), refined(world(), 1e-9)), refined(self(), 1e-9));
        const std::string message = failure(world(), torn(whole, 0.1).slice(world()));
        EXPECT_NE(message.find(fmt::format("the first between elements {} and ", whole.cells.size())),
                  std::string::npos)
            << message;
        EXPECT_EQ(message, failure(self(), torn(whole, 0.1).slice(self())));
    }
}

/// The centroid of a cell with parallel sides; `whole` has the coordinates of all nodes.
Point centroid(const SourceMesh &whole, const SourceMesh &mesh, index cell) {
    const auto nodes = mesh.cells.nodesOf(cell);
    Point sum{};
    for (std::size_t k = 0; k < nodes.size(); k++) {
        const real weight = mesh.cells.types[toSize(cell)] != ElementType::Pyra5 ? 1.0 / static_cast<real>(nodes.size())
                            : k == 4                                             ? 0.25
                                                                                 : 0.1875;
        sum = sum + weight * whole.coordinates[toSize(nodes[k])];
    }
    return sum;
}

TEST(RefineUniformly, SaysWhereCellsComeFrom) {
    for (const Box cells : {Box::Mixed, Box::Triangles}) {
        SCOPED_TRACE(testing::Message() << "cells " << static_cast<int>(cells));
        const WholeMesh box = makeBox({.cells = cells, .jitter = false});
        const SourceMesh coarse = box.slice(world());
        RefinedCells origin;
        const SourceMesh fine = refineUniformly(world(), coarse, {.levels = 2, .cells = &origin});
        const SourceMesh whole = test::gatherMesh(world(), fine);
        ASSERT_EQ(origin.parents.size(), fine.cells.types.size());
        ASSERT_EQ(origin.at.size(), fine.cells.types.size());
        for (std::size_t c = 0; c < origin.parents.size(); c++) {
            const index parent = origin.parents[c] - coarse.cells.first;
            ASSERT_TRUE(parent >= 0 && parent < coarse.cells.size());
            const auto nodes = coarse.cells.nodesOf(parent);
            const Point expected =
                mapPoint(shapeFunctions(coarse.cells.types[toSize(parent)], origin.at[c]), [&](int k) {
                    return whole.coordinates[toSize(nodes[static_cast<std::size_t>(k)])];
                }).position;
            EXPECT_LT(norm(centroid(whole, fine, static_cast<index>(c)) - expected), 1e-14) << "cell " << c;
        }
    }
}

TEST(RefineUniformly, ProlongsLinearFieldsOfCellsExactly) {
    const auto linear = [](const Point &x) { return 1.0 + x[0] - 2.0 * x[1] + 3.0 * x[2]; };
    const SourceMesh coarse = makeBox({.cells = Box::Mixed, .jitter = false}).slice(world());
    RefinedCells origin;
    const SourceMesh fine = refineUniformly(world(), coarse, {.levels = 2, .cells = &origin});
    const SourceMesh whole = test::gatherMesh(world(), fine); // coarse nodes come first
    std::vector<real> values;
    for (index c = 0; c < coarse.cells.size(); c++)
        values.push_back(linear(centroid(whole, coarse, c)));
    const std::vector<Point> gradients(values.size(), {1.0, -2.0, 3.0});
    const std::vector<real> result = prolongLinear(world(), coarse, origin, values, gradients);
    ASSERT_EQ(result.size(), fine.cells.types.size());
    for (std::size_t c = 0; c < result.size(); c++)
        EXPECT_NEAR(result[c], linear(centroid(whole, fine, static_cast<index>(c))), 1e-13);
    EXPECT_THROW((void)prolongLinear(world(), coarse, origin, {}, gradients), ArgumentError);
    for (const index parent : {index{-1}, coarse.cells.globalSize}) {
        RefinedCells others = origin;
        if (world().rank() == 0)
            others.parents[0] = parent;
        EXPECT_THROW((void)prolongLinear(world(), coarse, others, values, gradients), ArgumentError);
    }
}

TEST(RefineUniformly, ProlongsFields) {
    const SourceMesh coarse = curve(makeBox({.cells = Box::Mixed}), Order::Complete, bent).slice(world(), true);
    MeshFields fields;
    MeshField &linear = fields.nodes.emplace_back(MeshField{"", "linear", {}});
    for (const Point &x : coarse.coordinates)
        linear.values.push_back(1.0 + x[0] - 2.0 * x[1] + 3.0 * x[2]);
    MeshField &number = fields.cells.emplace_back(MeshField{"", "number", {}});
    for (index c = 0; c < coarse.cells.size(); c++)
        number.values.push_back(static_cast<real>(coarse.cells.first + c));
    RefinedCells origin;
    const SourceMesh fine = refineUniformly(world(), coarse, {.fields = &fields, .cells = &origin});
    ASSERT_EQ(fields.nodes[0].values.size(), fine.coordinates.size());
    for (std::size_t n = 0; n < fine.coordinates.size(); n++) {
        const Point &x = fine.coordinates[n];
        EXPECT_NEAR(fields.nodes[0].values[n], 1.0 + x[0] - 2.0 * x[1] + 3.0 * x[2], 1e-13);
    }
    ASSERT_EQ(fields.cells[0].values.size(), origin.parents.size());
    for (std::size_t c = 0; c < origin.parents.size(); c++)
        EXPECT_EQ(fields.cells[0].values[c], static_cast<real>(origin.parents[c]));
}

TEST(RefineUniformly, RefusesWhatItCannotCut) {
    expectFailure(failure(world(), makeBox({.cells = Box::Polyhedra}).slice(world())),
                  "a box: polyhedra, and polygons of more");
    expectFailure(failure(self(), makeBox({.cells = Box::Polygons}).slice(self())), "cannot be refined: it has ");
    WholeMesh collapsed = makeBox({.turnSome = false});
    for (const std::size_t k : {3U, 7U})
        collapsed.cells[5].nodes[k] = collapsed.cells[5].nodes[k - 1];
    expectFailure(failure(world(), collapsed.slice(world())),
                  "a box: 1 elements list a corner twice and cannot be refined, the first is element 6");
    const SourceMesh box = makeBox({}).slice(self());
    expectFailure(failure(self(), box, {.levels = -1}), "-1 levels: give 0 or more");
    MeshFields fields;
    fields.nodes.push_back({"", "u", std::vector<real>(box.coordinates.size() + 1)});
    expectFailure(failure(self(), box, {.fields = &fields}), "field 'u' has ");
    WholeMesh squares = makeBox({.cells = Box::Quadrilaterals});
    for (auto &cell : squares.cells)
        cell.type = ElementType::Polygon;
    EXPECT_EQ(failure(self(), squares.slice(self())), "") << "polygons of four corners are quadrilaterals";
    test::expectSame(test::gatherMesh(self(), refineUniformly(self(), box, {.levels = 0})),
                     test::gatherMesh(self(), box));
}

TEST(RefineUniformly, LeavesFieldsAloneWhereALaterLevelFails) {
    WholeMesh triangles = curve(makeBox({.cells = Box::Triangles}), Order::Complete, bent);
    const index corner = triangles.cells[0].nodes[0];
    const index middle = triangles.cells[0].nodes[3];
    for (auto &cell : triangles.cells) // children list a corner twice
        std::ranges::replace(cell.nodes, middle, corner);
    const SourceMesh coarse = triangles.slice(world());
    const auto fieldOf = [](std::size_t size) { return std::vector{MeshField{"", "u", std::vector<real>(size, 1.0)}}; };
    MeshFields fields{fieldOf(coarse.coordinates.size()), fieldOf(coarse.cells.types.size())};
    RefinedCells origin{{7}, {}};
    expectFailure(failure(world(), coarse, {.levels = 2, .fields = &fields, .cells = &origin}), "list a corner twice");
    EXPECT_EQ(fields.nodes[0].values.size(), coarse.coordinates.size());
    EXPECT_EQ(fields.cells[0].values.size(), coarse.cells.types.size());
    EXPECT_EQ(origin.parents, std::vector<index>{7});
}

TEST(RefineUniformly, RefinesPublicMeshes) {
    const auto refined = [](const std::string &name, bool curved, real tolerance, index least) {
        const std::string path = DNDS_TEST_MESHES "/" + name;
        if (!std::filesystem::exists(path))
            return false;
        SCOPED_TRACE(name);
        const Measures coarse = measured(self(), readMesh(self(), path), curved);
        const Measures fine = measured(world(), refineUniformly(world(), readMesh(world(), path)), curved);
        EXPECT_NEAR(fine.volume, coarse.volume, tolerance * coarse.volume);
        EXPECT_EQ(fine.report.unassignedFaces, (fine.report.dimension == 3 ? 4 : 2) * coarse.report.unassignedFaces);
        EXPECT_EQ(fine.report.boundaryFaces, (fine.report.dimension == 3 ? 4 : 2) * coarse.report.boundaryFaces);
        EXPECT_GE(fine.report.cellsTotal, least * coarse.report.cellsTotal);
        EXPECT_EQ(fine.report.warnings.size(), coarse.report.warnings.size());
        EXPECT_LT(fine.closure, 1e-12);
        EXPECT_GT(fine.least, 0.0);
        return true;
    };
    bool any = false;
    any = refined("bend_mixed.cgns", true, 1e-13, 8) || any;
    any = refined("sphere_hexa27.cgns", true, 1e-13, 8) || any;
    if (world().size() == 1) // they say nothing more on several
        any = refined("flame_mixed2d_i8.cgns", false, 1e-12, 4) || any;
    any = refined("cube_wedge_periodic_v34.cgns", true, 1e-13, 8) || any;
    if (!any)
        GTEST_SKIP() << "no " DNDS_TEST_MESHES;
}

} // namespace
} // namespace DNDS::Geom
