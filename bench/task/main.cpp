/// @file main.cpp
/// @brief bench_task: what parts of a plan cost.
#include "Benchmarks.hpp"
#include "RunBenchmark.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace DNDS::Bench {

namespace {

int run(int argc, char **argv, CommunicatorView comm) {
    NodeSync sync(comm);
    Report report;
    CommonOptions common;
    Setting setting{comm, sync, report, common};
    CLI::App app("Times parts of loops in the threads of each rank.", "bench_task");
    common.addTo(app);
    app.add_option("--threads", setting.threads, "of a rank")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--chunks", setting.chunks, "of a part")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--parts", setting.parts, "of a run")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--rows", setting.rows, "numbers that a chunk adds up")->check(CLI::NonNegativeNumber);
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    // Ranks are not pinned: their threads would share one core.
    say(comm, fmt::format("{} ranks, {}, {}\n", comm.size(), mpiLibrary(), cpuName()));
    benchmarkCrew(setting);
    if (!common.json.empty() && comm.rank() == 0)
        report.write(common.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_task", argc, argv, DNDS::Bench::run); }
