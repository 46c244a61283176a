/// @file main.cpp
/// @brief bench_blocks: ghosts of structured blocks against hand-written MPI, PETSc's DMDA, p4est and strided copies.
#include "CopyMeasurement.hpp"
#include "MoveMeasurement.hpp"
#include "Options.hpp"
#include "PushMeasurement.hpp"
#include "RunBenchmark.hpp"

#include "DNDS/Blocks/CutBox.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace DNDS::Bench {

namespace {

struct Options {
    CommonOptions common;
    std::vector<index> edges{64, 128, 256};
    std::vector<int> components{1, 5};
    std::vector<index> widths{1, 2};
    std::vector<std::string> cuts{"x", "z", "best"};
    std::vector<std::string> what{"box", "star", "push", "many", "own", "copy", "move"};
    std::vector<std::string> transports{"packed", "node-shared", "auto"};
    index edgeOfBlocks = 32;
    int blocksPerRank = 64;

    bool wants(const char *kind) const { return std::ranges::find(what, kind) != what.end(); }
};

std::optional<int> parseOptions(Options &options, int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Times exchanges of ghosts of blocks against baselines measured in the same run.", "bench_blocks");
    options.common.addTo(app);
    const auto *edges = app.add_option("--edges", options.edges, "cells along an edge of the cube")->delimiter(',');
    app.add_option("--components", options.components, "doubles a cell")->delimiter(',')->capture_default_str();
    app.add_option("--widths", options.widths, "layers of ghosts")->delimiter(',')->capture_default_str();
    app.add_option("--cuts", options.cuts, "x (rows of few cells), z (whole planes), best (the library's choice)")
        ->delimiter(',')
        ->check(CLI::IsMember({"x", "z", "best"}))
        ->capture_default_str();
    app.add_option("--what", options.what,
                   "box, star (ghosts without corners beside all of them), push (of ghosts, beside the pull), many "
                   "(blocks a rank), own (between a rank's own blocks), copy (from slabs to other slabs), move (blocks "
                   "to other ranks)")
        ->delimiter(',')
        ->check(CLI::IsMember({"box", "star", "push", "many", "own", "copy", "move"}))
        ->capture_default_str();
    app.add_option("--transports", options.transports, "the library's transports")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--block-edge", options.edgeOfBlocks, "cells along an edge, of many blocks")->capture_default_str();
    app.add_option("--blocks-per-rank", options.blocksPerRank, "a cube: 8, 27, 64, ...")->capture_default_str();
    if (const auto code = parse(app, argc, argv, comm))
        return code;
    if (options.common.quick && edges->count() == 0) {
        options.edges = {16};
        options.edgeOfBlocks = 8;
        options.blocksPerRank = 8;
    }
    return std::nullopt;
}

/// A cube, one part a rank: its ghosts, or pushes of them.
void measureBox(const Setting &setting, index edge, int components, index width, const std::string &cut, bool pushes) {
    const std::array<index, 3> shape{edge, edge, edge};
    const index ranks = setting.comm.size();
    CutOptions options{.ghosts = GhostWidths::uniform(3, width),
                       .cellBytes = sizeof(double) * static_cast<std::size_t>(components)};
    if (cut == "x")
        options.parts = {1, 1, ranks};
    if (cut == "z")
        options.parts = {ranks, 1, 1};
    const IndexVector parts = chooseParts(Box::ofShape(shape), {}, static_cast<int>(ranks), options).parts;
    const std::string name = fmt::format("{}^3 x {}, {} ghost{}, {} ({} x {} x {})", edge, components, width,
                                         width == 1 ? "" : "s", cut, parts[0], parts[1], parts[2]);
    const auto grid = BlockGrid::cut(setting.comm, shape, {}, options);
    if (pushes)
        return measurePushes(setting, name, grid, width, components);
    std::vector<Contest> contests;
    contests.push_back(makeContest(setting, std::make_unique<BlockCase>(setting.comm, name, grid, width, components)));
    auto &methods = contests.front().methods;
    for (auto make : {&makeGlobalToLocal, &makeLocalToLocal, &makeP4est})
        if (auto method = make(*contests.front().of, parts))
            methods.push_back(std::move(method));
    measure(setting, name, contests);
}

/// A cube in parts that are as cubic as can be: ghosts without corners beside all of them.
void measureStar(const Setting &setting, index edge, int components, index width) {
    std::array<int, 3> cubic{};
    MPI_Dims_create(setting.comm.size(), 3, cubic.data());
    const IndexVector parts{cubic[0], cubic[1], cubic[2]};
    const auto grid =
        BlockGrid::cut(setting.comm, std::array{edge, edge, edge}, {}, {.parts = {parts.begin(), parts.begin() + 3}});
    std::vector<Contest> contests;
    for (const GhostShape shape : {GhostShape::Box, GhostShape::Star}) {
        const char *kind = shape == GhostShape::Star ? "star" : "all ghosts";
        const auto name = fmt::format("{}^3 x {}, width {}, {} x {} x {}: {}", edge, components, width, cubic[0],
                                      cubic[1], cubic[2], kind);
        contests.push_back(
            makeContest(setting, std::make_unique<BlockCase>(setting.comm, name, grid, width, components, shape)));
        const BlockCase &of = *contests.back().of;
        for (auto make : {&makeGlobalToLocal, &makeLocalToLocal})
            if (auto method = make(of, parts))
                contests.back().methods.push_back(std::move(method));
        say(setting.comm, fmt::format("{}: {} messages a rank at most, {} in all, {} bytes\n", name,
                                      setting.comm.allReduce(std::ssize(of.receives()), MPI_MAX),
                                      setting.comm.allReduce(std::ssize(of.receives()), MPI_SUM),
                                      setting.comm.allReduce(of.received(), MPI_SUM) * index{sizeof(double)}));
    }
    measure(setting, fmt::format("{}^3 x {}, width {}", edge, components, width), contests);
}

/// Many blocks a rank, none beside another of the same rank, beside one block of as many cells.
void measureMany(const Setting &setting, const Options &options, int components) {
    const int ranks = setting.comm.size();
    const auto row = [&](const std::string &name, index edge) {
        return IndexSpace{name, Box({0, 0, 0}, {edge * ranks, edge, edge}), {}};
    };
    const auto add = [&](std::vector<DNDS::Block> &blocks, index edge, int space) {
        for (int rank = 0; rank < ranks; ++rank)
            blocks.push_back({Box({edge * rank, 0, 0}, {edge * (rank + 1), edge, edge}), rank, space});
    };
    std::vector<IndexSpace> spaces;
    std::vector<DNDS::Block> blocks, large;
    for (int k = 0; k < options.blocksPerRank; ++k) {
        spaces.push_back(row(fmt::format("row {}", k), options.edgeOfBlocks));
        add(blocks, options.edgeOfBlocks, k);
    }
    index edge = options.edgeOfBlocks;
    for (int k = 2; k * k * k <= options.blocksPerRank; ++k)
        edge = options.edgeOfBlocks * k;
    add(large, edge, 0);
    std::vector<Contest> contests;
    contests.push_back(makeContest(
        setting, std::make_unique<BlockCase>(
                     setting.comm, fmt::format("{} blocks of {}^3 a rank", options.blocksPerRank, options.edgeOfBlocks),
                     BlockGrid::make(spaces, blocks), 1, components)));
    contests.push_back(
        makeContest(setting, std::make_unique<BlockCase>(setting.comm, fmt::format("one block of {}^3 a rank", edge),
                                                         BlockGrid::make({row("row", edge)}, large), 1, components)));
    measure(setting, fmt::format("between ranks, {} doubles a cell", components), contests);
}

/// Copies between the blocks of one rank.
void measureOwn(const Setting &setting, const Options &options, int components) {
    index along = 1;
    while ((along + 1) * (along + 1) * (along + 1) <= options.blocksPerRank)
        ++along;
    const index edge = options.edgeOfBlocks;
    const CommunicatorView self(MPI_COMM_SELF);
    const IndexSpace space{"cube", Box({0, 0, 0}, {along * edge, along * edge, along * edge}), {}};
    const Setting local{setting.comm, setting.sync, setting.report, setting.plan, {TransportKind::Auto}};
    std::vector<Contest> contests;
    contests.push_back(makeContest(
        local, std::make_unique<BlockCase>(self, fmt::format("{} own blocks of {}^3", along * along * along, edge),
                                           BlockGrid::blocksOf(self, space, {edge, edge, edge}), 1, components)));
    measure(local, fmt::format("{}, {} doubles a cell", contests.front().of->name(), components), contests);
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    if (const auto code = parseOptions(options, argc, argv, comm))
        return *code;
    if (options.common.pin)
        pinToCore(comm);
    const auto petsc = startPetsc();
    NodeSync sync(comm);
    Report report;
    Setting setting{comm, sync, report, options.common.plan, {}};
    for (const std::string &name : options.transports)
        setting.transports.push_back(transportFromName(name));
    say(comm, fmt::format(
                  "{} ranks, {}, {}\n\"by hand\" is the better of packing and subarray types.\n"
                  "Goals on a node: z 0.35 and x 0.8 of \"by hand\", best 0.1 of g2l; many blocks 1.15 of one "
                  "block's us/MB; own blocks 1 of the copy; copies between slabs 1.15 of memcpy; moves 3 exchanges.\n",
                  comm.size(), mpiLibrary(), cpuName()));
    if (comm.size() == 1)
        say(comm, "1 rank: copies between its own blocks only\n");
    for (const int components : options.components) {
        for (const bool pushes : {false, true})
            if (options.wants(pushes ? "push" : "box") && comm.size() > 1)
                for (const index edge : options.edges)
                    for (const index width : options.widths)
                        for (const std::string &cut : options.cuts)
                            measureBox(setting, edge, components, width, cut, pushes);
        if (options.wants("star") && comm.size() > 1)
            for (const index edge : options.edges)
                for (const index width : options.widths)
                    measureStar(setting, edge, components, width);
        if (options.wants("many") && comm.size() > 1)
            measureMany(setting, options, components);
        if (options.wants("own"))
            measureOwn(setting, options, components);
    }
    if (options.wants("copy"))
        for (const index edge : options.edges)
            measureCopies(setting, edge);
    if (options.wants("move"))
        measureMoves(setting, options.edgeOfBlocks / 2, options.components.back());
    if (!options.common.json.empty() && comm.rank() == 0)
        report.write(options.common.json);
    return 0;
}

} // namespace

} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_blocks", argc, argv, DNDS::Bench::run); }
