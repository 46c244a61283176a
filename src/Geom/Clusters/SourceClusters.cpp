#include "DNDS/Geom/Clusters/MeshClusters.hpp"

#include "DNDS/Geom/Partition/SpaceFillingCurve.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RebalancedRuns.hpp"

#include <algorithm>
#include <cmath>

namespace DNDS::Geom {

namespace {

using Position = std::array<real, 3>;

/// Visits the nodes of a cell. Polyhedra are stored as faces, the number of corners before the corners of each: these
/// numbers are skipped, and nodes are visited once for each face.
template <class Visit>
void forEachNode(const ElementBlock &cells, index cell, Visit &&visit) {
    const auto nodes = cells.nodesOf(cell);
    if (cells.types[toSize(cell)] != ElementType::Polyhedron) {
        std::ranges::for_each(nodes, visit);
        return;
    }
    for (std::size_t k = 0; k < nodes.size(); k += toSize(nodes[k]) + 1)
        for (std::size_t corner = 1; corner <= toSize(nodes[k]); ++corner)
            visit(nodes[k + corner]);
}

/// The means of the cells' nodes, summed in the order of the file: the same bits on any number of ranks. Coordinates
/// are asked of the ranks that read them. Collective; two sparse exchanges.
/// O(nodes of own cells) words: a node that several cells list is asked for each time.
std::vector<Position> centresOf(CommunicatorContext &context, const SourceMesh &source) {
    std::vector<index> nodes;
    std::vector<std::size_t> starts{0};
    for (index c = 0; c < source.cells.size(); ++c) {
        forEachNode(source.cells, c, [&](index node) { nodes.push_back(node); });
        starts.push_back(nodes.size());
    }
    const auto blocks = GlobalMapping::create(context.comm(), source.nodes());
    const std::vector<Position> found = fetchCoordinates(*blocks, source.coordinates, nodes);
    std::vector<Position> centres(toSize(source.cells.size()));
    for (std::size_t c = 0; c < centres.size(); ++c)
        for (std::size_t d = 0; d < 3; ++d) {
            for (std::size_t k = starts[c]; k < starts[c + 1]; ++k)
                centres[c][d] += found[k][d];
            centres[c][d] /= static_cast<real>(std::max<std::size_t>(1, starts[c + 1] - starts[c]));
        }
    return centres;
}

/// The positions of points on the Hilbert curve through the box of all points. Minima do not round, so the box has the
/// same bits on any number of ranks. Collective; one reduction.
std::vector<index> positionsOnCurve(CommunicatorView comm, const std::vector<Position> &points) {
    const auto [lower, upper] = nodeBoundsOf(comm, points);
    return curveKeys(points, lower, upper);
}

} // namespace

std::vector<int> SourceClusters::parts(int ranks) const {
    std::vector<int> parts;
    parts.reserve(clusterOf.size());
    for (const index cluster : clusterOf) {
        DNDS_CHECK(cluster >= 0 && cluster < count, ArgumentError, "a cell of the source is in cluster {} of {}",
                   cluster, count);
        parts.push_back(static_cast<int>(cluster * ranks / count));
    }
    return parts;
}

void SourceClusters::require(const CommunicatorView &comm) const {
    const auto rank = toSize(comm.rank());
    DNDS_CHECK(firstCells.size() == toSize(comm.size()) + 1 &&
                   firstCells[rank + 1] - firstCells[rank] == static_cast<index>(clusterOf.size()),
               ArgumentError, "clusters of the source: {} cells on rank {}, and firstCells has {} entries for {} ranks",
               clusterOf.size(), rank, firstCells.size(), comm.size());
    for (std::size_t c = 0; c < clusterOf.size(); ++c)
        DNDS_CHECK(clusterOf[c] >= 0 && clusterOf[c] < count, ArgumentError,
                   "cell {} of the source on rank {} is in cluster {} of {}", c, rank, clusterOf[c], count);
}

// Sums costs per cluster over the ranks, which have read any of its cells, then cuts clusters as
// `BlockGrid::rebalanced` does. No rank owns a cluster yet; equal numbers of clusters a rank stand in for the present
// owners.
// O(own cells + clusters) time; one reduction of a number a cluster, and the messages of rebalancedRuns.
std::vector<int> SourceClusters::parts(const CommunicatorView &comm, std::span<const real> costs) const {
    return failTogether(comm, [&] {
        require(comm);
        DNDS_CHECK(costs.size() == clusterOf.size(), ArgumentError,
                   "rank {} gives {} costs for its {} cells of the source: give one each", comm.rank(), costs.size(),
                   clusterOf.size());
        std::vector<real> sums(toSize(count), 0);
        for (std::size_t c = 0; c < costs.size(); ++c) {
            DNDS_CHECK(costs[c] >= 0 && std::isfinite(costs[c]), ArgumentError,
                       "the cost of cell {} of the source on rank {} is {}: costs are finite and not negative", c,
                       comm.rank(), costs[c]);
            sums[toSize(clusterOf[c])] += costs[c];
        }
        comm.allReduce(sums.data(), static_cast<int>(sums.size()), MPI_SUM);
        std::vector<int> rankOf;
        std::vector<real> own;
        for (index k = 0; k < count; ++k) {
            rankOf.push_back(static_cast<int>(k * comm.size() / count));
            if (rankOf.back() == comm.rank())
                own.push_back(sums[toSize(k)]);
        }
        rankOf = rebalancedRuns(comm, rankOf, own, 0, "cluster");
        std::vector<int> parts;
        for (const index cluster : clusterOf)
            parts.push_back(rankOf[toSize(cluster)]);
        return parts;
    });
}

// Cuts the Hilbert curve through the cells' centres into pieces of equal numbers of cells. Invariant: centres are
// summed in file order, so that keys, and with them the clusters, are the same to the bit on any number of ranks.
SourceClusters cutClusters(CommunicatorView comm, const SourceMesh &source, index cellsPerCluster) {
    return failTogether(comm, [&] {
        requireSameSettings(comm, "cutClusters", [&] {
            return std::vector<std::string>{fmt::format("cellsPerCluster = {}", cellsPerCluster)};
        });
        DNDS_CHECK(cellsPerCluster >= 1, ArgumentError, "clusters of {} cells: give 1 or more", cellsPerCluster);
        const auto context = CommunicatorContext::of(comm);
        SourceClusters clusters;
        const auto blocks = GlobalMapping::create(comm, source.cells.size());
        for (int rank = 0; rank <= comm.size(); ++rank) // the end, too
            clusters.firstCells.push_back(blocks->begin(rank));
        clusters.count = std::max<index>(1, (source.cells.globalSize + cellsPerCluster / 2) / cellsPerCluster);
        const std::vector<index> keys = positionsOnCurve(comm, centresOf(*context, source));
        for (const int cluster : partitionCurve(comm, keys, {}, static_cast<int>(clusters.count)))
            clusters.clusterOf.push_back(cluster);
        return clusters;
    });
}

} // namespace DNDS::Geom
