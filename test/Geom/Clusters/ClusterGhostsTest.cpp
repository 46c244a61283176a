// Ghosts and neighbours of clusters: what a serial search finds, for any layers, across faces and nodes.

#include "Geom/Build/MeshReference.hpp"
#include "Geom/Clusters/ClusteredMesh.hpp"

#include "DNDS/Mpi/ThrowsOnAll.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace DNDS::Geom::test {
namespace {

using namespace DNDS::test;

std::vector<BoxOptions> ghostBoxes() {
    return {{.cells = DNDS::test::BoxCells::Hexahedra, .counts = {4, 3, 3}, .periodic = {true, false, true}},
            {.cells = DNDS::test::BoxCells::Hexahedra, .counts = {2, 2, 2}, .periodic = {true, true, true}},
            {.cells = DNDS::test::BoxCells::Tetrahedra, .counts = {3, 3, 2}},
            {.cells = DNDS::test::BoxCells::Mixed, .counts = {4, 3, 2}, .periodic = {false, true, false}},
            {.cells = DNDS::test::BoxCells::Polyhedra, .counts = {4, 3, 3}, .periodic = {false, false, true}},
            {.cells = DNDS::test::BoxCells::Triangles, .counts = {6, 5, 1}, .periodic = {true, true, false}}};
}

/// The copies of cells in a block, and what the reference says about them.
class BlockCheck {
  public:
    BlockCheck(const Clustered &on, const WholeMesh &whole, const Reference &reference, const std::vector<int> &part)
        : on_(on), whole_(whole), reference_(reference), part_(part) {}

    void check(int b, const LocalAdjacency *around) {
        const BlockMemory &block = on_.clusters.pattern()->blocks()[toSize(b)];
        copies_.clear();
        for (const LocalIndex cell : on_.clusters.cells(b))
            copies_.emplace_back(on_.mesh.cells.fileNumbers[toSize(cell)],
                                 moveOf(on_.mesh, on_.mesh.cells.images[toSize(cell)], whole_));
        inside_ = {copies_.begin(), copies_.end()};
        ASSERT_EQ(inside_.size(), copies_.size()) << "a copy of a cell twice";
        checkLayers(b, block);
        for (std::size_t i = 0; i < copies_.size(); ++i) {
            checkRow(reference_.behindFaces(copies_[i]), on_.clusters.neighbours(b, static_cast<index>(i)), true);
            if (around != nullptr) {
                EXPECT_TRUE(std::ranges::is_sorted((*around)[static_cast<index>(i)]));
                checkRow(reference_.aroundNodes(copies_[i]), (*around)[static_cast<index>(i)], false);
            }
        }
    }

  private:
    void checkLayers(int b, const BlockMemory &block) const {
        const auto layers = on_.clusters.layers(b);
        const bool byNodes = on_.options.ghostsBy == GhostNeighbours::Nodes;
        for (int layer = 0; layer <= on_.options.ghostLayers; ++layer) {
            std::set<Copy> ghosts;
            for (std::size_t i = 0; i < copies_.size(); ++i)
                if (layers[i] > 0 && layers[i] <= layer)
                    ghosts.insert(copies_[i]);
            EXPECT_EQ(ghosts, reference_.ghosts(part_, block.block, byNodes, layer)) << "layer " << layer;
        }
        EXPECT_EQ(std::ranges::count(layers, 0), block.cells.size());
        EXPECT_TRUE(std::ranges::all_of(layers.first(toSize(block.cells.size())), [](int l) { return l == 0; }));
    }
    template <class Row>
    void checkRow(const std::set<Copy> &expected, const Row &row, bool tellsOthers) const {
        std::set<Copy> found;
        bool others = false;
        for (const LocalIndex j : row) {
            if (j >= 0)
                found.insert(copies_.at(toSize(j)));
            others = others || j == notLocal;
        }
        std::set<Copy> within;
        std::ranges::set_intersection(expected, inside_, std::inserter(within, within.end()));
        EXPECT_EQ(found, within);
        EXPECT_EQ(others, tellsOthers && within.size() < expected.size());
    }

    const Clustered &on_;
    const WholeMesh &whole_;
    const Reference &reference_;
    const std::vector<int> &part_;
    std::vector<Copy> copies_;
    std::set<Copy> inside_;
};

TEST(ClusterGhosts, AreThoseOfASerialSearch) {
    for (const BoxOptions &box : ghostBoxes()) {
        const WholeMesh whole = makeBox(box);
        const Reference reference(whole, 3);
        for (const GhostNeighbours by : {GhostNeighbours::Faces, GhostNeighbours::Nodes}) {
            SCOPED_TRACE(fmt::format("cells {}, by {}", static_cast<int>(box.cells), static_cast<int>(by)));
            MeshOptions options;
            options.ghostsBy = by;
            options.ghostLayers = by == GhostNeighbours::Faces ? 3 : 2;
            const Clustered on(world(), whole.slice(world()), 9, options, scattered);
            std::vector<int> part;
            for (const index cluster : world().allGatherV(std::span<const index>(on.cut.clusterOf)))
                part.push_back(static_cast<int>(cluster));
            std::vector<LocalAdjacency> around;
            if (by == GhostNeighbours::Nodes)
                around = nodeNeighbours(on.mesh, on.clusters);
            BlockCheck check(on, whole, reference, part);
            for (int b = 0; b < static_cast<int>(on.clusters.pattern()->blocks().size()); ++b)
                check.check(b, around.empty() ? nullptr : &around[toSize(b)]);
        }
    }
}

TEST(ClusterGhosts, NodeNeighboursNeedGhostsByNodes) {
    MeshOptions options;
    options.ghostsBy = GhostNeighbours::Faces;
    const Clustered on(world(), meshes()[0].second, 40, options);
    expectContains(messageOnAll<ArgumentError>([&] { (void)nodeNeighbours(on.mesh, on.clusters); }), "Nodes");
}

/// The values of a dense run by the cells' numbers, `steps` later; `step` gets the value of a cell of one rank.
std::map<index, real> denseRun(const Clustered &alone, int steps, const auto &step) {
    std::vector<real> now(toSize(alone.mesh.cells.owned));
    std::vector<real> next(now.size());
    for (int b = 0; b < static_cast<int>(alone.clusters.pattern()->blocks().size()); ++b)
        for (const LocalIndex cell :
             alone.clusters.cells(b).first(toSize(alone.clusters.pattern()->blocks()[toSize(b)].cells.size())))
            now[toSize(cell)] = alone.start(alone.clusters.pattern()->blocks()[toSize(b)].block, cell);
    for (int k = 0; k < steps; ++k) {
        for (std::size_t c = 0; c < now.size(); ++c)
            next[c] = step(static_cast<LocalIndex>(c), now);
        now.swap(next);
    }
    std::map<index, real> values;
    for (std::size_t c = 0; c < now.size(); ++c)
        values[alone.mesh.cells.fileNumbers[c]] = now[c];
    return values;
}

void expectValues(const Clustered &on, const SparseField<real> &u, const std::map<index, real> &expected) {
    for (int b = 0; b < u.blocks(); ++b)
        for (index i = 0; i < u.block(b).cells.size(); ++i) {
            const index number = on.mesh.cells.fileNumbers[toSize(on.clusters.cells(b)[toSize(i)])];
            ASSERT_EQ(u.isAllocated(b) ? u.view(b)(i) : 0, expected.at(number)) << "cell " << number;
        }
}

/// The start of a field.
SparseField<real> startOn(const Clustered &on) {
    SparseField<real> u("u", on.clusters.pattern(), {.stages = 2});
    for (int b = 0; b < u.blocks(); ++b)
        for (index i = 0; i < u.block(b).cells.size(); ++i)
            if (const real value = on.start(u.block(b).block, on.clusters.cells(b)[toSize(i)]); value != 0) {
                u.allocate(b);
                u.view(b)(i) = value;
            }
    return u;
}

/// With k layers, k steps an exchange: each step computes one layer less.
TEST(ClusterGhosts, LayersServeSeveralStepsAnExchange) {
    for (const auto &[name, box] : meshes()) {
        if (box.periodic[0] || box.periodic[2])
            continue; // the dense run knows no images
        SCOPED_TRACE(name);
        const Clustered alone({MPI_COMM_SELF}, box, 40);
        const auto dense = denseRun(alone, 4, [&](LocalIndex cell, const std::vector<real> &now) {
            return diffused(alone.mesh.cellCells[cell], now[toSize(cell)],
                            [&](LocalIndex j) { return now[toSize(j)]; });
        });
        MeshOptions options;
        options.ghostsBy = GhostNeighbours::Faces;
        options.ghostLayers = 2;
        const Clustered on(world(), box, 40, options, scattered);
        SparseField<real> u = startOn(on);
        for (int exchange = 0; exchange < 2; ++exchange) {
            u.exchangeGhosts();
            for (const int last : {1, 0}) {
                for (const int b : u.allocatedBlocks())
                    for (index i = 0; i < static_cast<index>(on.clusters.cells(b).size()); ++i)
                        if (on.clusters.layers(b)[toSize(i)] <= last)
                            u.view(b, 1).data()[i] = diffused(on.clusters.neighbours(b, i), u.view(b).data()[i],
                                                              [&](LocalIndex j) { return u.view(b).data()[j]; });
                u.swapStages(0, 1);
            }
        }
        expectValues(on, u, dense);
    }
}

TEST(ClusterGhosts, StencilsAcrossNodes) {
    for (const auto &[name, box] : meshes()) {
        if (box.periodic[0] || box.periodic[2])
            continue;
        SCOPED_TRACE(name);
        // Integers: sums are exact in any order.
        const auto sum = [](const auto &row, const auto &value) {
            real total = 0;
            for (const LocalIndex j : row)
                total += value(j);
            return std::fmod(total, 1024);
        };
        const Clustered alone({MPI_COMM_SELF}, box, 40);
        const LocalAdjacency all = compose("around", alone.mesh.cellNodes, alone.mesh.nodeCells);
        const auto dense = denseRun(alone, 3, [&](LocalIndex cell, const std::vector<real> &now) {
            return sum(all[cell], [&](LocalIndex j) { return now[toSize(j)]; });
        });
        const Clustered on(world(), box, 40, {}, scattered);
        const std::vector<LocalAdjacency> around = nodeNeighbours(on.mesh, on.clusters);
        SparseField<real> u = startOn(on);
        for (int step = 0; step < 3; ++step) {
            u.exchangeGhosts();
            for (const int b : u.allocatedBlocks())
                for (index i = 0; i < u.block(b).cells.size(); ++i)
                    u.view(b, 1)(i) = sum(around[toSize(b)][i], [&](LocalIndex j) { return u.view(b)(j); });
            u.swapStages(0, 1);
        }
        expectValues(on, u, dense);
    }
}

} // namespace
} // namespace DNDS::Geom::test
