/// @file SourceClusters.hpp
/// @brief Cuts the cells of a mesh into clusters, before it is partitioned.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// The cluster of each cell of a mesh, and so the same on any number of ranks: those of `cutClusters`, numbered along a
/// Hilbert curve, or a program's own. Each cluster is owned by one rank, any one, so that decisions for a cluster do
/// not depend on ranks, either.
///
///     SourceMesh source = readMesh(comm, path);
///     const SourceClusters cut = cutClusters(comm, source);
///     UnstructuredMesh mesh = buildMesh(comm, std::move(source),
///                                       {.partitioner = Partitioner::Given, .givenPart = cut.parts(comm.size())});
///     const MeshClusters clusters(mesh, cut);
struct SourceClusters {
    index count = 0;
    std::vector<index> firstCells; ///< [ranks + 1] number of the first cell of the source on each rank
    std::vector<index> clusterOf;  ///< [own cells of the source] from 0 to count - 1

    /// `MeshOptions::givenPart`, [own cells of the source]: each rank gets an equal number of consecutive clusters.
    /// Local.
    std::vector<int> parts(int ranks) const;
    /// The same for costs of cells, [own cells of the source], in any unit: each rank gets consecutive clusters of a
    /// nearly equal share, at most 1 % more than the best such cut. Collective. O(count) memory on each rank. Throws
    /// ArgumentError on all ranks for costs that are negative, not finite or not one a cell.
    std::vector<int> parts(const CommunicatorView &comm, std::span<const real> costs) const;
    /// Throws ArgumentError, on the rank where it is so, for numbers outside [0, count) and lists of other lengths.
    /// Local.
    void require(const CommunicatorView &comm) const;
};

/// Cuts clusters of about `cellsPerCluster` cells; 4,096 are a good size. Collective. Cost: a message to each rank that
/// has nodes of this rank's cells in its block, and 16 reductions of 15 numbers per cluster. Throws ArgumentError on
/// all ranks for fewer than one cell.
SourceClusters cutClusters(CommunicatorView comm, const SourceMesh &source, index cellsPerCluster = 4096);

} // namespace DNDS::Geom
