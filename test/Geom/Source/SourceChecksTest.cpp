#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "Geom/Build/WholeMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace DNDS::Geom {
namespace {

using test::BoxCells;
using test::makeBox;
using test::WholeMesh;

const CommunicatorView world() { return CommunicatorView(MPI_COMM_WORLD); }

/// Builds the mesh after `spoil`; what was thrown must be an `ErrorType` that says `words`, the same on all ranks.
template <class ErrorType>
void expectError(
    WholeMesh whole, const std::function<void(WholeMesh &)> &spoil, const std::string &words,
    const std::function<void(SourceMesh &)> &spoilSlice = [](SourceMesh &) {}) {
    SCOPED_TRACE(words);
    spoil(whole);
    SourceMesh source = whole.slice(world());
    spoilSlice(source);
    try {
        (void)buildMesh(world(), std::move(source));
        ADD_FAILURE() << "nothing was thrown";
    } catch (const ErrorType &error) {
        EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("a box"), std::string::npos) << error.message();
    }
}

TEST(SourceChecks, RefuseElementsThatCannotBe) {
    const WholeMesh box = makeBox({.counts = {3, 3, 3}});
    expectError<IndexError>(
        box, [](WholeMesh &m) { m.cells[20].nodes[3] = 64; }, "element 21 has node 65, but nodes are 1 to 64");
    expectError<IndexError>(
        box, [](WholeMesh &m) { m.faces[5].nodes[0] = -1; }, "boundary element 33 has node 0");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.cells[7].nodes.pop_back(); }, "element 8 has 7 nodes, but a HEXA_8 has 8");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.cells[7].type = ElementType::Quad4; }, "element 8 is of type 7");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.cells[26].type = static_cast<ElementType>(77); }, "element 27 is of type 77");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.faceMarks[0] = 6; }, "mark 6, but there are 6 patches");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.faceMarks[0] = -1; }, "mark -1");
    expectError<IndexError>(
        box,
        [](WholeMesh &m) {
            m.nodeMarks.push_back({0, 64});
        },
        "lists node 65");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.points[63][1] = std::numeric_limits<real>::quiet_NaN(); }, "node 64 is at");
}

TEST(SourceChecks, RefuseBlocksThatContradictEachOther) {
    const WholeMesh box = makeBox({.counts = {3, 3, 3}});
    const auto none = [](WholeMesh &) {};
    expectError<DataError>(box, none, "cells from", [](SourceMesh &s) { s.cells.globalSize++; });
    expectError<DataError>(box, none, "nodes from", [](SourceMesh &s) { s.globalNodes--; });
    expectError<DataError>(box, none, "the lists of elements contradict", [](SourceMesh &s) {
        if (world().rank() == world().size() - 1)
            s.cells.starts.pop_back();
    });
    expectError<DataError>(box, none, "cells of 4 dimensions", [](SourceMesh &s) { s.cellDimension = 4; });
    if (world().size() > 1)
        expectError<DataError>(box, none, "differ between ranks",
                               [](SourceMesh &s) { s.patches.resize(toSize(world().rank())); });
}

TEST(SourceChecks, RefusePolyhedraThatAreOpenOrNone) {
    const WholeMesh box = makeBox({.cells = BoxCells::Polyhedra, .counts = {2, 2, 2}});
    expectError<DataError>(
        box, [](WholeMesh &m) { m.cells[1].nodes.resize(45); },
        "1 polyhedra are open: some edges do not belong to two faces; the first is element 2");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.cells[1].nodes[0] = 1000; }, "polyhedron 2 has a face of 1000 corners");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.cells[2].nodes[0] = -1; }, "polyhedron 3 has a face of -1 corners");
    expectError<DataError>(
        box, [](WholeMesh &m) { m.cells[2].nodes.resize(5); }, "polyhedron 3 has 1 faces");
}

TEST(SourceChecks, RefuseFacesOfThreeCellsWhereverTheyAre) {
    // The extra cell stands on a face between two others; on some rank counts all three are on different ranks, on
    // others two are together.
    for (const bool turned : {false, true}) {
        const WholeMesh box = makeBox({.counts = {8, 2, 2}, .jitter = false, .shuffle = false, .turnSome = turned});
        for (const index at : {1, 3, 4, 6})
            expectError<DataError>(
                box,
                [&](WholeMesh &m) {
                    const auto corner = [&](real x, real y, real z) {
                        for (std::size_t n = 0; n < m.points.size(); n++)
                            if (m.points[n] == std::array<real, 3>{x, y, z})
                                return static_cast<index>(n);
                        return index{-1};
                    };
                    const auto x = static_cast<real>(at);
                    m.points.push_back({x + 0.5, 0.5, 5.0});
                    m.cells.push_back({ElementType::Pyra5,
                                       {corner(x, 0, 0), corner(x, 1, 0), corner(x, 1, 1), corner(x, 0, 1),
                                        static_cast<index>(m.points.size()) - 1},
                                       33});
                },
                "the mesh is not a manifold");
    }
}

TEST(SourceChecks, RefuseMoreThanLocalNumbersOnAllRanks) {
    const index most = std::numeric_limits<LocalIndex>::max();
    const int last = world().size() - 1;
    EXPECT_NO_THROW(requireLocalNumbers(world(), most, "cells", "a box"));
    try {
        requireLocalNumbers(world(), world().rank() == last ? most + 1 : 5, "cells", "a box");
        ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError &error) {
        EXPECT_EQ(error.message(),
                  fmt::format("a box: rank {} of {} would have 2147483648 cells, more than 32-bit numbers allow "
                              "(2147483647): use more ranks",
                              last, last + 1));
    }
}

/// The error of `buildMesh` for a mesh.
std::string complaintOf(CommunicatorView comm, const WholeMesh &whole, const MeshOptions &options) {
    try {
        (void)buildMesh(comm, whole.slice(comm), options);
    } catch (const DataError &error) {
        return error.message();
    }
    return "nothing";
}

TEST(SourceChecks, NameTheSameElementsOfFacesOfThreeOnAnyNumberOfRanks) {
    WholeMesh whole = makeBox({.counts = {8, 2, 2}, .jitter = false});
    const auto corner = [&](real x, real y, real z) {
        return static_cast<index>(std::find(whole.points.begin(), whole.points.end(), std::array<real, 3>{x, y, z}) -
                                  whole.points.begin());
    };
    for (const real x : {6.0, 3.0, 4.0}) { // pyramids on inner faces
        const std::vector<index> base{corner(x, 0, 0), corner(x, 1, 0), corner(x, 1, 1), corner(x, 0, 1),
                                      static_cast<index>(whole.points.size())};
        whole.points.push_back({x + 0.5, 0.5, 5.0});
        whole.cells.push_back({ElementType::Pyra5, base, static_cast<index>(whole.cells.size()) + 1});
    }
    const std::string expected = complaintOf(CommunicatorView(MPI_COMM_SELF), whole, {});
    EXPECT_NE(expected.find("share a face"), std::string::npos) << expected;
    EXPECT_EQ(complaintOf(world(), whole, {}), expected);
    EXPECT_EQ(complaintOf(world(), whole, {.partitioner = Partitioner::Curve}), expected);
    // Wherever the cells are, whichever of the checks notices.
    MeshOptions options{.partitioner = Partitioner::Given};
    const index cells = whole.slice(world()).cells.size();
    for (int shift = 0; shift < 3; shift++) {
        options.givenPart.clear();
        for (index c = 0; c < cells; c++)
            options.givenPart.push_back(static_cast<int>((c * c + shift) % world().size()));
        EXPECT_EQ(complaintOf(world(), whole, options), expected);
    }
}

TEST(SourceChecks, WarnOfFlatAndCollapsedCellsAndUnusedNodes) {
    // The second of two hexahedra in a row collapses to a wedge whose edge is at x = 2; one node is in no cell.
    WholeMesh whole =
        makeBox({.counts = {2, 1, 1}, .jitter = false, .shuffle = false, .turnSome = false, .marks = false});
    whole.cells[1].nodes[2] = whole.cells[1].nodes[1];
    whole.cells[1].nodes[6] = whole.cells[1].nodes[5];
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(world(), whole.slice(world()), options);
    EXPECT_EQ(report.collapsedCells, 1);
    EXPECT_EQ(report.flatCells, 0);
    EXPECT_EQ(report.unusedNodes, 2);
    EXPECT_EQ(report.nodes, 10) << "nodes that are left out are not counted";
    EXPECT_EQ(report.volume, 1.5);
    EXPECT_EQ(report.innerFaces, 1);
    EXPECT_EQ(report.boundaryFaces, 5 + 4); // the wedge's collapsed face does not count
    ASSERT_EQ(report.warnings.size(), 3U);
    EXPECT_EQ(report.warnings[0], "a box: 1 elements repeat a corner, the first is element 2");
    EXPECT_EQ(report.warnings[1], "a box: 2 nodes are in no cell and are left out");
    EXPECT_LT(computeMetrics(mesh).closure, 1e-15);

    whole = makeBox({.counts = {2, 1, 1}, .jitter = false, .marks = false});
    for (auto &point : whole.points)
        point[2] = 0.0;
    (void)buildMesh(world(), whole.slice(world()), options);
    EXPECT_EQ(report.flatCells, 2);
    EXPECT_EQ(report.volume, 0.0);
}

TEST(SourceChecks, RoundOffInZLeavesAPlaneAPlane) {
    for (const real noise : {0.0, 1e-16, 1e-12, 1e-3}) {
        WholeMesh whole = makeBox({.cells = BoxCells::Triangles, .counts = {3, 3, 0}, .turnSome = false});
        for (std::size_t n = 0; n < whole.points.size(); n++)
            whole.points[n][2] = static_cast<real>(n % 3) * noise;
        std::reverse(whole.cells[4].nodes.begin(), whole.cells[4].nodes.end());
        MeshReport report;
        const UnstructuredMesh mesh = buildMesh(world(), whole.slice(world()), {.report = &report});
        EXPECT_EQ(mesh.planar, noise < 1e-3) << noise;
        EXPECT_EQ(report.turnedCells, noise < 1e-3 ? 1 : 0) << noise;
        if (mesh.planar) {
            EXPECT_LT(computeMetrics(mesh).closure, 1e-12);
        }
    }
}

TEST(SourceChecks, AcceptAnEmptyMesh) {
    WholeMesh whole;
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(world(), whole.slice(world()), options);
    EXPECT_EQ(mesh.cells.size(), 0);
    EXPECT_EQ(report.cellsTotal, 0);
}

TEST(SourceChecks, OptionsOutOfRangeAreRefusedOnAllRanks) {
    const WholeMesh box = makeBox({.counts = {2, 2, 2}});
    EXPECT_THROW((void)buildMesh(world(), box.slice(world()), {.ghostLayers = 17}), ArgumentError);
    SourceMesh source = box.slice(world());
    MeshOptions options{.partitioner = Partitioner::Given};
    options.givenPart.assign(toSize(source.cells.size()), 0);
    if (world().rank() == 0)
        options.givenPart[0] = world().size();
    EXPECT_THROW((void)buildMesh(world(), std::move(source), options), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
