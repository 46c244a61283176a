/// @file main.cpp
/// @brief bench_task: what parts of a plan cost.
#include "Benchmarks.hpp"
#include "RunBenchmark.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

namespace DNDS::Bench {

namespace {

int run(int argc, char **argv, CommunicatorView comm) {
    NodeSync sync(comm);
    Report report;
    CommonOptions common;
    Setting setting{comm, sync, report, common};
    CLI::App app("Times parts of loops in the threads of each rank, and steps as plans.", "bench_task");
    common.addTo(app);
    auto *cells = app.add_option("--cells", setting.cells, "of meshes of euler, about, of all ranks")->delimiter(',');
    app.add_option("--threads", setting.threads, "of a rank")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--chunks", setting.chunks, "of a part")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--parts", setting.parts, "of a run")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--rows", setting.rows, "numbers that a chunk adds up")->check(CLI::NonNegativeNumber);
    std::vector<std::string> what{"team", "plans", "latency", "messages", "threads", "euler"};
    app.add_option("--what", what, "team, plans, latency, messages, threads, euler")
        ->delimiter(',')
        ->check(CLI::IsMember({"team", "plans", "latency", "messages", "threads", "euler"}));
    app.add_option("--task-rows", setting.taskRows, "of small tasks")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--rank-cells", setting.rankCells, "on each rank")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--steps", setting.steps, "timed at once: fewer meet an undisturbed moment sooner; even numbers")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    auto *shared =
        app.add_option("--shared-cells", setting.sharedCells, "of all ranks, beside threads")->delimiter(',');
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    // Ranks are not pinned: their threads would share one core.
    say(comm, fmt::format("{} ranks, {}, {}\n", comm.size(), mpiLibrary(), cpuName()));
    if (common.quick && cells->count() == 0)
        setting.cells = {200, 1000};
    if (common.quick && shared->count() == 0)
        setting.sharedCells = {2000};
    const std::map<std::string, void (*)(const Setting &)> all{
        {"team", benchmarkThreadTeam}, {"plans", benchmarkPlans},       {"euler", benchmarkEulerStep},
        {"latency", benchmarkLatency}, {"messages", benchmarkMessages}, {"threads", benchmarkThreads}};
    for (const std::string &each : what)
        all.at(each)(setting);
    if (!common.json.empty() && comm.rank() == 0)
        report.write(common.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_task", argc, argv, DNDS::Bench::run); }
