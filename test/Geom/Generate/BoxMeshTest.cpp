#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "support/GatheredMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace DNDS::Geom {
namespace {

constexpr BoxCells allFills[] = {BoxCells::Triangles,   BoxCells::Quadrilaterals, BoxCells::MixedSurface,
                                 BoxCells::Tetrahedra,  BoxCells::Hexahedra,      BoxCells::Prisms,
                                 BoxCells::MixedVolume, BoxCells::Polyhedra};

BoxMeshOptions optionsOf(BoxCells fill) {
    BoxMeshOptions options;
    options.fill = fill;
    options.cells = {5, 3, 4};
    options.lengths = {2.0, 0.75, 1.25};
    options.seed = DNDS::test::seed();
    return options;
}

/// The blocks of all ranks of MPI_COMM_WORLD together.
SourceMesh wholeOf(const BoxMeshOptions &options) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    return test::gatherMesh(comm, makeBoxMesh(options, comm));
}

/// Every face of a cell belongs to two cells, with opposite senses, or to one and to one boundary face of the same
/// sense.
void expectConforming(const SourceMesh &mesh) {
    std::map<test::Face, std::vector<test::Face>> uses;
    for (index cell = 0; cell < mesh.cells.size(); cell++)
        for (const test::Face &face : test::facesOf(mesh.cells, cell))
            uses[test::sorted(face)].push_back(face);
    std::map<test::Face, int> boundary;
    for (index face = 0; face < mesh.faces.size(); face++) {
        const test::Face corners = test::cornersOf(mesh.faces, face);
        ASSERT_EQ(uses[test::sorted(corners)].size(), 1u) << "boundary face " << face;
        EXPECT_EQ(++boundary[test::sorted(corners)], 1) << "boundary face " << face;
        test::Face turned = uses[test::sorted(corners)][0];
        std::rotate(turned.begin(), std::find(turned.begin(), turned.end(), corners[0]), turned.end());
        EXPECT_EQ(turned, corners) << "boundary face " << face << " looks inward";
    }
    for (const auto &[key, faces] : uses) {
        ASSERT_LE(faces.size(), 2u);
        if (faces.size() == 1) {
            EXPECT_EQ(boundary.count(key), 1u) << "a face at node " << key[0] << " has no neighbour";
            continue;
        }
        test::Face other = faces[1];
        std::reverse(other.begin(), other.end());
        std::rotate(other.begin(), std::find(other.begin(), other.end(), faces[0][0]), other.end());
        EXPECT_EQ(other, faces[0]);
    }
}

TEST(BoxMesh, CellsAreConformingPositiveAndFillTheBox) {
    for (const BoxCells fill : allFills)
        for (const real jitter : {0.0, 0.15}) {
            BoxMeshOptions options = optionsOf(fill);
            options.jitter = jitter;
            options.shuffled = jitter > 0;
            const SourceMesh mesh = wholeOf(options);
            SCOPED_TRACE(mesh.origin);
            real sum = 0;
            for (index cell = 0; cell < mesh.cells.size(); cell++) {
                const real measure = test::measure(mesh, cell);
                EXPECT_GT(measure, 0) << "cell " << cell;
                sum += measure;
            }
            const real exact = mesh.cellDimension == 2 ? 2.0 * 0.75 : 2.0 * 0.75 * 1.25;
            EXPECT_NEAR(sum, exact, 1e-13 * exact);
            expectConforming(mesh);
            for (const auto &p : mesh.coordinates)
                for (std::size_t d = 0; d < 3; d++) {
                    EXPECT_GE(p[d], 0);
                    EXPECT_LE(p[d], d < static_cast<std::size_t>(mesh.cellDimension) ? options.lengths[d] : 0);
                }
        }
}

/// The area between a floor that rises by 20 degrees from 0.8 and a ceiling that falls by 10 from 1.2, up to x = 2.
real areaBetweenRamps() {
    const auto slope = [](real degrees) { return std::tan(degrees * std::acos(-1.0) / 180); };
    return 2.0 * 0.75 - 0.5 * 1.2 * 1.2 * slope(20) - 0.5 * 0.8 * 0.8 * slope(10);
}

TEST(BoxMesh, CellsFillTheSpaceBetweenRamps) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : allFills) {
        BoxMeshOptions options = optionsOf(fill);
        options.floor = {0.8, 20};
        options.ceiling = {1.2, -10};
        options.shuffled = true;
        const SourceMesh whole = wholeOf(options);
        SCOPED_TRACE(whole.origin);
        expectConforming(whole);
        for (std::size_t face = 0; face < whole.faceMarks.size(); face++)
            for (const index node : test::cornersOf(whole.faces, static_cast<index>(face))) {
                const auto &p = whole.coordinates[static_cast<std::size_t>(node)];
                const std::string &patch = whole.patches[static_cast<std::size_t>(whole.faceMarks[face])].name;
                if (patch == "y-") {
                    EXPECT_NEAR(p[1], p[0] > 0.8 ? (p[0] - 0.8) * std::tan(20 * std::acos(-1.0) / 180) : 0, 1e-15);
                } else if (patch == "x+") {
                    EXPECT_EQ(p[0], 2.0);
                }
            }
        MeshReport report;
        const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(options, comm), {.report = &report});
        const MeshMetrics metrics = computeMetrics(mesh);
        real sum = 0;
        for (index cell = 0; cell < mesh.cells.owned; cell++) {
            EXPECT_GT(metrics.volumes(cell), 0) << "cell " << cell;
            sum += metrics.volumes(cell);
        }
        const real exact = areaBetweenRamps() * (mesh.dimension == 2 ? 1 : 1.25);
        EXPECT_NEAR(comm.allReduce(sum, MPI_SUM), exact, 1e-13);
        EXPECT_LT(metrics.closure, 1e-13);
        EXPECT_TRUE(report.warnings.empty()) << report.warnings.front();
    }
}

TEST(BoxMesh, SecondOrderCellsFillTheBox) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : allFills) {
        BoxMeshOptions options = optionsOf(fill);
        options.secondOrder = true;
        if (fill == BoxCells::MixedVolume || fill == BoxCells::Polyhedra) {
            EXPECT_THROW(makeBoxMesh(options, comm), ArgumentError);
            continue;
        }
        options.ceiling = {1.2, 10};
        options.shuffled = true;
        const SourceMesh whole = wholeOf(options);
        SCOPED_TRACE(whole.origin);
        expectConforming(whole);
        const int dimension = whole.cellDimension;
        EXPECT_EQ(whole.nodes(), 11 * 7 * (dimension == 2 ? 1 : 9));
        std::vector<index> used = whole.cells.nodes;
        std::ranges::sort(used);
        used.erase(std::unique(used.begin(), used.end()), used.end());
        EXPECT_EQ(static_cast<index>(used.size()), whole.nodes());
        for (const ElementType type : whole.faces.types)
            EXPECT_EQ(elementInfo(type).nodes, dimension == 2 ? 3 : elementInfo(type).name.starts_with("TRI") ? 6 : 9);
        const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(options, comm));
        const MeshMetrics metrics = computeMetrics(mesh, {.curved = true});
        real sum = 0;
        for (index cell = 0; cell < mesh.cells.owned; cell++)
            sum += metrics.volumes(cell);
        const real exact = 2.0 * 0.75 + 0.5 * 0.8 * 0.8 * std::tan(std::acos(-1.0) / 18);
        EXPECT_NEAR(comm.allReduce(sum, MPI_SUM), exact * (dimension == 2 ? 1 : 1.25), 1e-13);
        EXPECT_EQ(metrics.invertedCells, 0);
        EXPECT_LT(metrics.closure, 1e-13);
        options.ceiling = {};
        options.jitter = 0.1;
        EXPECT_THROW(makeBoxMesh(options, comm), ArgumentError);
    }
}

TEST(BoxMesh, StepsOfTheFloorAreLeftOut) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : {BoxCells::Triangles, BoxCells::Quadrilaterals})
        for (const bool shuffled : {false, true}) {
            BoxMeshOptions options = optionsOf(fill);
            options.step = {0.8, 0.25}; // 3 x 1 of 5 x 3 bricks
            options.shuffled = shuffled;
            const SourceMesh whole = wholeOf(options);
            SCOPED_TRACE(whole.origin);
            expectConforming(whole);
            EXPECT_EQ(whole.cells.size(), fill == BoxCells::Triangles ? 24 : 12);
            EXPECT_EQ(whole.nodes(), 21);
            EXPECT_EQ(test::facesOfMarks(whole), (std::map<int, index>{{0, 3}, {1, 2}, {2, 6}, {3, 5}}));
            for (index face = 0; face < whole.faces.size(); face++)
                for (const index node : test::cornersOf(whole.faces, face)) {
                    const auto &p = whole.coordinates[static_cast<std::size_t>(node)];
                    if (whole.faceMarks[static_cast<std::size_t>(face)] == 2) {
                        EXPECT_TRUE(p[0] > 0.8 ? p[1] == 0.25 : p[1] == 0 || (p[0] == 0.8 && p[1] == 0.25));
                    }
                }
            const SourceMesh alone = makeBoxMesh(options, 0, 1);
            EXPECT_EQ(whole.coordinates, alone.coordinates);
            EXPECT_EQ(whole.faceMarks, alone.faceMarks);
            test::expectSame(whole.cells, alone.cells);
            test::expectSame(whole.faces, alone.faces);
            MeshReport report;
            const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(options, comm), {.report = &report});
            const MeshMetrics metrics = computeMetrics(mesh);
            real sum = 0;
            for (index cell = 0; cell < mesh.cells.owned; cell++)
                sum += metrics.volumes(cell);
            EXPECT_NEAR(comm.allReduce(sum, MPI_SUM), 2.0 * 0.75 - 1.2 * 0.25, 1e-13);
            EXPECT_TRUE(report.warnings.empty()) << report.warnings.front();
        }
}

TEST(BoxMesh, IsTheSameToTheBitInAnyNumberOfBlocks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    for (const BoxCells fill : allFills)
        for (const bool shuffled : {false, true}) {
            BoxMeshOptions options = optionsOf(fill);
            options.jitter = 0.1;
            options.shuffled = shuffled;
            const SourceMesh expected = makeBoxMesh(options, 0, 1);
            const SourceMesh mesh = wholeOf(options);
            SCOPED_TRACE(mesh.origin);
            EXPECT_EQ(mesh.coordinates, expected.coordinates);
            EXPECT_EQ(mesh.faceMarks, expected.faceMarks);
            test::expectSame(mesh.cells, expected.cells);
            test::expectSame(mesh.faces, expected.faces);
        }
}

TEST(BoxMesh, CountsOfEachTypeAndSide) {
    struct Expected {
        BoxCells fill;
        std::map<ElementType, index> cells;
        std::vector<index> sides;
        index nodes;
    };
    const Expected table[] = {
        {BoxCells::Triangles, {{ElementType::Tri3, 30}}, {3, 3, 5, 5}, 24},
        {BoxCells::Quadrilaterals, {{ElementType::Quad4, 15}}, {3, 3, 5, 5}, 24},
        {BoxCells::MixedSurface, {{ElementType::Quad4, 9}, {ElementType::Tri3, 12}}, {3, 3, 5, 5}, 24},
        {BoxCells::Tetrahedra, {{ElementType::Tetra4, 360}}, {24, 24, 40, 40, 30, 30}, 120},
        {BoxCells::Hexahedra, {{ElementType::Hexa8, 60}}, {12, 12, 20, 20, 15, 15}, 120},
        {BoxCells::Prisms, {{ElementType::Penta6, 120}}, {12, 12, 20, 20, 30, 30}, 120},
        // One layer of hexahedra, one of prisms, one in between, two of tetrahedra.
        {BoxCells::MixedVolume,
         {{ElementType::Hexa8, 12}, {ElementType::Penta6, 24}, {ElementType::Pyra5, 60}, {ElementType::Tetra4, 168}},
         {12, 24, 28, 28, 24, 24},
         132},
        {BoxCells::Polyhedra, {{ElementType::Polyhedron, 64}}, {12, 12, 40, 40, 16, 16}, 220}};
    for (const Expected &expected : table) {
        BoxMeshOptions options = optionsOf(expected.fill);
        options.shuffled = true;
        const SourceMesh mesh = wholeOf(options);
        SCOPED_TRACE(mesh.origin);
        EXPECT_EQ(test::countTypes(mesh.cells), expected.cells);
        EXPECT_EQ(mesh.nodes(), expected.nodes);
        ASSERT_EQ(mesh.patches.size(), expected.sides.size());
        const char *names[] = {"x-", "x+", "y-", "y+", "z-", "z+"};
        const auto counts = test::facesOfMarks(mesh);
        for (std::size_t side = 0; side < expected.sides.size(); side++) {
            EXPECT_EQ(mesh.patches[side].name, names[side]);
            EXPECT_EQ(counts.at(static_cast<int>(side)), expected.sides[side]);
        }
        for (index face = 0; face < mesh.faces.size(); face++) // every face lies in the plane that its mark names
            for (const index node : test::cornersOf(mesh.faces, face)) {
                const auto mark = static_cast<std::size_t>(mesh.faceMarks[static_cast<std::size_t>(face)]);
                EXPECT_EQ(mesh.coordinates[static_cast<std::size_t>(node)][mark / 2],
                          mark % 2 == 0 ? 0.0 : options.lengths[mark / 2]);
            }
    }
}

TEST(BoxMesh, PolyhedraAreHexagonalColumns) {
    const SourceMesh mesh = wholeOf(optionsOf(BoxCells::Polyhedra));
    std::map<std::size_t, index> cellsOfFaces;
    for (index cell = 0; cell < mesh.cells.size(); cell++)
        cellsOfFaces[test::facesOf(mesh.cells, cell).size()]++;
    // In each of 4 layers: rows of 5, 4 and two halves, 5.
    EXPECT_EQ(cellsOfFaces, (std::map<std::size_t, index>{{6, 8}, {8, 56}}));
}

TEST(BoxMesh, PeriodicSidesAreConnectionsWhosePointsMatch) {
    for (const BoxCells fill : allFills) {
        BoxMeshOptions options = optionsOf(fill);
        const std::size_t dimensions = fill <= BoxCells::MixedSurface ? 2 : 3;
        options.periodic = {fill != BoxCells::MixedVolume, true, dimensions == 3};
        options.jitter = 0.1;
        const SourceMesh mesh = wholeOf(options);
        SCOPED_TRACE(mesh.origin);
        EXPECT_EQ(mesh.patches.size(), fill == BoxCells::MixedVolume ? 2u : 0u);
        ASSERT_EQ(mesh.periodic.size(), fill == BoxCells::MixedVolume ? 2u : dimensions);
        for (std::size_t c = 0; c < mesh.periodic.size(); c++) {
            std::multiset<std::vector<std::array<real, 3>>> sides[2];
            for (std::size_t face = 0; face < mesh.faceMarks.size(); face++)
                for (int side = 0; side < 2; side++)
                    if (mesh.faceMarks[face] == -1 - (2 * static_cast<int>(c) + side)) {
                        std::vector<std::array<real, 3>> points;
                        for (const index node : test::cornersOf(mesh.faces, static_cast<index>(face))) {
                            points.push_back(mesh.coordinates[static_cast<std::size_t>(node)]);
                            for (std::size_t d = 0; d < 3 && side == 0; d++)
                                points.back()[d] += mesh.periodic[c].transform.translation[d];
                        }
                        std::sort(points.begin(), points.end());
                        sides[side].insert(points);
                    }
            EXPECT_FALSE(sides[0].empty());
            EXPECT_EQ(sides[0], sides[1]) << mesh.periodic[c].name;
        }
    }
}

TEST(BoxMesh, SmallestBoxes) {
    for (const BoxCells fill : allFills) {
        BoxMeshOptions options = optionsOf(fill);
        options.cells = {fill == BoxCells::MixedVolume ? 4 : 1, 1, 1};
        const SourceMesh mesh = wholeOf(options);
        SCOPED_TRACE(mesh.origin);
        expectConforming(mesh);
    }
}

TEST(BoxMesh, HugeBoxesNeedNoTables) {
    BoxMeshOptions options;
    options.cells = {1 << 13, 1 << 13, 1 << 13};
    options.shuffled = true;
    const SourceMesh mesh = makeBoxMesh(options, 1234567, 2000000000);
    EXPECT_EQ(mesh.cells.globalSize, 6 * (index{1} << 39));
}

TEST(BoxMesh, RefusesWhatItCannotMake) {
    const auto make = [](auto &&change) {
        BoxMeshOptions options = optionsOf(BoxCells::MixedVolume);
        change(options);
        makeBoxMesh(options, 0, 1);
    };
    EXPECT_NO_THROW(make([](BoxMeshOptions &) {}));
    EXPECT_THROW(make([](BoxMeshOptions &o) { o.cells[0] = 3; }), ArgumentError);
    EXPECT_THROW(make([](BoxMeshOptions &o) { o.cells[1] = 0; }), ArgumentError);
    EXPECT_THROW(make([](BoxMeshOptions &o) { o.cells = {index{1} << 40, index{1} << 40, 4}; }), ArgumentError);
    EXPECT_THROW(make([](BoxMeshOptions &o) { o.lengths[2] = 0; }), ArgumentError);
    EXPECT_THROW(make([](BoxMeshOptions &o) { o.jitter = 0.2; }), ArgumentError);
    EXPECT_THROW(make([](BoxMeshOptions &o) { o.periodic[0] = true; }), ArgumentError);
    EXPECT_THROW(make([](BoxMeshOptions &o) {
                     o.fill = BoxCells::Triangles;
                     o.periodic[2] = true;
                 }),
                 ArgumentError);
    const auto makeWithRamps = [](BoxRamp floor, BoxRamp ceiling, auto &&change) {
        BoxMeshOptions options = optionsOf(BoxCells::Hexahedra);
        options.floor = floor;
        options.ceiling = ceiling;
        change(options);
        makeBoxMesh(options, 0, 1);
    };
    const auto unchanged = [](BoxMeshOptions &) {};
    EXPECT_NO_THROW(makeWithRamps({0.8, 10}, {0.8, 10}, [](BoxMeshOptions &o) { o.periodic[1] = true; }));
    EXPECT_NO_THROW(makeWithRamps({0, 10}, {}, unchanged));
    EXPECT_NO_THROW(makeWithRamps({77, 0}, {}, unchanged));               // flat
    EXPECT_THROW(makeWithRamps({0.5, 10}, {}, unchanged), ArgumentError); // no edge there
    EXPECT_THROW(makeWithRamps({-0.4, 10}, {}, unchanged), ArgumentError);
    EXPECT_THROW(makeWithRamps({2, 10}, {}, unchanged), ArgumentError);
    EXPECT_THROW(makeWithRamps({0.8, 90}, {}, unchanged), ArgumentError);
    EXPECT_THROW(makeWithRamps({0.8, std::nan("")}, {}, unchanged), ArgumentError);
    EXPECT_THROW(makeWithRamps({std::nan(""), 10}, {}, unchanged), ArgumentError);
    EXPECT_THROW(makeWithRamps({0, 30}, {}, unchanged), ArgumentError); // 1.15 high at the end
    EXPECT_THROW(makeWithRamps({0, 20}, {0, -20}, unchanged), ArgumentError);
    EXPECT_THROW(makeWithRamps({0, 10}, {}, [](BoxMeshOptions &o) { o.jitter = 0.1; }), ArgumentError);
    EXPECT_THROW(makeWithRamps({0, 10}, {}, [](BoxMeshOptions &o) { o.periodic[0] = true; }), ArgumentError);
    EXPECT_THROW(makeWithRamps({0, 10}, {}, [](BoxMeshOptions &o) { o.periodic[1] = true; }), ArgumentError);
    const auto makeWithStep = [](BoxStep step, auto &&change) {
        BoxMeshOptions options = optionsOf(BoxCells::Quadrilaterals);
        options.step = step;
        change(options);
        makeBoxMesh(options, 0, 1);
    };
    EXPECT_NO_THROW(makeWithStep({0.8, 0.25}, unchanged));
    EXPECT_NO_THROW(makeWithStep({0.8, 0.25}, [](BoxMeshOptions &o) { o.floor = {0.8, 10}; }));
    for (const BoxStep step :
         {BoxStep{0.7, 0.25}, {0.8, 0.2}, {0, 0.25}, {2, 0.25}, {0.8, 0.75}, {0.8, -0.25}, {1e-9, 0.25}, {0.8, 1e-9}})
        EXPECT_THROW(makeWithStep(step, unchanged), ArgumentError) << step.start << ", " << step.height;
    EXPECT_THROW(makeWithStep({0.8, std::nan("")}, unchanged), ArgumentError);
    EXPECT_THROW(makeWithStep({0.8, 0.25}, [](BoxMeshOptions &o) { o.jitter = 0.1; }), ArgumentError);
    EXPECT_THROW(makeWithStep({0.8, 0.25}, [](BoxMeshOptions &o) { o.periodic[0] = true; }), ArgumentError);
    EXPECT_THROW(makeWithStep({0.8, 0.25}, [](BoxMeshOptions &o) { o.periodic[1] = true; }), ArgumentError);
    EXPECT_THROW(makeWithStep({0.8, 0.25}, [](BoxMeshOptions &o) { o.fill = BoxCells::MixedSurface; }), ArgumentError);
    EXPECT_THROW(makeBoxMesh(BoxMeshOptions{}, 2, 2), ArgumentError);
    EXPECT_EQ(boxCellsOf("mixed-volume"), BoxCells::MixedVolume);
    EXPECT_THROW(boxCellsOf("cubes"), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
