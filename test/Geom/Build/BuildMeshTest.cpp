#include "DNDS/Geom/Build/BuildMesh.hpp"

#include "DNDS/Geom/Locate/Probe.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "Geom/Build/MeshReference.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace DNDS::Geom {
namespace {

using namespace test;

/// Builds a box and compares everything with the reference.
void compare(const BoxOptions &box, MeshOptions options, bool randomPart = true) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WholeMesh whole = makeBox(box);
    SourceMesh source = whole.slice(comm, randomPart);
    if (randomPart) {
        std::mt19937_64 random(test::rankSeed());
        options.partitioner = Partitioner::Given;
        for (index c = 0; c < source.cells.size(); c++) // the last of several ranks gets nothing
            options.givenPart.push_back(
                static_cast<int>(random() % static_cast<unsigned>(std::max(1, comm.size() - 1))));
    }
    MeshReport report;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(comm, std::move(source), options);
    const Reference reference(whole, options.ghostLayers);
    checkCells(mesh, whole, reference, options);
    checkFaces(mesh, whole, reference);
    checkFaceOwners(mesh, whole);
    checkNodes(mesh, whole);
    if (options.ghostsBy == GhostNeighbours::Nodes && options.ghostLayers > 0)
        checkNodeCells(mesh, whole, reference);
    checkPulls(mesh);
    checkMetrics(mesh, report);
    real volume = 1.0;
    for (int d = 0; d < whole.dimension; d++)
        volume *= static_cast<real>(box.counts[static_cast<std::size_t>(d)]);
    EXPECT_NEAR(report.volume, volume, 1e-12 * volume);
    EXPECT_EQ(report.cellsTotal, static_cast<index>(whole.cells.size()));
}

constexpr BoxCells allCells[] = {BoxCells::Hexahedra, BoxCells::Hexahedra27, BoxCells::Tetrahedra,
                                 BoxCells::Mixed,     BoxCells::Polyhedra,   BoxCells::Quadrilaterals,
                                 BoxCells::Triangles, BoxCells::Polygons};

TEST(BuildMesh, OfEveryTypeOnRandomPartsEqualsTheReference) {
    for (const BoxCells cells : allCells)
        for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes}) {
            SCOPED_TRACE(fmt::format("cells {}, ghosts by {}", static_cast<int>(cells), static_cast<int>(by)));
            compare({.cells = cells, .counts = {4, 3, 3}}, {.ghostsBy = by});
        }
}

TEST(BuildMesh, PartitionedByGraphAndCurveEqualsTheReference) {
    for (const Partitioner partitioner : {Partitioner::Graph, Partitioner::Curve})
        for (const BoxCells cells : {BoxCells::Mixed, BoxCells::Triangles, BoxCells::Polyhedra})
            compare({.cells = cells, .counts = {5, 4, 4}},
                    {.partitioner = partitioner, .cellOrder = CellOrder::ReverseCuthillMcKee}, false);
}

TEST(BuildMesh, HasDeepGhosts) {
    for (const int layers : {0, 2, 3})
        for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes}) {
            if (layers == 0 && by == GhostNeighbours::Nodes)
                continue;
            SCOPED_TRACE(fmt::format("{} layers by {}", layers, static_cast<int>(by)));
            const BoxOptions box{.cells = BoxCells::Hexahedra, .counts = {7, 4, 3}};
            if (layers > 0)
                compare(box, {.partitioner = Partitioner::Graph, .ghostsBy = by, .ghostLayers = layers}, false);
            compare({.cells = BoxCells::Tetrahedra, .counts = {3, 2, 2}},
                    {.partitioner = Partitioner::Curve, .ghostsBy = by, .ghostLayers = std::max(1, layers)}, false);
        }
}

TEST(BuildMesh, OfOneCell) {
    for (const BoxCells cells : {BoxCells::Hexahedra, BoxCells::Quadrilaterals, BoxCells::Polyhedra})
        for (const bool randomPart : {false, true})
            compare({.cells = cells, .counts = {1, 1, 1}}, {}, randomPart);
}

TEST(BuildMesh, HasPeriodicImages) {
    for (const BoxCells cells : {BoxCells::Hexahedra, BoxCells::Tetrahedra, BoxCells::Mixed, BoxCells::Polyhedra})
        for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes})
            for (const int layers : {1, 2}) {
                SCOPED_TRACE(
                    fmt::format("cells {}, {} layers by {}", static_cast<int>(cells), layers, static_cast<int>(by)));
                compare({.cells = cells, .counts = {4, 3, 3}, .periodic = {true, false, false}},
                        {.ghostsBy = by, .ghostLayers = layers});
            }
}

TEST(BuildMesh, IsPeriodicInAllDirectionsAndOneCellWide) {
    for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes})
        for (const int layers : {1, 2}) {
            SCOPED_TRACE(fmt::format("{} layers by {}", layers, static_cast<int>(by)));
            const MeshOptions options{.ghostsBy = by, .ghostLayers = layers};
            compare({.counts = {3, 1, 2}, .periodic = {true, true, true}}, options);
            compare({.counts = {1, 1, 1}, .periodic = {true, true, true}}, options);
            compare({.cells = BoxCells::Quadrilaterals, .counts = {3, 1, 1}, .periodic = {true, true, false}}, options);
            compare({.cells = BoxCells::Triangles, .counts = {1, 4, 1}, .periodic = {true, false, false}}, options,
                    false);
        }
}

/// One side in two connections of the same motion: where they meet, cells are no ghosts twice.
TEST(BuildMesh, TakesTwoConnectionsOfOneMotionAsOne) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    WholeMesh whole = makeBox({.counts = {3, 4, 3}, .periodic = {true, false, false}});
    whole.periodic.push_back(whole.periodic[0]);
    whole.periodic[1].name = "upper half";
    int moved = 0;
    for (std::size_t f = 0; f < whole.faces.size(); f++) {
        real height = 0;
        for (const index node : whole.faces[f].nodes)
            height += whole.points[static_cast<std::size_t>(node)][1] / static_cast<real>(whole.faces[f].nodes.size());
        if (whole.faceMarks[f] < 0 && height > 2.0) {
            whole.faceMarks[f] -= 2;
            moved++;
        }
    }
    EXPECT_EQ(moved, 2 * 2 * 3);
    for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes}) {
        const MeshOptions options{.ghostsBy = by};
        const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm), options);
        const Reference reference(whole, options.ghostLayers);
        checkCells(mesh, whole, reference, options);
        checkFaces(mesh, whole, reference);
        if (by == GhostNeighbours::Nodes)
            checkNodeCells(mesh, whole, reference);
    }
}

TEST(BuildMesh, SaysHowFarPeriodicSidesAreApart) {
    for (const real by : {0.0, 1e-9, 0.04}) {
        WholeMesh whole = makeBox({.counts = {3, 4, 3}, .periodic = {true, false, false}, .jitter = false});
        whole.periodic[0].transform.translation[0] += by;
        MeshReport report;
        MeshOptions options;
        options.report = &report;
        buildMesh(MPI_COMM_WORLD, whole.slice(MPI_COMM_WORLD), options);
        EXPECT_EQ(report.periodicPairs, 12);
        const bool warned = std::ranges::any_of(report.warnings, [](const std::string &warning) {
            return warning.find("lie up to 0.04 apart, 0.04 of a face's shortest edge") != std::string::npos;
        });
        EXPECT_EQ(warned, by == 0.04) << by;
    }
}

TEST(BuildMesh, NotesFacesInSeveralPatches) {
    WholeMesh whole = makeBox({.counts = {3, 3, 3}, .jitter = false});
    whole.patches.push_back({"again", "", ""});
    int first = -1;
    for (std::size_t f = 0, count = whole.faces.size(), left = 2; f < count && left > 0; f++)
        if (whole.faceMarks[f] >= 0 && (first < 0 || whole.faceMarks[f] == first)) {
            first = whole.faceMarks[f];
            const auto again = whole.faces[f];
            whole.faces.push_back(again);
            whole.faceMarks.push_back(static_cast<int>(whole.patches.size()) - 1);
            left--;
        }
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    buildMesh(MPI_COMM_WORLD, whole.slice(MPI_COMM_WORLD), options);
    const std::string expected = fmt::format("2 faces are in several patches, as in '{}' and 'again'",
                                             whole.patches[static_cast<std::size_t>(first)].name);
    EXPECT_TRUE(std::ranges::any_of(report.notes, [&](const std::string &note) {
        return note.find(expected) != std::string::npos;
    })) << expected;
}

TEST(BuildMesh, RefusesFacesWithTwoPartnersInTheSameWords) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    WholeMesh whole = makeBox({.counts = {3, 3, 3}, .periodic = {true, false, false}, .jitter = false});
    whole.periodic.push_back(whole.periodic[0]); // and the side again, one row higher
    whole.periodic[1].transform.translation[1] = 1.0;
    for (std::size_t f = 0, count = whole.faces.size(); f < count; f++)
        if (whole.faceMarks[f] < 0) {
            const auto again = whole.faces[f];
            whole.faces.push_back(again);
            whole.faceMarks.push_back(whole.faceMarks[f] - 2);
        }
    const auto complaint = [&](CommunicatorView on) -> std::string {
        try {
            (void)buildMesh(on, whole.slice(on));
        } catch (const DataError &error) {
            return error.message().substr(0, error.message().rfind(" (rank "));
        }
        return "none";
    };
    const std::string together = complaint(comm);
    EXPECT_NE(together.find("matches two others of its periodic connection"), std::string::npos) << together;
    EXPECT_EQ(together, complaint(CommunicatorView(MPI_COMM_SELF)));
}

TEST(BuildMesh, ReportsTheSameForEveryNumberOfRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WholeMesh whole = makeBox({.cells = BoxCells::Mixed, .counts = {5, 4, 3}, .periodic = {false, false, true}});
    const auto build = [&](CommunicatorView on) {
        MeshReport report;
        MeshOptions options;
        options.report = &report;
        (void)buildMesh(on, whole.slice(on), options);
        return report;
    };
    const MeshReport report = build(comm);
    const MeshReport serial = build(CommunicatorView(MPI_COMM_SELF));
    EXPECT_EQ(report.measure, serial.measure); // to the bit
    EXPECT_EQ(report.volume, serial.volume);
    EXPECT_LT(report.measure, report.volume);
    EXPECT_NEAR(report.volume, 60.0, 1e-12);
    EXPECT_EQ(report.warnings, serial.warnings);
    EXPECT_EQ(report.innerFaces, serial.innerFaces);
    EXPECT_EQ(report.boundaryFaces, serial.boundaryFaces);
    EXPECT_EQ(report.periodicPairs, serial.periodicPairs);
    EXPECT_EQ(report.turnedCells, static_cast<index>((whole.cells.size() + 2) / 3));
    EXPECT_EQ(report.unassignedFaces, 0);
    ASSERT_EQ(report.patches.size(), 4U);
    EXPECT_EQ(report.patches[0].name, "x0");
    EXPECT_EQ(report.patches[0].faces, 4 * 3);
    EXPECT_EQ(report.patches[2].faces, 5 * 3);
    EXPECT_EQ(report.periodicPairs * 2 + 2 * (4 * 3 + 5 * 3), report.boundaryFaces);
    for (std::size_t d = 0; d < 3; d++) {
        EXPECT_EQ(report.lower[d], serial.lower[d]);
        EXPECT_EQ(report.upper[d], serial.upper[d]);
    }
}

TEST(BuildMesh, TakesPatchesByNodesFacesTwiceAndInside) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    WholeMesh whole = makeBox({.counts = {4, 3, 2}, .jitter = false, .turnSome = false});
    const auto nodesAt = [&](std::size_t d, real x, int mark) {
        for (std::size_t n = 0; n < whole.points.size(); n++)
            if (whole.points[n][d] == x)
                whole.nodeMarks.push_back({mark, static_cast<index>(n)});
    };
    whole.patches.push_back({"top by nodes", "", ""});
    nodesAt(2, 2.0, 6);
    // Only the side x = 0 stays listed, twice, in two patches; then a patch inside at x = 2.
    whole.patches.push_back({"x0 again", "", ""});
    whole.patches.push_back({"inside", "", ""});
    std::vector<WholeMesh::Element> faces;
    std::vector<int> marks;
    for (std::size_t f = 0; f < whole.faces.size(); f++)
        if (whole.faceMarks[f] == 0) {
            faces.insert(faces.end(), 2, whole.faces[f]);
            marks.insert(marks.end(), {0, 7});
        }
    for (std::size_t c = 0; c < whole.cells.size(); c++)
        for (const auto &face : whole.facesOf(c))
            if (std::all_of(face.begin(), face.end(),
                            [&](index n) { return whole.points[static_cast<std::size_t>(n)][0] == 2.0; })) {
                faces.push_back({ElementType::Quad4, face, 99});
                marks.push_back(8);
            }
    faces.push_back({ElementType::Quad4, {0, 1, 2, 3}, 77}); // no face of any cell, numbered at random as nodes are
    marks.push_back(0);
    whole.faces = faces;
    whole.faceMarks = marks;
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm), options);
    EXPECT_EQ(report.patches[0].faces, 6);
    EXPECT_EQ(report.patches[6].faces, 12);
    EXPECT_EQ(report.patches[7].faces, 6);
    EXPECT_EQ(report.patches[8].faces, 6);
    EXPECT_EQ(report.patches[8].innerFaces, 6);
    EXPECT_EQ(report.unassignedFaces, report.boundaryFaces - 6 - 12);
    EXPECT_EQ(report.boundaryFaces, 2 * (12 + 8 + 6));
    ASSERT_EQ(report.warnings.size(), 3U);
    EXPECT_NE(report.warnings[0].find("1 boundary elements are no face of a cell, the first is 77"), std::string::npos);
    EXPECT_NE(report.warnings[1].find("6 of 6 faces of 'inside' are inside the mesh"), std::string::npos);
}

/// Without ghosts, the first cell of a face between two ranks may be on neither side of this rank's cells.
TEST(BuildMesh, PatchesInsideAreUsableWithoutGhosts) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    WholeMesh whole = makeBox({.counts = {4, 3, 2}, .jitter = false, .turnSome = false});
    const int inside = static_cast<int>(whole.patches.size());
    whole.patches.push_back({"inside", "", ""});
    std::set<std::vector<index>> found;
    for (std::size_t c = 0; c < whole.cells.size(); c++)
        for (std::vector<index> face : whole.facesOf(c)) {
            if (std::ranges::any_of(face, [&](index n) { return whole.points[toSize(n)][0] != 2; }))
                continue;
            std::vector<index> sorted = face;
            std::ranges::sort(sorted);
            if (!found.insert(sorted).second)
                continue;
            whole.faces.push_back({ElementType::Quad4, std::move(face), 1000 + static_cast<index>(c)});
            whole.faceMarks.push_back(inside);
        }
    ASSERT_EQ(found.size(), 6U);
    MeshOptions options{.ghostLayers = 0};
    options.partitioner = Partitioner::Given;
    SourceMesh source = whole.slice(comm);
    for (index c = 0; c < source.cells.size(); c++)
        options.givenPart.push_back(static_cast<int>((source.cells.first + c) % comm.size()));
    const UnstructuredMesh mesh = buildMesh(comm, std::move(source), options);
    const MeshMetrics metrics = computeMetrics(mesh);

    int faces = 0;
    forEachFace(viewOf(mesh, metrics), mesh.patch("inside"), [&](LocalIndex face, LocalIndex cell) {
        ASSERT_GE(cell, 0);
        ASSERT_LT(cell, mesh.cells.owned);
        EXPECT_TRUE(mesh.faceCells(face, 0) == cell || mesh.faceCells(face, 1) == cell);
        faces++;
    });
    EXPECT_EQ(comm.allReduce(faces, MPI_SUM), 6);

    const FileOrder order(mesh);
    EXPECT_EQ(comm.allReduce(std::ranges::count(order.mesh().faceMarks, inside), MPI_SUM), 6);

    const std::vector<real> distances = WallDistance(mesh, {"inside"}).ofCells(metrics);
    ASSERT_EQ(static_cast<index>(distances.size()), mesh.cells.owned);
    for (index c = 0; c < mesh.cells.owned; c++)
        EXPECT_NEAR(distances[toSize(c)], std::abs(metrics.centroids(c, 0) - 2), 1e-14);
}

/// Cells and nodes come back in the order of curves and of exchange: inner cells first.
TEST(BuildMesh, PutsInnerCellsFirst) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const WholeMesh whole = makeBox({.counts = {12, 6, 6}});
    const UnstructuredMesh mesh = buildMesh(comm, whole.slice(comm));
    for (const MeshEntities *entities : {&mesh.cells, &mesh.nodes, &mesh.faces}) {
        const auto boundary = entities->pattern->boundaryRows();
        if (!boundary.empty()) {
            EXPECT_EQ(boundary.front(), entities->owned - static_cast<index>(boundary.size()));
        }
    }
}

} // namespace
} // namespace DNDS::Geom
