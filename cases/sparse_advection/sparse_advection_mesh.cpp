// Carries three species around a periodic box of tetrahedra in clusters.
//
//   mpiexec -n 4 sparse_advection_mesh --bricks 24 --cluster 4096 --time 0.5

#include "MeshAdvection.hpp"

#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace {

using SparseAdvection::index;
using SparseAdvection::real;

struct Options {
    index bricks = 16;
    index cluster = 512;
    real time = 0.25;
    bool balance = true;
    DNDS::SparseFieldOptions thresholds{.allocationThreshold = 1e-6, .deallocationThreshold = 1e-7};
};

/// Moves clusters where that pays. On all ranks; measured times decide how often, results do not depend on it.
class MeshBalance {
  public:
    explicit MeshBalance(const DNDS::CommunicatorView &comm) : comm_(comm) {}

    void afterStep(SparseAdvection::MeshRun &run) {
        if (++steps_ % 10 != 0) // asking is collective
            return;
        const double sum = std::accumulate(run.seconds().begin(), run.seconds().end(), 0.0);
        if (!policy_.isDue(comm_, sum - std::exchange(before_, sum)))
            return;
        const double begin = MPI_Wtime();
        run.rebalance();
        policy_.moved(comm_, MPI_Wtime() - begin);
        before_ = 0;
        ++moves_;
    }
    int moves() const { return moves_; }

  private:
    DNDS::CommunicatorView comm_;
    DNDS::Rebalancing policy_{0.25}; // less than 25 % more than the mean is left alone
    int steps_ = 0;
    double before_ = 0; ///< seconds up to the last question
    int moves_ = 0;
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
    MeshBalance balance(comm);
    for (int step = 0; step < steps; ++step) {
        run.step();
        if (options.balance)
            balance.afterStep(run);
    }
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
    if (comm.size() > 1)
        say(fmt::format("clusters moved to other ranks after {} of {} steps", balance.moves(), steps));
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
    app.add_flag("!--no-balance", options.balance, "leave clusters on their ranks");
    CLI11_PARSE(app, argc, argv);
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) { return carry(world, options); });
}
