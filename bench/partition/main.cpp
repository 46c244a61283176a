/// @file main.cpp
/// @brief bench_partition: the partitioners beside each other, time and quality.
#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Statistics.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::Bench {

namespace {

using Geom::PartitionEffort;
using Geom::Partitioner;

struct Options {
    std::string json;
    std::string mesh;
    bool quick = false;
    int repeats = 3;
    index cells = 200'000;
    std::vector<int> parts{4, 64};
};

std::optional<int> parseOptions(Options &options, int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Times the partitioners beside each other, and counts what their parts cost.", "bench_partition");
    app.add_flag("--quick", options.quick, "a small mesh, once: does it run, not how fast");
    app.add_option("--json", options.json, "write the records to this file");
    app.add_option("--mesh", options.mesh, "a file instead of a box");
    const auto *repeats = app.add_option("--repeats", options.repeats, "turns of each method")
                              ->capture_default_str()
                              ->check(CLI::PositiveNumber);
    const auto *cells = app.add_option("--cells", options.cells, "tetrahedra")->capture_default_str();
    app.add_option("--parts", options.parts, "numbers of parts")->delimiter(',')->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return code;
    if (options.quick && repeats->count() == 0)
        options.repeats = 1;
    if (options.quick && cells->count() == 0)
        options.cells = 5'000;
    return std::nullopt;
}

struct Method {
    const char *name;
    Partitioner partitioner;
    PartitionEffort effort;
};
constexpr std::array<Method, 3> methods{{{"curve", Partitioner::Curve, PartitionEffort::Quick},
                                         {"PT-Scotch, quick", Partitioner::Graph, PartitionEffort::Quick},
                                         {"PT-Scotch, thorough", Partitioner::Graph, PartitionEffort::Thorough}}};
constexpr std::size_t thorough = 2;

struct Result {
    std::vector<double> seconds; ///< maximum over ranks, one a turn
    Geom::PartitionReport report;
};

/// Methods take turns.
std::vector<Result> measure(const Geom::UnstructuredMesh &mesh, int parts, int repeats) {
    std::vector<Result> results(methods.size());
    for (int turn = 0; turn < repeats; ++turn)
        for (std::size_t k = 0; k < methods.size(); ++k) {
            mesh.comm.barrier();
            const auto start = std::chrono::steady_clock::now();
            const std::vector<int> part =
                partitionCells(mesh, parts, methods[k].partitioner, {.effort = methods[k].effort});
            const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            results[k].seconds.push_back(mesh.comm.allReduce(seconds, MPI_MAX));
            results[k].report = reportPartition(mesh, part, parts, Geom::GhostNeighbours::Faces);
        }
    return results;
}

index maxGhosts(const Geom::PartitionReport &report) {
    index most = 0;
    for (const auto &part : report.parts)
        most = std::max(most, part.ghosts);
    return most;
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    Geom::BoxMeshOptions box;
    box.fill = Geom::BoxCells::Tetrahedra;
    box.cells.fill(std::max<index>(1, std::lround(std::cbrt(static_cast<double>(options.cells) / 6))));
    box.jitter = 0.1;
    const Geom::UnstructuredMesh mesh =
        Geom::buildMesh(comm, options.mesh.empty() ? Geom::makeBoxMesh(box, comm) : Geom::readMesh(comm, options.mesh),
                        {.partitioner = Partitioner::Curve, .ghostsBy = Geom::GhostNeighbours::Faces});
    const index cells = comm.allReduce(mesh.cells.owned, MPI_SUM);
    Report report;
    for (const int parts : options.parts) {
        const std::vector<Result> results = measure(mesh, parts, options.repeats);
        const double itsSeconds = median(results[thorough].seconds);
        const auto itsCut = static_cast<double>(results[thorough].report.cut);
        Table table({"method", "s", "/ thorough", "faces cut", "/ thorough", "most ghosts", "imbalance"});
        for (std::size_t k = 0; k < methods.size(); ++k) {
            const auto &[seconds, quality] = results[k];
            const double cut = static_cast<double>(quality.cut);
            table.add({methods[k].name, numberOrDash(median(seconds)), numberOrDash(median(seconds) / itsSeconds),
                       fmt::format("{}", quality.cut), numberOrDash(cut / itsCut),
                       fmt::format("{}", maxGhosts(quality)), numberOrDash(quality.imbalance)});
            report.add({{"benchmark", "partition"},
                        {"mesh", mesh.origin},
                        {"cells", cells},
                        {"ranks", comm.size()},
                        {"parts", parts},
                        {"method", methods[k].name},
                        {"seconds", median(seconds)},
                        {"ratio_to_thorough", median(seconds) / itsSeconds},
                        {"cut_ratio_to_thorough", cut / itsCut},
                        {"cut", quality.cut},
                        {"most_ghosts", maxGhosts(quality)},
                        {"imbalance", quality.imbalance}});
        }
        say(comm,
            fmt::format("{}: {} cells, {} ranks, {} parts\n{}", mesh.origin, cells, comm.size(), parts, table.text()));
    }
    if (comm.rank() == 0 && !options.json.empty())
        report.write(options.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_partition", argc, argv, DNDS::Bench::run); }
