#include "Simulation.hpp"

#include "Output.hpp"

#include "DNDS/Mpi/ExactSum.hpp"
#include "Geom/Mesh/BuildMesh.hpp"
#include "Geom/ReadMesh.hpp"

#include <algorithm>
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

/// The files of a run; none without a folder.
class Files {
  public:
    Files(const Geom::UnstructuredMesh &mesh, const OutputChoice &choice) : choice_(choice) {
        if (choice.folder.empty())
            return;
        mesh.comm.guarded([&] {
            std::error_code error;
            std::filesystem::create_directories(choice.folder, error);
            DNDS_CHECK(!error, DNDS::DataError, "the folder {} cannot be made: {}", choice.folder, error.message());
        });
        history_.emplace(mesh.comm, pathOf("history.csv"));
        if (choice.fields)
            fields_.emplace(mesh, pathOf("fields.vtkhdf"));
    }
    std::string pathOf(const char *name) const { return (std::filesystem::path(choice_.folder) / name).string(); }
    void writeHistory(const RunResult &now) {
        if (history_)
            history_->write(now);
    }
    void writeFields(const Solver &solver, const Gas &gas, real time) {
        if (fields_)
            fields_->write(solver, gas, time);
    }
    void close() {
        if (fields_)
            fields_->close();
    }

  private:
    const OutputChoice &choice_;
    std::optional<History> history_;
    std::optional<FieldWriter> fields_;
};

} // namespace

Geom::UnstructuredMesh buildMeshOf(DNDS::CommunicatorView comm, const MeshChoice &choice) {
    Geom::SourceMesh source;
    if (choice.box)
        comm.guarded([&] { source = makeBoxMesh(*choice.box, comm); });
    else
        source = readMesh(comm, choice.file, choice.cgns);
    Geom::MeshOptions options;
    options.partitioner = choice.curve ? Geom::Partitioner::Curve : Geom::Partitioner::Graph;
    options.ghostsBy = Geom::GhostNeighbours::Faces;
    return buildMesh(comm, std::move(source), options);
}

Simulation::Simulation(DNDS::CommunicatorView comm, Configuration configuration)
    : comm_(comm), configuration_(std::move(configuration)), mesh_(buildMeshOf(comm, configuration_.mesh)),
      metrics_(computeMetrics(mesh_)), cells_(comm.allReduce(mesh_.cells.owned, MPI_SUM)) {
    solver_ = std::make_unique<Solver>(mesh_, metrics_, configuration_.gas, configuration_.scheme,
                                       conditionsOf(mesh_, configuration_.boundaries));
    forcePatches_ = forcePatches(mesh_, configuration_);
    solver_->setState([&](Vector point) { return flowAt(configuration_, point, 0); });
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
    if (!choice.steady)
        return solver_->advance(choice.cfl, choice.end - time);
    solver_->advanceLocally(choice.cfl);
    return 0;
}

RunResult Simulation::measure(index steps, real time) const {
    RunResult result;
    result.steps = steps;
    result.time = time;
    result.residual = solver_->residual();
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

RunResult Simulation::operator()(std::ostream *out) {
    const TimeChoice &choice = configuration_.time;
    const OutputChoice &output = configuration_.output;
    Files files(mesh_, output);
    RunResult now;
    real firstResidual = 0;
    double seconds = 0;
    bool done = false;
    while (!done) {
        const double begin = MPI_Wtime();
        now.time += step(now.time);
        now.steps++;
        seconds += MPI_Wtime() - begin;
        done = now.steps >= choice.steps || now.time >= choice.end;
        if (done || now.steps % output.historyEvery == 0 || now.steps == 1) {
            solver_->checkState();
            now = measure(now.steps, now.time);
            if (now.steps == 1)
                firstResidual = now.residual[0];
            done = done || (choice.tolerance > 0 && now.residual[0] <= choice.tolerance * firstResidual);
            files.writeHistory(now);
            if (out != nullptr)
                *out << fmt::format(
                            "step {:6}  time {:.5e}  residual {:.3e}  drag {:.6f}  lift {:.6f}  {:.2f} Mcells/s\n",
                            now.steps, now.time, now.residual[0], now.drag, now.lift,
                            static_cast<double>(cells_ * now.steps) / seconds / 1e6)
                     << std::flush;
        }
        if (!done && output.fieldsEvery > 0 && now.steps % output.fieldsEvery == 0)
            files.writeFields(*solver_, configuration_.gas, now.time);
    }
    files.writeFields(*solver_, configuration_.gas, now.time);
    files.close();
    if (!output.folder.empty())
        writeSurface(mesh_, metrics_, *solver_, configuration_.reference, forcePatches_, files.pathOf("surface.csv"));
    measureErrors(now);
    const std::string report = summary(seconds, now.steps);
    if (out != nullptr) {
        if (now.meanError > 0)
            *out << fmt::format("error of density: mean {:.6e}, root mean square {:.6e}\n", now.meanError,
                                now.squareError);
        *out << report << std::flush;
    }
    return now;
}

std::string Simulation::summary(double seconds, index steps) {
    const SolverTimes times = solver_->times(); // before pulls are timed
    const double stages = times.pulls > 0 ? static_cast<double>(times.pulls) / 2 : 1;
    const double bare = solver_->timePulls(20);
    const double spent = (times.start + times.wait) / stages;
    std::array<double, 4> sums{times.compute, times.start + times.wait, bare, spent};
    comm_.allReduce(sums.data(), static_cast<int>(sums.size()), MPI_SUM);
    std::array<double, 2> most{times.compute, times.start + times.wait};
    comm_.allReduce(most.data(), static_cast<int>(most.size()), MPI_MAX);
    const auto bytes = comm_.allReduce(static_cast<index>(times.bytes), MPI_SUM);
    const double ranks = comm_.size();
    const double updates = static_cast<double>(cells_) * static_cast<double>(steps) / seconds / ranks;
    std::string text = fmt::format(
        "{} steps in {:.3f} s, of which computing {:.3f} s (slowest rank {:.3f} s), pulls {:.4f} s (slowest rank "
        "{:.4f} s)\n{:.3f} million cells a second a core, {:.3f} million cell stages\n",
        steps, seconds, sums[0] / ranks, most[0], sums[1] / ranks, most[1], updates / 1e6,
        updates * (configuration_.scheme.time == TimeScheme::SspRk2 ? 2 : 3) / 1e6);
    if (bytes > 0)
        text += fmt::format(
            "pulled {:.3f} MB in all; a stage's pulls took {:.1f} microseconds of a rank, late peers included, "
            "{:.1f} without overlap: {:.0f} % hidden\n",
            static_cast<double>(bytes) / 1e6, 1e6 * sums[3] / ranks, 1e6 * sums[2] / ranks,
            100 * std::clamp(1 - sums[3] / sums[2], 0.0, 1.0));
    return text;
}

} // namespace Euler
