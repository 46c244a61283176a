// The program of docs/start/tutorial.md: heat conduction on a square of cells that is spread over the ranks.
//
//   mpiexec -n 3 first_field
//
// It ends with exit code 0 only if every ghost, every sum and the final field are right on all ranks.

#include "DNDS/DNDS.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using DNDS::Index;
using DNDS::LocalIndex;
using DNDS::real;

/// A square of n x n cells. Cell c is in column c % n of line c / n; nodes are counted alike, n + 1 in a line.
struct Square {
    Index n = 12;

    Index cells() const { return n * n; }
    Index nodes() const { return (n + 1) * (n + 1); }
    /// The cells that share a side with `cell`: 2 in the corners of the square, 3 along its sides, else 4.
    std::vector<Index> neighbours(Index cell) const {
        const Index column = cell % n;
        std::vector<Index> list;
        if (cell >= n)
            list.push_back(cell - n);
        if (column > 0)
            list.push_back(cell - 1);
        if (column < n - 1)
            list.push_back(cell + 1);
        if (cell < cells() - n)
            list.push_back(cell + n);
        return list;
    }
    std::array<Index, 4> corners(Index cell) const {
        const Index first = cell + cell / n;
        return {first, first + 1, first + n + 1, first + n + 2};
    }
};

/// Two numbers a cell: a temperature that is hot in one corner, and the cell's own number.
std::array<real, 2> start(const Square &square, Index cell) {
    const bool hot = cell % square.n < square.n / 3 && cell < square.cells() / 3;
    return {hot ? 1.0 : 0.0, static_cast<real>(cell)};
}

/// One time step on some cells: each moves towards the mean of its neighbours.
void conduct(auto &&cells, const auto &neighbours, const auto &u, const auto &next) {
    for (const Index cell : cells)
        for (int k = 0; k < 2; k++) {
            real change = 0;
            for (const auto other : neighbours.row(cell))
                change += u(other, k) - u(cell, k);
            next(cell, k) = u(cell, k) + 0.2 * change;
        }
}

/// Counts what is wrong on this rank, and says so.
class Checks {
  public:
    explicit Checks(DNDS::CommunicatorView comm) : comm_(comm) {}
    void expect(bool right, std::string_view what) {
        if (right)
            return;
        wrong_++;
        fmt::print(stderr, "rank {}: wrong: {}\n", comm_.rank(), what);
    }
    /// Over all ranks. Collective.
    Index wrong() const { return comm_.allReduce(wrong_, MPI_SUM); }

  private:
    DNDS::CommunicatorView comm_;
    Index wrong_ = 0;
};

/// The same computation without ranks, for comparison: [cells x 2].
DNDS::Array<real, 2> serialField(const Square &square, int steps) {
    DNDS::Array<Index, DNDS::NonUniformSize> neighbours;
    neighbours.resize(square.cells(), [&](Index cell) { return square.neighbours(cell).size(); });
    DNDS::Array<real, 2> u;
    u.resize(square.cells());
    std::vector<Index> all;
    for (Index cell = 0; cell < square.cells(); cell++) {
        std::ranges::copy(square.neighbours(cell), neighbours[cell]);
        std::ranges::copy(start(square, cell), u[cell]);
        all.push_back(cell);
    }
    DNDS::Array<real, 2> next = u;
    for (int step = 0; step < steps; step++) {
        conduct(all, std::as_const(neighbours).view(), std::as_const(u).view(), next.view());
        u.swapData(next);
    }
    return u;
}

int run(DNDS::CommunicatorView world) {
    using DNDS::Index;
    const bool first = world.rank() == 0;
    Checks checks(world);

    // Step 1: rows of one's own.
    const Square square;
    const Index begin = square.cells() * world.rank() / world.size();
    const Index end = square.cells() * (world.rank() + 1) / world.size();

    DNDS::ArrayPair<DNDS::ParArray<real, 2>> u;
    u.initPair("u", world);
    u.father->resize(end - begin);
    const auto own = u.father->view();
    for (Index i = 0; i < own.size(); i++)
        std::ranges::copy(start(square, begin + i), own[i]);

    u.transAttach();
    u.trans.createFatherGlobalMapping();
    const DNDS::GlobalMapping &numbering = *u.father->globalMapping();
    checks.expect(numbering.localBegin() == begin && numbering.globalSize() == square.cells(), "the numbering");

    // Step 2: rows of different sizes.
    DNDS::ArrayPair<DNDS::ParArray<Index, DNDS::NonUniformSize>> cellCells;
    cellCells.initPair("cellCells", world);
    cellCells.father->resize(u.father->size(), [&](Index i) { return square.neighbours(begin + i).size(); });
    for (Index i = 0; i < cellCells.father->size(); i++)
        std::ranges::copy(square.neighbours(begin + i), (*cellCells.father)[i]);

    // Step 3: ghosts.
    const std::span<const Index> reads(cellCells.father->data(),
                                       static_cast<std::size_t>(cellCells.father->dataSize()));
    std::vector<Index> wanted;
    std::ranges::copy_if(reads, std::back_inserter(wanted), [&](Index row) { return !numbering.isLocal(row); });

    u.trans.createGhostMapping(wanted);
    u.trans.createMPITypes();
    u.trans.pullOnce();

    const DNDS::GhostMapping &ghosts = *u.trans.ghostMapping();
    for (Index k = 0; k < ghosts.ghostSize(); k++)
        checks.expect((*u.son)(k, 1) == static_cast<real>(ghosts.ghosts()[static_cast<std::size_t>(k)]),
                      "a pulled ghost");

    // Step 4: local row numbers.
    DNDS::Array<LocalIndex, DNDS::NonUniformSize> neighbours;
    neighbours.resize(cellCells.father->size(), [&](Index i) { return cellCells.father->rowSize(i); });
    std::ranges::copy(ghosts.toLocal(reads), neighbours.data());

    // Step 5: computing during a pull.
    DNDS::ArrayPair<DNDS::ParArray<real, 2>> next;
    next.initPair("next", world);
    next.father->resize(u.father->size());
    next.transAttach();
    next.trans.borrowGGIndexing(u.trans);
    next.trans.createMPITypes();

    u.trans.initPersistentPull();
    next.trans.initPersistentPull();
    const DNDS::ExchangePattern &pattern = *u.trans.pattern();
    const auto adjacency = std::as_const(neighbours).view();
    const int steps = 200;
    for (int step = 0; step < steps; step++) {
        u.trans.startPersistentPull();
        conduct(pattern.innerRows(), adjacency, std::as_const(*u.father).view(), next.father->view());
        u.trans.waitPersistentPull();
        conduct(pattern.boundaryRows(), adjacency, std::as_const(u).view(), next.father->view());
        u.swapData(next);
    }

    const DNDS::Array<real, 2> serial = serialField(square, steps);
    real heat = 0;
    for (Index i = 0; i < u.father->size(); i++) {
        heat += (*u.father)(i, 0);
        checks.expect(std::ranges::equal(u.father->row(i), serial.row(begin + i)), "the field, compared bit by bit");
    }
    heat = world.allReduce(heat, MPI_SUM);
    if (first)
        fmt::print("heat after {} steps: {:.6f}\n", steps, heat);
    checks.expect(std::abs(heat - 16) < 1e-10, "the heat, which is neither made nor lost");

    // Step 6: several arrays in one message.
    DNDS::ArrayPair<DNDS::ParArray<int, 1>> owner;
    owner.initPair("owner", world);
    owner.father->resize(u.father->size());
    std::ranges::fill(owner.father->data(), owner.father->data() + owner.father->size(), world.rank());
    owner.transAttach();
    owner.trans.borrowGGIndexing(u.trans);
    owner.trans.createMPITypes();

    DNDS::ExchangeGroup group;
    group.add(u.trans);
    group.add(owner.trans);
    group.initPersistentPull();
    group.startPersistentPull();
    group.waitPersistentPull();

    for (Index k = 0; k < ghosts.ghostSize(); k++) {
        const Index row = ghosts.ghosts()[static_cast<std::size_t>(k)];
        checks.expect((*owner.son)(k) == numbering.owner(row).rank, "the owner of a ghost");
        checks.expect((*u.son)(k, 0) == serial(row, 0), "the temperature of a ghost");
    }
    for (const DNDS::PeerPath &path : group.pullPaths())
        if (first)
            fmt::print("rank 0 gets {} rows, {} bytes, from rank {}\n", path.rowsReceived, path.bytesReceived,
                       path.peer);

    // Step 7: ghost rows of different sizes.
    cellCells.borrowAndPull(u);
    for (Index k = 0; k < ghosts.ghostSize(); k++) {
        const Index row = ghosts.ghosts()[static_cast<std::size_t>(k)];
        checks.expect(std::ranges::equal(cellCells.son->row(k), square.neighbours(row)), "the neighbours of a ghost");
    }

    // Step 8: pushing contributions to their owners.
    DNDS::ArrayPair<DNDS::ParArray<real, 1>> area;
    area.initPair("area", world);
    area.father->resize(square.nodes() * (world.rank() + 1) / world.size() -
                        square.nodes() * world.rank() / world.size());
    area.transAttach();
    area.trans.createFatherGlobalMapping();

    std::vector<Index> corners;
    for (Index cell = begin; cell < end; cell++)
        std::ranges::copy(square.corners(cell), std::back_inserter(corners));
    std::vector<Index> nodesOfOthers;
    std::ranges::copy_if(corners, std::back_inserter(nodesOfOthers),
                         [&](Index node) { return !area.father->globalMapping()->isLocal(node); });
    area.trans.createGhostMapping(nodesOfOthers);
    area.trans.createMPITypes();

    const auto quarter = 0.25 / static_cast<real>(square.cells());
    const auto share = area.view();
    for (const LocalIndex node : area.trans.ghostMapping()->toLocal(corners))
        share(node) += quarter; // a node of one's own, or a ghost
    area.trans.pushOnce(DNDS::PushOp::Sum);

    const auto nodes = std::as_const(*area.father).view();
    real total = 0;
    for (Index i = 0; i < nodes.size(); i++)
        total += nodes(i);
    total = world.allReduce(total, MPI_SUM);
    if (first)
        fmt::print("area of all nodes: {:.6f}\n", total);
    checks.expect(std::abs(total - 1) < 1e-12, "the area of all nodes");

    // Step 9: when something is wrong.
    std::vector<Index> mistaken = wanted;
    if (world.rank() == world.size() - 1)
        mistaken.push_back(square.cells()); // one more than the last cell
    try {
        DNDS::GhostMapping::fromPullList(u.father->globalMapping(), mistaken);
        checks.expect(false, "a row that does not exist became a ghost");
    } catch (const DNDS::IndexError &error) {
        if (first)
            fmt::print("{}\n", error.message());
    }

    const Index wrong = checks.wrong();
    if (first)
        fmt::print("{}\n", wrong == 0 ? "all is well" : "something is wrong");
    return wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, run); }
