// Everyday mesh access of solvers: fields in one line, patches by name, loops over faces, ghosts by layers.

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/CellNodes.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "Geom/Build/WholeMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

UnstructuredMesh box(CommunicatorView comm, bool periodic = false, int layers = 1) {
    BoxMeshOptions options{.fill = BoxCells::MixedVolume, .cells = {6, 5, 4}};
    options.periodic = {false, periodic, false};
    options.shuffled = true;
    return buildMesh(comm, makeBoxMesh(options, comm), {.ghostLayers = layers});
}

real fileNumber(const UnstructuredMesh &mesh, index cell) {
    return static_cast<real>(mesh.cells.fileNumbers[static_cast<std::size_t>(cell)]);
}

TEST(DailyUse, PatchesHaveNamesIdsAndOwnFaces) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const UnstructuredMesh mesh = box(comm);
    const MeshMetrics metrics = computeMetrics(mesh);
    const MeshPatch &top = mesh.patch("z+");
    EXPECT_EQ(&mesh.patches[static_cast<std::size_t>(top.id)], &top);
    real area = 0;
    for (const LocalIndex face : top.ownFaces()) {
        EXPECT_LT(face, mesh.faces.owned);
        EXPECT_LT(mesh.faceCells(face, 0), mesh.cells.owned);
        EXPECT_EQ(mesh.facePatches(face), top.id);
        area += metrics.areas(face);
    }
    for (const LocalIndex face : std::span<const LocalIndex>(top.faces).subspan(top.ownFaces().size()))
        EXPECT_GE(face, mesh.faces.owned);
    EXPECT_NEAR(comm.allReduce(area, MPI_SUM), 1, 1e-12);
    try {
        (void)mesh.patch("wall");
        ADD_FAILURE() << "there is no such patch";
    } catch (const ArgumentError &error) {
        EXPECT_NE(
            std::string(error.what()).find("there is no patch 'wall'; there are: 'x-', 'x+', 'y-', 'y+', 'z-', 'z+'"),
            std::string::npos)
            << error.what();
    }
}

TEST(DailyUse, FacePatchesSayWhereTheBoundaryIs) {
    const UnstructuredMesh mesh = box(CommunicatorView(MPI_COMM_WORLD), true);
    for (index face = 0; face < mesh.faces.size(); face++)
        EXPECT_EQ(mesh.facePatches(face) != noPatch, mesh.faceCells(face, 1) == noEntity) << face;
}

/// Own cells are closed by inner and boundary faces, wherever the partition and the periodic boundaries are.
class FaceLoops : public ::testing::TestWithParam<bool> {};

TEST_P(FaceLoops, CloseOwnCells) {
    const UnstructuredMesh mesh = box(CommunicatorView(MPI_COMM_WORLD), GetParam());
    const MeshMetrics metrics = computeMetrics(mesh);
    const MeshView view = viewOf(mesh, metrics);
    std::vector<std::array<real, 3>> sums(static_cast<std::size_t>(view.cells));
    const auto add = [&](index cell, LocalIndex face, real sign) {
        for (int d = 0; d < 3; d++)
            sums[static_cast<std::size_t>(cell)][static_cast<std::size_t>(d)] += sign * view.areaVectors(face, d);
    };
    forEachInnerFace(view, [&](LocalIndex face, LocalIndex first, LocalIndex second) {
        add(first, face, 1);
        add(second, face, -1);
    });
    index boundary = 0;
    forEachBoundaryFace(view, [&](LocalIndex face, LocalIndex cell, int patch) {
        EXPECT_NE(patch, noPatch);
        add(cell, face, 1);
        boundary++;
    });
    for (index cell = 0; cell < view.ownedCells; cell++) {
        auto &sum = sums[static_cast<std::size_t>(cell)];
        for (const real each : sum)
            EXPECT_NEAR(each, 0, 1e-14) << cell;
        sum = {};
        forEachFaceOf(view, cell, [&](LocalIndex face, LocalIndex other, real sign) {
            add(cell, face, sign);
            const int side = sign > 0 ? 0 : 1;
            EXPECT_EQ(view.faceCells(face, side), cell);
            EXPECT_EQ(view.faceCells(face, 1 - side), other);
        });
        for (const real each : sum)
            EXPECT_NEAR(each, 0, 1e-14) << cell;
    }
    for (const MeshPatch &patch : mesh.patches)
        forEachFace(view, patch, [&](LocalIndex face, LocalIndex cell) {
            EXPECT_EQ(mesh.faceCells(face, 0), cell);
            boundary--;
        });
    EXPECT_EQ(boundary, 0);
}

INSTANTIATE_TEST_SUITE_P(Box, FaceLoops, ::testing::Bool());

TEST(CellNodes, OfAPolyhedronHaveBothSidesOfASlit) {
    const test::WholeMesh cube = test::makeCubeWithSlit();
    const UnstructuredMesh mesh = buildMesh(MPI_COMM_SELF, cube.slice(MPI_COMM_SELF));
    std::vector<index> nodes;
    appendCellNodes(mesh, 0, mesh.nodes.fileNumbers, nodes);
    ASSERT_EQ(nodes.size(), cube.cells[0].nodes.size());
    std::vector<std::pair<index, index>> edges; // each is in two faces, in opposite directions
    for (std::size_t face = 0; face < 8; face++)
        for (std::size_t k = 0; k < 4; k++)
            edges.emplace_back(nodes[5 * face + 1 + k], nodes[5 * face + 1 + (k + 1) % 4]);
    std::vector<std::pair<index, index>> reversed;
    for (const auto &[from, to] : edges)
        reversed.emplace_back(to, from);
    std::ranges::sort(edges);
    std::ranges::sort(reversed);
    EXPECT_EQ(edges, reversed);
    EXPECT_EQ(std::ranges::adjacent_find(edges), edges.end());
}

/// Fills own rows, pulls, and looks at all.
template <class TField>
void expectPulled(const UnstructuredMesh &mesh, TField &field, rowsize width) {
    ASSERT_EQ(field.size(), mesh.cells.size());
    auto rows = field.view();
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        for (rowsize k = 0; k < width; k++)
            field.father->data()[cell * width + k] =
                static_cast<std::remove_pointer_t<decltype(field.father->data())>>(10 * fileNumber(mesh, cell) + k);
    field.trans.startPersistentPull();
    field.trans.waitPersistentPull();
    for (index ghost = 0; ghost < mesh.cells.ghosts; ghost++)
        for (rowsize k = 0; k < width; k++)
            EXPECT_EQ(field.son->data()[ghost * width + k], 10 * fileNumber(mesh, mesh.cells.owned + ghost) + k);
    (void)rows;
}

TEST(DailyUse, OptionsThatDifferBetweenRanksAreRefused) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    if (comm.size() == 1)
        GTEST_SKIP() << "for several ranks";
    const int own = comm.rank() == comm.size() - 1 ? 1 : 0;
    for (int which = 0; which < 4; which++) {
        MeshOptions options;
        options.ghostLayers = which == 0 ? 1 + own : 1;
        options.ghostsBy = which == 1 && own == 1 ? GhostNeighbours::Faces : GhostNeighbours::Nodes;
        options.partitioner = which == 2 && own == 1 ? Partitioner::Curve : Partitioner::Graph;
        options.cellOrder = which == 3 && own == 1 ? CellOrder::ReverseCuthillMcKee : CellOrder::Curve;
        EXPECT_THROW(buildMesh(comm, makeBoxMesh({}, comm), options), ArgumentError) << which;
    }
}

TEST(DailyUse, MovedFromMeshesSaySo) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh({}, comm));
    const UnstructuredMesh taken = std::move(mesh);
    EXPECT_THROW(mesh.field<1>("u"), StateError); // NOLINT: on purpose
    EXPECT_THROW((void)mesh.firstLayers(1), StateError);
    EXPECT_THROW((void)mesh.cells.mapping(), StateError);
    EXPECT_TRUE(mesh.cells.ownFileNumbers().empty());
    EXPECT_THROW(UnstructuredMesh(comm).field<1>("u"), StateError);
}

TEST(DailyUse, FacesInNoPatchKeepTheirName) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    SourceMesh source = makeBoxMesh({}, comm);
    ASSERT_FALSE(source.patches.empty());
    source.patches[0].name = "unassigned";
    MeshReport report;
    MeshOptions options;
    options.report = &report;
    const UnstructuredMesh mesh = buildMesh(comm, std::move(source), options);
    EXPECT_EQ(mesh.patch("unassigned").id, static_cast<int>(mesh.patches.size()) - 1);
    EXPECT_EQ(mesh.patch("unassigned_in_file").id, 0);
    EXPECT_EQ(report.warnings.size(), 1U);
}

TEST(DailyUse, FieldsInOneLine) {
    const UnstructuredMesh mesh = box(CommunicatorView(MPI_COMM_WORLD));
    auto u = mesh.field<5>("u");
    static_assert(std::is_same_v<decltype(u), ArrayPair<ParArray<real, 5>>>);
    expectPulled(mesh, u, 5);
    auto p = mesh.field<1, float>("p");
    expectPulled(mesh, p, 1);
    auto q = mesh.field("q", 3);
    expectPulled(mesh, q, 3);
    auto r = mesh.field<ArrayDof<2, 2>>("r");
    expectPulled(mesh, r, 4);
    auto s = mesh.cells.field<ArrayDof<DynamicSize, 1>>("s", 2, 1);
    expectPulled(mesh, s, 2);
    const auto atNodes = mesh.nodes.field<2>("at nodes");
    EXPECT_EQ(atNodes.size(), mesh.nodes.size());
    EXPECT_EQ(atNodes.father->size(), mesh.nodes.owned);
    EXPECT_EQ(static_cast<index>(mesh.cells.ownFileNumbers().size()), mesh.cells.owned);
}

TEST(DailyUse, TheFirstLayersOfGhostsAlone) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const UnstructuredMesh mesh = box(comm, false, 2);
    auto u = mesh.field<1>("u");
    const auto first = mesh.firstLayers(1);
    Exchange pull(first, Direction::Pull, {u.trans.member()});
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        u(cell, 0) = 1 + fileNumber(mesh, cell);
    pull.start();
    pull.wait();
    index outer = 0;
    for (index cell = mesh.cells.owned; cell < mesh.cells.size(); cell++) {
        const bool isFirst = mesh.cellLayers[static_cast<std::size_t>(cell)] == 1;
        EXPECT_EQ(u(cell, 0), isFirst ? 1 + fileNumber(mesh, cell) : 0);
        outer += isFirst ? 0 : 1;
    }
    EXPECT_EQ(comm.allReduce(outer, MPI_SUM) > 0, comm.size() > 1);
    EXPECT_THROW((void)mesh.firstLayers(-1), ArgumentError);
    EXPECT_THROW((void)mesh.firstLayers(3), ArgumentError);
    EXPECT_THROW((void)mesh.field("nothing", 0), ArgumentError);
}

TEST(DailyUse, FieldsOfFilesAreOfAnyNumbersAndWidths) {
    const UnstructuredMesh mesh = box(CommunicatorView(MPI_COMM_WORLD));
    auto dof = mesh.field<ArrayDof<2, 2>>("dof");
    auto single = mesh.field<1, float>("single");
    auto wide = mesh.field("wide", 3);
    for (index cell = 0; cell < mesh.cells.owned; cell++) {
        for (rowsize k = 0; k < 4; k++)
            dof.father->data()[4 * cell + k] = static_cast<real>(k);
        single(cell, 0) = 0.5F;
        for (rowsize k = 0; k < 3; k++)
            wide(cell, k) = static_cast<real>(10 + k);
    }
    const FieldSlice matrices = fieldOf("m", dof);
    EXPECT_EQ(matrices.components, 4);
    EXPECT_EQ(matrices.values.data(), dof.father->data()); // no copy
    const FieldSlice halves = fieldOf("s", single);
    EXPECT_EQ(halves.components, 1);
    const FieldSlice rows = fieldOf("w", wide);
    EXPECT_EQ(rows.components, 3);
    const FieldSlice last = fieldOf("last", wide, 2);
    EXPECT_EQ(last.components, 1);
    ASSERT_EQ(static_cast<index>(last.values.size()), mesh.cells.owned);
    for (const FieldSlice *field : {&matrices, &halves, &rows, &last})
        checkField(*field, mesh.cells.owned, "cell");
    for (const real value : halves.values)
        EXPECT_EQ(value, 0.5);
    for (const real value : last.values)
        EXPECT_EQ(value, 12);
    EXPECT_THROW((void)fieldOf("none", wide, 3), IndexError);
    EXPECT_THROW((void)fieldOf("none", single, -1), IndexError);
}

class Weights : public ArrayDof<1, 1> {};

TEST(DailyUse, RowsAreScaledByAClassDerivedFromScalars) {
    const UnstructuredMesh mesh = box(CommunicatorView(MPI_COMM_WORLD));
    auto u = mesh.field<ArrayDof<3>>("u");
    auto weights = mesh.field<ArrayDof<1>>("w");
    Weights derived;
    static_cast<ArrayDof<1> &>(derived) = std::move(weights);
    u.setConstant(2);
    derived.setConstant(3);
    u *= derived;
    EXPECT_EQ(u.min(), 6);
    EXPECT_EQ(u.max(), 6);
    u /= derived;
    EXPECT_EQ(u.max(), 2);
}

} // namespace
} // namespace DNDS::Geom
