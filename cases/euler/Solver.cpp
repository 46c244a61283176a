#include "Solver.hpp"

#include "DNDS/Array/DofExecution.hpp"
#include "DNDS/Device/Event.hpp"
#include "DNDS/Mpi/ExactSum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;
using DNDS::Array;

template <class T>
std::size_t toSize(T i) {
    return static_cast<std::size_t>(i);
}

Array<index> listOf(const std::vector<index> &rows) {
    Array<index> list;
    list.resize(static_cast<index>(rows.size()));
    std::copy(rows.begin(), rows.end(), list.data());
    return list;
}

template <class TArray>
auto readOnly(const TArray &array) {
    return array.view();
}

/// All elements of what a view shows.
template <class View>
auto elementsOf(const View &view) {
    return std::span(view.data(), toSize(view.size() * view.rowSize()));
}

constexpr index noCell = std::numeric_limits<index>::max();

} // namespace

Solver::Solver(Geom::UnstructuredMesh &mesh, Geom::MeshMetrics &metrics, Gas gas, const Scheme &scheme,
               std::vector<BoundaryCondition> conditions)
    : mesh_(mesh), view_(viewOf(mesh, metrics)), gas_(gas), scheme_(scheme), conserved_("conserved", mesh.comm),
      start_("conserved at start", mesh.comm), timeStep_("time step", mesh.comm) {
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
        if (lanes_) // and so the exchange is one of the device's copies
            field.toDevice();
        field.trans.initPersistentPull();
    };
    attach(state_, "state");
    attach(gradient_, "gradient");
    for (const DNDS::PeerPath &path : state_.trans.pullPaths()) {
        rowsSent_ += toSize(path.rowsSent);
        rowsReceived_ += toSize(path.rowsReceived);
    }
    sumColumns({view_.volumes.data(), toSize(mesh.cells.owned)}, {&volume_, 1});
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
    DNDS::Device::requireDevice("compute on the device");
    // ranks of one machine follow each other, as they do unless told otherwise
    DNDS::Device::useDevice(mesh.comm.rank());
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
    lanes_.emplace();
}

void Solver::finish() const {
    if (!lanes_)
        return;
    lanes_->inner.synchronize();
    lanes_->edge.synchronize();
}

DNDS::Executor Solver::inner() const { return lanes_ ? DNDS::Executor::device(lanes_->inner) : DNDS::Executor::host(); }
DNDS::Executor Solver::edge() const { return lanes_ ? DNDS::Executor::device(lanes_->edge) : DNDS::Executor::host(); }

/// Makes each stream wait for what the other holds.
void Solver::join() {
    if (!lanes_)
        return;
    DNDS::Device::runAfter(lanes_->inner, lanes_->edge);
    DNDS::Device::runAfter(lanes_->edge, lanes_->inner);
}

/// Runs a kernel for each row of a list.
template <class Kernel>
void Solver::run(const DNDS::Executor &executor, const List &rows, const Kernel &kernel) const {
    const double begin = MPI_Wtime();
    launch(executor, toRead(rows), kernel);
    times_.compute += MPI_Wtime() - begin;
}

/// Refreshes ghosts; `innerRows` is done meanwhile, `edgeRows` afterwards.
template <rowsize width, class Inner, class Edge>
void Solver::pullAround(Field<width> &field, const Inner &innerRows, const Edge &edgeRows) {
    const double begin = MPI_Wtime();
    const DNDS::Device::StreamHandle stream = lanes_ ? lanes_->edge.handle() : nullptr;
    field.trans.startPersistentPull(stream);
    times_.start += MPI_Wtime() - begin;
    if (scheme_.overlap)
        innerRows();
    const double arrival = MPI_Wtime();
    if (lanes_)
        field.trans.waitPersistentPull(stream);
    else
        field.trans.waitPersistentPull();
    times_.wait += MPI_Wtime() - arrival;
    times_.bytesSent += rowsSent_ * toSize(width) * sizeof(real);
    times_.bytesReceived += rowsReceived_ * toSize(width) * sizeof(real);
    times_.pulls++;
    if (!scheme_.overlap)
        innerRows();
    edgeRows();
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

void Solver::computeGradients() {
    pullAround(
        state_, [&] { run(inner(), innerCells_, gradientKernel()); },
        [&] {
            if (turnedRows_.size() > 0)
                run(edge(), turnedRows_, TurnStateKernel{toRead(turnedGhosts_), toRead(turns_), toWrite(*state_.son)});
            run(edge(), edgeCells_, gradientKernel());
        });
    join();
}

void Solver::runStage(std::size_t stage, real keep) {
    computeGradients();
    const auto finishStage = [&] {
        if (turnedRows_.size() > 0)
            run(edge(), turnedRows_,
                TurnGradientKernel{toRead(turnedGhosts_), toRead(turns_), toWrite(*gradient_.son)});
        run(edge(), edgeFaces_, fluxKernel());
        join();
        run(inner(), allCells_,
            UpdateKernel{rateKernel(), gas_, keep, toRead(timeStep_), toRead(start_), toWrite(conserved_),
                         toWrite(*state_.father)});
        join();
    };
    pullAround(
        gradient_, [&] { run(inner(), innerFaces_, fluxKernel()); },
        [&] {
            if (!lanes_)
                return finishStage();
            join(); // the graph begins on one stream and takes the other in
            DNDS::Device::Graph &graph = lanes_->ends[stage];
            if (!graph)
                graph = DNDS::Device::Graph::capture(lanes_->edge, [&] {
                    DNDS::Device::runAfter(lanes_->inner, lanes_->edge);
                    finishStage();
                });
            // a replay writes as the capture did: the host's copies are old now
            toWrite(conserved_);
            toWrite(*state_.father);
            graph.launch(lanes_->edge);
            join();
        });
    times_.cellStages += mesh_.cells.owned;
}

void Solver::runStages() {
    // How much of the state at the start of the step each stage keeps.
    static constexpr std::array<real, 2> second{0, 1.0 / 2};
    static constexpr std::array<real, 3> third{0, 3.0 / 4, 1.0 / 3};
    const std::span<const real> keeps = scheme_.time == TimeScheme::SspRk2 ? std::span<const real>(second) : third;
    DNDS::DofExecution::copy(inner(), elementsOf(toWrite(start_)), elementsOf(toRead(conserved_)));
    join();
    for (std::size_t stage = 0; stage < keeps.size(); stage++)
        runStage(stage, keeps[stage]);
}

void Solver::computeTimeSteps() {
    run(inner(), allCells_, TimeStepKernel{kernelMesh_, gas_, toRead(*state_.father), toWrite(timeStep_)});
}

index Solver::firstImpossibleCell() const {
    index first = noCell;
    const auto state = readOnly(this->state());
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        if (!Primitive::load(state[cell]).physical())
            first = std::min(first, mesh_.cells.fileNumbers[toSize(cell)]);
    return first;
}

void Solver::checkState() {
    const index first = mesh_.comm.allReduce(firstImpossibleCell(), MPI_MIN);
    DNDS_CHECK(first == noCell, DNDS::DataError,
               "{}: cell {} (counted from 0) has lost its density or pressure: lower the CFL number, or choose another "
               "limiter or flux",
               mesh_.origin, first);
}

real Solver::advance(real cfl, real longest) {
    computeTimeSteps();
    const real mine = DNDS::DofExecution::extremes(inner(), elementsOf(toRead(timeStep_))).min;
    const real least = mesh_.comm.allReduce(std::isnan(mine) ? -1 : mine, MPI_MIN);
    if (least < 0) {
        checkState();
        throw DNDS::DataError(fmt::format("{}: the time step is not a number", mesh_.origin));
    }
    const real step = std::min(cfl * least, longest);
    DNDS::DofExecution::fill(inner(), elementsOf(toWrite(timeStep_)), step);
    runStages();
    return step;
}

void Solver::advanceLocally(real cfl) {
    computeTimeSteps();
    DNDS::DofExecution::combine(inner(), DNDS::DofKernels::Operation::Multiply, elementsOf(toWrite(timeStep_)), cfl);
    runStages();
}

/// Before the host sets the state, and afterwards.
void Solver::takeToHost() {
    finish();
    state_.father->toHost();
    conserved_.toHost();
}
void Solver::takeToDevice() {
    if (!lanes_)
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

/// Of all ranks' rows.
void Solver::sumColumns(std::span<const real> rows, std::span<real> sums) const {
    if (scheme_.reproducible) {
        exactSums(mesh_.comm, rows, sums);
        return;
    }
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t begin = 0; begin < rows.size(); begin += sums.size())
        for (std::size_t k = 0; k < sums.size(); k++)
            sums[k] += rows[begin + k];
    mesh_.comm.allReduce(sums.data(), static_cast<int>(sums.size()), MPI_SUM);
}

std::array<real, variables> Solver::residual() const {
    Array<real, variables> squares;
    squares.resize(mesh_.cells.owned);
    if (lanes_)
        squares.toDevice();
    launch(inner(), toRead(allCells_), ResidualKernel{rateKernel(), toWrite(squares)});
    fetched(squares);
    std::array<real, variables> sums{};
    sumColumns({std::as_const(squares).data(), toSize(squares.dataSize())}, sums);
    for (real &sum : sums)
        sum = std::sqrt(sum / volume_);
    return sums;
}

Vector Solver::force(const std::vector<int> &patches, real reference) const {
    const auto fluxes = readOnly(fetched(flux_));
    std::vector<real> rows;
    for (const int patch : patches)
        for (const LocalIndex face : mesh_.patches[toSize(patch)].faces)
            if (face < mesh_.faces.owned && faceCondition_(face) == patch) {
                const real *flux = fluxes[face];
                const real *area = view_.areaVectors[face];
                for (int d = 0; d < 3; d++)
                    rows.push_back(flux[1 + d] - reference * area[d]);
            }
    std::array<real, 3> sums{};
    sumColumns(rows, sums);
    return Vector::load(sums.data());
}

std::array<real, variables> Solver::total() const {
    const auto amountsNow = readOnly(conserved());
    Array<real, variables> amounts;
    amounts.resize(mesh_.cells.owned);
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        (view_.volumes(cell) * Conserved::load(amountsNow[cell])).store(amounts[cell]);
    std::array<real, variables> sums{};
    sumColumns({std::as_const(amounts).data(), toSize(amounts.dataSize())}, sums);
    return sums;
}

std::vector<real> Solver::wallPressures(std::span<const index> faces) const {
    const auto fluxes = readOnly(fetched(flux_));
    std::vector<real> pressures;
    for (const index face : faces) {
        const Vector area = Vector::load(view_.areaVectors[face]);
        pressures.push_back(dot(Conserved::load(fluxes[face]).momentum, area) / dot(area, area));
    }
    return pressures;
}

std::vector<DNDS::PeerPath> Solver::pullPaths() const {
    std::vector<DNDS::PeerPath> paths = state_.trans.pullPaths();
    for (const DNDS::PeerPath &path : gradient_.trans.pullPaths())
        paths.push_back(path);
    return paths;
}

std::size_t Solver::bytes() const {
    const auto cells = toSize(mesh_.cells.size());
    const auto owned = toSize(mesh_.cells.owned);
    const std::size_t numbers = (variables + gradientWidth) * cells + (2 * variables + 1) * owned +
                                toSize(flux_.dataSize()) + toSize(weights_.dataSize());
    return sizeof(real) * numbers;
}

double Solver::timePulls(int repetitions) {
    finish();
    mesh_.comm.barrier();
    const double begin = MPI_Wtime();
    for (int i = 0; i < repetitions; i++) {
        state_.trans.startPersistentPull(edge().stream());
        state_.trans.waitPersistentPull();
        gradient_.trans.startPersistentPull(edge().stream());
        gradient_.trans.waitPersistentPull();
    }
    return (MPI_Wtime() - begin) / repetitions;
}

} // namespace Euler
