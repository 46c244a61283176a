/// @file main.cpp
/// @brief bench_repartition: moving cells and fields to other ranks, compared with building the mesh again.
#include "Options.hpp"
#include "PlexMove.hpp"
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
#include <memory>
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
            if (partitioner == Partitioner::Graph && !mesh_)
                keep(std::move(*mesh));
        }
        for (const double share : shares)
            move(share);
    }

    void report(Report &report, Table &table) const {
        const double anew = median(contests_.at("anew, PT-Scotch").seconds);
        for (const auto &[name, contest] : contests_) {
            const double seconds = median(contest.seconds);
            const double plex = fastestPlex(name);
            table.add({name, numberOrDash(seconds), numberOrDash(seconds / anew), numberOrDash(seconds / plex),
                       numberOrDash(contest.moved)});
            report.add({{"benchmark", "repartition"},
                        {"cells", 6 * box_.cells[0] * box_.cells[1] * box_.cells[2]},
                        {"ranks", comm_.size()},
                        {"method", name},
                        {"seconds", seconds},
                        {"ratio_to_anew", seconds / anew},
                        {"ratio_to_dmplex", numberOrNull(seconds / plex)},
                        {"moved", numberOrNull(contest.moved)},
                        {"turns", contest.seconds.size()}});
        }
    }

  private:
    /// Of the faster of both ways in which DMPlex moves as many cells, always with all fields.
    double fastestPlex(const std::string &name) const {
        double seconds = NotMeasured;
        if (name.ends_with("mesh"))
            return seconds;
        for (const auto &[other, contest] : contests_)
            if (contest.moved == contests_.at(name).moved && other.find("DMPlex") != std::string::npos)
                seconds = std::fmin(seconds, median(contest.seconds));
        return seconds;
    }
    void note(const std::string &name, double seconds, double moved = NotMeasured) {
        Contest &contest = contests_[name];
        contest.seconds.push_back(seconds);
        contest.moved = moved;
    }
    /// The mesh that is moved, and stays as it is: moves are not committed, which would exchange pointers.
    void keep(Geom::UnstructuredMesh mesh) {
        mesh_.emplace(std::move(mesh));
        for (int k = 0; k < fieldCount; ++k) {
            Field &field = fields_.emplace_back(mesh_->field<5>("u"));
            for (index cell = 0; cell < mesh_->cells.owned; ++cell)
                for (rowsize i = 0; i < 5; ++i)
                    (*field.father)(cell, i) = static_cast<real>(mesh_->cells.fileNumbers[toSize(cell)]);
        }
        if (comm_.size() > 1)
            plex_ = makePlexMove(*mesh_, makeBoxMesh(box_, comm_), fieldCount);
    }
    /// The first cells of each rank, neighbours on the curve, go to the next rank.
    void move(double share) {
        std::vector<int> targets(static_cast<std::size_t>(mesh_->cells.owned), comm_.rank());
        const auto leaving = static_cast<std::ptrdiff_t>(share * static_cast<double>(targets.size()));
        std::fill_n(targets.begin(), leaving, (comm_.rank() + 1) % comm_.size());
        const double moved = comm_.size() > 1 ? share : 0;
        const auto name = [&](const std::string &what) { return fmt::format("move {:.0f} %, {}", 100 * share, what); };
        note(name("mesh"), timed(comm_, [&] { const Geom::Repartition mine(*mesh_, targets); }), moved);
        MovedPart part;
        const auto sum = [&](const Geom::UnstructuredMesh &mesh) {
            part = {mesh.cells.size(), 0};
            for (const index number : mesh.cells.fileNumbers)
                part.field += static_cast<double>(number);
        };
        note(name(fmt::format("with {} fields", fieldCount)),
             timed(comm_,
                   [&] {
                       Geom::Repartition all(*mesh_, targets);
                       all.onCells(fields_);
                       sum(all.after());
                   }),
             moved);
        for (const bool together : {false, true}) {
            if (!plex_)
                break;
            MovedPart other;
            note(name(together ? "DMPlex, fields as one" : "DMPlex, fields one by one"),
                 timed(comm_, [&] { other = plex_->move(targets, together); }), moved);
            comm_.guarded([&] {
                DNDS_CHECK(other.cells == part.cells && other.field == part.field, StateError,
                           "DMPlex has {} cells of sum {}, DNDS {} of sum {}", other.cells, other.field, part.cells,
                           part.field);
            });
        }
    }

    CommunicatorView comm_;
    Geom::BoxMeshOptions box_;
    std::map<std::string, Contest> contests_;
    std::optional<Geom::UnstructuredMesh> mesh_;
    std::vector<Field> fields_;
    std::unique_ptr<PlexMove> plex_;
};

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    const auto petsc = startPetsc();
    Report report;
    for (const index cells : options.cells) {
        Case one(comm, cells);
        for (int turn = 0; turn < options.repeats; ++turn)
            one.takeTurn(options.shares);
        Table table({"method", "s", "/ anew", "/ DMPlex", "moved"});
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
