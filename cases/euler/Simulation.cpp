#include "Simulation.hpp"

#include "Output.hpp"
#include "Picture.hpp"
#include "RunReport.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <ostream>
#include <utility>

namespace Euler {

namespace Geom = DNDS::Geom;

namespace {

std::string nameOf(BoundaryKind kind) {
    switch (kind) {
    case BoundaryKind::Wall:
        return "wall";
    case BoundaryKind::Symmetry:
        return "symmetry";
    case BoundaryKind::FarField:
        return "far field";
    case BoundaryKind::SupersonicInflow:
        return "supersonic inflow";
    case BoundaryKind::SupersonicOutflow:
        return "supersonic outflow";
    case BoundaryKind::PressureOutlet:
        break;
    }
    return "pressure outlet";
}

const Geom::MeshOptions meshOptions{.ghostsBy = Geom::GhostNeighbours::Faces};

} // namespace

/// The files of a run; none without a folder.
class Simulation::Files {
  public:
    /// Files of a continued run do not replace those of earlier steps.
    Files(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics, const Configuration &configuration,
          index step)
        : choice_(configuration.output) {
        const OutputChoice &choice = configuration.output;
        if (choice.folder.empty())
            return;
        mesh.comm.guarded([&] {
            std::error_code error;
            std::filesystem::create_directories(choice.folder, error);
            DNDS_CHECK(!error, DNDS::DataError, "the folder {} cannot be created: {}", choice.folder, error.message());
        });
        history_.emplace(mesh.comm, pathOf("history.csv"), step, configuration.implicit.has_value());
        if (step > 0)
            fieldsName_ = fmt::format("fields-{:08}.vtkhdf", step);
        if (choice.fields)
            fields_.emplace(mesh, pathOf(fieldsName_));
        if (choice.picture)
            pictures_.emplace(mesh, metrics, *choice.picture, choice.folder);
    }
    std::string pathOf(const std::string &name) const {
        return (std::filesystem::path(choice_.folder) / name).string();
    }
    /// The files written, for the final message.
    std::string written() const {
        return fmt::format("history.csv, surface.csv, {}run.json in {}", fields_ ? fieldsName_ + ", " : "",
                           choice_.folder);
    }
    void writeHistory(const RunResult &now) {
        if (history_)
            history_->write(now);
    }
    void writeFields(const Simulation &run, real time) {
        if (fields_)
            fields_->write(run.solver(), run.kinetics(), run.configuration().gas, time);
    }
    void writePicture(const Simulation &run, const RunResult &now) {
        if (pictures_)
            pictures_->write(run.solver(), run.configuration().gas, now);
    }
    PictureResult pictures() const { return pictures_ ? pictures_->result() : PictureResult{}; }
    void moved(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics) {
        if (fields_)
            fields_->moved(mesh);
        if (pictures_)
            pictures_->moved(mesh, metrics);
    }
    void close() {
        if (fields_)
            fields_->close();
    }

  private:
    const OutputChoice &choice_;
    std::optional<History> history_;
    std::string fieldsName_ = "fields.vtkhdf";
    std::optional<FieldWriter> fields_;
    std::optional<Pictures> pictures_;
};

Geom::UnstructuredMesh buildMeshOf(DNDS::CommunicatorView comm, const MeshChoice &choice) {
    Geom::SourceMesh source;
    if (choice.box)
        comm.guarded([&] { source = makeBoxMesh(*choice.box, comm); });
    else
        source = readMesh(comm, choice.file, choice.cgns);
    Geom::MeshOptions options = meshOptions;
    options.partitioner = choice.curve ? Geom::Partitioner::Curve : Geom::Partitioner::Graph;
    return buildMesh(comm, std::move(source), options);
}

Simulation::Simulation(DNDS::CommunicatorView comm, Configuration configuration)
    : comm_(comm), configuration_(std::move(configuration)), mesh_(buildMeshOf(comm, configuration_.mesh)),
      metrics_(computeMetrics(mesh_)), cells_(comm.allReduce(mesh_.cells.owned, MPI_SUM)) {
    solver_ = std::make_unique<Solver>(mesh_, metrics_, configuration_.gas, configuration_.scheme,
                                       conditionsOf(mesh_, configuration_.boundaries));
    forcePatches_ = forcePatches(mesh_, configuration_);
    solver_->setState([&](Vector point) { return flowAt(configuration_, point, 0); });
    if (configuration_.implicit)
        implicit_.emplace(*solver_, mesh_, metrics_, configuration_.gas, configuration_.reference.state,
                          configuration_.scheme, *configuration_.implicit);
    if (configuration_.kinetics)
        kinetics_.emplace(*configuration_.kinetics, mesh_);
    if (configuration_.balance)
        policy_.emplace(configuration_.balance->threshold);
}

std::string Simulation::plan() const {
    checkOutputFolder(comm_, configuration_.output.folder);
    return planOf(mesh_, *solver_, implicit_ ? &*implicit_ : nullptr, configuration_.scheme);
}

std::string Simulation::describe() const {
    const index ghosts = comm_.allReduce(mesh_.cells.ghosts, MPI_MAX);
    const index most = comm_.allReduce(mesh_.cells.owned, MPI_MAX);
    const Primitive &far = configuration_.reference.state;
    std::string text = fmt::format(
        "{}: {} cells in {} dimensions on {} ranks, at most {} a rank and {} ghosts\nreference: density {:g}, pressure "
        "{:g}, velocity ({:g}, {:g}, {:g}), Mach {:g}\nboundaries:\n",
        mesh_.origin, cells_, mesh_.dimension, comm_.size(), most, ghosts, far.density, far.pressure, far.velocity.x,
        far.velocity.y, far.velocity.z, configuration_.gas.mach(far));
    for (const auto &[name, condition] : configuration_.boundaries)
        text += fmt::format("  {:<24} {}\n", name, nameOf(condition.kind));
    return text;
}

real Simulation::step(real time) {
    const TimeChoice &choice = configuration_.time;
    real length = 0;
    if (implicit_)
        implicit_->advance();
    else if (choice.steady)
        solver_->advanceLocally(choice.cfl);
    else
        length = solver_->advance(choice.cfl, choice.end - time);
    if (kinetics_)
        kinetics_->advance(metrics_, time);
    return length;
}

/// Costs of own cells in whole numbers: 100 for one without kinetics. Collective.
std::vector<index> Simulation::costs(real time) const {
    std::array<double, 4> measured{solver_->times().compute, static_cast<double>(mesh_.cells.owned), 0, 0};
    if (kinetics_)
        measured = {measured[0], measured[1], kinetics_->seconds(), static_cast<double>(kinetics_->substeps())};
    comm_.allReduce(measured.data(), static_cast<int>(measured.size()), MPI_SUM);
    std::vector<index> all(static_cast<std::size_t>(mesh_.cells.owned), 100);
    const double stages = static_cast<double>(std::max<index>(1, solver_->times().stages));
    const double cell = measured[0] / (measured[1] * stages / stagesOf(configuration_.scheme));
    if (!kinetics_ || cell <= 0)
        return all;
    const std::vector<index> substeps = kinetics_->costs(metrics_, time);
    const double substep = measured[2] / measured[3];
    for (std::size_t i = 0; i < all.size(); i++)
        all[i] += std::llround(100 * std::min(1e6, static_cast<double>(substeps[i]) * substep / cell));
    return all;
}

/// The mesh, and all that is on it, on the ranks `targets` [own cells]. Collective.
void Simulation::moveTo(const std::vector<int> &targets) {
    Geom::MovedMesh moved(mesh_, targets, meshOptions);
    ParArray<real, variables> conserved("conserved", comm_);
    moved.rows(Geom::MeshEntityKind::Cells).move(solver_->conserved(), conserved);
    if (kinetics_) {
        ParArray<real, species> fractions("species", comm_);
        moved.rows(Geom::MeshEntityKind::Cells).move(kinetics_->fractions(), fractions);
        kinetics_->setFractions(std::move(fractions));
    }
    const SolverTimes times = solver_->times();
    solver_.reset(); // it refers to the old mesh
    mesh_ = moved.take();
    metrics_ = computeMetrics(mesh_);
    solver_ = std::make_unique<Solver>(mesh_, metrics_, configuration_.gas, configuration_.scheme,
                                       conditionsOf(mesh_, configuration_.boundaries));
    solver_->setConserved(conserved);
    solver_->continueTimes(times);
}

/// Moves cells where that pays, after a step; returns a line about it, or nothing. Collective.
std::string Simulation::rebalance(Files &files, const RunResult &now) {
    if (!policy_)
        return {};
    const double worked = solver_->times().compute + (kinetics_ ? kinetics_->seconds() : 0);
    const bool due = policy_->isDue(comm_, worked - std::exchange(counted_, worked));
    balance_.most += policy_->last().max;
    balance_.mean += policy_->last().mean;
    if (!due)
        return {};
    const double begin = MPI_Wtime();
    const std::vector<int> targets = repartitionTargets(
        mesh_, costs(now.time),
        {.partitioner = configuration_.balance->graph ? Geom::Partitioner::Graph : Geom::Partitioner::Curve});
    const auto stay = std::count(targets.begin(), targets.end(), comm_.rank());
    const index moved = comm_.allReduce(mesh_.cells.owned - static_cast<index>(stay), MPI_SUM);
    if (moved > 0) {
        moveTo(targets);
        files.moved(mesh_, metrics_);
    }
    const double seconds = comm_.allReduce(MPI_Wtime() - begin, MPI_MAX);
    policy_->moved(comm_, seconds);
    balance_.moves += moved > 0 ? 1 : 0;
    balance_.cells += moved;
    balance_.seconds += seconds;
    return fmt::format("balance after step {}: {} of {} cells move ({:.3f} s); {}\n", now.steps, moved, cells_, seconds,
                       Geom::describeImbalance(comm_, policy_->last()));
}

RunResult Simulation::measure(index steps, real time) const {
    RunResult result;
    result.steps = steps;
    result.time = time;
    result.residual = solver_->residual();
    if (implicit_)
        result.implicit = implicit_->record();
    const Reference &reference = configuration_.reference;
    const Primitive &far = reference.state;
    const real dynamic = 0.5 * far.density * dot(far.velocity, far.velocity);
    if (dynamic > 0) {
        const Vector force = solver_->force(forcePatches_, far.pressure);
        result.drag = dot(force, reference.drag) / (dynamic * reference.area);
        result.lift = dot(force, reference.lift) / (dynamic * reference.area);
    }
    return result;
}

void Simulation::measureErrors(RunResult &result) const {
    result.total = solver_->total();
    if (std::holds_alternative<std::monostate>(configuration_.initial))
        return;
    const Geom::MeshView view = viewOf(mesh_, metrics_);
    std::vector<real> rows; // volume, and the volume's parts of both means
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Primitive exact = flowAt(configuration_, Vector::load(view.centroids[cell]), result.time);
        const real difference = std::fabs(solver_->state()(cell, 0) - exact.density);
        const real volume = view.volumes(cell);
        rows.insert(rows.end(), {volume, volume * difference, volume * difference * difference});
    }
    std::array<real, 3> sums{};
    exactSums(comm_, rows, sums);
    result.meanError = sums[1] / sums[0];
    result.squareError = std::sqrt(sums[2] / sums[0]);
}

void Simulation::restart(const std::string &path, const RestartChoice &choice, std::ostream *out) {
    start_ = readCheckpoint(mesh_, configuration_, *solver_, kinetics_ ? &*kinetics_ : nullptr, path, choice, out);
    if (implicit_)
        implicit_->continueFrom(start_.now.implicit);
}

/// Writes and reports the results. Collective.
void Simulation::finish(RunResult &now, Files &files, double seconds, std::ostream *out) {
    const OutputChoice &output = configuration_.output;
    files.writeFields(*this, now.time);
    files.close();
    if (!output.folder.empty())
        writeSurface(mesh_, metrics_, *solver_, configuration_.reference, forcePatches_, files.pathOf("surface.csv"));
    measureErrors(now);
    RunCosts costs = measureCosts(comm_, *solver_, kinetics(), balance_, cells_, now.steps - start_.now.steps, seconds);
    costs.pictures = files.pictures();
    costs.pictures.seconds = comm_.allReduce(costs.pictures.seconds, MPI_MAX);
    if (!output.folder.empty())
        writeRunReport(comm_, files.pathOf("run.json"), configuration_, mesh_.origin, now, costs);
    if (out == nullptr)
        return;
    *out << fmt::format("{} after {} steps: residual {:.3e}, drag {:.6f}, lift {:.6f}\n",
                        now.converged ? "converged" : "ended", now.steps, now.residual[0], now.drag, now.lift);
    if (implicit_)
        *out << textOf(now.implicit, now.steps - start_.now.steps);
    if (now.meanError > 0)
        *out << fmt::format("error of density: mean {:.6e}, root mean square {:.6e}\n", now.meanError, now.squareError);
    *out << textOf(costs);
    if (!output.folder.empty())
        *out << "written: " << files.written() << '\n';
    *out << std::flush;
}

RunResult Simulation::operator()(std::ostream *out, ProgressStyle style) {
    const TimeChoice &choice = configuration_.time;
    const OutputChoice &output = configuration_.output;
    RunResult now = start_.now;
    real firstResidual = start_.firstResidual;
    const auto atEnd = [&] { return now.steps >= choice.steps || now.time >= choice.end; };
    const auto hasConverged = [&] { // from the last line of the history
        return choice.tolerance > 0 && now.steps > 0 && now.residual[0] <= choice.tolerance * firstResidual;
    };
    now.converged = hasConverged();
    if (atEnd() || now.converged) {
        if (out != nullptr)
            *out << fmt::format("step {} at time {:.5e} is the end: nothing is left to compute ({})\n", now.steps,
                                now.time, now.converged ? "converged: time.tolerance" : "time.steps, time.end")
                 << std::flush;
        measureErrors(now);
        return now;
    }
    Files files(mesh_, metrics_, configuration_, now.steps);
    if (implicit_ && now.steps == 0) {
        implicit_->evaluate();
        firstResidual = solver_->residual()[0];
    }
    Checkpoints checkpoints(mesh_, configuration_);
    Progress progress(out, style,
                      {.cells = cells_,
                       .firstStep = now.steps,
                       .lastStep = choice.steps,
                       .begin = now.time,
                       .end = choice.end,
                       .tolerance = choice.tolerance});
    double seconds = 0;
    while (true) {
        const double begin = MPI_Wtime();
        now.time += step(now.time);
        now.steps++;
        seconds += MPI_Wtime() - begin;
        bool done = atEnd();
        if (implicit_)
            now.implicit = implicit_->record();
        if (done || now.steps % output.historyEvery == 0 || now.steps == 1) {
            solver_->checkState();
            now = measure(now.steps, now.time);
            if (now.steps == 1 && !implicit_)
                firstResidual = now.residual[0];
            now.converged = hasConverged();
            done = done || now.converged;
            files.writeHistory(now);
        }
        progress({.step = now.steps,
                  .time = now.time,
                  .residual = firstResidual > 0 ? now.residual[0] / firstResidual : 0,
                  .seconds = seconds,
                  .cfl = implicit_ ? implicit_->record().cfl : choice.cfl,
                  .krylovIterations = implicit_ ? implicit_->record().iterations : 0},
                 done);
        files.writePicture(*this, now);
        if (done)
            break;
        if (output.fieldsEvery > 0 && now.steps % output.fieldsEvery == 0)
            files.writeFields(*this, now.time);
        const CheckpointNotice notice = checkpoints.afterStep(*solver_, kinetics(), {now, firstResidual}, false);
        progress.say(notice.message);
        if (notice.stopped) {
            files.close();
            return now;
        }
        const double balancing = MPI_Wtime();
        progress.say(rebalance(files, now));
        seconds += MPI_Wtime() - balancing; // where this is on, ranks wait for the slowest one here
    }
    finish(now, files, seconds, out);
    // After all results: if the last checkpoint exists, so do they. Otherwise the run continues from the one before.
    checkpoints.afterStep(*solver_, kinetics(), {now, firstResidual}, true);
    return now;
}

} // namespace Euler
