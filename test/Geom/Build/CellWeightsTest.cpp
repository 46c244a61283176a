#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "support/MpiTest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace DNDS::Geom {
namespace {

BoxMeshOptions box() {
    BoxMeshOptions options;
    options.fill = BoxCells::Tetrahedra;
    options.cells = {8, 8, 8};
    options.shuffled = true;
    options.seed = DNDS::test::seed();
    return options;
}

/// Cells in one corner of the box cost more: there are as many in one half of the box as in the other, but not of cost.
std::vector<index> weightsOfAll() {
    const SourceMesh whole = makeBoxMesh(box(), CommunicatorView(MPI_COMM_SELF));
    std::vector<index> weights;
    for (index c = 0; c < whole.cells.size(); c++) {
        const auto nodes = whole.cells.nodesOf(c);
        const bool corner = std::all_of(nodes.begin(), nodes.end(), [&](index node) {
            const auto &x = whole.coordinates[static_cast<std::size_t>(node)];
            return x[0] <= 0.5 && x[1] <= 0.5 && x[2] <= 0.5;
        });
        weights.push_back(corner ? 100 : 1);
    }
    return weights;
}

std::vector<index> blockOf(const std::vector<index> &all, const SourceMesh &source) {
    const auto first = all.begin() + source.cells.first;
    return {first, first + source.cells.size()};
}

index weightOf(const std::vector<index> &all, const UnstructuredMesh &mesh) {
    index weight = 0;
    for (index c = 0; c < mesh.cells.owned; c++)
        weight += all[static_cast<std::size_t>(mesh.cells.fileNumbers[static_cast<std::size_t>(c)])];
    return weight;
}

real imbalanceOf(CommunicatorView comm, index own) {
    return static_cast<real>(comm.allReduce(own, MPI_MAX) * comm.size()) /
               static_cast<real>(comm.allReduce(own, MPI_SUM)) -
           1.0;
}

TEST(CellWeights, AreSharedEquallyByRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::vector<index> all = weightsOfAll();
    for (const Partitioner partitioner : {Partitioner::Curve, Partitioner::Graph}) {
        MeshOptions options;
        options.partitioner = partitioner;
        const real without = imbalanceOf(comm, weightOf(all, buildMesh(comm, makeBoxMesh(box(), comm), options)));
        SourceMesh source = makeBoxMesh(box(), comm);
        options.cellWeights = blockOf(all, source);
        const UnstructuredMesh mesh = buildMesh(comm, std::move(source), options);
        EXPECT_EQ(comm.allReduce(weightOf(all, mesh), MPI_SUM), std::accumulate(all.begin(), all.end(), index{0}));
        EXPECT_LT(imbalanceOf(comm, weightOf(all, mesh)), 0.1) << static_cast<int>(partitioner);
        if (comm.size() > 1) {
            EXPECT_GT(without, 0.3) << "it is no test: cells of equal number have equal weight, too";
        }
    }
}

TEST(CellWeights, AreSharedEquallyByParts) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const std::vector<index> all = weightsOfAll();
    MeshOptions options;
    options.partitioner = Partitioner::Curve;
    const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(box(), comm), options);
    std::vector<index> weights;
    for (index c = 0; c < mesh.cells.owned; c++)
        weights.push_back(all[static_cast<std::size_t>(mesh.cells.fileNumbers[static_cast<std::size_t>(c)])]);
    for (const Partitioner partitioner : {Partitioner::Curve, Partitioner::Graph}) {
        const std::vector<int> part = partitionCells(mesh, 5, partitioner, {}, weights);
        const PartitionReport report = reportPartition(mesh, part, 5, GhostNeighbours::Nodes, weights);
        std::vector<index> sums(5, 0);
        for (std::size_t c = 0; c < part.size(); c++)
            sums[static_cast<std::size_t>(part[c])] += weights[c];
        comm.allReduce(sums.data(), 5, MPI_SUM);
        index total = 0;
        for (std::size_t p = 0; p < 5; p++) {
            EXPECT_EQ(report.parts[p].weight, sums[p]);
            total += sums[p];
        }
        EXPECT_NEAR(report.imbalance,
                    5.0 * static_cast<real>(*std::max_element(sums.begin(), sums.end())) / static_cast<real>(total) - 1,
                    1e-12);
        EXPECT_LT(report.imbalance, 0.1) << static_cast<int>(partitioner);
        const PartitionReport unweighted = reportPartition(mesh, part, 5);
        for (const PartitionReport::Part &p : unweighted.parts)
            EXPECT_EQ(p.weight, p.cells);
        EXPECT_GT(unweighted.imbalance, 0.3);
    }
}

TEST(CellWeights, MustFitOnAllRanks) {
    const CommunicatorView comm(MPI_COMM_WORLD);
    const bool last = comm.rank() == comm.size() - 1;
    const auto refused = [&](auto &&spoil) {
        SourceMesh source = makeBoxMesh(box(), comm);
        MeshOptions options;
        options.cellWeights.assign(static_cast<std::size_t>(source.cells.size()), 1);
        spoil(options);
        EXPECT_THROW(buildMesh(comm, std::move(source), options), ArgumentError);
    };
    refused([&](MeshOptions &options) { options.cellWeights.resize(options.cellWeights.size() - (last ? 1 : 0)); });
    refused([&](MeshOptions &options) { options.cellWeights[0] = last ? 0 : 1; });
    refused([&](MeshOptions &options) { options.cellWeights[0] = last ? index{1} << 31 : 1; });
    refused([&](MeshOptions &options) {
        options.partitioner = Partitioner::Given;
        options.givenPart.assign(options.cellWeights.size(), 0);
    });
    MeshOptions options;
    options.partitioner = Partitioner::Curve;
    const UnstructuredMesh mesh = buildMesh(comm, makeBoxMesh(box(), comm), options);
    const std::vector<index> weights(static_cast<std::size_t>(mesh.cells.owned) + (last ? 1 : 0), 1);
    EXPECT_THROW(partitionCells(mesh, 2, Partitioner::Curve, {}, weights), ArgumentError);
    const std::vector<int> part(static_cast<std::size_t>(mesh.cells.owned), 0);
    EXPECT_THROW(reportPartition(mesh, part, 2, GhostNeighbours::Nodes, weights), ArgumentError);
}

} // namespace
} // namespace DNDS::Geom
