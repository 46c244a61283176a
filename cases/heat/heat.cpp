// Heat diffusion in a periodic box, one block a rank, computed on the device and on the host with the same kernel.
// Ghosts are sent from device to device in every step. The program ends with an error unless both give the same bits
// and the known decay of the initial field.
//
//   mpiexec -n 4 heat --cells 256,192,128 --steps 200
//   mpiexec -n 4 heat --cells 256,192,128 --steps 20 --method lines --number 10

#include "LineSolver.hpp"
#include "Solver.hpp"
#include "Wave.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

using DNDS::CommunicatorView;
using Heat::index;
using Heat::real;

struct Options {
    Heat::Triple cells{64, 48, 40};
    int steps = 100;
    real number = 0.1;
    std::string method = "explicit";
    std::string on = "auto";
    std::string transport = "auto";
    std::string json;
};

struct Result {
    std::vector<real> values;
    DNDS::Box cells; ///< cells of this rank
    std::string cut;
    double seconds = 0; ///< on the slowest rank
    std::vector<DNDS::PeerPath> paths;
};

template <class Solver>
Result solveBy(CommunicatorView comm, const Options &options, Heat::Placement placement) {
    Solver solver(comm, options.cells, options.number, placement);
    const std::vector<real> start = Heat::wave(options.cells, solver.cells());
    solver.set(start);
    solver.advance(std::min(options.steps, 4)); // warm-up, not counted
    solver.set(start);
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    solver.advance(options.steps);
    solver.synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return {solver.values(), solver.cells(), solver.describe(), comm.allReduce(took.count(), MPI_MAX), solver.paths()};
}

Result solve(CommunicatorView comm, const Options &options, Heat::Placement placement) {
    return options.method == "lines" ? solveBy<Heat::LineSolver>(comm, options, placement)
                                     : solveBy<Heat::Solver>(comm, options, placement);
}

/// A hash that does not depend on the distribution of cells: each cell's bits are mixed with its position.
std::uint64_t fingerprint(CommunicatorView comm, const Heat::Triple &cells, const Result &result) {
    std::uint64_t sum = 0;
    std::size_t row = 0;
    DNDS::forEachCell(result.cells, [&](const DNDS::IndexVector &cell) {
        const auto place = static_cast<std::uint64_t>(cell[2] + cells[0] * (cell[1] + cells[1] * cell[0]));
        std::uint64_t bits = std::bit_cast<std::uint64_t>(result.values[row++]) + 0x9e3779b97f4a7c15U * (place + 1);
        bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
        sum += bits ^ (bits >> 31U);
    });
    return comm.allReduce(sum, MPI_SUM);
}

/// What is left of the initial field after all steps.
real leftOf(const Options &options) {
    const real decay = options.method == "lines" ? Heat::decayByLines(options.cells, options.number)
                                                 : Heat::decay(options.cells, options.number);
    return std::pow(decay, options.steps);
}

/// Each step rounds a few times; all errors of one sign would add up to less than this. Systems of lines magnify them
/// by their condition.
real allowedError(const Options &options) {
    return 2e-15 * (options.steps + 10) * (options.method == "lines" ? 1 + options.number : 1);
}

/// The largest difference to the exact evolution of the initial field.
real errorOf(CommunicatorView comm, const Options &options, const Result &result) {
    const std::vector<real> start = Heat::wave(options.cells, result.cells);
    const real factor = leftOf(options);
    real error = 0;
    for (std::size_t row = 0; row < start.size(); ++row)
        if (const real here = std::abs(result.values[row] - factor * start[row]); !(here <= error)) // NaN, too
            error = std::isnan(here) ? std::numeric_limits<real>::infinity() : here;
    return comm.allReduce(error, MPI_MAX);
}

int compare(CommunicatorView comm, const Options &options) {
    const auto say = [&](const std::string &text) {
        if (comm.rank() == 0)
            fmt::print("{}\n", text);
    };
    const int number = DNDS::rankOnMachine(comm); // correct even if the launcher does not set it
    if (DNDS::Device::available())
        DNDS::Device::useDevice(number);
    const bool available = comm.allReduce(DNDS::Device::available() ? 1 : 0, MPI_MIN) == 1;
    const bool onDevice = options.on == "device" || options.on == "both" || (options.on == "auto" && available);
    const bool onHost = options.on != "device";
    if (options.on == "auto" && !available)
        say(fmt::format("on the host alone: {}", DNDS::Device::unavailableReason()));

    const auto total = static_cast<double>(options.cells[0] * options.cells[1] * options.cells[2]);
    say(fmt::format("{} x {} x {} cells, {} steps", options.cells[0], options.cells[1], options.cells[2],
                    options.steps));

    nlohmann::ordered_json records = nlohmann::ordered_json::array();
    std::vector<Result> results;
    bool good = true;
    const auto compute = [&](const std::string &name, Heat::Placement placement) {
        Result result = solve(comm, options, placement);
        if (results.empty())
            say(result.cut);
        const real error = errorOf(comm, options, result);
        const real allowed = allowedError(options);
        const bool right = error <= allowed;
        good = good && right;
        const double rate = total * options.steps / result.seconds;
        say(fmt::format("{:9} {:10.3e} cells/s, {:8.2f} us a step, error {:.1e} ({}), fingerprint {:016x}", name, rate,
                        1e6 * result.seconds / options.steps, error,
                        right ? "rounding" : fmt::format("WRONG: more than {:.1e}", allowed),
                        fingerprint(comm, options.cells, result)));
        records.push_back({{"benchmark", "heat"},
                           {"device", name},
                           {"ranks", comm.size()},
                           {"cells", static_cast<std::int64_t>(total)},
                           {"transport", result.paths.empty() ? std::string("none") : result.paths[0].name},
                           {"cells_per_s", rate},
                           {"us_per_step", 1e6 * result.seconds / options.steps}});
        results.push_back(std::move(result));
    };

    if (onDevice) {
        compute(std::string(DNDS::Device::name()),
                {DNDS::MemorySpace::Device, DNDS::transportFromName(options.transport)});
        for (const DNDS::PeerPath &path : results.back().paths)
            say(fmt::format("          rank 0 from rank {}: {} rows, {} ({})", path.peer, path.rowsReceived, path.name,
                            path.why));
    }
    if (onHost)
        compute("host", {});
    if (results.size() == 2) {
        index differing = 0;
        for (std::size_t row = 0; row < results[0].values.size(); ++row)
            if (std::bit_cast<std::uint64_t>(results[0].values[row]) !=
                std::bit_cast<std::uint64_t>(results[1].values[row]))
                ++differing;
        differing = comm.allReduce(differing, MPI_SUM);
        good = good && differing == 0;
        say(fmt::format("{}; the device took {:.3g} of the host's time",
                        differing == 0 ? "device and host agree to the bit"
                                       : fmt::format("WRONG: device and host differ in {} cells", differing),
                        results[0].seconds / results[1].seconds));
    }
    if (comm.rank() == 0 && !options.json.empty()) {
        std::ofstream file(options.json);
        file << records.dump(1) << '\n';
        file.close();
        DNDS_CHECK(file.good(), DNDS::DataError, "cannot write '{}'", options.json);
    }
    return good ? 0 : 1;
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    std::vector<index> cells(options.cells.begin(), options.cells.end());
    CLI::App app("Heat diffusion in a periodic box, on the device against the host.");
    app.option_defaults()->always_capture_default();
    app.add_option("--cells", cells, "cells in each direction")
        ->delimiter(',')
        ->expected(3)
        ->check(CLI::Range(1, 100000));
    app.add_option("--steps", options.steps, "time steps")->check(CLI::Range(1, 1000000));
    app.add_option("--number", options.number, "diffusion number; explicit steps are stable up to 1/6")
        ->check(CLI::Range(0.0, 1e6));
    app.add_option("--method", options.method, "explicit, or lines: implicit in one direction after the other")
        ->check(CLI::IsMember({"explicit", "lines"}));
    app.add_option("--on", options.on, "device, host, both, or auto: both where there is a device, else the host")
        ->check(CLI::IsMember({"auto", "device", "host", "both"}));
    app.add_option("--transport", options.transport, "auto, or the name of the device transport to use");
    app.add_option("--json", options.json, "file for the results as JSON");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &stop) { // --help, or an option that does not exist
        return comm.rank() == 0 ? app.exit(stop) : stop.get_exit_code();
    }
    std::copy(cells.begin(), cells.end(), options.cells.begin());
    DNDS_CHECK(options.method == "lines" || options.number <= 1.0 / 6, DNDS::ArgumentError,
               "explicit steps are stable up to a --number of 1/6; --method lines takes any");
    DNDS_CHECK(
        std::abs(leftOf(options)) > 1e3 * allowedError(options), DNDS::ArgumentError,
        "{:.1e} is left of the field after {} steps, which rounding hides: take fewer steps, or a smaller --number",
        leftOf(options), options.steps);
    return compare(comm, options);
}

} // namespace

int main(int argc, char **argv) {
    if (DNDS::Device::available())
        DNDS::Device::useDevice(DNDS::rankByLauncher()); // before MPI starts: some libraries look for a device then
    return DNDS::runMain(argc, argv, [&](CommunicatorView world) { return run(argc, argv, world); });
}
