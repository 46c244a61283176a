/// @file main.cpp
/// @brief bench_repartition: cells and fields move to other ranks, beside building the mesh anew.
#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Statistics.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Repartition/Repartition.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::Bench {

namespace {

using Geom::Partitioner;
using Field = ArrayPair<ParArray<real, 5>>;
constexpr int fieldCount = 10;

struct Options {
    std::string json;
    bool quick = false;
    int repeats = 3;
    std::vector<index> cells{700'000};
    std::vector<double> shares{0.1, 0.5};
};

std::optional<int> parseOptions(Options &options, int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Times repartitioning with ten fields beside building the mesh anew.", "bench_repartition");
    app.add_flag("--quick", options.quick, "a small mesh, once: does it run, not how fast");
    app.add_option("--json", options.json, "write the records to this file");
    const auto *repeats = app.add_option("--repeats", options.repeats, "turns of each method")
                              ->capture_default_str()
                              ->check(CLI::PositiveNumber);
    const auto *cells =
        app.add_option("--cells", options.cells, "numbers of tetrahedra")->delimiter(',')->capture_default_str();
    app.add_option("--shares", options.shares, "shares of cells that move")->delimiter(',')->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return code;
    if (options.quick && repeats->count() == 0)
        options.repeats = 1;
    if (options.quick && cells->count() == 0)
        options.cells = {20'000};
    return std::nullopt;
}

/// Seconds of the slowest rank.
double timed(const CommunicatorView &comm, const std::function<void()> &work) {
    comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return comm.allReduce(seconds, MPI_MAX);
}

struct Contest {
    std::vector<double> seconds;
    double moved = NotMeasured;
};

class Case {
  public:
    Case(CommunicatorView comm, index cells) : comm_(comm) {
        box_.fill = Geom::BoxCells::Tetrahedra;
        box_.cells.fill(std::max<index>(1, std::lround(std::cbrt(static_cast<double>(cells) / 6))));
        box_.jitter = 0.1;
    }

    void takeTurn(const std::vector<double> &shares) {
        for (const Partitioner partitioner : {Partitioner::Graph, Partitioner::Curve}) {
            const char *const by = partitioner == Partitioner::Graph ? "PT-Scotch" : "curve";
            Geom::SourceMesh source = makeBoxMesh(box_, comm_);
            Geom::MeshOptions options;
            options.partitioner = partitioner;
            std::optional<Geom::UnstructuredMesh> mesh;
            note(fmt::format("anew, {}", by),
                 timed(comm_, [&] { mesh.emplace(buildMesh(comm_, std::move(source), options)); }));
            note(fmt::format("targets, {}", by),
                 timed(comm_, [&] { (void)Geom::repartitionTargets(*mesh, {}, {.partitioner = partitioner}); }));
            if (partitioner == Partitioner::Graph)
                for (const double share : shares)
                    move(*mesh, share);
        }
    }

    void report(Report &report, Table &table) const {
        const double anew = median(contests_.at("anew, PT-Scotch").seconds);
        for (const auto &[name, contest] : contests_) {
            const double seconds = median(contest.seconds);
            table.add({name, numberOrDash(seconds), numberOrDash(seconds / anew), numberOrDash(contest.moved)});
            report.add({{"benchmark", "repartition"},
                        {"cells", 6 * box_.cells[0] * box_.cells[1] * box_.cells[2]},
                        {"ranks", comm_.size()},
                        {"method", name},
                        {"seconds", seconds},
                        {"ratio_to_anew", seconds / anew},
                        {"moved", numberOrNull(contest.moved)},
                        {"turns", contest.seconds.size()}});
        }
    }

  private:
    void note(const std::string &name, double seconds, double moved = NotMeasured) {
        Contest &contest = contests_[name];
        contest.seconds.push_back(seconds);
        contest.moved = moved;
    }
    /// The first cells of each rank, neighbours on the curve, go to the next rank.
    void move(Geom::UnstructuredMesh &mesh, double share) {
        std::vector<Field> fields(fieldCount);
        for (Field &field : fields)
            field = mesh.field<5>("u");
        std::vector<int> targets(static_cast<std::size_t>(mesh.cells.owned), comm_.rank());
        const auto leaving = static_cast<std::ptrdiff_t>(share * static_cast<double>(targets.size()));
        std::fill_n(targets.begin(), leaving, (comm_.rank() + 1) % comm_.size());
        const double moved = comm_.size() > 1 ? share : 0;
        note(fmt::format("move {:.0f} %, mesh", 100 * share),
             timed(comm_, [&] { const Geom::Repartition mine(mesh, targets); }), moved);
        note(fmt::format("move {:.0f} %, with {} fields", 100 * share, fieldCount),
             timed(comm_,
                   [&] {
                       Geom::Repartition all(mesh, targets);
                       all.onCells(fields);
                       all.commit();
                   }),
             moved);
    }

    CommunicatorView comm_;
    Geom::BoxMeshOptions box_;
    std::map<std::string, Contest> contests_;
};

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    Report report;
    for (const index cells : options.cells) {
        Case one(comm, cells);
        for (int turn = 0; turn < options.repeats; ++turn)
            one.takeTurn(options.shares);
        Table table({"method", "s", "/ anew", "moved"});
        one.report(report, table);
        say(comm, fmt::format("{} tetrahedra, {} ranks\n{}", cells, comm.size(), table.text()));
    }
    if (comm.rank() == 0 && !options.json.empty())
        report.write(options.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_repartition", argc, argv, DNDS::Bench::run); }
