#include "DNDS/Geom/Clusters/MeshClusters.hpp"

#include "Geom/Clusters/ClusteredMesh.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"
#include "DNDS/Sparse/SparseTasks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace DNDS::Geom::test {
namespace {

using namespace DNDS::test;

TEST(MeshClusters, SparseFieldIsThatOfTheMesh) {
    for (const auto &[name, options] : meshes()) {
        SCOPED_TRACE(name);
        const Clustered on(world(), options, 40);
        constexpr int steps = 3;
        const SparseField<real> u = sparseRun(on, steps, {.deallocationCount = 1});
        ArrayPair<ParArray<real, 1>> now;
        ArrayPair<ParArray<real, 1>> next;
        for (auto *field : {&now, &next}) {
            field->initPair("u", world());
            field->father->resize(on.mesh.cells.owned);
            attachField(*field, on.mesh.cells);
        }
        const auto forEachOwn = [&](auto &&visit) {
            for (int b = 0; b < u.blocks(); ++b)
                for (index i = 0; i < u.block(b).cells.extent(0); ++i)
                    visit(b, i, on.clusters.cells(b)[toSize(i)]);
        };
        index seen = 0;
        forEachOwn([&](int b, index, LocalIndex cell) {
            now.father->view()(cell, 0) = on.start(u.block(b).block, cell);
            ++seen;
        });
        EXPECT_EQ(seen, on.mesh.cells.owned) << "each cell is in one cluster";
        const auto across = std::as_const(on.mesh.cellCells).view();
        for (int step = 0; step < steps; ++step) {
            now.trans.pullOnce();
            const auto values = std::as_const(now).view();
            for (index c = 0; c < on.mesh.cells.owned; ++c)
                next.father->view()(c, 0) =
                    diffused(across[c], values(c, 0), [&](LocalIndex j) { return values(j, 0); });
            now.father->swapData(*next.father);
        }
        const auto values = std::as_const(*now.father).view();
        forEachOwn([&](int b, index i, LocalIndex cell) {
            ASSERT_EQ(u.isAllocated(b) ? u.view(b)(i) : 0, values(cell, 0)) << "cell " << cell << " of block " << b;
        });
        const auto there = world().allReduce(static_cast<index>(u.allocatedBlocks().size()), MPI_SUM);
        EXPECT_GT(there, 0);
    }
}

/// Loops over clusters read fields of the mesh, whose ghosts the plan pulls.
TEST(MeshClusters, TasksReadFieldsOfTheMesh) {
    for (const auto &[name, options] : meshes()) {
        SCOPED_TRACE(name);
        const Clustered on(world(), options, 40);
        SparseField<real> u("u", on.clusters.pattern(), {.stages = 2});
        SparseFields exchange(u);
        ArrayPair<ParArray<real, 1>> weights;
        weights.initPair("weights", world());
        weights.father->resize(on.mesh.cells.owned);
        attachField(weights, on.mesh.cells);
        for (index c = 0; c < on.mesh.cells.owned; ++c)
            weights.father->view()(c, 0) = static_cast<real>(on.mesh.cells.fileNumbers[toSize(c)] % 11);
        for (int b = 0; b < u.blocks(); ++b) {
            if (u.block(b).block % 2 != 0)
                continue;
            u.allocate(b);
            for (index i = 0; i < u.block(b).cells.size(); ++i)
                u.view(b)(i) = 1;
        }
        Task::Graph step("weigh", world());
        exchangeGhosts(step, exchange);
        step.task("weigh", blocksOf(u))
            .readsWrites(u)
            .reads(Task::whole(weights))
            .run([&](int block, const SparseBlock<real> &here, const auto &weight) {
                const auto cells = on.clusters.cells(block);
                for (index i = 0; i < here.view().extent(0); ++i) {
                    real sum = 0;
                    for (const LocalIndex j : on.clusters.neighbours(block, i))
                        sum += j == noEntity ? 0 : weight(cells[toSize(j)]);
                    here.view(1)(i) = here.readView()(i) * sum;
                }
            });
        step.compile().run();
        for (const int b : u.allocatedBlocks())
            for (index i = 0; i < u.block(b).cells.size(); ++i) {
                real sum = 0;
                for (const LocalIndex j : on.clusters.neighbours(b, i))
                    if (j != noEntity) {
                        const auto cell = toSize(on.clusters.cells(b)[toSize(j)]);
                        sum += static_cast<real>(on.mesh.cells.fileNumbers[cell] % 11);
                    }
                ASSERT_EQ(u.view(b, 1)(i), u.view(b)(i) * sum);
            }
    }
}

/// Each cell gives its number to all neighbours: through pushes from clusters, and by a pull of the mesh.
TEST(MeshClusters, PushesReachTheCellsOfOtherClusters) {
    for (const auto &[name, options] : meshes()) {
        SCOPED_TRACE(name);
        const Clustered on(world(), options, 40);
        SparseField<index> u("u", on.clusters.pattern());
        ArrayPair<ParArray<index, 1>> start;
        start.initPair("start", world());
        start.father->resize(on.mesh.cells.owned);
        attachField(start, on.mesh.cells);
        for (int b = 0; b < u.blocks(); ++b) {
            const auto cells = on.clusters.cells(b);
            const bool there = u.block(b).block % 3 != 0;
            if (there)
                u.allocate(b);
            for (index i = 0; i < u.block(b).cells.extent(0); ++i) {
                const LocalIndex cell = cells[toSize(i)];
                const index value = there ? 1 + on.mesh.cells.fileNumbers[toSize(cell)] : 0;
                start.father->view()(cell, 0) = value;
                for (const LocalIndex j : on.clusters.neighbours(b, i))
                    if (there && j != noEntity)
                        u.view(b)(j) += value;
            }
        }
        u.pushGhosts();
        start.trans.pullOnce();
        const auto values = std::as_const(start).view();
        const auto across = std::as_const(on.mesh.cellCells).view();
        for (int b = 0; b < u.blocks(); ++b)
            for (index i = 0; i < u.block(b).cells.extent(0); ++i) {
                index expected = 0;
                for (const LocalIndex j : across[on.clusters.cells(b)[toSize(i)]])
                    expected += j == noEntity ? 0 : values(j, 0);
                ASSERT_EQ(u.isAllocated(b) ? u.view(b)(i) : 0, expected) << "cell " << i << " of block " << b;
            }
    }
}

TEST(MeshClusters, DoNotDependOnRanks) {
    for (const auto &[name, options] : meshes()) {
        SCOPED_TRACE(name);
        const SparseFieldOptions thresholds{
            .allocationThreshold = 1e-2, .deallocationThreshold = 1e-3, .deallocationCount = 2};
        const Clustered alone({MPI_COMM_SELF}, options, 40);
        const Clustered together(world(), options, 40, {}, scattered);
        EXPECT_EQ(together.clusters.pattern()->signature(), alone.clusters.pattern()->signature());
        const SparseField<real> one = sparseRun(alone, 12, thresholds);
        const SparseField<real> all = sparseRun(together, 12, thresholds);
        EXPECT_EQ(sums(one), sums(all));
        for (int b = 0; b < all.blocks(); ++b) {
            const int other = one.pattern()->localOf(all.block(b).block);
            ASSERT_GE(other, 0);
            ASSERT_EQ(all.isAllocated(b), one.isAllocated(other));
            EXPECT_EQ(all.emptyExchanges(b), one.emptyExchanges(other));
            for (index i = 0; all.isAllocated(b) && i < all.block(b).cells.extent(0); ++i)
                ASSERT_EQ(all.view(b)(i), one.view(other)(i));
        }
    }
}

TEST(MeshClusters, AreOfNearlyOneSize) {
    BoxMeshOptions options;
    options.cells = {8, 8, 8};
    const SourceMesh source = makeBoxMesh(options, world());
    const SourceClusters cut = cutClusters(world(), source, 100);
    EXPECT_EQ(cut.count, 31);
    std::vector<index> sizes(toSize(cut.count));
    for (const index cluster : cut.clusterOf)
        ++sizes[toSize(cluster)];
    world().allReduce(sizes.data(), static_cast<int>(sizes.size()), MPI_SUM);
    EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 40);
}

TEST(MeshClusters, MemoryOfOneServesTheOthers) {
    BoxMeshOptions box;
    box.fill = BoxCells::Hexahedra;
    box.cells = {16, 16, 16};
    box.periodic = {true, true, true};
    const Clustered on(world(), box, 256); // they differ in ghosts by some percent
    SparseField<real> u("u", on.clusters.pattern());
    for (int b = 0; b < u.blocks(); ++b) {
        u.allocate(b);
        u.free(b);
    }
    EXPECT_LE(3 * on.clusters.pattern()->pool().use().pooledObjects, toSize(u.blocks()) + 6);
}

TEST(MeshClusters, BlocksThatThereAreNot) {
    const Clustered on(world(), meshes()[0].second, 40);
    const int blocks = static_cast<int>(on.clusters.pattern()->blocks().size());
    EXPECT_THROW((void)on.clusters.cells(blocks), IndexError);
    EXPECT_THROW((void)on.clusters.cells(-1), IndexError);
    EXPECT_THROW((void)on.clusters.neighbours(blocks, 0), IndexError);
    EXPECT_THROW((void)on.clusters.layers(blocks), IndexError);
    if (blocks > 0) {
        const auto cellsAndGhosts = static_cast<index>(on.clusters.cells(0).size());
        EXPECT_THROW((void)on.clusters.neighbours(0, cellsAndGhosts), IndexError);
    }
}

/// Cells of a file: values where a cluster is there, the default elsewhere, and which is which.
TEST(MeshClusters, FieldsOfResultFiles) {
    for (const auto &[name, options] : meshes()) {
        SCOPED_TRACE(name);
        const Clustered on(world(), options, 40);
        SparseField<real> u("u", on.clusters.pattern(), {}, 0.25);
        SparseField<std::int32_t> v("v", on.clusters.pattern(), {.components = 2}, -3);
        std::vector<real> expected(toSize(on.mesh.cells.owned), 0.25);
        std::vector<real> there(expected.size(), 0);
        for (int b = 0; b < u.blocks(); ++b) {
            if (u.block(b).block % 3 != 0)
                continue;
            u.allocate(b);
            for (index i = 0; i < u.block(b).cells.size(); ++i) {
                const auto cell = toSize(on.clusters.cells(b)[toSize(i)]);
                u.view(b)(i) = expected[cell] = static_cast<real>(on.mesh.cells.fileNumbers[cell]);
                there[cell] = 1;
            }
        }
        const std::vector<FieldSlice> fields = fieldsOf(on.clusters, u, v);
        ASSERT_EQ(fields.size(), 4U);
        EXPECT_EQ(fields[0].name, "u");
        EXPECT_EQ(std::vector<real>(fields[0].values.begin(), fields[0].values.end()), expected);
        EXPECT_EQ(fields[1].name, "u.allocated");
        EXPECT_EQ(std::vector<real>(fields[1].values.begin(), fields[1].values.end()), there);
        EXPECT_EQ(fields[2].components, 2);
        EXPECT_EQ(std::vector<real>(fields[2].values.begin(), fields[2].values.end()),
                  std::vector<real>(2 * expected.size(), -3));
        EXPECT_EQ(fields[3].name, "v.allocated");
        const Clustered other(world(), options, 40);
        EXPECT_THROW((void)fieldsOf(other.clusters, u), ArgumentError);
    }
}

TEST(MeshClusters, RefusesClustersThatAreSplit) {
    messageOnAll<ArgumentError>([&] { cutClusters(world(), makeBoxMesh({}, world()), 0); });
    if (world().size() == 1)
        return;
    messageOnAll<ArgumentError>([&] { cutClusters(world(), makeBoxMesh({}, world()), world().rank() == 0 ? 20 : 10); });
    BoxMeshOptions box;
    box.cells = {6, 6, 6};
    const auto build = [&](const auto &change) {
        SourceMesh source = makeBoxMesh(box, world());
        const SourceClusters cut = cutClusters(world(), source, 50);
        MeshOptions options = Clustered::withParts(world(), {}, cut, {});
        change(cut, options);
        const UnstructuredMesh mesh = buildMesh(world(), std::move(source), options);
        return messageOnAll<ArgumentError>([&] { MeshClusters(mesh, cut); });
    };
    const std::string split = build([](const SourceClusters &cut, MeshOptions &options) {
        for (std::size_t c = 0; c < cut.clusterOf.size(); ++c)
            if (cut.firstCells[toSize(world().rank())] + static_cast<index>(c) == 100)
                options.givenPart[c] = options.givenPart[c] == 0 ? 1 : 0;
    });
    expectContains(split, "cluster ");
    expectContains(split, " has cells on ranks 0 and ");
    expectContains(split, "Partitioner::Given");
    expectContains(build([](const SourceClusters &, MeshOptions &options) { options.ghostLayers = 0; }),
                   "ghostLayers 1 or more");
}

/// Only some ranks have cells that the other file lacks; all throw.
TEST(MeshClusters, RefusesClustersOfAnotherFile) {
    BoxMeshOptions box;
    box.cells = {6, 6, 6};
    const Clustered on(world(), box, 50);
    box.cells = {6, 6, 5};
    const SourceClusters other = cutClusters(world(), makeBoxMesh(box, world()), 50);
    expectContains(messageOnAll<ArgumentError>([&] { MeshClusters(on.mesh, other); }), "cut that file's cells");
}

} // namespace
} // namespace DNDS::Geom::test
