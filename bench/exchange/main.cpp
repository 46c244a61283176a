/// @file main.cpp
/// @brief bench_exchange: ghost pulls and their set-up against hand-written MPI, PETSc, GHEX and a local copy.
#include "Benchmarks.hpp"
#include "Options.hpp"
#include "RunBenchmark.hpp"
#include "SetupMethod.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace DNDS::Bench {

RowState rowState(const std::string &name) {
    if (name == "dirty")
        return {name, true, false, false};
    if (name == "warm")
        return {name, false, false, false};
    if (name == "used")
        return {name, true, true, false};
    if (name == "read")
        return {name, true, true, true};
    throw ArgumentError(fmt::format("the rows' state is dirty, warm, used or read, not '{}'", name));
}

namespace {

struct Options {
    CommonOptions common;
    std::vector<int> grids{64, 128};
    std::vector<int> widths{1, 5, 20, 100};
    std::vector<std::string> transports{"datatype", "packed", "node-shared", "auto"};
    std::vector<std::string> states{"dirty", "warm", "used", "read"};
    std::vector<std::string> what{"pull", "setup", "latency"};
    std::vector<std::string> numberings{"shuffled", "renumbered"};
    index latencyGhosts = 64;
    int setupWidth = 5;

    bool wants(const char *kind) const { return std::find(what.begin(), what.end(), kind) != what.end(); }
    bool numbered(const char *how) const {
        return std::find(numberings.begin(), numberings.end(), how) != numberings.end();
    }
};

std::optional<int> parseOptions(Options &options, int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Times ghost pulls and their set-up against baselines measured in the same run.", "bench_exchange");
    options.common.addTo(app);
    const auto *grids = app.add_option("--grids", options.grids, "edges of the grids, in cells")->delimiter(',');
    app.add_option("--widths", options.widths, "doubles a row")->delimiter(',')->capture_default_str();
    app.add_option("--transports", options.transports, "the library's transports")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--states", options.states, "of the rows between pulls: dirty, warm, used, read")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--what", options.what, "pull, setup, latency")->delimiter(',')->capture_default_str();
    app.add_option("--numberings", options.numberings, "of a grid's rows: shuffled, renumbered (inner rows first)")
        ->delimiter(',')
        ->check(CLI::IsMember({"shuffled", "renumbered"}))
        ->capture_default_str();
    app.add_option("--latency-ghosts", options.latencyGhosts, "ghosts a peer of the latency pattern")
        ->capture_default_str();
    app.add_option("--setup-width", options.setupWidth, "doubles a row in the set-up")->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return code;
    if (options.common.quick && grids->count() == 0)
        options.grids = {32};
    return std::nullopt;
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    if (comm.size() < 2) {
        say(comm, "bench_exchange needs at least 2 ranks: run it under mpirun -n 2\n");
        return 1;
    }
    if (options.common.pin)
        pinToCore(comm);
    const auto petsc = startPetsc();
    NodeSync sync(comm);
    Report report;
    Setting setting{comm, sync, report, options.common.plan, {}, {}};
    for (const std::string &name : options.transports)
        setting.transports.push_back(transportFromName(name));
    for (const std::string &name : options.states)
        setting.states.push_back(rowState(name));

    say(comm, fmt::format("{} ranks, {}, {}\n", comm.size(), mpiLibrary(), cpuName()));
    say(comm, petscVersion().empty() ? "PETSc: absent, this build has no PetscSF to compare with\n"
                                     : fmt::format("PETSc {}\n", petscVersion()));
    say(comm, fmt::format("one way between ranks 0 and 1: {} ns\n", numberOrDash(sync.probe())));

    const auto pullAndSetup = [&](const Problem &problem, bool pulls) {
        const index most = comm.allReduce(problem.ghosts(), MPI_MAX);
        say(comm, fmt::format("\n{} {}: cut by {}, at most {} ghosts a rank\n", problem.name, problem.numbering,
                              problem.partitioner, most));
        if (pulls)
            for (const int width : options.widths)
                benchmarkPulls(setting, problem, width);
        if (options.wants("setup") && problem.numbering == "shuffled") // set-up does not depend on it
            benchmarkSetups(setting, problem, options.setupWidth);
    };
    if (options.wants("latency"))
        pullAndSetup(latencyProblem(comm, std::max<index>(4096, options.latencyGhosts), options.latencyGhosts), true);
    if (options.wants("pull") || options.wants("setup"))
        for (const int edge : options.grids) {
            const Problem shuffled = gridProblem(comm, edge);
            if (options.numbered("shuffled"))
                pullAndSetup(shuffled, options.wants("pull"));
            if (options.numbered("renumbered") && options.wants("pull"))
                pullAndSetup(renumbered(comm, shuffled), true);
        }

    if (!options.common.json.empty() && comm.rank() == 0)
        report.write(options.common.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_exchange", argc, argv, DNDS::Bench::run); }
