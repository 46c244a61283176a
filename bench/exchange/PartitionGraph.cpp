/// @file PartitionGraph.cpp
/// @brief Cuts the grid with the graph partitioner of DNDS::Geom, over shared faces.
#include "Problem.hpp"

#include "DNDS/Geom/Partition/GraphPartition.hpp"

namespace DNDS::Bench {

std::string partitionerName() { return "pt-scotch"; }

std::vector<int> partitionGrid(CommunicatorView comm, int edge) {
    const index n = edge;
    const index cells = n * n * n;
    const auto firstOf = [&](index rank) { return cells * rank / comm.size(); };
    Geom::DistributedGraph graph;
    for (index cell = firstOf(comm.rank()); cell < firstOf(comm.rank() + 1); ++cell) {
        index stride = 1;
        for (int axis = 0; axis < 3; ++axis, stride *= n) {
            const index place = cell / stride % n;
            if (place > 0)
                graph.neighbours.push_back(cell - stride);
            if (place < n - 1)
                graph.neighbours.push_back(cell + stride);
        }
        graph.starts.push_back(static_cast<index>(graph.neighbours.size()));
    }
    const std::vector<int> part = Geom::partitionGraph(comm, graph, comm.size());
    return comm.allGatherV(std::span<const int>(part));
}

} // namespace DNDS::Bench
