/// @file SourceClusters.hpp
/// @brief Cuts the cells of a mesh into clusters, before it is partitioned.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <vector>

namespace DNDS::Geom {

/// Pieces of nearly equal size along a Hilbert curve, numbered along it; the assignment of cells depends on the mesh
/// alone. Ranks own whole clusters, so that decisions for a cluster do not depend on ranks, either.
///
///     SourceMesh source = readMesh(comm, path);
///     const SourceClusters clusters = cutClusters(comm, source);
///     UnstructuredMesh mesh = buildMesh(comm, std::move(source),
///                                       {.partitioner = Partitioner::Given, .givenPart =
///                                       clusters.parts(comm.size())});
///     const MeshClusters pieces(mesh, clusters);
struct SourceClusters {
    index count = 0;
    std::vector<index> firstCells; ///< [ranks + 1] number of the first cell of the source on each rank
    std::vector<index> clusterOf;  ///< [own cells of the source]

    /// The rank of a cluster: each rank gets an equal number of consecutive clusters on the curve. Local.
    int rankOf(index cluster, int ranks) const noexcept { return static_cast<int>(cluster * ranks / count); }
    /// `MeshOptions::givenPart`: [own cells of the source]. Local.
    std::vector<int> parts(int ranks) const;
};

/// Cuts clusters of about `cellsPerCluster` cells; 4,096 are a good size. Collective. Cost: a message to each rank that
/// has nodes of this rank's cells in its block, and 16 reductions of 15 numbers per cluster. Throws ArgumentError on
/// all ranks for fewer than one cell.
SourceClusters cutClusters(CommunicatorView comm, const SourceMesh &source, index cellsPerCluster = 4096);

} // namespace DNDS::Geom
