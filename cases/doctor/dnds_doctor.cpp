// dnds-doctor: says what is wrong with the machines that a job got, and what to do. See README.md.

#include "Findings.hpp"
#include "Measure.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace DNDS::Doctor {
namespace {

constexpr std::size_t maxPairsPrinted = 120;
constexpr int maxWritersOfMachine = 4; ///< of many ranks, up to 4 of each machine write a file that is not empty
constexpr int maxWritersInAll = 16;

struct Options {
    std::string folder = ".";
    std::string json;
    std::size_t megabytes = 16;
};

Json lookAtMpi() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> library{};
    int length = 0;
    checkMpi(MPI_Get_library_version(library.data(), &length), "MPI_Get_library_version");
    int level = 0;
    checkMpi(MPI_Query_thread(&level), "MPI_Query_thread");
    const std::string text(library.data());
    return {{"library", text.substr(0, text.find_first_of(",\n"))},
            {"thread_level", level == MPI_THREAD_MULTIPLE     ? "multiple"
                             : level == MPI_THREAD_SERIALIZED ? "serialized"
                             : level == MPI_THREAD_FUNNELED   ? "funneled"
                                                              : "single"},
            {"launched", launcherInfo().ranks}};
}

/// Facts about this rank.
Json lookAtRank(CommunicatorView world) {
    const auto context = CommunicatorContext::of(world);
    Json rank = lookAtMachine();
    rank["map"] = context->node().arena ? Json() : Json(context->node().whyNoArena);
    rank["device"] = Device::available() ? Json(Device::deviceInfo().name) : Json();
    rank["why_no_device"] = Device::available() ? Json() : Json(Device::unavailableReason());
    return rank;
}

/// Everything. Collective.
Json examine(CommunicatorView world, const Options &options) {
    Json report;
    report["mpi"] = lookAtMpi();
    report["ranks_per_node"] = readEnvironment().ranksPerNode;
    report["folder"] = options.folder;
    report["ranks"] = gather(world, lookAtRank(world));
    report["pairs"] = measurePairs(world);
    report["pulls"] = measurePulls(world);
    world.barrier();
    const bool writes = rankOnMachine(world) < maxWritersOfMachine || world.size() <= maxWritersInAll;
    report["files"] = gather(world, tryFiles(options.folder, world.rank(), writes ? options.megabytes << 20U : 0));
    return report;
}

void print(const Json &report) {
    std::vector<Json> pairs = report["pairs"];
    if (pairs.size() > maxPairsPrinted) {
        fmt::print("The slowest {} of {} pairs:\n", maxPairsPrinted, pairs.size());
        std::ranges::stable_sort(pairs, std::greater<>(),
                                 [](const Json &pair) { return pair["latency_us"].get<double>(); });
        pairs.resize(maxPairsPrinted);
    }
    fmt::print("{:>6} {:>6} {:>12} {:>12}\n", "from", "to", "latency us", "MB/s");
    for (const Json &pair : pairs)
        fmt::print("{:>6} {:>6} {:>12.2f} {:>12.0f}{}\n", pair["from"].get<int>(), pair["to"].get<int>(),
                   pair["latency_us"].get<double>(), pair["megabytes_per_s"].get<double>(),
                   pair["same_machine"] ? "" : "  between machines");
    fmt::print("\n{:<14} {:>12} {:>12}  {}\n", "pull by", "us", "by hand us", "reached by");
    const auto microseconds = [](const Json &pull, const char *key) {
        return pull.value(key, Json()).is_null() ? "-" : fmt::format("{:.1f}", pull[key].get<double>());
    };
    for (const Json &pull : report["pulls"])
        fmt::print("{:<14} {:>12} {:>12}  {}\n", pull["transport"].get<std::string>(),
                   microseconds(pull, "microseconds"), microseconds(pull, "by_hand_microseconds"),
                   pull["paths"].is_null()
                       ? pull["error"].get<std::string>()
                       : fmt::format("{}", fmt::join(pull["paths"].get<std::vector<std::string>>(), ", ")));
    fmt::print("\n");
    static constexpr std::array<const char *, 3> names{"fine", "warning", "ERROR"};
    for (const Json &finding : report["findings"]) {
        fmt::print("{:<8} {}\n", names.at(finding["level"].get<std::size_t>()), finding["what"].get<std::string>());
        if (const std::string cure = finding["cure"]; !cure.empty())
            fmt::print("         -> {}\n", cure);
    }
    std::fflush(stdout); // a launcher ends all ranks once one of them has ended with another code than 0
}

/// Whether the report could be written to `file`, which was opened as `path`; says so where not.
bool wrote(const std::ofstream &file, const std::string &path) {
    if (!file.good())
        fmt::print(stderr, "'{}' (--json) cannot be written: {}\n", path, std::generic_category().message(errno));
    return file.good();
}

/// On rank 0. The exit code.
int judge(Json &report, std::ofstream &file, const Options &options) {
    int worst = 0;
    report["findings"] = Json::array();
    for (const Finding &finding : findingsOf(report)) {
        const int level = static_cast<int>(finding.level);
        worst = std::max(worst, level);
        report["findings"].push_back({{"level", level}, {"what", finding.what}, {"cure", finding.cure}});
    }
    report["exit_code"] = worst;
    print(report);
    if (!options.json.empty()) {
        file << report.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
        file.close();
        if (!wrote(file, options.json))
            return 2;
    }
    return worst;
}

int run(CommunicatorView world, int argc, char **argv) {
    Options options;
    CLI::App app("Says what is wrong with the machines that a job got, and what to do.\nExit code 0: all is fine; 1: "
                 "warnings; 2: errors.",
                 "dnds-doctor");
    app.add_option("--folder", options.folder, "where to try how fast files are written")->capture_default_str();
    app.add_option("--megabytes", options.megabytes, "of each rank's file")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--json", options.json, "writes all that was found to this file");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        const int code = world.rank() == 0 ? app.exit(error) : error.get_exit_code();
        return code == 0 ? 0 : 2;
    }
    int code = 0;
    std::ofstream file;
    world.guarded([&] {
        if (world.rank() == 0 && !options.json.empty()) {
            file.open(options.json);
            code = wrote(file, options.json) ? 0 : 2;
        }
    });
    world.broadcast(code);
    if (code != 0)
        return code;
    Json report = examine(world, options);
    world.guarded([&] {
        if (world.rank() == 0)
            code = judge(report, file, options);
    });
    world.broadcast(code);
    return code;
}

} // namespace
} // namespace DNDS::Doctor

int main(int argc, char **argv) {
    std::signal(SIGXFSZ, SIG_IGN); // files beyond ulimit -f are a finding, also MPI's own
    return DNDS::runMain(
        argc, argv, [&](DNDS::CommunicatorView world) { return DNDS::Doctor::run(world, argc, argv); },
        MPI_THREAD_MULTIPLE);
}
