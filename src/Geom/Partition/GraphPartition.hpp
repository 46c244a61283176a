/// @file GraphPartition.hpp
/// @brief Divides a distributed graph into parts of equal weight with few edges between them (PT-Scotch).
#pragma once

#include "DNDS/Geom/Source/DistributedGraph.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <vector>

namespace DNDS::Geom {

/// Choices for `partitionGraph`; the same on all ranks.
struct PartitionOptions {
    double imbalance =
        0.03;     ///< how much heavier than the average a part may be; a goal more than a promise on small graphs
    int seed = 1; ///< most other seeds give another partition, of like quality
};

/// The part, in [0, parts), of each vertex of this rank: [own vertices]. Collective.
///
/// `parts` need not be the number of ranks. Neighbours listed more than once make heavier edges; a vertex listed as its
/// own neighbour is ignored. Parts may come out empty when there are hardly more vertices than parts.
///
/// The result is a function of the graph, its distribution over ranks, `parts` and `options`. PT-Scotch works in
/// parallel (Chevalier and Pellegrini, PT-Scotch, Parallel Computing 34, 2008): O(vertices + edges) memory over all
/// ranks.
///
/// Errors, the same on all ranks: ArgumentError for arguments out of range, that differ between ranks, or for a graph
/// beyond the width of PT-Scotch's integers; IndexError for a neighbour that is no vertex; DataError for a graph that
/// is not symmetric; StateError when PT-Scotch fails or does not fit the header this was built with.
std::vector<int> partitionGraph(CommunicatorView comm, const DistributedGraph &graph, int parts,
                                const PartitionOptions &options = {});

/// What a partition costs.
struct PartitionQuality {
    index edges = 0;        ///< of the whole graph, each counted once
    index edgeCut = 0;      ///< edges between different parts
    double imbalance = 0.0; ///< weight of the heaviest part over the average, minus 1
    int emptyParts = 0;     ///< parts without a vertex
};

/// Judges any assignment of vertices to parts, `part` being [own vertices]. Collective. O(parts) memory on every rank,
/// and a message to each rank that has neighbours of this rank's vertices. Throws IndexError on all ranks for a part
/// outside [0, parts) or a neighbour that is no vertex, ArgumentError when `part` does not have an entry for each
/// vertex or `parts` differs between ranks.
PartitionQuality partitionQuality(CommunicatorView comm, const DistributedGraph &graph, std::span<const int> part,
                                  int parts);

} // namespace DNDS::Geom
