// A vortex passes through a periodic box of curved cells, on finer and finer meshes: the order of a discontinuous
// Galerkin method.
//
//   mpiexec -n 4 dg_vortex --cells 16 --time 14

#include "Solver.hpp"

#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cmath>
#include <string>

namespace {

using namespace DgVortex;

struct Choices {
    Options options;
    std::string fill = "quadrilaterals";
    int meshes = 3;
    real time = 14;
    real cfl = 0.9;
};

/// Errors below are rounding, as of a uniform flow (--strength 0): they have no order.
constexpr real rounding = 1e-10;

/// Prints a line a mesh. Whether the order on the last two is that of the method. Collective. Throws DataError on all
/// ranks if a result is not finite.
bool converges(DNDS::CommunicatorView comm, const Choices &choices) {
    const auto print = [&](const std::string &line) {
        if (comm.rank() == 0)
            fmt::print("{}\n", line);
    };
    print(fmt::format("{:>7} {:>6} {:>12} {:>6} {:>12}", "cells", "steps", "error", "order", "mass changed"));
    Options options = choices.options;
    real last = 0;
    real order = 0;
    for (int k = 0; k < choices.meshes; k++, options.cells *= 2) {
        Solver solver(comm, options);
        const real mass = solver.integrals(0).mass;
        const int steps = static_cast<int>(std::ceil(choices.time / solver.timeStep(choices.cfl)));
        solver.advance(choices.time / steps, steps);
        const Integrals end = solver.integrals(choices.time); // the same on all ranks
        DNDS_CHECK(std::isfinite(end.mass) && std::isfinite(end.error), DNDS::DataError,
                   "after {} steps with --cfl {:g} the result is not finite: give a smaller one", steps, choices.cfl);
        order = std::log2(last / end.error);
        last = end.error;
        print(fmt::format("{:7} {:6} {:12.5e} {:>6} {:12.1e}", comm.allReduce(solver.mesh().cells.owned, MPI_SUM),
                          steps, end.error, k == 0 || last < rounding ? std::string() : fmt::format("{:.2f}", order),
                          end.mass / mass - 1));
    }
    const bool third = choices.meshes == 1 || last < rounding || order > 2.7;
    if (!third)
        print("the last order is below 2.7: refine the coarsest mesh (--cells)");
    return third;
}

int run(DNDS::CommunicatorView comm, int argc, char **argv) {
    Choices choices;
    CLI::App app("A vortex in a periodic box, by a discontinuous Galerkin method of third order on curved cells.");
    app.option_defaults()->always_capture_default();
    app.add_option("--fill", choices.fill, "quadrilaterals (QUAD_9) or triangles (TRI_6)")
        ->check(CLI::IsMember({"quadrilaterals", "triangles"}));
    app.add_option("--cells", choices.options.cells, "in each direction, on the coarsest mesh")
        ->check(CLI::Range(2, 4096));
    app.add_option("--meshes", choices.meshes, "each twice as fine as the one before")->check(CLI::Range(1, 8));
    app.add_option("--time", choices.time, "14: once through the box")->check(CLI::PositiveNumber);
    app.add_option("--bend", choices.options.bend, "displacement of nodes; the box is 14 wide")
        ->check(CLI::Range(0.0, 0.5));
    app.add_option("--strength", choices.options.vortex.strength, "of the vortex")->check(CLI::Range(0.0, 6.0));
    app.add_option("--cfl", choices.cfl, "up to about 1 is stable")->check(CLI::PositiveNumber);
    app.add_flag("--device", choices.options.device, "compute on the device");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        return comm.rank() == 0 ? app.exit(error) : error.get_exit_code();
    }
    choices.options.fill = Geom::boxCellsOf(choices.fill);
    return converges(comm, choices) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return run(world, argc, argv); });
}
