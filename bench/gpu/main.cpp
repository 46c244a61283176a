/// @file main.cpp
/// @brief bench_gpu: row kernels, graphs, pulls and exchanges of sparse fields on the device against floors and
/// baselines of the same run.
#include "RunBenchmark.hpp"
#include "Setting.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace DNDS::Bench {

namespace {

int run(int argc, char **argv, CommunicatorView comm) {
    NodeSync sync(comm);
    Report report;
    Setting setting{comm, sync, report, {}, {1000000, 10000, 100000}, {1, 5, 20}, {"staged", "direct", "peer"}, {}};
    setting.common.plan.blocks = 7;
    setting.common.plan.secondsPerBlock = 0.01;
    setting.common.plan.minRepetitions = 3;
    CLI::App app("Times row kernels, graphs, pulls and exchanges of sparse fields on the device.", "bench_gpu");
    setting.common.addTo(app);
    auto *rows = app.add_option("--rows", setting.rows, "rows of a kernel or a pull, in the order of measuring");
    rows->delimiter(',')->check(CLI::Range(16, 100000000));
    auto *widths = app.add_option("--widths", setting.widths, "doubles a row");
    widths->delimiter(',')->check(CLI::Range(1, 1000));
    app.add_option("--transports", setting.transports, "device transports")->delimiter(',')->capture_default_str();
    app.add_option("--what", setting.what,
                   "kernel, rows, graph (one rank), pull, sparse (several ranks); default: what fits")
        ->delimiter(',')
        ->check(CLI::IsMember({"kernel", "rows", "graph", "pull", "sparse"}));
    app.add_option("--seconds", setting.seconds, "begin nothing after so many seconds")->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    if (setting.common.quick) {
        if (rows->count() == 0)
            setting.rows = {512};
        if (widths->count() == 0)
            setting.widths = {1, 5};
    }
    if (setting.what.empty())
        setting.what = comm.size() == 1 ? std::vector<std::string>{"rows", "kernel", "graph"}
                                        : std::vector<std::string>{"sparse", "pull"};
    const int number = rankOnMachine(comm); // as launchers say it, and right where they say nothing
    DNDS_CHECK(Device::available(), NotBuiltError, "bench_gpu measures a device: {}", Device::unavailableReason());
    DNDS_CHECK(comm.size() > 1 || !setting.wants("pull"), ArgumentError, "pulls need at least 2 ranks");
    if (setting.common.pin)
        pinToCore(comm);

    Device::useDevice(number);
    const Device::DeviceInfo info = Device::deviceInfo();
    setting.say(
        fmt::format("{} ranks, {} ({}), {}, {}\n", comm.size(), info.name, Device::name(), mpiLibrary(), cpuName()));
    if (Device::name() != "cuda")
        setting.say("This is no device: what follows shows that the benchmark is right, its times mean nothing.\n");
    if (setting.wants("rows"))
        benchmarkRows(setting);
    if (setting.wants("kernel"))
        benchmarkKernels(setting);
    if (setting.wants("graph"))
        benchmarkGraphs(setting);
    if (setting.wants("sparse") && setting.timeFor("exchanges of a sparse field"))
        benchmarkSparse(setting);
    if (setting.wants("pull"))
        benchmarkPulls(setting);
    return 0;
}

/// Some MPI libraries look for it at their start.
void makeDeviceContext() {
    if (Device::available())
        Device::useDevice(rankByLauncher());
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) {
    return DNDS::Bench::runBenchmark("bench_gpu", argc, argv, DNDS::Bench::run, DNDS::Bench::makeDeviceContext);
}
