#include "Solver.hpp"

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <utility>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;
using DNDS::toSize;

/// Each rank uses the device of its number on the machine. Collective; throws on all ranks if one has none.
void takeDevice(DNDS::CommunicatorView comm) {
    const int number = DNDS::rankOnMachine(comm);
    comm.guarded([&] {
        DNDS::Device::requireDevice("compute on the device");
        DNDS::Device::useDevice(number);
    });
}

} // namespace

Solver::Solver(Geom::UnstructuredMesh &mesh, Geom::MeshMetrics &metrics, Gas gas, const Scheme &scheme,
               std::vector<BoundaryCondition> conditions)
    : mesh_(mesh), view_(viewOf(mesh, metrics)), kernelMesh_(view_), gas_(gas), scheme_(scheme),
      conserved_("conserved", mesh.comm) {
    if (scheme.device)
        takeDevice(mesh.comm);
    mesh.comm.guarded([&] {
        DNDS_CHECK(mesh.dimension == 3 || mesh.planar, DNDS::ArgumentError,
                   "{}: two-dimensional flow needs a plane z = const", mesh.origin);
        findConditions(conditions);
        weights_ = gradientWeights(mesh, metrics, scheme.gradient);
        findTurnedGhosts();
        const auto allocate = [](auto &array, const char *name, index rows) {
            array.setName(name);
            array.resize(rows);
        };
        allocate(conserved_, "conserved", mesh.cells.owned);
        allocate(start_, "conserved at start", mesh.cells.owned);
        allocate(timeStep_, "time step", mesh.cells.owned);
        allocate(length_, "length of step", 1);
        allocate(flux_, "flux", mesh.faces.size());
        if (!scheme.device)
            return;
        device_.emplace(mesh.cells.owned);
        Geom::toDevice(mesh, metrics);
        kernelMesh_ = Geom::viewOf<DNDS::DeviceBackend::CUDA>(mesh, metrics);
    });
    const auto attach = [&](auto &field, const char *name) {
        field.initPair(name, mesh.comm);
        field.father->resize(mesh.cells.owned);
        attachField(field, mesh.cells);
    };
    attach(state_, "state");
    attach(gradient_, "gradient");
    timeSteps_ = declareTimeSteps();
    stages_ = declareStages();
    residual_ = declareResidual();
    total_ = declareTotal();
    DNDS::exactSums(mesh.comm, {view_.volumes.data(), toSize(mesh.cells.owned)}, {&volume_, 1});
}

void Solver::findConditions(const std::vector<BoundaryCondition> &conditions) {
    DNDS_CHECK(conditions.size() == mesh_.patches.size(), DNDS::ArgumentError,
               "{}: {} boundary conditions for {} patches", mesh_.origin, conditions.size(), mesh_.patches.size());
    conditions_.resize(static_cast<index>(conditions.size()));
    std::copy(conditions.begin(), conditions.end(), conditions_.data());
    faceCondition_.resize(mesh_.faces.size());
    for (index face = 0; face < mesh_.faces.size(); face++)
        faceCondition_(face) = view_.faceCells(face, 1) == Geom::noEntity ? mesh_.facePatches(face) : Geom::noPatch;
}

void Solver::findTurnedGhosts() {
    turns_.resize(static_cast<index>(mesh_.images.size()));
    for (index image = 0; image < turns_.size(); image++) {
        const auto &matrix = mesh_.images[toSize(image)].motion.matrix;
        std::copy(matrix.begin(), matrix.end(), turns_[image]);
    }
    images_.resize(mesh_.cells.size());
    for (index cell = 0; cell < mesh_.cells.size(); cell++) {
        images_(cell) = mesh_.cells.images[toSize(cell)];
        if (mesh_.images[toSize(images_(cell))].motion.matrix != Geom::RigidMotion{}.matrix)
            turnedGhosts_.push_back(cell);
    }
}

/// The smallest time step that a cell of this rank allows; negative if one has no valid state or length.
real Solver::smallestTimeStep() const {
    timeSteps_->start();
    if (!device_)
        return DNDS::DofKernels::extremes(elementsOf(timeStep_), executor()).min;
    real smallest = 0;
    device_->minimum(device_->stream, elementsOf(timeStep_), device_->smallest.data());
    DNDS::Device::copy(&smallest, DNDS::MemorySpace::Host, device_->smallest.data(), DNDS::MemorySpace::Device,
                       sizeof(real), device_->stream);
    device_->stream.synchronize();
    return smallest;
}

/// Steps of length `number`, or of the cells' own lengths times it.
void Solver::runStages(real number, bool alike) {
    const auto &length = std::as_const(length_); // reading leaves the device's copy as it is
    if (length(0, 0) != number || (length(0, 1) != 0) != alike) {
        finish(); // the step before may read it
        length_.toHost();
        length_(0, 0) = number;
        length_(0, 1) = alike ? 1 : 0;
    }
    stages_->start();
    stagesDone_ += scheme_.time == TimeScheme::SspRk2 ? 2 : 3;
}

real Solver::advance(real cfl, real longest) {
    const real least = mesh_.comm.allReduce(smallestTimeStep(), MPI_MIN);
    if (least < 0) {
        checkState();
        throw DNDS::DataError(
            fmt::format("{}: the allowed time step of a cell is not a positive number", mesh_.origin));
    }
    const real step = std::min(cfl * least, longest);
    runStages(step, true);
    return step;
}

void Solver::advanceLocally(real cfl) {
    timeSteps_->start();
    runStages(cfl, false);
}

void Solver::setState(const std::function<Primitive(Vector)> &flow) {
    fetched(state_);
    fetched(conserved_);
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Primitive w = flow(Vector::load(view_.centroids[cell]));
        w.store((*state_.father)[cell]);
        gas_.conserved(w).store(conserved_[cell]);
    }
    DNDS::Task::changed(state_); // also on ranks without cells
}

void Solver::setConserved(const ParArray<real, variables> &conserved) {
    DNDS_CHECK(conserved.size() == mesh_.cells.owned, DNDS::ArgumentError, "{} has {} rows for {} cells",
               conserved.label(), conserved.size(), mesh_.cells.owned);
    fetched(state_);
    fetched(conserved_);
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Conserved amounts = Conserved::load(conserved[cell]);
        amounts.store(conserved_[cell]);
        gas_.primitive(amounts).store((*state_.father)[cell]);
    }
    DNDS::Task::changed(state_);
}

SolverTimes Solver::times() const {
    SolverTimes times = before_;
    for (const Plan *plan : {&*timeSteps_, &*stages_, trial_ ? &*trial_->plan : nullptr}) {
        if (plan == nullptr)
            continue;
        const DNDS::Task::PlanStatistics &spent = plan->statistics();
        times.compute += spent.seconds - spent.secondsStarting - spent.secondsWaiting;
        times.start += spent.secondsStarting;
        times.wait += spent.secondsWaiting;
        times.pulls += spent.transfers;
        times.bytesSent += spent.bytesSent;
        times.bytesReceived += spent.bytesReceived;
    }
    times.stages += stagesDone_;
    return times;
}

std::optional<DNDS::Task::PlanGraphs> Solver::graphUse() const {
    if (!device_)
        return std::nullopt;
    DNDS::Task::PlanGraphs use = *stages_->graphs();
    use.graphs += timeSteps_->graphs()->graphs;
    use.launches += timeSteps_->graphs()->launches;
    return use;
}

double Solver::timePulls(int repetitions) {
    finish();
    Plan pulls = declarePulls();
    mesh_.comm.barrier();
    const double begin = MPI_Wtime();
    for (int i = 0; i < repetitions; i++)
        pulls.run();
    return (MPI_Wtime() - begin) / repetitions;
}

} // namespace Euler
