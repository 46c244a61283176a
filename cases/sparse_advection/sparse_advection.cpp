// Carries three species around a periodic box; memory and messages follow them.
//
//   mpiexec -n 4 sparse_advection --blocks 16 --cells 16 --periods 1 --dense --output run.json

#include "Advection.hpp"

#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

using DNDS::CommunicatorView;
using SparseAdvection::index;
using SparseAdvection::real;

struct Options {
    SparseAdvection::Setup setup;
    DNDS::SparseFieldOptions thresholds{.allocationThreshold = 1e-6, .deallocationThreshold = 1e-7};
    real periods = 1; ///< periods of a wind of 1
    int pictures = 6;
    bool dense = false;
    bool balance = true;
    std::string output;
};

/// Output for plots. On all ranks; rank 0 writes.
class Record {
  public:
    Record(const CommunicatorView &comm, const Options &options) : comm_(comm) {
        json_ = {{"blocks", options.setup.blocks}, {"cells", options.setup.cells}, {"ranks", comm.size()}};
        for (const auto &species : options.setup.species)
            json_["species"].push_back(species.name);
        json_["steps"] = json_["pictures"] = nlohmann::json::array();
    }
    void step(int number, const SparseAdvection::SparseRun &run) {
        const auto sent = static_cast<double>(run.traffic().bytes);
        double sums[] = {run.allocatedBlocks(), run.memory(), sent};
        comm_.allReduce(sums, 3, MPI_SUM);
        const double busiest = 1 + DNDS::measureImbalance(comm_, run.allocatedBlocks()).imbalance();
        json_["steps"].push_back({{"step", number},
                                  {"allocated", sums[0]},
                                  {"memory", sums[1]},
                                  {"busiest", busiest},                     // of its allocated blocks, over the mean
                                  {"bytes", (sums[2] - sentBefore_) / 2}}); // two exchanges a step
        sentBefore_ = sums[2];
        maxMemory_ = std::max(maxMemory_, sums[1]);
    }
    void picture(int number, const SparseAdvection::SparseRun &run) {
        nlohmann::json blocks = nlohmann::json::array();
        for (const auto &field : run.fields()) {
            std::vector<index> corners;
            for (const int b : field.allocatedBlocks())
                for (std::size_t d = 0; d < 3; ++d)
                    corners.push_back(field.block(b).cells.lower[d]);
            blocks.push_back(comm_.allGatherV(std::span<const index>(corners)));
        }
        nlohmann::json owners = nlohmann::json::array(); // of all blocks: first cell, rank
        for (const DNDS::Block &block : run.grid()->blocks())
            owners.push_back({block.cells.lower[0], block.cells.lower[1], block.cells.lower[2], block.rank});
        json_["pictures"].push_back({{"step", number}, {"corners", blocks}, {"owners", owners}});
    }
    nlohmann::json &json() { return json_; }
    double maxMemory() const { return maxMemory_; }
    double bytesSent() const { return sentBefore_; }
    void write(const std::string &path) const {
        comm_.guarded([&] {
            if (comm_.rank() != 0)
                return;
            std::ofstream file(path);
            file << json_.dump(1) << '\n';
            DNDS_CHECK(file.good(), DNDS::DataError, "{} cannot be written", path);
        });
    }

  private:
    CommunicatorView comm_;
    nlohmann::json json_;
    double sentBefore_ = 0;
    double maxMemory_ = 0;
};

/// Moves blocks where that pays. On all ranks.
class Balance {
  public:
    Balance(const CommunicatorView &comm, bool wanted) : comm_(comm), wanted_(wanted) {}

    void afterStep(SparseAdvection::SparseRun &run) {
        seconds_ += run.stepSeconds();
        if (!wanted_ || ++steps_ % 10 != 0 || !policy_.isDue(comm_, std::exchange(seconds_, 0)))
            return; // asking is collective: not in each step of a millisecond
        before_ += busiest(run);
        const double begin = MPI_Wtime();
        run.rebalance();
        policy_.moved(comm_, MPI_Wtime() - begin);
        after_ += busiest(run);
        ++moves_;
    }
    std::string describe(int steps) const {
        if (moves_ == 0)
            return "blocks stayed on their ranks";
        return fmt::format(
            "blocks moved to other ranks after {} of {} steps; allocated blocks of the busiest rank over "
            "the mean: {:.2f} before, {:.2f} after",
            moves_, steps, before_ / moves_, after_ / moves_);
    }

  private:
    double busiest(const SparseAdvection::SparseRun &run) const {
        return 1 + DNDS::measureImbalance(comm_, run.allocatedBlocks()).imbalance();
    }

    CommunicatorView comm_;
    bool wanted_;
    DNDS::Rebalancing policy_{0.25}; // less than 25 % more than the mean is left alone
    int steps_ = 0;
    double seconds_ = 0; ///< since the policy was last asked
    int moves_ = 0;
    double before_ = 0; ///< sums over moves
    double after_ = 0;
};

template <class Work>
double secondsOf(const CommunicatorView &comm, Work &&work) {
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    work();
    comm.barrier();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int carry(const CommunicatorView &comm, const Options &options) {
    const auto say = [&](const std::string &text) {
        if (comm.rank() == 0)
            fmt::print("{}\n", text);
    };
    SparseAdvection::SparseRun run(comm, options.setup, options.thresholds);
    Record record(comm, options);
    const int steps = static_cast<int>(std::ceil(options.periods / options.setup.timeStep()));
    const int every = std::max(1, steps / std::max(1, options.pictures - 1));
    const std::vector<real> before = run.masses();
    say(fmt::format("{0}^3 blocks of {1}^3 cells, {2} species, {3} steps", options.setup.blocks, options.setup.cells,
                    options.setup.species.size(), steps));
    Balance balance(comm, options.balance);
    double seconds = 0;
    for (int step = 0; step < steps; ++step) {
        if (step % every == 0)
            record.picture(step, run);
        seconds += secondsOf(comm, [&] {
            run.step();
            balance.afterStep(run);
        });
        record.step(step, run);
    }
    record.picture(steps, run);
    const std::vector<real> after = run.masses();
    const std::vector<real> dropped = run.dropped();
    const bool reacts = options.setup.reaction > 0;
    const auto small = [](real was, real is) { return std::abs(is / was - 1) < 1e-3; };
    bool kept = small(std::reduce(before.begin(), before.end()), std::reduce(after.begin(), after.end()));
    for (std::size_t s = 0; s < before.size(); ++s) {
        kept = kept && (reacts || small(before[s], after[s]));
        say(fmt::format("{}: mass {:.15e}, {}", options.setup.species[s].name, after[s],
                        reacts ? fmt::format("was {:.6e}", before[s])
                               : SparseAdvection::lossText(before[s], after[s], dropped[s])));
    }
    DNDS_CHECK(kept, DNDS::DataError, "more than a thousandth of the mass was lost: lower the thresholds");
    const DNDS::SparseTraffic traffic = run.traffic();
    const double allocations = comm.allReduce(static_cast<double>(traffic.allocations), MPI_SUM);
    const double frees = comm.allReduce(static_cast<double>(traffic.frees), MPI_SUM);
    say(fmt::format("blocks came {:.0f} times and went {:.0f} times", allocations, frees));
    if (comm.size() > 1)
        say(balance.describe(steps));
    if (options.dense) {
        SparseAdvection::DenseRun dense(comm, options.setup);
        const double denseSeconds = secondsOf(comm, [&] {
            for (int step = 0; step < steps; ++step)
                dense.step();
        });
        const real difference = comm.allReduce(SparseAdvection::largestDifference(run, dense), MPI_MAX);
        const double memory = comm.allReduce(dense.memory(), MPI_SUM);
        const double bytes = comm.allReduce(dense.bytesSent(), MPI_SUM);
        const double sent = record.bytesSent() / (2 * steps);
        record.json()["dense"] = {{"memory", memory}, {"bytes", bytes}, {"seconds", denseSeconds}};
        say(fmt::format(
            "of the dense run: {:.3f} of the time, {:.3f} of the memory at most, {} of the bytes; differs by "
            "{:.1e} at most",
            seconds / denseSeconds, record.maxMemory() / memory, bytes > 0 ? fmt::format("{:.3f}", sent / bytes) : "-",
            difference));
    }
    record.json()["seconds"] = seconds;
    if (!options.output.empty()) {
        record.write(options.output);
        say(options.output);
    }
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    CLI::App app("Carries three species around a periodic box of blocks; memory and messages follow them",
                 "sparse_advection");
    Options options;
    app.add_option("--blocks", options.setup.blocks, "blocks in each direction")->capture_default_str();
    app.add_option("--cells", options.setup.cells, "cells of a block in each direction")->capture_default_str();
    app.add_option("--periods", options.periods, "times around the box of a wind of 1")->capture_default_str();
    app.add_option("--allocate-above", options.thresholds.allocationThreshold, "threshold")->capture_default_str();
    app.add_option("--free-below", options.thresholds.deallocationThreshold, "threshold")->capture_default_str();
    app.add_option("--free-after", options.thresholds.deallocationCount, "exchanges")->capture_default_str();
    app.add_flag("!--no-quiet", options.thresholds.sendBelowThreshold, "send no rims below the threshold");
    app.add_option("--pictures", options.pictures, "of which blocks are there, in the output")->capture_default_str();
    app.add_option("--react", options.setup.reaction, "rate: dust and soot fly at each other and become radical");
    app.add_flag("--dense", options.dense, "run the dense fields, too, and compare");
    app.add_flag("!--no-balance", options.balance, "leave blocks on their ranks");
    app.add_option("--output", options.output, "JSON for plot.py");
    CLI11_PARSE(app, argc, argv);
    if (options.setup.reaction > 0)
        options.setup.species = SparseAdvection::burningSpecies();
    return DNDS::runMain(argc, argv, [&](CommunicatorView world) { return carry(world, options); });
}
