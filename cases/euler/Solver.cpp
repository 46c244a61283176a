#include "Solver.hpp"

#include "DNDS/Array/DofExecution.hpp"
#include "DNDS/Mpi/ExactSum.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <algorithm>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;
using DNDS::Array;
using DNDS::toSize;

Array<index> listOf(const std::vector<index> &rows) {
    Array<index> list;
    list.resize(static_cast<index>(rows.size()));
    std::copy(rows.begin(), rows.end(), list.data());
    return list;
}

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
    : mesh_(mesh), view_(viewOf(mesh, metrics)), gas_(gas), scheme_(scheme), conserved_("conserved", mesh.comm),
      start_("conserved at start", mesh.comm), timeStep_("time step", mesh.comm) {
    if (scheme.device)
        takeDevice(mesh.comm);
    mesh.comm.guarded([&] {
        DNDS_CHECK(mesh.dimension == 3 || mesh.planar, DNDS::ArgumentError,
                   "{}: two-dimensional flow needs a plane z = const", mesh.origin);
        DNDS_CHECK(conditions.size() == mesh.patches.size(), DNDS::ArgumentError,
                   "{}: {} boundary conditions for {} patches", mesh.origin, conditions.size(), mesh.patches.size());
        conditions_.resize(static_cast<index>(conditions.size()));
        std::copy(conditions.begin(), conditions.end(), conditions_.data());
        faceCondition_.resize(mesh.faces.size());
        for (index face = 0; face < mesh.faces.size(); face++)
            faceCondition_(face) = view_.faceCells(face, 1) == Geom::noEntity ? mesh.facePatches[toSize(face)] : -1;
        weights_ = gradientWeights(mesh, metrics, scheme.gradient);
        classify();
        findTurnedGhosts();
        conserved_.resize(mesh.cells.owned);
        start_.resize(mesh.cells.owned);
        timeStep_.resize(mesh.cells.owned);
        flux_.resize(mesh.faces.size());
        kernelMesh_ = view_;
        if (scheme.device)
            moveToDevice(mesh, metrics);
    });
    const auto attach = [&](auto &field, const char *name) {
        field.initPair(name, mesh.comm);
        field.father->resize(mesh.cells.owned);
        attachField(field, mesh.cells);
        if (streams_) // so that the exchange binds the device's copies
            field.toDevice();
        field.trans.initPersistentPull();
    };
    attach(state_, "state");
    attach(gradient_, "gradient");
    for (const DNDS::PeerPath &path : state_.trans.pullPaths()) {
        rowsSent_ += toSize(path.rowsSent);
        rowsReceived_ += toSize(path.rowsReceived);
    }
    if (streams_ && state_.trans.canCapturePull() && gradient_.trans.canCapturePull())
        streams_->setWholeSteps();
    DNDS::exactSums(mesh.comm, {view_.volumes.data(), toSize(mesh.cells.owned)}, {&volume_, 1});
}

void Solver::classify() {
    std::vector<index> cells, innerCells, edgeCells, innerFaces, edgeFaces;
    const auto isGhost = [&](index cell) { return cell >= mesh_.cells.owned; };
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        cells.push_back(cell);
        const auto others = view_.cellCells[cell];
        (std::any_of(others.begin(), others.end(), isGhost) ? edgeCells : innerCells).push_back(cell);
    }
    const auto sort = [&](index face) {
        const bool edge = isGhost(view_.faceCells(face, 0)) || isGhost(view_.faceCells(face, 1));
        (edge ? edgeFaces : innerFaces).push_back(face);
    };
    for (index face = 0; face < mesh_.faces.owned; face++)
        sort(face);
    for (const LocalIndex face : mesh_.sharedFaces)
        sort(face);
    allCells_ = listOf(cells);
    innerCells_ = listOf(innerCells);
    edgeCells_ = listOf(edgeCells);
    innerFaces_ = listOf(innerFaces);
    edgeFaces_ = listOf(edgeFaces);
}

void Solver::findTurnedGhosts() {
    std::vector<index> ghosts, rows;
    for (index cell = mesh_.cells.owned; cell < mesh_.cells.size(); cell++) {
        const auto &motion = mesh_.images[toSize(mesh_.cells.images[toSize(cell)])].motion;
        if (motion.matrix == Geom::RigidMotion{}.matrix)
            continue;
        rows.push_back(static_cast<index>(ghosts.size()));
        ghosts.push_back(cell - mesh_.cells.owned);
    }
    turnedGhosts_ = listOf(ghosts);
    turnedRows_ = listOf(rows);
    turns_.resize(static_cast<index>(ghosts.size()));
    for (const index row : rows) {
        const index cell = ghosts[toSize(row)] + mesh_.cells.owned;
        const auto &matrix = mesh_.images[toSize(mesh_.cells.images[toSize(cell)])].motion.matrix;
        std::copy(matrix.begin(), matrix.end(), turns_[row]);
    }
}

void Solver::moveToDevice(Geom::UnstructuredMesh &mesh, Geom::MeshMetrics &metrics) {
    Geom::toDevice(mesh, metrics);
    kernelMesh_ = Geom::viewOf<DNDS::DeviceBackend::CUDA>(mesh, metrics);
    for (List *list : {&allCells_, &innerCells_, &edgeCells_, &innerFaces_, &edgeFaces_, &turnedGhosts_, &turnedRows_})
        list->toDevice();
    conditions_.toDevice();
    faceCondition_.toDevice();
    weights_.toDevice();
    turns_.toDevice();
    conserved_.toDevice();
    start_.toDevice();
    timeStep_.toDevice();
    flux_.toDevice();
    streams_.emplace(mesh.cells.owned, scheme_.graphs);
}

void Solver::finish() const {
    if (!streams_)
        return;
    streams_->inner.synchronize();
    streams_->boundary.synchronize();
}

DNDS::Executor Solver::inner() const {
    return streams_ ? DNDS::Executor::device(streams_->inner) : DNDS::Executor::host();
}
DNDS::Executor Solver::boundary() const {
    return streams_ ? DNDS::Executor::device(streams_->boundary) : DNDS::Executor::host();
}

/// Runs a part of a step, on the device as a graph. What it writes must be marked by `makeHostStale`.
template <class Work>
void Solver::runPart(std::size_t part, const DNDS::Executor &executor, const Work &work) {
    const double begin = MPI_Wtime();
    if (streams_)
        streams_->run(part, executor.stream(), work);
    else
        work();
    times_.compute += MPI_Wtime() - begin;
}

/// Pulls ghosts; runs `innerRows` meanwhile and `edgeRows` afterwards.
template <rowsize width, class Inner, class Edge>
void Solver::pullAround(Field<width> &field, const Inner &innerRows, const Edge &edgeRows) {
    const double begin = MPI_Wtime();
    if (streams_ && !streams_->use().wholeSteps)
        streams_->ready.record(streams_->boundary);
    field.trans.startPersistentPull(boundary().stream());
    times_.start += MPI_Wtime() - begin;
    if (scheme_.overlap)
        innerRows();
    awaitGhosts(field);
    if (!scheme_.overlap)
        innerRows();
    edgeRows();
}

template <rowsize width>
void Solver::awaitGhosts(Field<width> &field) {
    const double begin = MPI_Wtime();
    if (!streams_) {
        field.trans.waitPersistentPull();
        times_.wait += MPI_Wtime() - begin;
        return;
    }
    if (streams_->use().wholeSteps) // no other ranks to wait for
        return field.trans.waitPersistentPull(streams_->boundary);
    streams_->innerDone.record(streams_->inner);
    streams_->ready.synchronize(); // which the pull would wait for, too
    const double packing = MPI_Wtime();
    times_.compute += packing - begin;
    field.trans.waitPersistentPull(streams_->boundary);
    (streams_->innerDone.reached() ? times_.wait : times_.compute) += MPI_Wtime() - packing;
}

GradientKernel Solver::gradientKernel() {
    return {kernelMesh_,     toRead(weights_), toRead(faceCondition_), toRead(conditions_),       gas_,
            scheme_.limiter, mesh_.dimension,  toRead(state_),         toWrite(*gradient_.father)};
}

FluxKernel Solver::fluxKernel() {
    return {kernelMesh_,        toRead(faceCondition_), toRead(conditions_), gas_,          scheme_.flux,
            scheme_.entropyFix, toRead(state_),         toRead(gradient_),   toWrite(flux_)};
}

RateKernel Solver::rateKernel() const { return {kernelMesh_, toRead(flux_)}; }

UpdateKernel Solver::updateKernel(real keep) {
    return {rateKernel(), gas_, keep, toRead(timeStep_), toRead(start_), toWrite(conserved_), toWrite(*state_.father)};
}

/// Cells and faces without ghosts run on the inner stream, while the others, on the boundary stream, wait for ghosts.
/// Peers pull rows of edge cells. Edge cells are also updated with fluxes of inner faces, so the boundary stream waits
/// for the inner one there; the inner one waits twice: for gradients and for states of edge cells.
void Solver::runStage(std::size_t stage, real keep) {
    const std::size_t firstPart = stage * (EndOfStage - InnerGradients);
    const auto waitForBoundary = [&] {
        if (streams_)
            DNDS::Device::runAfter(streams_->inner, streams_->boundary);
    };
    pullAround(
        state_,
        [&] { runPart(firstPart + InnerGradients, inner(), [&] { run(inner(), innerCells_, gradientKernel()); }); },
        [&] {
            runPart(firstPart + EdgeGradients, boundary(), [&] {
                if (turnedRows_.size() > 0)
                    run(boundary(), turnedRows_,
                        TurnStateKernel{toRead(turnedGhosts_), toRead(turns_), toWrite(*state_.son)});
                run(boundary(), edgeCells_, gradientKernel());
            });
        });
    waitForBoundary();
    pullAround(
        gradient_,
        [&] {
            runPart(firstPart + InnerUpdate, inner(), [&] {
                run(inner(), innerFaces_, fluxKernel());
                run(inner(), innerCells_, updateKernel(keep));
            });
        },
        [&] {
            if (streams_)
                DNDS::Device::runAfter(streams_->boundary, streams_->inner);
            runPart(firstPart + EdgeUpdate, boundary(), [&] {
                if (turnedRows_.size() > 0)
                    run(boundary(), turnedRows_,
                        TurnGradientKernel{toRead(turnedGhosts_), toRead(turns_), toWrite(*gradient_.son)});
                run(boundary(), edgeFaces_, fluxKernel());
                run(boundary(), edgeCells_, updateKernel(keep));
            });
        });
    waitForBoundary();
}

void Solver::runStages() {
    // The weight of the state at the start of the step in each stage.
    static constexpr std::array<real, 2> second{0, 1.0 / 2};
    static constexpr std::array<real, 3> third{0, 3.0 / 4, 1.0 / 3};
    const std::span<const real> keeps = scheme_.time == TimeScheme::SspRk2 ? std::span<const real>(second) : third;
    const auto all = [&] {
        for (std::size_t stage = 0; stage < keeps.size(); stage++)
            runStage(stage, keeps[stage]);
    };
    if (!streams_ || !streams_->use().wholeSteps) {
        all();
    } else {
        const SolverTimes before = times_; // count everything within as a whole
        const double begin = MPI_Wtime();
        streams_->run(Stages, streams_->boundary, [&] {
            DNDS::Device::runAfter(streams_->inner, streams_->boundary);
            all();
            DNDS::Device::runAfter(streams_->boundary, streams_->inner);
        });
        DNDS::Device::runAfter(streams_->inner, streams_->boundary);
        times_ = before;
        times_.compute += MPI_Wtime() - begin;
    }
    times_.pulls += static_cast<index>(2 * keeps.size());
    times_.bytesSent += keeps.size() * rowsSent_ * (variables + gradientWidth) * sizeof(real);
    times_.bytesReceived += keeps.size() * rowsReceived_ * (variables + gradientWidth) * sizeof(real);
    times_.cellStages += static_cast<index>(keeps.size()) * mesh_.cells.owned;
}

/// A replay writes as the capture did, but does not mark arrays as written.
void Solver::makeHostStale() {
    if (!streams_)
        return;
    toWrite(*state_.father);
    toWrite(*state_.son);
    toWrite(*gradient_.father);
    toWrite(*gradient_.son);
    toWrite(conserved_);
    toWrite(start_);
    toWrite(timeStep_);
    toWrite(flux_);
}

void Solver::computeTimeSteps() const {
    run(inner(), allCells_, TimeStepKernel{kernelMesh_, gas_, toRead(*state_.father), toWrite(timeStep_)});
}

/// The smallest time step that a cell of this rank allows; negative if one has no valid state or length.
real Solver::smallestTimeStep() const {
    if (!streams_) {
        computeTimeSteps();
        return DNDS::DofExecution::extremes(inner(), elementsOf(toRead(timeStep_))).min;
    }
    streams_->run(Bound, streams_->inner, [&] {
        computeTimeSteps();
        streams_->findSmallest(elementsOf(toRead(timeStep_)));
    });
    return streams_->smallest();
}

/// Sets time steps to `number`, or multiplies the cells' own lengths by it, and keeps the conserved variables.
void Solver::begin(Part part, real number, bool ownLengths) {
    if (streams_)
        streams_->set(number);
    runPart(part, inner(), [&] {
        if (streams_)
            streams_->sendNumber();
        if (ownLengths)
            computeTimeSteps();
        run(inner(), allCells_,
            SetTimeStepKernel{streams_ ? streams_->number() : &number, ownLengths, toWrite(timeStep_)});
        DNDS::DofExecution::copy(inner(), elementsOf(toWrite(start_)), elementsOf(toRead(conserved_)));
    });
    if (streams_)
        streams_->join();
}

real Solver::advance(real cfl, real longest) {
    makeHostStale();
    const double started = MPI_Wtime();
    const real mine = smallestTimeStep();
    times_.compute += MPI_Wtime() - started;
    const real least = mesh_.comm.allReduce(mine, MPI_MIN);
    if (least < 0) {
        checkState();
        throw DNDS::DataError(
            fmt::format("{}: the allowed time step of a cell is not a positive number", mesh_.origin));
    }
    const real step = std::min(cfl * least, longest);
    begin(BeginAlike, step, false);
    runStages();
    return step;
}

void Solver::advanceLocally(real cfl) {
    makeHostStale();
    begin(BeginLocally, cfl, true);
    runStages();
}

/// Call before the host sets the state, and afterwards.
void Solver::takeToHost() {
    finish();
    state_.father->toHost();
    conserved_.toHost();
}
void Solver::takeToDevice() {
    if (!streams_)
        return;
    state_.father->toDevice();
    conserved_.toDevice();
}

void Solver::setState(const std::function<Primitive(Vector)> &flow) {
    takeToHost();
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Primitive w = flow(Vector::load(view_.centroids[cell]));
        w.store((*state_.father)[cell]);
        gas_.conserved(w).store(conserved_[cell]);
    }
    takeToDevice();
}

void Solver::setConserved(const ParArray<real, variables> &conserved) {
    DNDS_CHECK(conserved.size() == mesh_.cells.owned, DNDS::ArgumentError, "{} has {} rows for {} cells",
               conserved.label(), conserved.size(), mesh_.cells.owned);
    takeToHost();
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Conserved amounts = Conserved::load(conserved[cell]);
        amounts.store(conserved_[cell]);
        gas_.primitive(amounts).store((*state_.father)[cell]);
    }
    takeToDevice();
}

double Solver::timePulls(int repetitions) {
    finish();
    mesh_.comm.barrier();
    const double begin = MPI_Wtime();
    for (int i = 0; i < repetitions; i++) {
        state_.trans.startPersistentPull(boundary().stream());
        state_.trans.waitPersistentPull();
        gradient_.trans.startPersistentPull(boundary().stream());
        gradient_.trans.waitPersistentPull();
    }
    return (MPI_Wtime() - begin) / repetitions;
}

} // namespace Euler
