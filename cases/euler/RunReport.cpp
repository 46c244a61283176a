#include "RunReport.hpp"

#include "Simulation.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;

/// The peak memory of this process; meshes and fields are allocated by now, so this is what a run needs.
double memoryOfProcess() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

/// One rank's share of a planned run; only numbers, so that ranks can send it.
enum Column { Cells, Ghosts, Faces, Peers, Messages, Sent, Received, Fields, Process, columns };
using PlanRow = std::array<double, columns>;

PlanRow ownRow(const Geom::UnstructuredMesh &mesh, const Solver &solver, const ImplicitSteps *implicit) {
    PlanRow row{};
    row[Cells] = static_cast<double>(mesh.cells.owned);
    row[Ghosts] = static_cast<double>(mesh.cells.ghosts);
    row[Faces] = static_cast<double>(mesh.faces.owned) + static_cast<double>(mesh.sharedFaces.size());
    for (const DNDS::PeerPath &path : solver.pullPaths()) {
        row[Sent] += static_cast<double>(path.bytesSent);
        row[Received] += static_cast<double>(path.bytesReceived);
        if (path.peer == mesh.comm.rank())
            continue;
        row[Peers] += 0.5; // both pulls of a stage have all peers
        if (path.transport != DNDS::TransportKind::NodeShared)
            row[Messages] += path.bytesSent > 0 ? 1 : 0;
    }
    row[Fields] = static_cast<double>(solver.bytes() + (implicit != nullptr ? implicit->bytes() : 0));
    row[Process] = memoryOfProcess();
    return row;
}

std::string textOf(const std::string &name, const PlanRow &row) {
    return fmt::format("{:>6} {:>10.0f} {:>8.0f} {:>10.0f} {:>5.0f} {:>8.0f} {:>10.1f} {:>10.1f} {:>9.2f} {:>8.1f}\n",
                       name, row[Cells], row[Ghosts], row[Faces], row[Peers], row[Messages], row[Sent] / 1e3,
                       row[Received] / 1e3, row[Fields] / 1e6, row[Process] / 1e6);
}

} // namespace

double RunCosts::hidden() const {
    return pullsOfStageAlone > 0 ? std::clamp(1 - pullsOfStage / pullsOfStageAlone, 0.0, 1.0) : 0;
}

RunCosts measureCosts(DNDS::CommunicatorView comm, Solver &solver, const Kinetics *kinetics,
                      const BalanceResult &balance, index cells, index steps, double seconds) {
    const SolverTimes times = solver.times(); // before pulls are timed
    const double stages = times.stages > 0 ? static_cast<double>(times.stages) : 1;
    const double alone = solver.timePulls(20);
    const double spent = times.start + times.wait;
    const double reacting = kinetics != nullptr ? kinetics->seconds() : 0;
    std::array<double, 7> sums{times.compute, spent, spent / stages, alone, times.start, times.wait, reacting};
    comm.allReduce(sums.data(), static_cast<int>(sums.size()), MPI_SUM);
    std::array<double, 3> most{times.compute, spent, reacting};
    comm.allReduce(most.data(), static_cast<int>(most.size()), MPI_MAX);
    RunCosts costs;
    costs.ranks = comm.size();
    costs.cells = cells;
    costs.steps = steps;
    costs.stages = stages / static_cast<double>(std::max<index>(1, steps));
    costs.seconds = seconds;
    costs.computing = sums[0] / costs.ranks;
    costs.pulls = sums[1] / costs.ranks;
    costs.pullsOfStage = sums[2] / costs.ranks;
    costs.pullsOfStageAlone = sums[3] / costs.ranks;
    costs.starting = sums[4] / costs.ranks;
    costs.waiting = sums[5] / costs.ranks;
    costs.computingMost = most[0];
    costs.pullsMost = most[1];
    costs.kinetics = sums[6] / costs.ranks;
    costs.kineticsMost = most[2];
    costs.balance = balance;
    costs.pullsMade = times.pulls;
    costs.bytesSent = comm.allReduce(static_cast<index>(times.bytesSent), MPI_SUM);
    costs.bytesPulled = comm.allReduce(static_cast<index>(times.bytesReceived), MPI_SUM);
    costs.graphUse = solver.graphUse();
    costs.ranksWithGraphs = comm.allReduce(costs.graphUse && costs.graphUse->whyNot.empty() ? 1 : 0, MPI_SUM);
    return costs;
}

std::string textOf(const RunCosts &costs) {
    std::string text = fmt::format(
        "{} steps in {:.3f} s, of which computing {:.3f} s (slowest rank {:.3f} s), pulls {:.4f} s (slowest rank "
        "{:.4f} s; starting {:.4f} s, waiting {:.4f} s)\n{:.3f} million cells a second a core, {:.3f} million cell "
        "stages\n",
        costs.steps, costs.seconds, costs.computing, costs.computingMost, costs.pulls, costs.pullsMost, costs.starting,
        costs.waiting, costs.cellsPerSecondAndRank() / 1e6, costs.cellsPerSecondAndRank() * costs.stages / 1e6);
    if (costs.bytesPulled > 0)
        text += fmt::format("sent {:.3f} MB in {} pulls of all ranks together; a stage's pulls took {:.1f} "
                            "microseconds of a rank, late peers included{}\n",
                            static_cast<double>(costs.bytesSent) / 1e6, costs.pullsMade, 1e6 * costs.pullsOfStage,
                            costs.hidden() > 0 ? fmt::format(", {:.1f} without overlap: {:.0f} % hidden",
                                                             1e6 * costs.pullsOfStageAlone, 100 * costs.hidden())
                                               : "");
    if (costs.kinetics > 0)
        text += fmt::format("kinetics {:.3f} s (slowest rank {:.3f} s)\n", costs.kinetics, costs.kineticsMost);
    if (costs.balance.mean > 0)
        text += fmt::format(
            "balanced {} times in {:.3f} s: {} cells moved; the slowest rank of each step had {:.2f} x the "
            "mean of all ranks' work\n",
            costs.balance.moves, costs.balance.seconds, costs.balance.cells, costs.balance.most / costs.balance.mean);
    if (costs.pictures.written > 0)
        text += fmt::format("{} pictures in {:.3f} s besides, {:.1f} % of the time of steps\n", costs.pictures.written,
                            costs.pictures.seconds, 100 * costs.pictures.seconds / costs.seconds);
    if (costs.graphUse && costs.graphUse->whyNot.empty())
        text +=
            fmt::format("on the device, {} of {} ranks replayed steps from graphs; rank 0: {} graphs, {} launches\n",
                        costs.ranksWithGraphs, costs.ranks, costs.graphUse->graphs, costs.graphUse->launches);
    else if (costs.graphUse)
        text += fmt::format("on the device, {} of {} ranks replayed steps from graphs; rank 0 started kernels one by "
                            "one: {}\n",
                            costs.ranksWithGraphs, costs.ranks, costs.graphUse->whyNot);
    return text;
}

std::string textOf(const ImplicitRecord &record, index steps) {
    std::string text = fmt::format("implicit steps: CFL number {:.4g} at the end, {} iterations of GMRES", record.cfl,
                                   record.iterations);
    if (record.unconverged > 0)
        text += fmt::format("; {} linear systems of {} steps were left above implicit.krylovTolerance: lower "
                            "implicit.cflMost, or raise implicit.krylovIterations or implicit.sweeps",
                            record.unconverged, steps);
    if (record.rejected > 0)
        text += fmt::format("; {} attempts were repeated with a smaller CFL number", record.rejected);
    return text + "\n";
}

void writeRunReport(DNDS::CommunicatorView comm, const std::string &path, const Configuration &configuration,
                    const std::string &origin, const RunResult &result, const RunCosts &costs) {
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        using nlohmann::ordered_json;
        const auto list = [](Vector v) { return std::array{v.x, v.y, v.z}; };
        const Primitive &far = configuration.reference.state;
        ordered_json report;
        report["configuration"] = configuration.path;
        report["mesh"] = origin;
        report["cells"] = costs.cells;
        report["ranks"] = costs.ranks;
        report["gas"] = {{"gamma", configuration.gas.gamma}};
        report["reference"] = {{"density", far.density},
                               {"pressure", far.pressure},
                               {"velocity", {far.velocity.x, far.velocity.y, far.velocity.z}},
                               {"mach", configuration.gas.mach(far)},
                               {"area", configuration.reference.area}};
        report["steps"] = result.steps;
        report["time"] = result.time;
        report["converged"] = result.converged;
        report["residual"] = result.residual;
        report["drag"] = result.drag;
        report["lift"] = result.lift;
        report["total"] = result.total;
        if (result.meanError > 0)
            report["density error"] = {{"mean", result.meanError}, {"root mean square", result.squareError}};
        report["costs"] = {{"steps", costs.steps},
                           {"seconds", costs.seconds},
                           {"computing", costs.computing},
                           {"computing, slowest rank", costs.computingMost},
                           {"starting pulls", costs.starting},
                           {"waiting", costs.waiting},
                           {"pulls", costs.pulls},
                           {"pulls, slowest rank", costs.pullsMost},
                           {"cells a second a rank", costs.cellsPerSecondAndRank()},
                           {"rest", costs.rest()},
                           {"pulls of each rank", costs.pullsMade},
                           {"bytes sent", costs.bytesSent},
                           {"bytes pulled", costs.bytesPulled},
                           {"hidden share of pulls", costs.hidden()}};
        if (configuration.implicit)
            report["implicit"] = {{"cfl", result.implicit.cfl},
                                  {"krylov iterations", result.implicit.iterations},
                                  {"unconverged systems", result.implicit.unconverged},
                                  {"rejected attempts", result.implicit.rejected}};
        if (configuration.kinetics)
            report["kinetics"] = {{"centre", list(configuration.kinetics->centre)},
                                  {"velocity", list(configuration.kinetics->velocity)},
                                  {"radius", configuration.kinetics->radius},
                                  {"seconds", costs.kinetics},
                                  {"seconds, slowest rank", costs.kineticsMost}};
        if (configuration.balance)
            report["balance"] = {{"moves", costs.balance.moves},
                                 {"cells moved", costs.balance.cells},
                                 {"seconds", costs.balance.seconds},
                                 {"work, slowest ranks", costs.balance.most},
                                 {"work, mean of ranks", costs.balance.mean}};
        if (configuration.output.picture)
            report["pictures"] = {{"written", costs.pictures.written}, {"seconds", costs.pictures.seconds}};
        if (costs.graphUse)
            report["graphs"] = {{"ranks", costs.ranksWithGraphs},
                                {"captured", costs.graphUse->graphs},
                                {"launches", costs.graphUse->launches},
                                {"why not", costs.graphUse->whyNot}};
        std::ofstream file(path);
        file << report.dump(2) << '\n';
        file.close();
        DNDS_CHECK(file.good(), DNDS::DataError, "{} cannot be written", path);
    });
}

std::string planOf(const Geom::UnstructuredMesh &mesh, const Solver &solver, const ImplicitSteps *implicit,
                   const Scheme &scheme) {
    const DNDS::CommunicatorView comm = mesh.comm;
    const PlanRow mine = ownRow(mesh, solver, implicit);
    std::array<std::vector<double>, columns> all;
    for (std::size_t column = 0; column < columns; column++)
        all[column] = comm.allGather(mine[column]);
    std::string text =
        implicit != nullptr
            ? "each iteration of GMRES pulls twice, as a stage of an explicit step, and its preconditioner:\n"
            : fmt::format("each step has {} stages, each stage pulls twice:\n", stagesOf(scheme));
    text += fmt::format("{:>6} {:>10} {:>8} {:>10} {:>5} {:>8} "
                        "{:>10} {:>10} {:>9} {:>8}\n{:>6} {:>10} {:>8} {:>10} {:>5} {:>8} {:>10} {:>10} {:>9} {:>8}\n",
                        "rank", "cells", "ghosts", "faces", "peers", "messages", "sent", "received", "fields",
                        "process", "", "", "", "", "", "a stage", "kB/stage", "kB/stage", "MB", "MB");
    constexpr std::size_t fewRanks = 32;
    const auto ranks = static_cast<std::size_t>(comm.size());
    for (std::size_t rank = 0; rank < ranks && ranks <= fewRanks; rank++) {
        PlanRow row{};
        for (std::size_t column = 0; column < columns; column++)
            row[column] = all[column][rank];
        text += textOf(std::to_string(rank), row);
    }
    PlanRow least{}, mean{}, most{};
    for (std::size_t column = 0; column < columns; column++) {
        const auto [low, high] = std::minmax_element(all[column].begin(), all[column].end());
        least[column] = *low;
        most[column] = *high;
        for (const double value : all[column])
            mean[column] += value / comm.size();
    }
    if (ranks > 1)
        text += textOf("least", least) + textOf("mean", mean) + textOf("most", most);
    return text;
}

void checkOutputFolder(DNDS::CommunicatorView comm, const std::string &folder) {
    comm.guarded([&] {
        if (comm.rank() != 0 || folder.empty())
            return;
        std::filesystem::path place = std::filesystem::absolute(folder);
        while (!std::filesystem::exists(place) && place.has_relative_path())
            place = place.parent_path();
        DNDS_CHECK(std::filesystem::is_directory(place), DNDS::DataError,
                   "the folder {} cannot be created: {} is not a folder", folder, place.string());
        DNDS_CHECK(::access(place.c_str(), W_OK | X_OK) == 0, DNDS::DataError,
                   "the folder {} cannot be written: {} is not writable", folder, place.string());
    });
}

} // namespace Euler
