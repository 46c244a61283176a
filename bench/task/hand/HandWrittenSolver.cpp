#include "HandWrittenSolver.hpp"

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <array>

namespace HandWritten {

namespace {

namespace Geom = DNDS::Geom;
using DNDS::Array;
using DNDS::LocalIndex;
using DNDS::rowsize;
using DNDS::toSize;
using Euler::variables;

Array<index> listOf(const std::vector<index> &rows) {
    Array<index> list;
    list.resize(static_cast<index>(rows.size()));
    std::copy(rows.begin(), rows.end(), list.data());
    return list;
}

template <class View>
std::span<const real> elementsOf(const View &view) {
    return {view.data(), toSize(view.size() * view.rowSize())};
}

} // namespace

Solver::Solver(Geom::UnstructuredMesh &mesh, Geom::MeshMetrics &metrics, Euler::Gas gas, const Euler::Scheme &scheme,
               std::vector<Euler::BoundaryCondition> conditions)
    : mesh_(mesh), view_(viewOf(mesh, metrics)), gas_(gas), scheme_(scheme), conserved_("conserved", mesh.comm),
      start_("conserved at start", mesh.comm), longest_("time step", mesh.comm) {
    if (scheme.device) {
        const int number = DNDS::rankOnMachine(mesh.comm);
        mesh.comm.guarded([&] { DNDS::Device::useDevice(number); });
    }
    mesh.comm.guarded([&] {
        conditions_.resize(static_cast<index>(conditions.size()));
        std::copy(conditions.begin(), conditions.end(), conditions_.data());
        faceCondition_.resize(mesh.faces.size());
        for (index face = 0; face < mesh.faces.size(); face++)
            faceCondition_(face) = view_.faceCells(face, 1) == Geom::noEntity ? mesh.facePatches(face) : Geom::noPatch;
        weights_ = gradientWeights(mesh, metrics, scheme.gradient);
        classify();
        findTurnedGhosts();
        conserved_.resize(mesh.cells.owned);
        start_.resize(mesh.cells.owned);
        longest_.resize(mesh.cells.owned);
        length_.resize(1);
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
    if (streams_ && state_.trans.canCapturePull() && gradient_.trans.canCapturePull())
        streams_->setWholeSteps();
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
    turns_.resize(static_cast<index>(mesh_.images.size()));
    for (index image = 0; image < turns_.size(); image++) {
        const auto &matrix = mesh_.images[toSize(image)].motion.matrix;
        std::copy(matrix.begin(), matrix.end(), turns_[image]);
    }
    images_.resize(mesh_.cells.size());
    std::vector<index> ghosts;
    for (index cell = 0; cell < mesh_.cells.size(); cell++) {
        images_(cell) = mesh_.cells.images[toSize(cell)];
        if (mesh_.images[toSize(images_(cell))].motion.matrix != Geom::RigidMotion{}.matrix)
            ghosts.push_back(cell);
    }
    turnedGhosts_ = listOf(ghosts);
}

void Solver::moveToDevice(Geom::UnstructuredMesh &mesh, Geom::MeshMetrics &metrics) {
    Geom::toDevice(mesh, metrics);
    kernelMesh_ = Geom::viewOf<DNDS::DeviceBackend::CUDA>(mesh, metrics);
    for (List *list : {&allCells_, &innerCells_, &edgeCells_, &innerFaces_, &edgeFaces_, &turnedGhosts_})
        list->toDevice();
    conditions_.toDevice();
    faceCondition_.toDevice();
    weights_.toDevice();
    images_.toDevice();
    turns_.toDevice();
    conserved_.toDevice();
    start_.toDevice();
    longest_.toDevice();
    flux_.toDevice();
    streams_.emplace(mesh.cells.owned, scheme_.graphs);
}

/// Also marks the host's copies as stale: a replay writes as the capture did, but does not tell arrays.
Views Solver::views() {
    Views views;
    views.newState = {toWrite(state_), nullptr};
    views.newGradient = {toWrite(gradient_), nullptr};
    views.newFlux = {toWrite(flux_), nullptr};
    views.newStart = {toWrite(start_), nullptr};
    views.conserved = {toWrite(conserved_), nullptr};
    views.newLongest = {toWrite(longest_), nullptr};
    views.state = {toRead(std::as_const(state_)), nullptr};
    views.gradient = {toRead(std::as_const(gradient_)), nullptr};
    views.flux = {toRead(std::as_const(flux_)), nullptr};
    views.start = {toRead(std::as_const(start_)), nullptr};
    views.longest = {toRead(std::as_const(longest_)), nullptr};
    views.length = streams_ ? streams_->length() : Euler::StepLength{std::as_const(length_).view(), nullptr};
    return views;
}

DNDS::Executor Solver::inner() const {
    return streams_ ? DNDS::Executor::device(streams_->inner) : DNDS::Executor::host();
}
DNDS::Executor Solver::boundary() const {
    return streams_ ? DNDS::Executor::device(streams_->boundary) : DNDS::Executor::host();
}

/// Runs a part of a step, on the device as a graph.
template <class Work>
void Solver::runPart(std::size_t part, const DNDS::Executor &executor, const Work &work) {
    if (streams_)
        streams_->run(part, executor.stream(), work);
    else
        work();
}

/// Pulls ghosts; runs `innerRows` meanwhile and `edgeRows` afterwards.
template <rowsize width, class Inner, class Edge>
void Solver::pullAround(Euler::Field<width> &field, const Inner &innerRows, const Edge &edgeRows) {
    field.trans.startPersistentPull(boundary().stream());
    if (scheme_.overlap)
        innerRows();
    if (streams_)
        field.trans.waitPersistentPull(streams_->boundary);
    else
        field.trans.waitPersistentPull();
    if (!scheme_.overlap)
        innerRows();
    edgeRows();
}

void Solver::update(const DNDS::Executor &executor, const List &cells, real keep) {
    if (keep == 0)
        run(executor, cells, Euler::FirstUpdateKernel{kernelMesh_, gas_});
    else
        run(executor, cells, Euler::UpdateKernel{kernelMesh_, gas_, keep});
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
    const Euler::GradientKernel gradients{kernelMesh_,
                                          toRead(std::as_const(weights_)),
                                          toRead(std::as_const(faceCondition_)),
                                          toRead(std::as_const(conditions_)),
                                          gas_,
                                          scheme_.limiter,
                                          mesh_.dimension};
    const Euler::FluxKernel fluxes{kernelMesh_,
                                   toRead(std::as_const(faceCondition_)),
                                   toRead(std::as_const(conditions_)),
                                   gas_,
                                   scheme_.flux,
                                   scheme_.entropyFix,
                                   mesh_.dimension};
    const Euler::GhostTurns turns{toRead(std::as_const(images_)), toRead(std::as_const(turns_))};
    pullAround(
        state_, [&] { runPart(firstPart + InnerGradients, inner(), [&] { run(inner(), innerCells_, gradients); }); },
        [&] {
            runPart(firstPart + EdgeGradients, boundary(), [&] {
                if (turnedGhosts_.size() > 0)
                    run(boundary(), turnedGhosts_, Euler::TurnStateKernel{turns});
                run(boundary(), edgeCells_, gradients);
            });
        });
    waitForBoundary();
    pullAround(
        gradient_,
        [&] {
            runPart(firstPart + InnerUpdate, inner(), [&] {
                run(inner(), innerFaces_, fluxes);
                update(inner(), innerCells_, keep);
            });
        },
        [&] {
            if (streams_)
                DNDS::Device::runAfter(streams_->boundary, streams_->inner);
            runPart(firstPart + EdgeUpdate, boundary(), [&] {
                if (turnedGhosts_.size() > 0)
                    run(boundary(), turnedGhosts_, Euler::TurnGradientKernel{turns});
                run(boundary(), edgeFaces_, fluxes);
                update(boundary(), edgeCells_, keep);
            });
        });
    waitForBoundary();
}

void Solver::runStages() {
    // The weight of the state at the start of the step in each stage.
    static constexpr std::array<real, 2> second{0, 1.0 / 2};
    static constexpr std::array<real, 3> third{0, 3.0 / 4, 1.0 / 3};
    const auto keeps = scheme_.time == Euler::TimeScheme::SspRk2 ? std::span<const real>(second) : third;
    const auto all = [&] {
        for (std::size_t stage = 0; stage < keeps.size(); stage++)
            runStage(stage, keeps[stage]);
    };
    if (!streams_ || !streams_->use().wholeSteps)
        return all();
    streams_->run(Stages, streams_->boundary, [&] {
        DNDS::Device::runAfter(streams_->inner, streams_->boundary);
        all();
        DNDS::Device::runAfter(streams_->boundary, streams_->inner);
    });
    DNDS::Device::runAfter(streams_->inner, streams_->boundary);
}

void Solver::computeTimeSteps() { run(inner(), allCells_, Euler::TimeStepKernel{kernelMesh_, gas_}); }

/// The smallest time step that a cell of this rank allows; negative if one has no valid state or length.
real Solver::smallestTimeStep() {
    if (!streams_) {
        computeTimeSteps();
        return DNDS::DofKernels::extremes(elementsOf(toRead(std::as_const(longest_))), inner()).min;
    }
    streams_->run(Bound, streams_->inner, [&] {
        computeTimeSteps();
        streams_->findSmallest(elementsOf(toRead(std::as_const(longest_))));
    });
    return streams_->smallest();
}

/// Lets all cells take steps of `number`, or of their own lengths times it.
void Solver::begin(Part part, real number, bool ownLengths) {
    if (streams_) {
        streams_->set(number, !ownLengths);
    } else {
        length_(0, 0) = number;
        length_(0, 1) = ownLengths ? 0 : 1;
    }
    runPart(part, inner(), [&] {
        if (streams_)
            streams_->sendLength();
        if (ownLengths)
            computeTimeSteps();
    });
    if (streams_)
        streams_->join();
}

real Solver::advance(real cfl, real longest) {
    views_ = views();
    const real least = mesh_.comm.allReduce(smallestTimeStep(), MPI_MIN);
    if (least < 0)
        throw DNDS::DataError(
            fmt::format("{}: the allowed time step of a cell is not a positive number", mesh_.origin));
    const real step = std::min(cfl * least, longest);
    begin(BeginAlike, step, false);
    runStages();
    return step;
}

void Solver::advanceLocally(real cfl) {
    views_ = views();
    begin(BeginLocally, cfl, true);
    runStages();
}

void Solver::setConserved(const DNDS::ParArray<real, variables> &conserved) {
    if (streams_)
        streams_->finish();
    state_.father->toHost();
    conserved_.toHost();
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Euler::Conserved amounts = Euler::Conserved::load(conserved[cell]);
        amounts.store(conserved_[cell]);
        gas_.primitive(amounts).store((*state_.father)[cell]);
    }
    if (!streams_)
        return;
    state_.father->toDevice();
    conserved_.toDevice();
}

const DNDS::ParArray<real, variables> &Solver::conserved() const {
    if (streams_)
        streams_->finish();
    conserved_.toHost();
    return conserved_;
}

} // namespace HandWritten
