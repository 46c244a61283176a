/// @file main.cpp
/// @brief bench_euler: the Euler solver on all ranks beside one, and a flux loop by hand beside the library.
#include "Benchmarks.hpp"
#include "NodeSync.hpp"
#include "Options.hpp"
#include "RunBenchmark.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace DNDS::Bench {

Geom::BoxMeshOptions boxOf(const std::string &fill, index cells) {
    Geom::BoxMeshOptions box;
    box.fill = Geom::boxCellsOf(fill);
    const auto count = static_cast<double>(cells);
    double edge = 0;
    switch (box.fill) {
    case Geom::BoxCells::Triangles:
        edge = std::sqrt(count / 2);
        break;
    case Geom::BoxCells::Quadrilaterals:
        edge = std::sqrt(count);
        break;
    case Geom::BoxCells::Tetrahedra:
        edge = std::cbrt(count / 6);
        break;
    case Geom::BoxCells::Hexahedra:
        edge = std::cbrt(count);
        break;
    default:
        throw ArgumentError(
            fmt::format("cells are triangles, quadrilaterals, tetrahedra or hexahedra here, not '{}'", fill));
    }
    box.cells.fill(std::max<index>(1, std::lround(edge)));
    box.jitter = 0.1;
    return box;
}

Geom::UnstructuredMesh buildBox(CommunicatorView comm, const Geom::BoxMeshOptions &box) {
    Geom::MeshOptions options;
    options.ghostsBy = Geom::GhostNeighbours::Faces;
    return buildMesh(comm, makeBoxMesh(box, comm), options);
}

namespace {

struct Options {
    bool quick = false;
    bool pin = true;
    std::string json;
    std::vector<std::string> what{"solver", "airfoil"};
    std::string fill = "triangles";
    index cells = 500000;
    int steps = 20;
    int turns = 5;
};

std::optional<int> parseOptions(Options &options, int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Times steps of the Euler solver on all ranks and on one, and a flux loop by hand and by the library.",
                 "bench_euler");
    app.add_flag("--quick", options.quick, "small meshes, few turns: does it run, not how fast");
    app.add_option("--json", options.json, "write the records to this file");
    app.add_flag("!--no-pin", options.pin, "leave ranks where the launcher and the kernel put them");
    app.add_option("--what", options.what, "solver, airfoil")
        ->delimiter(',')
        ->check(CLI::IsMember({"solver", "airfoil"}))
        ->capture_default_str();
    app.add_option("--fill", options.fill, "the solver's cells: triangles, quadrilaterals, tetrahedra, hexahedra")
        ->capture_default_str();
    const auto *cells =
        app.add_option("--cells", options.cells, "about so many")->check(CLI::PositiveNumber)->capture_default_str();
    const auto *steps =
        app.add_option("--steps", options.steps, "in a turn")->check(CLI::PositiveNumber)->capture_default_str();
    const auto *turns =
        app.add_option("--turns", options.turns, "of each way")->check(CLI::PositiveNumber)->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return code;
    if (options.quick) { // changes defaults only
        if (cells->count() == 0)
            options.cells = 5000;
        if (steps->count() == 0)
            options.steps = 3;
        if (turns->count() == 0)
            options.turns = 2;
    }
    return std::nullopt;
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    if (options.pin)
        pinToCore(comm);
    say(comm, fmt::format("{} ranks, {}, {}\n", comm.size(), mpiLibrary(), cpuName()));
    Report report;
    const Setting setting{comm, report, options.fill, options.cells, options.steps, options.turns};
    for (const std::string &what : options.what)
        what == "solver" ? benchmarkSolver(setting) : benchmarkAirfoil(setting);
    if (!options.json.empty() && comm.rank() == 0)
        report.write(options.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_euler", argc, argv, DNDS::Bench::run); }
