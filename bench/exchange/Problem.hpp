/// @file Problem.hpp
/// @brief The ghost patterns that are timed: a partitioned grid, and one with very few rows.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>
#include <vector>

namespace DNDS::Bench {

/// One rank's part of a ghost pattern, as a mesh code has it in hand before any set-up.
struct Problem {
    std::string name;
    std::string partitioner; ///< the partitioner that cut the grid
    std::string numbering = "shuffled";
    std::vector<index> offsets;  ///< rank r owns the global rows [offsets[r], offsets[r + 1])
    std::vector<index> pullList; ///< the rows of others that this rank needs: each once, in no order
    index rank = 0;

    index owned() const {
        return offsets[static_cast<std::size_t>(rank) + 1] - offsets[static_cast<std::size_t>(rank)];
    }
    index ghosts() const { return static_cast<index>(pullList.size()); }
};

/// A grid of `edge`^3 hexahedra, cut by a graph partitioner over shared faces, each rank's cells in random order;
/// ghosts are the 26 neighbours. Collective. The grid is known to all ranks, 16 bytes a cell.
Problem gridProblem(CommunicatorView comm, int edge);

/// The same ghosts with each rank's rows numbered by `localityOrder`: inner rows first, then boundary rows by their
/// readers. Collective.
Problem renumbered(CommunicatorView comm, const Problem &problem);

/// Every rank owns `owned` rows and needs `ghostsPerPeer` random rows of every other rank. Collective only in name.
Problem latencyProblem(CommunicatorView comm, index owned, index ghostsPerPeer);

/// The part of each cell of an `edge`^3 grid, x fastest, the same on all ranks. Collective. Which of the partitioners
/// is linked depends on what the build found; `partitionerName` says.
std::vector<int> partitionGrid(CommunicatorView comm, int edge);
std::string partitionerName();

} // namespace DNDS::Bench
