/// @file DistributedGraph.hpp
/// @brief A graph whose vertices are spread over ranks in contiguous ranges, as its rows of neighbours (CSR).
#pragma once

#include "DNDS/Base/Types.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// This rank's vertices and their neighbours. Rank r's vertices are numbered after those of the ranks before it.
///
/// The graph is undirected: a vertex is in the list of each of its neighbours, wherever they live.
struct DistributedGraph {
    std::vector<index> starts{0};  ///< [own vertices + 1]: neighbours of v are [starts[v], starts[v + 1])
    std::vector<index> neighbours; ///< global vertex numbers
    std::vector<index> weights;    ///< [own vertices], at least 1 each; or empty on all ranks: every vertex weighs 1

    index size() const noexcept { return static_cast<index>(starts.size()) - 1; }
    std::span<const index> neighboursOf(index vertex) const {
        const auto v = static_cast<std::size_t>(vertex);
        return std::span<const index>(neighbours)
            .subspan(static_cast<std::size_t>(starts[v]), static_cast<std::size_t>(starts[v + 1] - starts[v]));
    }
    /// Makes what was added to `neighbours` since the last vertex the neighbours of one more: sorted, each once.
    void finishVertex() {
        const auto begin = neighbours.begin() + static_cast<std::ptrdiff_t>(starts.back());
        std::sort(begin, neighbours.end());
        neighbours.erase(std::unique(begin, neighbours.end()), neighbours.end());
        starts.push_back(static_cast<index>(neighbours.size()));
    }
};

} // namespace DNDS::Geom
