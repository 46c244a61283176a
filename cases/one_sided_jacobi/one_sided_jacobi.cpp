// A Jacobi iteration whose kernels put their rims into the neighbours' halos and signal, beside one that pulls ghosts.
//
//   mpiexec -n 4 one_sided_jacobi --rows 200 --columns 500 --steps 1000 --on device
//
// Many steps of the first are launched together, as kernels that are queued or as a single one: no host takes part in
// an exchange. The program ends with an error unless all come to the same bits.

#include "Jacobi.hpp"

#include "DNDS/DNDS.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/OneSided/SymmetricHeap.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace Jacobi;
using DNDS::CommunicatorView;
using DNDS::Executor;
using DNDS::index; // POSIX has a function of that name
using DNDS::MemorySpace;
using DNDS::toSize;

struct Options {
    index rows = 100; ///< rows of each rank
    index columns = 200;
    index steps = 200;
    index launch = 20; ///< steps that are launched together
    index workers = 0; ///< threads of a kernel that does many steps; 0: a suitable number
    std::string on = "host";
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

real startValue(index row, index column) {
    return std::sin(0.3 * static_cast<real>(row)) + std::cos(0.17 * static_cast<real>(column * (row % 7)));
}

struct Result {
    std::vector<real> values; ///< [rows x columns] of this rank
    double secondsPerStep = 0;
};

/// All run at the same time on any GPU since Turing: fewer than its multiprocessors have room for.
constexpr index maxWorkers = 8192;

index workersOf(const Options &options) {
    const bool emulated = options.on == "device" && DNDS::Device::name() == "emulated";
    if (options.workers == 0)
        return options.on == "host" || emulated ? 1 : maxWorkers / 2;
    DNDS_CHECK(!emulated || options.workers == 1, DNDS::ArgumentError,
               "{} workers are to wait for each other, but threads of the emulated device run one after the other",
               options.workers);
    return options.workers;
}

/// All steps of a launch in one kernel, or in as many host threads as it has workers.
void iterateAtOnce(const Executor &executor, const Iterate &steps) {
    if (executor.onDevice()) {
        iterateInOneKernel(executor.stream(), steps);
        return;
    }
    std::vector<std::thread> others;
    for (index worker = 1; worker < steps.workers; ++worker)
        others.emplace_back(steps, worker);
    steps(0);
    for (std::thread &thread : others)
        thread.join();
}

enum class Launch : unsigned char { Queued, OneKernel };

/// Rows follow each other around the ranks: the first rank comes after the last one.
Result byPuts(CommunicatorView comm, const Options &options, Launch launch) {
    const bool onDevice = options.on == "device";
    const auto [rows, columns] = std::pair(options.rows, options.columns);
    const std::size_t window = toSize((rows + 2) * columns);
    const index workers = workersOf(options);
    DNDS::SymmetricHeap heap(comm, 2 * window * sizeof(real) + 4096,
                             onDevice ? MemorySpace::Device : MemorySpace::Host);
    const int me = comm.rank(), ranks = comm.size();
    const Strip strip{heap.view(DNDS::KernelWaits::Yes), // throws on all ranks where kernels must not wait
                      heap.allocate<real>(2 * window),
                      heap.allocate<std::uint64_t>(2),
                      heap.allocate<std::uint64_t>(1),
                      rows,
                      columns,
                      (me + ranks - 1) % ranks,
                      (me + 1) % ranks};
    Result result;
    result.values.resize(toSize(rows * columns));
    for (index r = 0; r < rows; ++r)
        for (index c = 0; c < columns; ++c)
            result.values[toSize(r * columns + c)] = startValue(me * rows + r, c);
    const std::uint64_t zeros[2] = {0, 0};
    heap.put(strip.row(0, 1), result.values.data(), result.values.size(), me);
    heap.put(strip.signals, zeros, 2, me);
    heap.put(strip.arrived, zeros, 1, me);
    heap.barrier();
    std::unique_ptr<DNDS::Device::Stream> stream;
    if (onDevice)
        stream = std::make_unique<DNDS::Device::Stream>();
    const Executor executor = onDevice ? Executor::device(*stream) : Executor::host();
    const double start = seconds();
    for (index step = 0; step < options.steps; step += options.launch) {
        const index count = std::min(options.launch, options.steps - step);
        if (launch == Launch::Queued)
            iterate(executor, strip, step, count);
        else
            iterateAtOnce(executor, {strip, step, count, workers});
        executor.synchronize();
        heap.checkKernels();
    }
    result.secondsPerStep = (seconds() - start) / static_cast<double>(options.steps);
    heap.barrier();
    heap.get(result.values.data(), strip.row(options.steps, 1), result.values.size(), me);
    heap.barrier();
    return result;
}

/// The same with an array of rows and two ghosts a rank.
Result byPulls(CommunicatorView comm, const Options &options) {
    const index rows = options.rows;
    const auto columns = static_cast<DNDS::rowsize>(options.columns);
    DNDS::ArrayPair<DNDS::ParArray<real, DNDS::DynamicSize>> u;
    u.initPair("u", comm);
    u.father->resize(rows, columns);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    const index total = rows * comm.size(), first = rows * comm.rank();
    const index south = (first + total - 1) % total, north = (first + rows) % total;
    u.trans.createGhostMapping(std::vector<index>{south, north});
    u.trans.createMPITypes();
    u.trans.initPersistentPull();
    const index southRow = rows + u.trans.ghostMapping()->findGhost(south).value();
    const index northRow = rows + u.trans.ghostMapping()->findGhost(north).value();
    for (index r = 0; r < rows; ++r)
        for (DNDS::rowsize c = 0; c < columns; ++c)
            (*u.father)(r, c) = startValue(first + r, c);
    DNDS::ParArray<real, DNDS::DynamicSize> next("next", comm);
    next.resize(rows, columns);
    const double start = seconds();
    for (index step = 0; step < options.steps; ++step) {
        u.trans.startPersistentPull();
        u.trans.waitPersistentPull();
        const auto now = std::as_const(u).view();
        const auto then = next.view();
        for (index r = 0; r < rows; ++r) {
            const index below = r == 0 ? southRow : r - 1, above = r == rows - 1 ? northRow : r + 1;
            for (DNDS::rowsize c = 0; c < columns; ++c)
                then(r, c) = c == 0 || c == columns - 1
                                 ? now(r, c)
                                 : average(now(below, c), now(above, c), now(r, c - 1), now(r, c + 1));
        }
        u.father->swapData(next);
    }
    Result result;
    result.secondsPerStep = (seconds() - start) / static_cast<double>(options.steps);
    for (index r = 0; r < rows; ++r)
        for (DNDS::rowsize c = 0; c < columns; ++c)
            result.values.push_back((*u.father)(r, c));
    return result;
}

int run(CommunicatorView comm, const Options &options) {
    const Result pulls = byPulls(comm, options);
    const auto microseconds = [&](const Result &result) {
        return 1e6 * comm.allReduce(result.secondsPerStep, MPI_MAX);
    };
    const double pullTime = microseconds(pulls);
    if (comm.rank() == 0)
        fmt::print("{} x {} cells on {} ranks, {} steps, launched {} at a time\n"
                   "pulls (host)                     {:9.2f} us a step\n",
                   options.rows * comm.size(), options.columns, comm.size(), options.steps, options.launch, pullTime);
    bool same = true;
    for (const auto &[launch, text] :
         {std::pair(Launch::Queued, "three kernels a step"), std::pair(Launch::OneKernel, "one kernel a launch")}) {
        const Result puts = byPuts(comm, options, launch);
        const index different = comm.allReduce(puts.values == pulls.values ? index{0} : index{1}, MPI_SUM);
        const double time = microseconds(puts);
        if (comm.rank() == 0)
            fmt::print("{:20} ({:6})    {:9.2f} us a step, {}\n", text, options.on, time,
                       different == 0 ? "the same bits" : fmt::format("{} ranks have other bits", different));
        same = same && different == 0;
    }
    return same ? 0 : 1;
}

int runWithArguments(CommunicatorView comm, int argc, char **argv) {
    CLI::App app("Jacobi iterations whose kernels exchange rims by themselves, beside pulls.");
    Options options;
    app.option_defaults()->always_capture_default();
    app.add_option("--rows", options.rows, "rows of cells on each rank")->check(CLI::Range(1, 1000000));
    app.add_option("--columns", options.columns, "cells in a row")->check(CLI::Range(3, 1000000));
    app.add_option("--steps", options.steps, "steps")->check(CLI::Range(1, 1000000));
    app.add_option("--launch", options.launch, "steps that are launched together")->check(CLI::Range(1, 10000));
    app.add_option("--workers", options.workers, "threads of a kernel that does many steps; 0: as many as suit")
        ->check(CLI::Range(index{0}, maxWorkers));
    app.add_option("--on", options.on, "where the kernels run")->check(CLI::IsMember({"host", "device"}));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &stop) { // --help, or an option that does not exist
        return comm.rank() == 0 ? app.exit(stop) : stop.get_exit_code();
    }
    return run(comm, options);
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](CommunicatorView world) { return runWithArguments(world, argc, argv); });
}
