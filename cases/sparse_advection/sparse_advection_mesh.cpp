// Carries three species around a periodic box of tetrahedra in clusters.
//
//   mpiexec -n 4 sparse_advection_mesh --bricks 24 --cluster 4096 --time 0.5

#include "MeshAdvection.hpp"

#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cmath>
#include <string>

namespace {

using SparseAdvection::index;
using SparseAdvection::real;

struct Options {
    index bricks = 16;
    index cluster = 512;
    real time = 0.25;
    DNDS::SparseFieldOptions thresholds{.allocationThreshold = 1e-6, .deallocationThreshold = 1e-7};
};

int carry(const DNDS::CommunicatorView &comm, const Options &options) {
    const auto say = [&](const std::string &text) {
        if (comm.rank() == 0)
            fmt::print("{}\n", text);
    };
    const SparseAdvection::Setup setup;
    SparseAdvection::MeshRun run(comm, setup, options.bricks, options.cluster, options.thresholds);
    const int steps = static_cast<int>(std::ceil(options.time / run.timeStep()));
    const auto before = run.masses();
    say(fmt::format("{} tetrahedra, {} species, {} steps; {:.3f} of the clusters hold something", run.cells(),
                    setup.species.size(), steps, run.shareAllocated()));
    for (int step = 0; step < steps; ++step)
        run.step();
    const auto after = run.masses();
    const std::vector<real> dropped = run.dropped();
    bool kept = true;
    for (std::size_t s = 0; s < before.size(); ++s) {
        const real change = after[s] / before[s] - 1;
        kept = kept && std::abs(change) < 1e-3;
        say(fmt::format("{}: mass {:.15e}, {}", setup.species[s].name, after[s],
                        SparseAdvection::lossText(before[s], after[s], dropped[s])));
    }
    say(fmt::format("{:.3f} of the clusters hold something", run.shareAllocated()));
    DNDS_CHECK(kept, DNDS::DataError, "more than a thousandth of the mass was lost: lower the thresholds");
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    CLI::App app("Carries three species around a periodic box of tetrahedra in clusters", "sparse_advection_mesh");
    Options options;
    app.add_option("--bricks", options.bricks, "in each direction, of six tetrahedra")->capture_default_str();
    app.add_option("--cluster", options.cluster, "cells of a cluster")->capture_default_str();
    app.add_option("--time", options.time, "times around the box of a wind of 1")->capture_default_str();
    app.add_option("--allocate-above", options.thresholds.allocationThreshold, "threshold")->capture_default_str();
    app.add_option("--free-below", options.thresholds.deallocationThreshold, "threshold")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return carry(world, options); });
}
