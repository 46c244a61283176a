/// @file GraphPartition.hpp
/// @brief Divides a distributed graph into parts of equal weight with few edges between them (PT-Scotch).
///
/// `DistributedGraph`: its vertices are distributed over ranks in contiguous ranges (CSR rows of neighbours).
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// This rank's vertices and their neighbours. Vertices are numbered after those of lower ranks.
///
/// The graph is undirected: a vertex is in the list of each of its neighbours, on any rank.
/// The form that ParMETIS and PT-Scotch take (distributed CSR), without their upper limits on vertex numbers.
struct DistributedGraph {
    std::vector<index> starts{0};  ///< [own vertices + 1]: neighbours of v are [starts[v], starts[v + 1])
    std::vector<index> neighbours; ///< global vertex numbers
    std::vector<index> weights;    ///< [own vertices], >= 1; or empty on all ranks: all weights are 1

    /// The number of own vertices.
    index size() const noexcept { return static_cast<index>(starts.size()) - 1; }
    /// The global numbers of the neighbours of own vertex `vertex`, counted from 0 on this rank.
    std::span<const index> neighboursOf(index vertex) const {
        const auto v = static_cast<std::size_t>(vertex);
        return std::span<const index>(neighbours)
            .subspan(static_cast<std::size_t>(starts[v]), static_cast<std::size_t>(starts[v + 1] - starts[v]));
    }
    /// Ends the row of the next vertex: the neighbours appended since the last one, sorted, without duplicates.
    /// O(degree log degree). A vertex must not be its own neighbour; the caller leaves self-loops out.
    void finishVertex() {
        const auto begin = neighbours.begin() + static_cast<std::ptrdiff_t>(starts.back());
        std::sort(begin, neighbours.end());
        neighbours.erase(std::unique(begin, neighbours.end()), neighbours.end());
        starts.push_back(static_cast<index>(neighbours.size()));
    }
};

/// PT-Scotch's strategies: the effort spent on few edges between parts (docs/reference/performance.md compares them).
enum class PartitionEffort : unsigned char {
    Quick,   ///< its strategy for speed, with hardly more edges between parts
    Thorough ///< its strategy for quality
};

/// Choices for `partitionGraph`; the same on all ranks.
struct PartitionOptions {
    double imbalance = 0.03; ///< allowed excess of a part over the average; a goal, missed on some small graphs
    int seed = 1;            ///< most other seeds give another partition of similar quality
    PartitionEffort effort = PartitionEffort::Quick;
};

/// The part, in [0, parts), of each vertex of this rank: [own vertices]. Collective.
///
/// `parts` need not be the number of ranks. Neighbours listed repeatedly make heavier edges; self-loops are ignored.
/// Parts may be empty if there are hardly more vertices than parts.
///
/// The result depends only on the graph, its distribution over ranks, `parts` and `options`. PT-Scotch works in
/// parallel (Chevalier and Pellegrini, PT-Scotch, Parallel Computing 34, 2008): O(vertices + edges) memory over all
/// ranks.
///
/// Errors, the same on all ranks: ArgumentError for arguments out of range or different between ranks, or a graph too
/// large for PT-Scotch's integers; IndexError for a neighbour that is no vertex; DataError for a graph that is not
/// symmetric; StateError if PT-Scotch fails or does not match the header this was built with.
std::vector<int> partitionGraph(CommunicatorView comm, const DistributedGraph &graph, int parts,
                                const PartitionOptions &options = {});

} // namespace DNDS::Geom
