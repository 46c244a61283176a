// Ghost rows on an unstructured mesh: the first DNDS program to read.
//
//   mpiexec -n 4 ghost_pull --cells 200000 --steps 200
//
// It makes a mesh of triangles, partitions it, and smooths a field of five values per cell. In each step a rank needs
// rows of its neighbours' cells along the cut: they are pulled while the rank computes the cells that do not need them.
// The program ends with an error if a ghost row ever differs from its owner's.

#include "Report.hpp"

#include "DNDS/Geom/Geom.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
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
using DNDS::real;

/// A square of about `cells` triangles, a block on each rank, numbered at random, so that neighbours are on any rank.
Geom::SourceMesh makeTriangles(CommunicatorView comm, index cells) {
    const auto side = std::max<index>(1, std::lround(std::sqrt(0.5 * static_cast<double>(cells))));
    Geom::BoxMeshOptions options;
    options.fill = Geom::BoxCells::Triangles;
    options.cells = {side, side, 1};
    options.jitter = 0.15;
    options.shuffled = true;
    return Geom::makeBoxMesh(options, comm);
}

/// The corners of this rank's cells: [cells x 6], x and y of each.
std::vector<real> cornersOf(const Geom::UnstructuredMesh &mesh) {
    const auto position = mesh.coordinates.view();
    const auto nodes = mesh.cellNodes.view();
    std::vector<real> corners;
    for (index cell = 0; cell < mesh.cells.owned; cell++)
        for (const LocalIndex node : nodes[cell])
            corners.insert(corners.end(), {position(node, 0), position(node, 1)});
    return corners;
}

/// A pinwheel of zeros and ones, rotated a little from one component to the next.
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
/// At the boundary of the mesh a cell is its own neighbour: nothing flows out.
void smooth(std::span<const index> cells, const Geom::LocalAdjacency::ConstView &neighbours, const auto &u,
            const auto &next) {
    for (const index cell : cells)
        for (int k = 0; k < next.rowSize(); k++) {
            real sum = u(cell, k);
            for (const LocalIndex other : neighbours[cell])
                sum += u(other == Geom::noEntity ? cell : other, k);
            next(cell, k) = 0.25 * sum;
        }
}

int run(CommunicatorView comm, index cells, int steps, int checkEvery, const DNDS::ExchangeOptions &exchange,
        const std::string &output) {
    const auto say = [&](const std::string &text) {
        if (comm.rank() == 0)
            fmt::print("{}\n", text);
    };

    // One part per rank, with short borders, and copies of the cells across them.
    Geom::MeshReport found;
    Geom::MeshOptions options;
    options.ghostsBy = Geom::GhostNeighbours::Faces;
    options.report = &found;
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(comm, makeTriangles(comm, cells), options);
    const auto heaviest = static_cast<double>(comm.allReduce(mesh.cells.owned, MPI_MAX));
    const double average = static_cast<double>(found.cellsTotal) / comm.size();
    say(fmt::format("mesh       {} cells, {} nodes, {} ranks", found.cellsTotal, found.nodes, comm.size()));
    say(fmt::format("partition  {} ghosts, heaviest part {:.1f} % above average",
                    comm.allReduce(mesh.cells.ghosts, MPI_SUM), 100 * (heaviest / average - 1)));

    // The field: owned rows (the father) and copies of the neighbours' rows (the son).
    ArrayPair<Field> u;
    u.initPair("u", comm);
    u.father->resize(mesh.cells.owned);
    Geom::attachField(u, mesh.cells);
    u.trans.initPersistentPull(exchange);

    // The new values: owned rows only, swapped with the father's after each step.
    Field next("next", comm);
    next.resize(mesh.cells.owned);

    const std::vector<real> corners = cornersOf(mesh);
    fillField(corners, u);

    // Cells that no other rank reads have no neighbours elsewhere: they are computed during the pull.
    const auto &pattern = *mesh.cells.pattern;
    const auto neighbours = mesh.cellCells.view();
    index checked = 0;
    index wrong = 0;
    for (int step = 1; step <= steps; step++) {
        u.trans.startPersistentPull();
        smooth(pattern.innerRows(), neighbours, std::as_const(*u.father).view(), next.view());
        u.trans.waitPersistentPull();
        smooth(pattern.boundaryRows(), neighbours, std::as_const(u).view(), next.view());

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
    DNDS::Index cells = 200000;
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
