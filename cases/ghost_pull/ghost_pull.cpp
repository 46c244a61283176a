// Ghost rows on an unstructured mesh: the first DNDS program to read.
//
//   mpiexec -n 4 ghost_pull --cells 200000 --steps 200
//
// It makes a mesh of triangles, cuts it into one part a rank, moves the cells there, and smooths a field of five values
// a cell. In each step a rank needs the rows of its neighbours' cells along the cut: they are pulled while the rank
// computes the cells that do not need them. The program ends with an error if any ghost row ever differs from its
// owner's.

#include "Report.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Mpi/RunMain.hpp"
#include "DNDS/Geom/DualGraph.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"
#include "DNDS/Geom/TriangleMesh.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace Geom = DNDS::Geom;
using DNDS::ArrayPair;
using DNDS::CommunicatorView;
using DNDS::index;
using DNDS::LocalIndex;
using DNDS::ParArray;
using DNDS::real;

/// The global rows in `rows` that other ranks own: what a rank has to pull to read all of `rows`.
std::vector<index> rowsOfOthers(const DNDS::GlobalMapping &mapping, std::span<const index> rows) {
    std::vector<index> others;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(others),
                 [&](index row) { return !mapping.isLocal(row); });
    return others;
}

/// Moves every cell to the rank that the partitioner chose for it; returns the nodes of this rank's new cells,
/// [cells x 3]. The old owners know where their cells go: ghosts made from their push lists are the new cells.
std::vector<index> moveCells(CommunicatorView comm, const Geom::TriangleMesh &mesh, std::span<const int> newOwner) {
    std::vector<index> rows(newOwner.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::stable_sort(rows.begin(), rows.end(), [&](index a, index b) {
        return newOwner[static_cast<std::size_t>(a)] < newOwner[static_cast<std::size_t>(b)];
    });
    std::vector<index> starts(static_cast<std::size_t>(comm.size()) + 1, 0);
    for (const int rank : newOwner)
        starts[static_cast<std::size_t>(rank) + 1]++;
    std::partial_sum(starts.begin(), starts.end(), starts.begin());

    ArrayPair<ParArray<index, 3>> cells;
    cells.initPair("cells", comm);
    cells.father->resize(mesh.cells());
    std::copy(mesh.cellNodes.begin(), mesh.cellNodes.end(), cells.father->view().data());
    cells.transAttach();
    cells.trans.createFatherGlobalMapping();
    cells.trans.createGhostMapping(rows, starts);
    cells.trans.createMPITypes();
    cells.trans.pullOnce();
    const auto moved = std::as_const(*cells.son).view();
    return {moved.data(), moved.data() + 3 * moved.size()};
}

/// The corners of this rank's cells: [cells x 6], x and y of each. Nodes stay where the mesh generator left them; the
/// rows of those that belong to other ranks are pulled once.
std::vector<real> pullCorners(CommunicatorView comm, const Geom::TriangleMesh &mesh, std::span<const index> cellNodes) {
    ArrayPair<ParArray<real, 2>> nodes;
    nodes.initPair("nodes", comm);
    nodes.father->resize(mesh.nodes());
    std::copy(mesh.coordinates.begin(), mesh.coordinates.end(), nodes.father->view().data());
    nodes.transAttach();
    nodes.trans.createFatherGlobalMapping();
    nodes.trans.createGhostMapping(rowsOfOthers(*nodes.father->globalMapping(), cellNodes));
    nodes.trans.createMPITypes();
    nodes.trans.pullOnce();

    const auto position = std::as_const(nodes).view(); // owned rows, then ghosts
    std::vector<real> corners;
    corners.reserve(2 * cellNodes.size());
    for (const LocalIndex node : nodes.trans.ghostMapping()->toLocal(cellNodes))
        corners.insert(corners.end(), {position(node, 0), position(node, 1)});
    return corners;
}

/// A pinwheel of zeros and ones, turned a little from one component to the next.
void fillField(std::span<const real> corners, ArrayPair<Field> &u) {
    const auto value = u.father->view();
    for (index cell = 0; cell < value.size(); cell++) {
        const real *corner = corners.data() + 6 * cell;
        const real x = (corner[0] + corner[2] + corner[4]) / 3 - 0.5;
        const real y = (corner[1] + corner[3] + corner[5]) / 3 - 0.5;
        for (int k = 0; k < value.rowSize(); k++)
            value(cell, k) = std::sin(5 * std::atan2(y, x) + 25 * std::hypot(x, y) + k) > 0 ? 1 : 0;
    }
}

/// One Jacobi step on some cells: the average of a cell and its neighbours. `u` views owned rows, or owned and ghosts.
void smooth(std::span<const index> cells, std::span<const LocalIndex> neighbours, const auto &u, const auto &next) {
    for (const index cell : cells) {
        const LocalIndex *other = neighbours.data() + 3 * cell;
        for (int k = 0; k < next.rowSize(); k++)
            next(cell, k) = 0.25 * (u(cell, k) + u(other[0], k) + u(other[1], k) + u(other[2], k));
    }
}

int run(CommunicatorView comm, index cells, int steps, int checkEvery, const DNDS::ExchangeOptions &exchange,
        const std::string &output) {
    const auto say = [&](const std::string &text) {
        if (comm.rank() == 0)
            fmt::print("{}\n", text);
    };

    // The mesh, each rank a block of it. Cells are numbered at random, so that neighbours are anywhere.
    Geom::TriangleMeshOptions options;
    options.cells = cells;
    const auto mesh = Geom::makeTriangleMesh(options, comm);
    say(fmt::format("mesh       {} cells, {} nodes, {} ranks", mesh.globalCells, mesh.globalNodes, comm.size()));

    // One part a rank, with short borders.
    const auto graph = Geom::dualGraph(comm, mesh.cellNodes, Geom::ElementType::Tri3);
    const std::vector<int> part = Geom::partitionGraph(comm, graph, comm.size());
    const auto quality = Geom::partitionQuality(comm, graph, part, comm.size());
    say(fmt::format("partition  {} of {} edges cut, heaviest part {:.1f} % above average", quality.edgeCut,
                    quality.edges, 100 * quality.imbalance));
    const std::vector<index> cellNodes = moveCells(comm, mesh, part);
    std::vector<index> neighbours = Geom::faceNeighbours(comm, cellNodes, Geom::ElementType::Tri3);

    // The field: owned rows (the father) and, behind them, copies of the neighbours' rows (the son).
    ArrayPair<Field> u;
    u.initPair("u", comm);
    u.father->resize(static_cast<index>(cellNodes.size() / 3));
    u.transAttach();
    u.trans.createFatherGlobalMapping();

    // On the mesh's boundary a cell is its own neighbour: nothing flows out.
    const auto &numbering = *u.father->globalMapping();
    for (std::size_t i = 0; i < neighbours.size(); i++)
        if (neighbours[i] == DNDS::InvalidIndex)
            neighbours[i] = numbering.localBegin() + static_cast<index>(i / 3);

    u.trans.createGhostMapping(rowsOfOthers(numbering, neighbours));
    u.trans.createMPITypes();
    u.trans.initPersistentPull(exchange);
    const std::vector<LocalIndex> localNeighbours = u.trans.ghostMapping()->toLocal(neighbours);

    // The new values: owned rows alone, which trade places with the father's after each step.
    Field next("next", comm);
    next.resize(u.father->size());
    next.setGlobalMapping(u.father->globalMapping());

    const std::vector<real> corners = pullCorners(comm, mesh, cellNodes);
    fillField(corners, u);

    // Cells that no other rank reads have no neighbours elsewhere either: they are computed during the pull.
    const auto &pattern = *u.trans.pattern();
    index checked = 0;
    index wrong = 0;
    for (int step = 1; step <= steps; step++) {
        u.trans.startPersistentPull();
        smooth(pattern.innerRows(), localNeighbours, std::as_const(*u.father).view(), next.view());
        u.trans.waitPersistentPull();
        smooth(pattern.boundaryRows(), localNeighbours, std::as_const(u).view(), next.view());

        if (step % checkEvery == 0) {
            wrong += countWrongGhosts(comm, u);
            checked += comm.allReduce(pattern.sonSize(), MPI_SUM);
        }
        u.father->swapData(next);
        if (step % std::max(1, steps / 5) == 0)
            say(fmt::format("step {:5} {} ghost rows checked, {} wrong", step, checked, wrong));
    }

    report(comm, u, medianPullTime(comm, u), corners, output);
    return wrong == 0 ? 0 : 1;
}

int runWithArguments(CommunicatorView comm, int argc, char **argv) {
    CLI::App app("Pulls ghost rows of a field on a triangle mesh and checks every one of them.");
    DNDS::index cells = 200000;
    int steps = 200;
    int checkEvery = 1;
    std::string transport = "auto";
    std::string output;
    app.option_defaults()->always_capture_default();
    app.add_option("--cells", cells, "number of cells, about")->check(CLI::Range(2, 100000000));
    app.add_option("--steps", steps, "smoothing steps")->check(CLI::Range(1, 1000000));
    app.add_option("--check-every", checkEvery, "steps between checks")->check(CLI::Range(1, 1000000));
    app.add_option("--transport", transport, "auto, or the name of the transport to use");
    app.add_option("--output", output, "folder for the tables that plot.py draws");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &stop) { // --help, or an option that does not exist
        return comm.rank() == 0 ? app.exit(stop) : stop.get_exit_code();
    }
    return run(comm, cells, steps, checkEvery, {DNDS::transportFromName(transport)}, output);
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](CommunicatorView world) { return runWithArguments(world, argc, argv); });
}
