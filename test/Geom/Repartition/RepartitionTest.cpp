#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "Geom/Build/WholeMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

using test::expectContains;
using test::messageOnAll;
using test::worldRank;
using test::worldSize;

CommunicatorView world() { return {MPI_COMM_WORLD}; }

/// Target rank of a cell in a round, by its number: any rank, now and then one rank alone.
int targetOf(index cell, int round) {
    if (round == 2)
        return worldSize() - 1;
    return static_cast<int>((cell * 7919 + round * 104729 + cell / 5) % worldSize());
}

std::vector<int> targetsOf(std::span<const index> cells, int round) {
    std::vector<int> targets;
    for (const index cell : cells)
        targets.push_back(targetOf(cell, round));
    return targets;
}

UnstructuredMesh builtAnew(const test::WholeMesh &whole, MeshOptions options, int round) {
    SourceMesh source = whole.slice(world());
    std::vector<index> numbers(static_cast<std::size_t>(source.cells.size()));
    std::iota(numbers.begin(), numbers.end(), source.cells.first);
    options.partitioner = Partitioner::Given;
    options.givenPart = targetsOf(numbers, round);
    return buildMesh(world(), std::move(source), options);
}

template <class Adjacency>
void expectSameRows(const Adjacency &a, const Adjacency &b, const char *what) {
    EXPECT_EQ(a.hash(), b.hash()) << what;
}

void expectSameEntities(const MeshEntities &a, const MeshEntities &b, const char *what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(a.owned, b.owned);
    EXPECT_EQ(a.ghosts, b.ghosts);
    EXPECT_EQ(a.fileNumbers, b.fileNumbers);
    EXPECT_EQ(a.fileIds, b.fileIds);
    EXPECT_EQ(a.images, b.images);
    EXPECT_EQ(a.mapping().global()->localBegin(), b.mapping().global()->localBegin());
    EXPECT_TRUE(std::ranges::equal(a.builtPattern().owners().ranks, b.builtPattern().owners().ranks));
}

/// All that a mesh has, to the bit.
void expectSameMesh(const UnstructuredMesh &a, const UnstructuredMesh &b) {
    expectSameEntities(a.cells, b.cells, "cells");
    expectSameEntities(a.nodes, b.nodes, "nodes");
    expectSameEntities(a.faces, b.faces, "faces");
    EXPECT_EQ(a.planar, b.planar);
    EXPECT_EQ(a.cellTypes, b.cellTypes);
    EXPECT_EQ(a.cellLayers, b.cellLayers);
    EXPECT_EQ(a.curvePositions, b.curvePositions);
    EXPECT_EQ(a.coordinates.hash(), b.coordinates.hash());
    expectSameRows(a.cellNodes, b.cellNodes, "nodes of cells");
    expectSameRows(a.cellFaces, b.cellFaces, "faces of cells");
    expectSameRows(a.cellCells, b.cellCells, "neighbours of cells");
    expectSameRows(a.nodeCells, b.nodeCells, "cells of nodes");
    expectSameRows(a.faceNodes, b.faceNodes, "nodes of faces");
    expectSameRows(a.faceCells, b.faceCells, "cells of faces");
    EXPECT_EQ(a.boundaryFaces, b.boundaryFaces);
    EXPECT_EQ(a.sharedFaces, b.sharedFaces);
    EXPECT_EQ(a.facePatches.hash(), b.facePatches.hash());
    EXPECT_EQ(a.periodicFaces, b.periodicFaces);
    EXPECT_EQ(a.periodicMarks, b.periodicMarks);
    ASSERT_EQ(a.patches.size(), b.patches.size());
    for (std::size_t p = 0; p < a.patches.size(); ++p) {
        EXPECT_EQ(a.patches[p].name, b.patches[p].name);
        EXPECT_EQ(a.patches[p].faces, b.patches[p].faces) << a.patches[p].name;
    }
}

real valueOf(index number, rowsize k) { return std::sin(static_cast<real>(number * 13 + k)); }

/// The number of an entity on any partition; faces by the sum of their corners' positions, which no other face has.
real keyOf(const UnstructuredMesh &mesh, MeshEntityKind kind, index i) {
    if (kind == MeshEntityKind::Cells)
        return static_cast<real>(mesh.cells.fileNumbers[static_cast<std::size_t>(i)]);
    if (kind == MeshEntityKind::Nodes)
        return static_cast<real>(mesh.nodes.fileNumbers[static_cast<std::size_t>(i)]);
    std::vector<std::array<real, 3>> corners;
    for (const LocalIndex node : mesh.faceNodes.view()[i]) {
        const auto x = mesh.coordinates.view();
        corners.push_back({x(node, 0), x(node, 1), x(node, 2)});
    }
    std::ranges::sort(corners);
    real key = 0;
    for (const auto &x : corners)
        key = key * 1.25 + x[0] + 3 * x[1] + 7 * x[2];
    return key;
}

/// Fields of many kinds.
struct Fields {
    ArrayPair<ParArray<real, 5>> u;
    ArrayDof<3, 1> dof;
    ArrayPair<ParArray<index, NonUniformSize>> lists;
    ArrayPair<ParArray<float, NonUniformSize, 4>> padded;
    ArrayPair<ParArray<real, 2>> nodal;
    ArrayPair<ParArray<real, DynamicSize>> onFaces;

    explicit Fields(const UnstructuredMesh &mesh)
        : u(mesh.cells.field<5>("u")), dof(mesh.cells.field<ArrayDof<3, 1>>("dof")),
          nodal(mesh.nodes.field<2>("nodal")), onFaces(mesh.faces.field<real>("on faces", 2)) {
        lists.initPair("lists", mesh.comm);
        lists.father->resize(mesh.cells.owned, [&](index c) { return static_cast<rowsize>(number(mesh, c) % 4); });
        padded.initPair("padded", mesh.comm);
        padded.father->resize(mesh.cells.owned, [&](index c) { return static_cast<rowsize>(number(mesh, c) % 5); });
        for (index c = 0; c < mesh.cells.owned; ++c) {
            for (rowsize k = 0; k < 5; ++k)
                (*u.father)(c, k) = valueOf(number(mesh, c), k);
            for (rowsize k = 0; k < 3; ++k)
                dof.father->data()[3 * c + k] = valueOf(number(mesh, c), k + 10);
            for (rowsize k = 0; k < lists.father->rowSize(c); ++k)
                (*lists.father)(c, k) = number(mesh, c) * 100 + k;
            for (rowsize k = 0; k < padded.father->rowSize(c); ++k)
                (*padded.father)(c, k) = static_cast<float>(number(mesh, c) + k);
        }
        for (index n = 0; n < mesh.nodes.owned; ++n)
            for (rowsize k = 0; k < 2; ++k)
                (*nodal.father)(n, k) = valueOf(mesh.nodes.fileNumbers[static_cast<std::size_t>(n)], k);
        for (index f = 0; f < mesh.faces.owned; ++f)
            for (rowsize k = 0; k < 2; ++k)
                (*onFaces.father)(f, k) = keyOf(mesh, MeshEntityKind::Faces, f) + k;
        attachField(lists, mesh.cells);
        attachField(padded, mesh.cells);
        u.trans.pullOnce();
        lists.trans.pullOnce();
        padded.trans.pullOnce();
        nodal.trans.pullOnce();
    }
    static index number(const UnstructuredMesh &mesh, index c) {
        return mesh.cells.fileNumbers[static_cast<std::size_t>(c)];
    }
    void moveWith(Repartition &move, bool withFaces = true) {
        move.onCells(u, dof, lists, padded).onNodes(nodal);
        if (withFaces)
            move.onFaces(onFaces);
    }
    /// Owned rows and ghosts.
    void expectOn(const UnstructuredMesh &mesh, bool withFaces = true) const {
        ASSERT_EQ(u.size(), mesh.cells.size());
        for (index c = 0; c < mesh.cells.size(); ++c) {
            for (rowsize k = 0; k < 5; ++k)
                ASSERT_EQ(u(c, k), valueOf(number(mesh, c), k)) << "cell " << c;
            ASSERT_EQ(lists.rowSize(c), number(mesh, c) % 4);
            for (rowsize k = 0; k < lists.rowSize(c); ++k)
                ASSERT_EQ(lists(c, k), number(mesh, c) * 100 + k);
            ASSERT_EQ(padded.rowSize(c), number(mesh, c) % 5);
            for (rowsize k = 0; k < padded.rowSize(c); ++k)
                ASSERT_EQ(padded(c, k), static_cast<float>(number(mesh, c) + k));
        }
        for (index c = 0; c < mesh.cells.owned; ++c)
            for (rowsize k = 0; k < 3; ++k)
                ASSERT_EQ(std::as_const(*dof.father).data()[3 * c + k], valueOf(number(mesh, c), k + 10));
        for (index n = 0; n < mesh.nodes.size(); ++n)
            ASSERT_EQ(nodal(n, 1), valueOf(mesh.nodes.fileNumbers[static_cast<std::size_t>(n)], 1));
        if (!withFaces)
            return;
        ASSERT_EQ(onFaces.size(), mesh.faces.size());
        for (index f = 0; f < mesh.faces.owned; ++f)
            ASSERT_EQ(onFaces(f, 1), keyOf(mesh, MeshEntityKind::Faces, f) + 1);
    }
};

struct Case {
    const char *name;
    test::BoxOptions box;
    MeshOptions options;
    bool unusedNodes = false;
};

std::vector<Case> cases() {
    using test::BoxCells;
    return {{"hexahedra", {.counts = {4, 3, 3}}, {}},
            {"second order", {.cells = BoxCells::Hexahedra27, .counts = {3, 2, 2}}, {}},
            {"tetrahedra, two layers by faces",
             {.cells = BoxCells::Tetrahedra},
             {.ghostsBy = GhostNeighbours::Faces, .ghostLayers = 2}},
            {"mixed, periodic", {.cells = BoxCells::Mixed, .counts = {4, 3, 3}, .periodic = {false, true, true}}, {}},
            {"polyhedra", {.cells = BoxCells::Polyhedra}, {.cellOrder = CellOrder::ReverseCuthillMcKee}},
            {"triangles", {.cells = BoxCells::Triangles, .counts = {5, 4, 1}}, {}},
            {"no ghosts", {.counts = {3, 3, 2}}, {.ghostLayers = 0}},
            {"unused nodes", {.counts = {3, 3, 2}}, {}, true}};
}

/// Nodes that no cell has, before all others and between them.
void addUnusedNodes(test::WholeMesh &whole) {
    const auto shift = [](index node) { return node < 5 ? node + 2 : node + 3; };
    whole.points.insert(whole.points.begin() + 5, {9, 9, 9});
    whole.points.insert(whole.points.begin(), 2, {8, 8, 8});
    for (auto *elements : {&whole.cells, &whole.faces})
        for (auto &element : *elements)
            for (index &node : element.nodes)
                node = shift(node);
    for (auto &mark : whole.nodeMarks)
        mark.node = shift(mark.node);
}

TEST(Repartition, IsTheMeshThatIsBuiltAnew) {
    for (const Case &one : cases()) {
        test::WholeMesh whole = test::makeBox(one.box);
        if (one.unusedNodes)
            addUnusedNodes(whole);
        UnstructuredMesh mesh = builtAnew(whole, one.options, 0);
        Fields fields(mesh);
        for (int round = 1; round < 4; ++round) {
            SCOPED_TRACE(testing::Message() << one.name << ", round " << round);
            const std::vector<int> targets = targetsOf(mesh.cells.ownFileNumbers(), round);
            Repartition move(mesh, targets, one.options);
            const bool withFaces = one.options.ghostLayers > 0 || worldSize() == 1;
            fields.moveWith(move, withFaces);
            fields.expectOn(mesh, withFaces); // as they were
            move.commit();
            const UnstructuredMesh anew = builtAnew(whole, one.options, round);
            if (one.box.cells == test::BoxCells::Polyhedra) // corners of faces may begin elsewhere
                expectSameEntities(mesh.cells, anew.cells, "cells");
            else
                expectSameMesh(mesh, anew);
            fields.expectOn(mesh, withFaces);
            fields.u.trans.startPersistentPull();
            fields.u.trans.waitPersistentPull();
            fields.expectOn(mesh, withFaces);
        }
    }
}

/// A polygon around another one, closed by a slit: it is its own neighbour there, as agglomerated cells may be.
TEST(Repartition, KeepsBothSidesOfASlit) {
    test::WholeMesh whole;
    whole.dimension = 2;
    for (const real r : {2.0, 1.0})
        whole.points.insert(whole.points.end(), {{-r, -r, 0}, {r, -r, 0}, {r, r, 0}, {-r, r, 0}});
    whole.cells = {{ElementType::Polygon, {0, 1, 2, 3, 0, 4, 7, 6, 5, 4}, 1}, {ElementType::Quad4, {4, 5, 6, 7}, 2}};
    UnstructuredMesh mesh = builtAnew(whole, {}, 0);
    for (int round = 1; round < 4; ++round) {
        SCOPED_TRACE(round);
        Repartition move(mesh, targetsOf(mesh.cells.ownFileNumbers(), round));
        move.commit();
        expectSameMesh(mesh, builtAnew(whole, {}, round));
        const MeshMetrics metrics = computeMetrics(mesh);
        const MeshView view = viewOf(mesh, metrics);
        for (index cell = 0; cell < mesh.cells.owned; ++cell) {
            Point sum{};
            forEachFaceOf(view, cell, [&](LocalIndex face, LocalIndex, real sign) {
                for (std::size_t d = 0; d < 2; ++d)
                    sum[d] += sign * view.areaVectors(face, static_cast<rowsize>(d));
            });
            EXPECT_NEAR(norm(sum), 0, 1e-14) << "cell " << cell;
        }
    }
}

TEST(Repartition, TakesRangesOfFields) {
    UnstructuredMesh mesh = builtAnew(test::makeBox({}), {}, 0);
    std::vector<ArrayPair<ParArray<index, 1>>> several;
    auto one = mesh.field<2>("one");
    for (index k = 0; k < 3; ++k) {
        auto &field = several.emplace_back(mesh.field<1, index>("several"));
        for (index c = 0; c < mesh.cells.owned; ++c)
            (*field.father)(c, 0) = 10 * Fields::number(mesh, c) + k;
    }
    Repartition move(mesh, targetsOf(mesh.cells.ownFileNumbers(), 1));
    move.onCells(several, one);
    move.commit();
    EXPECT_EQ(one.size(), mesh.cells.size());
    for (index k = 0; k < 3; ++k)
        for (index c = 0; c < mesh.cells.size(); ++c) // ghosts, too
            ASSERT_EQ(std::as_const(several[toSize(k)])(c, 0), 10 * Fields::number(mesh, c) + k);
}

TEST(Repartition, FacesNeedGhosts) {
    if (worldSize() == 1)
        GTEST_SKIP() << "one rank has all cells";
    MeshOptions options;
    options.ghostLayers = 0;
    UnstructuredMesh mesh = builtAnew(test::makeBox({}), options, 0);
    auto f = mesh.faces.field<1>("f");
    Repartition move(mesh, targetsOf(mesh.cells.ownFileNumbers(), 1), options);
    expectContains(messageOnAll<StateError>([&] { move.onFaces(f); }), "have a layer of ghosts");
}

TEST(Repartition, FieldsOnTheDeviceStayThere) {
    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    UnstructuredMesh mesh = builtAnew(test::makeBox({}), {}, 0);
    auto u = mesh.field<5>("u");
    for (index c = 0; c < mesh.cells.owned; ++c)
        (*u.father)(c, 2) = valueOf(Fields::number(mesh, c), 2);
    u.toDevice();
    (void)u.father->deviceView<DeviceBackend::CUDA>(); // as a kernel that writes
    Repartition move(mesh, targetsOf(mesh.cells.ownFileNumbers(), 1));
    move.onCells(u);
    move.commit();
    EXPECT_TRUE(u.father->valid(MemorySpace::Device));
    u.trans.startPersistentPull();
    u.trans.waitPersistentPull();
    u.toHost();
    for (index c = 0; c < mesh.cells.size(); ++c)
        ASSERT_EQ(std::as_const(u)(c, 2), valueOf(Fields::number(mesh, c), 2));
}

TEST(Repartition, WhatFailsLeavesEverythingAsItWas) {
    UnstructuredMesh mesh = builtAnew(test::makeBox({}), {}, 0);
    Fields fields(mesh);
    std::vector<int> targets = targetsOf(mesh.cells.ownFileNumbers(), 1);
    const std::vector<int> good = targets;
    if (worldRank() == worldSize() - 1 && !targets.empty())
        targets.front() = worldSize();
    expectContains(messageOnAll<ArgumentError>([&] { Repartition(mesh, targets); }), "is given to rank");
    targets.assign(worldRank() == 0 ? good.size() + 1 : good.size(), 0);
    expectContains(messageOnAll<ArgumentError>([&] { Repartition(mesh, targets); }), "targets are given for");
    fields.expectOn(mesh);
    {
        Repartition move(mesh, good);
        auto other = mesh.nodes.field<2>("of nodes");
        messageOnAll<ArgumentError>([&] { move.onCells(other); });
        move.onCells(fields.u);
    } // never committed
    fields.expectOn(mesh);
    const UnstructuredMesh taken = std::move(mesh);
    messageOnAll<StateError>([&] { Repartition(mesh, good); }); // NOLINT(bugprone-use-after-move): just this
}

/// Each cell to the next rank: as many rows everywhere, but others.
std::vector<int> toTheNext(const UnstructuredMesh &mesh) {
    std::vector<int> targets(static_cast<std::size_t>(mesh.cells.owned), (worldRank() + 1) % worldSize());
    return targets;
}

TEST(Repartition, RefusesFieldsThatAreNotOnTheMeshAsItIs) {
    UnstructuredMesh mesh = builtAnew(test::makeBox({}), {}, 0);
    auto u = mesh.field<1>("u");
    auto forgotten = mesh.field<1>("forgotten");
    auto other = builtAnew(test::makeBox({}), {}, 0).field<1>("of another mesh"); // as many rows
    Repartition move(mesh, toTheNext(mesh));
    expectContains(messageOnAll<ArgumentError>([&] { move.onCells(u, other); }),
                   "'of another mesh' is no field on the cells");
    {
        Repartition first(mesh, toTheNext(mesh));
        first.onCells(u);
        first.commit();
    }
    expectContains(messageOnAll<StateError>([&] { move.onCells(u); }), "has been replaced");
    expectContains(messageOnAll<StateError>([&] { move.rows(MeshEntityKind::Nodes); }), "has been replaced");
    Repartition second(mesh, toTheNext(mesh));
    expectContains(messageOnAll<ArgumentError>([&] { second.onCells(forgotten); }), "'forgotten' is no field");
    second.onCells(u);
    second.commit();
    expectContains(messageOnAll<StateError>([&] { second.onCells(u); }), "commit");
    expectContains(messageOnAll<StateError>([&] { second.rows(MeshEntityKind::Faces); }), "commit");
}

TEST(Repartition, RefusesFieldsThatDifferBetweenRanks) {
    if (worldSize() == 1)
        GTEST_SKIP() << "one rank agrees with itself";
    UnstructuredMesh mesh = builtAnew(test::makeBox({}), {}, 0);
    auto u = mesh.field<1>("u");
    auto v = mesh.field<1>("v");
    auto whole = mesh.field<1, index>("u");
    auto nodal = mesh.nodes.field<1>("u");
    std::vector<ArrayPair<ParArray<real, 1>>> some;
    some.push_back(mesh.field<1>("a"));
    auto more = mesh.field<1>("b");
    if (worldRank() > 0)
        some.push_back(std::move(more));
    const bool last = worldRank() == worldSize() - 1;
    Repartition move(mesh, toTheNext(mesh));
    expectContains(messageOnAll<ArgumentError>([&] { move.onCells(some); }), "field 2 is 'b' on cells");
    expectContains(messageOnAll<ArgumentError>([&] { last ? move.onCells(v, u) : move.onCells(u, v); }),
                   "field 1 is 'v'");
    expectContains(messageOnAll<ArgumentError>([&] { last ? move.onCells(whole) : move.onCells(u); }), "int64");
    expectContains(messageOnAll<ArgumentError>([&] { last ? move.onNodes(nodal) : move.onCells(u); }), "on nodes");
    move.onCells(u, v);
}

TEST(RepartitionTargets, AgreeOnOptions) {
    UnstructuredMesh mesh = builtAnew(test::makeBox({}), {}, 0);
    const auto with = [&](Partitioner partitioner) {
        return [&, partitioner] { repartitionTargets(mesh, {}, {.partitioner = partitioner}); };
    };
    expectContains(messageOnAll<ArgumentError>(with(static_cast<Partitioner>(77))), "77 is no partitioner");
    if (worldSize() > 1)
        expectContains(messageOnAll<ArgumentError>(with(worldRank() == 1 ? Partitioner::Graph : Partitioner::Curve)),
                       "options differ between ranks: partitioner");
    const UnstructuredMesh taken = std::move(mesh);
    messageOnAll<StateError>(with(Partitioner::Curve));
}

TEST(Repartition, PullsInFlightAreNotDroppedWithoutAWord) {
    BoxMeshOptions box;
    box.fill = BoxCells::Tetrahedra;
    box.cells = {4, 4, 4};
    UnstructuredMesh mesh = buildMesh(world(), makeBoxMesh(box, world()));
    auto u = mesh.cells.field<1>("u");
    const std::vector<int> targets = repartitionTargets(mesh);
    {
        Repartition move(mesh, targets);
        u.trans.startPersistentPull();
        expectContains(messageOnAll<StateError>([&] { move.onCells(u); }), "a pull or push of 'u' is in flight");
        u.trans.waitPersistentPull();
        move.onCells(u);
    }
    std::vector<std::string> warnings;
    setWarningSink([&](std::string_view text) { warnings.emplace_back(text); });
    Repartition move(mesh, targets);
    move.onCells(u);
    u.trans.startPersistentPull();
    world().barrier();
    move.commit();
    setWarningSink({});
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("a pull or push of 'u' is dropped"), std::string::npos) << warnings[0];
    EXPECT_THROW(u.trans.waitPersistentPull(), Error);
    recover(world());
    u.trans.pullOnce();
}

TEST(RepartitionTargets, ShareCostsAndLeaveCellsWhereTheyAre) {
    BoxMeshOptions box;
    box.fill = BoxCells::Tetrahedra;
    box.cells = {12, 8, 8};
    for (const Partitioner partitioner : {Partitioner::Curve, Partitioner::Graph}) {
        MeshOptions options;
        options.partitioner = partitioner;
        UnstructuredMesh mesh = buildMesh(world(), makeBoxMesh(box, world()), options);
        const auto staying = [&](const std::vector<int> &targets) {
            const auto here = static_cast<index>(std::ranges::count(targets, worldRank()));
            return static_cast<real>(world().allReduce(here, MPI_SUM)) /
                   static_cast<real>(world().allReduce(mesh.cells.owned, MPI_SUM));
        };
        const std::vector<int> same = repartitionTargets(mesh, {}, {.partitioner = partitioner});
        EXPECT_TRUE(partitioner == Partitioner::Graph || staying(same) == 1) << "nothing is to be done";
        std::vector<index> costs(static_cast<std::size_t>(mesh.cells.owned), 10);
        for (index c = 0; c < mesh.cells.owned; ++c) // one end of the box costs more
            if (mesh.coordinates.view()(mesh.cellNodes.view()[c][0], 0) < 0.25)
                costs[static_cast<std::size_t>(c)] = 14;
        const std::vector<int> targets = repartitionTargets(mesh, costs, {.partitioner = partitioner});
        EXPECT_TRUE(partitioner == Partitioner::Graph || staying(targets) > 0.6) << staying(targets);
        Repartition move(mesh, targets, options);
        ParArray<index, 1> moved("costs", world());
        moved.resize(mesh.cells.owned);
        std::ranges::copy(costs, moved.data());
        move.rows(MeshEntityKind::Cells).move(moved);
        move.commit();
        ASSERT_EQ(moved.size(), mesh.cells.owned);
        const index own = std::accumulate(moved.data(), moved.data() + moved.size(), index{0});
        EXPECT_LT(measureImbalance(world(), static_cast<double>(own)).imbalance(), 0.06);
    }
}

} // namespace
} // namespace DNDS::Geom
