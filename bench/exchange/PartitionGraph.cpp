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
    const std::vector<int> own = Geom::partitionGraph(comm, graph, comm.size());

    std::vector<int> counts;
    std::vector<int> places;
    for (int rank = 0; rank < comm.size(); ++rank) {
        places.push_back(static_cast<int>(firstOf(rank)));
        counts.push_back(static_cast<int>(firstOf(rank + 1) - firstOf(rank)));
    }
    std::vector<int> part(static_cast<std::size_t>(cells));
    checkMpi(MPI_Allgatherv(own.data(), static_cast<int>(own.size()), MPI_INT, part.data(), counts.data(),
                            places.data(), MPI_INT, comm.handle()),
             "MPI_Allgatherv");
    return part;
}

} // namespace DNDS::Bench
