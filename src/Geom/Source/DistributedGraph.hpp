/// @file DistributedGraph.hpp
/// @brief A graph whose vertices are distributed over ranks in contiguous ranges (CSR rows of neighbours).
#pragma once

#include "DNDS/Base/Types.hpp"

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

} // namespace DNDS::Geom
