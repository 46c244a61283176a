// Clusters that move to other ranks while a program runs, with mesh and fields: the bits of a run that never moved.

#include "Geom/Clusters/ClusteredMesh.hpp"

#include "DNDS/Blocks/BlockPack.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>

namespace DNDS::Geom::test {
namespace {

using namespace DNDS::test;

/// Number `round` of something about a cluster, on any rank.
std::uint64_t drawn(std::uint64_t below, index cluster, std::uint64_t round) {
    ContentHash hash;
    hash.add(DNDS::test::seed());
    hash.add(static_cast<std::uint64_t>(cluster));
    hash.add(round);
    return hash.value() % below;
}

/// Two species and a field of the mesh that spread over clusters, and vanish.
struct Burning {
    Clustered on;
    SparseField<real> dust = species<real>("dust", 2, 0.5);
    SparseField<float> soot = species<float>("soot", 1, 0);
    std::vector<DroppedSums<real>> dropped;
    std::optional<SparseFields> exchange;
    ArrayPair<ParArray<real, 1>> gas = on.mesh.cells.field<1>("gas");

    Burning(const CommunicatorView &comm, SourceMesh source, index size, const MeshOptions &options)
        : on(comm, std::move(source), size, options) {
        dropped.emplace_back(dust);
        exchange.emplace("species", std::initializer_list<SparseFieldCore *>{&dust, &soot});
        for (index c = 0; c < on.mesh.cells.owned; ++c)
            (*gas.father)(c, 0) = static_cast<real>(on.mesh.cells.fileNumbers[toSize(c)] % 17);
    }
    template <class T>
    SparseField<T> species(const char *name, rowsize components, T background) const {
        return {name,
                on.clusters.pattern(),
                {.components = components,
                 .stages = 3,
                 .allocationThreshold = 0.1,
                 .deallocationThreshold = 0.05,
                 .deallocationCount = 2},
                background};
    }
    void ignite(std::uint64_t round) {
        for (int b = 0; b < dust.blocks(); ++b) {
            if (drawn(9, dust.block(b).block, round) > 1)
                continue;
            dust.allocate(b);
            soot.allocate(b);
            for (index i = 0; i < dust.block(b).cells.size(); ++i) {
                const auto number = on.mesh.cells.fileNumbers[toSize(on.clusters.cells(b)[toSize(i)])];
                dust.view(b)(i, 1) += static_cast<real>(number % 5) / 8;
                soot.view(b)(i) = static_cast<float>(number % 3);
            }
        }
    }
    /// Spreads, and decays to the default.
    template <class T>
    void spread(SparseField<T> &field) const {
        const T rest = field.defaultValue();
        for (const int b : field.allocatedBlocks()) {
            const auto now = std::as_const(field).view(b);
            const auto next = field.view(b, 1);
            for (index i = 0; i < now.extent(0); ++i)
                for (rowsize c = 0; c < field.components(); ++c) {
                    T change = 0;
                    for (const LocalIndex j : on.clusters.neighbours(b, i))
                        change += j == noEntity ? 0 : now(j, c) - now(i, c);
                    next(i, c) = rest + T(0.5) * (now(i, c) + T(0.125) * change - rest);
                }
        }
        field.swapStages(1, 2);
        field.swapStages(0, 2);
    }
    void step() {
        exchange->exchangeGhosts();
        spread(dust);
        spread(soot);
    }
    std::vector<real> costs() const {
        std::vector<real> costs;
        for (int b = 0; b < dust.blocks(); ++b)
            costs.push_back((dust.isAllocated(b) ? 4 : 1) * static_cast<real>(dust.block(b).cells.size()));
        return costs;
    }
    void moveTo(std::span<const int> targets) {
        Repartition move(on.mesh, targets, on.options);
        move.onCells(gas).commit();
        on.clusters = MeshClusters(on.mesh, on.cut);
        dust = dust.moved(on.clusters.pattern());
        soot = soot.moved(on.clusters.pattern());
        dropped[0].follow(dust);
        exchange.emplace("species", std::initializer_list<SparseFieldCore *>{&dust, &soot});
    }
    /// Targets by which each cluster goes to any rank.
    std::vector<int> scatteredTargets(std::uint64_t round) const {
        std::vector<int> targets(toSize(on.mesh.cells.owned));
        for (int b = 0; const BlockMemory &block : on.clusters.pattern()->blocks())
            for (const LocalIndex cell : on.clusters.cells(b++).first(toSize(block.cells.size())))
                targets[toSize(cell)] =
                    static_cast<int>(drawn(static_cast<std::uint64_t>(on.mesh.comm.size()), block.block, round));
        return targets;
    }
    /// All that blocks have: stages, ghosts, counters, allocation; and the cells' own field. The same on any number of
    /// ranks. Collective.
    std::uint64_t hash() const {
        std::uint64_t sum = hashOf(dust) + 3 * hashOf(soot);
        for (index c = 0; c < on.mesh.cells.owned; ++c) {
            ContentHash hash;
            hash.add(static_cast<std::uint64_t>(on.mesh.cells.fileNumbers[toSize(c)]));
            hash.addBytes(&(*gas.father)(c, 0), sizeof(real));
            sum += hash.value();
        }
        return on.mesh.comm.allReduce(sum, MPI_SUM);
    }
    template <class T>
    static std::uint64_t hashOf(const SparseField<T> &field) {
        std::uint64_t sum = 0;
        for (int b = 0; b < field.blocks(); ++b) {
            ContentHash hash;
            hash.add(static_cast<std::uint64_t>(field.block(b).block));
            hash.add(field.isAllocated(b) ? 1 : 0);
            hash.add(static_cast<std::uint64_t>(field.emptyExchanges(b)));
            for (int stage = 0; field.isAllocated(b) && stage < field.options().stages; ++stage)
                hash.addBytes(field.view(b, stage).data(),
                              toSize(field.block(b).rows * field.components()) * sizeof(T));
            sum += hash.value();
        }
        return sum;
    }
};

real sumOf(const std::vector<real> &costs) { return std::accumulate(costs.begin(), costs.end(), real{0}); }

/// Moves by cost, and anywhere; expects what a run on one rank has that never moves.
void expectBitsOfOneRank(const std::function<SourceMesh(const CommunicatorView &)> &source, index size,
                         const MeshOptions &options) {
    Burning still({MPI_COMM_SELF}, source({MPI_COMM_SELF}), size, options);
    Burning moving(world(), source(world()), size, options);
    index freed = 0;
    index partial = 0;
    for (std::uint64_t round = 0; round < 9; ++round) {
        for (auto *run : {&still, &moving})
            if (round % 5 == 0)
                run->ignite(round);
        if (round % 3 == 1) {
            const std::vector<real> costs = moving.costs();
            const real dearest = world().allReduce(costs.empty() ? 0 : std::ranges::max(costs), MPI_MAX);
            moving.moveTo(repartitionTargets(moving.on.clusters, costs));
            const real mine = sumOf(moving.costs());
            const real mean = world().allReduce(mine, MPI_SUM) / world().size();
            EXPECT_LE(mine, std::max(1.1 * mean, mean + dearest) * (1 + 1e-12)) << round;
        }
        if (round % 4 == 3)
            moving.moveTo(moving.scatteredTargets(round));
        const auto before = still.dust.allocatedBlocks();
        for (auto *run : {&still, &moving})
            run->step();
        for (const int b : before)
            freed += still.dust.isAllocated(b) ? 0 : 1;
        partial += static_cast<index>(still.dust.allocatedBlocks().size()) % still.dust.blocks();
        ASSERT_EQ(moving.hash(), still.hash()) << "round " << round;
        EXPECT_EQ(sums(moving.dust), sums(still.dust)) << round;
    }
    EXPECT_EQ(moving.dropped[0].sums(), still.dropped[0].sums());
    EXPECT_GT(freed, 0);
    EXPECT_GT(partial, 0) << "all clusters come and go at once";
}

TEST(MovedClusters, RunsHaveTheBitsOfOneRankThatNeverMoves) {
    MeshOptions options;
    for (const auto &[name, box] : meshes()) {
        SCOPED_TRACE(name);
        options.ghostsBy = options.ghostLayers == 1 ? GhostNeighbours::Faces : GhostNeighbours::Nodes;
        options.ghostLayers = 3 - options.ghostLayers; // 2 by faces, 1 by nodes, ...
        const auto source = [&made = box](const CommunicatorView &comm) { return makeBoxMesh(made, comm); };
        expectBitsOfOneRank(source, 12, options);
    }
}

/// Files, and cells of a cluster.
class MovedClustersOfFiles : public testing::TestWithParam<std::pair<const char *, index>> {};

TEST_P(MovedClustersOfFiles, HaveTheBitsOfOneRankThatNeverMoves) {
    const auto [file, size] = GetParam();
    const std::string path = std::string(DNDS_TEST_MESHES "/") + file;
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << path << " is not here";
    const auto source = [&](const CommunicatorView &comm) { return readMesh(comm, path); };
    expectBitsOfOneRank(source, size, {});
}

INSTANTIATE_TEST_SUITE_P(Meshes, MovedClustersOfFiles,
                         testing::Values(std::pair("naca0012_inv.su2", 400), std::pair("reservoir_mixed_57k.cgns", 400),
                                         std::pair("cube_wedge_periodic_v34.cgns", 8)),
                         [](const auto &file) { return std::string(file.param.first).substr(0, 4); });

TEST(MovedClusters, OtherBlocksAreRefused) {
    Burning run(world(), makeBoxMesh(meshes()[1].second, world()), 40, {});
    MeshOptions two;
    two.ghostLayers = 2;
    const Clustered others[] = {{world(), meshes()[1].second, 40, two}, {world(), meshes()[1].second, 30}};
    for (const Clustered &other : others)
        expectContains(messageOnAll<ArgumentError>([&] { (void)run.dust.moved(other.clusters.pattern()); }),
                       "other blocks or ghosts");
    const Clustered same(world(), meshes()[1].second, 40, {}, scattered);
    SparseField<real> moved = run.dust.moved(same.clusters.pattern());
    EXPECT_EQ(moved.pattern(), same.clusters.pattern());
    const auto numbers = [](const SparseField<real> &field) {
        std::vector<int> blocks;
        for (int b = 0; b < field.blocks(); ++b)
            blocks.push_back(field.block(b).block);
        return blocks;
    };
    BlockPack<real> pack(run.dust, moved);
    if (numbers(run.dust) == numbers(moved))
        EXPECT_EQ(pack.view().blocks(), moved.blocks());
    else
        EXPECT_THROW((void)pack.view(), ArgumentError);
}

TEST(MovedClusters, RefuseCosts) {
    const Clustered on(world(), meshes()[0].second, 20);
    const auto with = [&](auto &&change) {
        std::vector<real> costs(on.clusters.pattern()->blocks().size(), 1);
        if (world().rank() == 0)
            change(costs);
        return messageOnAll<ArgumentError>([&] { (void)repartitionTargets(on.clusters, costs); });
    };
    expectContains(with([](auto &costs) { costs.push_back(1); }), "clusters: give one each");
    expectContains(with([](auto &costs) { costs.front() = -1; }), "cluster 0 is to cost -1");
}

/// The first partition, by costs of cells.
TEST(MovedClusters, PartsByCosts) {
    SourceMesh source = makeBoxMesh(meshes()[0].second, world());
    const SourceClusters cut = cutClusters(world(), source, 12);
    std::vector<real> costs;
    for (std::size_t c = 0; c < cut.clusterOf.size(); ++c)
        costs.push_back(cut.clusterOf[c] % 9 == 0 ? 8 : cut.clusterOf[c] < cut.count / 3 ? 2 : 1);
    std::vector<int> parts = cut.parts(world(), costs);
    std::vector<real> ofRank(toSize(world().size()));
    std::vector<real> ofCluster(toSize(cut.count));
    for (std::size_t c = 0; c < costs.size(); ++c) {
        ofRank[toSize(parts[c])] += costs[c];
        ofCluster[toSize(cut.clusterOf[c])] += costs[c];
    }
    world().allReduce(ofRank.data(), world().size(), MPI_SUM);
    world().allReduce(ofCluster.data(), static_cast<int>(cut.count), MPI_SUM);
    EXPECT_LE(std::ranges::max(ofRank), 1.01 * (sumOf(ofRank) / world().size() + std::ranges::max(ofCluster)));
    MeshOptions options;
    options.partitioner = Partitioner::Given;
    options.givenPart = std::move(parts);
    const UnstructuredMesh mesh = buildMesh(world(), std::move(source), options);
    EXPECT_EQ(world().allReduce(static_cast<index>(MeshClusters(mesh, cut).pattern()->blocks().size()), MPI_SUM),
              cut.count);
    if (world().rank() == 0)
        costs.push_back(1);
    expectContains(messageOnAll<ArgumentError>([&] { (void)cut.parts(world(), costs); }), "give one each");
}

} // namespace
} // namespace DNDS::Geom::test
