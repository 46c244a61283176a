#include "Problem.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Index/LocalityOrder.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace DNDS::Bench {

namespace {

constexpr std::size_t at(index i) { return static_cast<std::size_t>(i); }

/// A shuffle that is the same with every standard library.
void shuffle(std::vector<index> &values, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t i = values.size(); i > 1; --i)
        std::swap(values[i - 1], values[random() % i]);
}

/// Calls `visit` with each of the up to 26 cells that touch `cell`.
template <class Visit>
void forNeighbours(index cell, index edge, Visit visit) {
    const index x = cell % edge;
    const index y = cell / edge % edge;
    const index z = cell / (edge * edge);
    for (index k = std::max<index>(z - 1, 0); k <= std::min(z + 1, edge - 1); ++k)
        for (index j = std::max<index>(y - 1, 0); j <= std::min(y + 1, edge - 1); ++j)
            for (index i = std::max<index>(x - 1, 0); i <= std::min(x + 1, edge - 1); ++i)
                visit((k * edge + j) * edge + i);
}

} // namespace

Problem gridProblem(CommunicatorView comm, int edge) {
    Problem problem;
    problem.name = std::to_string(edge) + "^3";
    problem.partitioner = partitionerName();
    problem.rank = comm.rank();
    const std::vector<int> part = partitionGrid(comm, edge);

    std::vector<std::vector<index>> cells(at(comm.size()));
    for (std::size_t cell = 0; cell < part.size(); ++cell)
        cells[at(part[cell])].push_back(static_cast<index>(cell));
    problem.offsets.assign(1, 0);
    std::vector<index> globalRow(part.size());
    for (std::size_t rank = 0; rank < cells.size(); ++rank) {
        shuffle(cells[rank], 20240 + rank);
        for (std::size_t row = 0; row < cells[rank].size(); ++row)
            globalRow[at(cells[rank][row])] = problem.offsets.back() + static_cast<index>(row);
        problem.offsets.push_back(problem.offsets.back() + static_cast<index>(cells[rank].size()));
    }

    // Own cells are visited in their shuffled order, so the list comes out unsorted, as from a mesh.
    std::vector<bool> seen(part.size());
    for (const index cell : cells[at(comm.rank())])
        forNeighbours(cell, edge, [&](index other) {
            if (part[at(other)] == comm.rank() || seen[at(other)])
                return;
            seen[at(other)] = true;
            problem.pullList.push_back(globalRow[at(other)]);
        });
    return problem;
}

Problem renumbered(CommunicatorView comm, const Problem &problem) {
    ArrayPair<ParArray<index, 1>> number;
    number.initPair("new numbers", comm);
    number.father->resize(problem.owned());
    number.transAttach();
    number.trans.createFatherGlobalMapping();
    number.trans.createGhostMapping(problem.pullList);
    number.trans.createMPITypes();
    const std::vector<index> order = localityOrder(problem.owned(), number.trans.ghostMapping()->readerPeers());
    const std::vector<index> inverse = inverseOrder(order);
    for (index row = 0; row < problem.owned(); ++row)
        (*number.father)(row, 0) = problem.offsets[at(problem.rank)] + inverse[at(row)];
    number.trans.pullOnce();

    Problem result = problem;
    result.numbering = "renumbered";
    for (std::size_t ghost = 0; ghost < result.pullList.size(); ++ghost)
        result.pullList[ghost] = (*number.son)(static_cast<index>(ghost), 0);
    shuffle(result.pullList, static_cast<std::uint64_t>(comm.rank()));
    return result;
}

Problem latencyProblem(CommunicatorView comm, index owned, index ghostsPerPeer) {
    Problem problem;
    problem.name = std::to_string(ghostsPerPeer) + "-per-peer";
    problem.partitioner = "none";
    problem.rank = comm.rank();
    for (index rank = 0; rank <= comm.size(); ++rank)
        problem.offsets.push_back(rank * owned);
    for (int peer = 0; peer < comm.size(); ++peer) {
        if (peer == comm.rank())
            continue;
        std::vector<index> rows(at(owned));
        std::iota(rows.begin(), rows.end(), problem.offsets[at(peer)]);
        shuffle(rows, static_cast<std::uint64_t>(comm.rank()) * 7919 + static_cast<std::uint64_t>(peer));
        problem.pullList.insert(problem.pullList.end(), rows.begin(), rows.begin() + ghostsPerPeer);
    }
    shuffle(problem.pullList, static_cast<std::uint64_t>(comm.rank()));
    return problem;
}

} // namespace DNDS::Bench
