#include "Solver.hpp"

#include "DNDS/Mpi/ExactSum.hpp"

#include <algorithm>
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

constexpr index noCell = std::numeric_limits<index>::max();

} // namespace

Solver::Solver(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics, Gas gas, const Scheme &scheme,
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
    });
    const auto attach = [&](auto &field, const char *name) {
        field.initPair(name, mesh.comm);
        field.father->resize(mesh.cells.owned);
        attachField(field, mesh.cells);
        field.trans.initPersistentPull();
    };
    attach(state_, "state");
    attach(gradient_, "gradient");
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

/// Runs a kernel for each row of a list: what would be a launch elsewhere.
template <class Kernel>
void Solver::run(const List &rows, const Kernel &kernel) {
    const double begin = MPI_Wtime();
    const auto list = rows.view();
    for (index i = 0; i < list.size(); i++)
        kernel(list(i));
    times_.compute += MPI_Wtime() - begin;
}

/// Refreshes ghosts; `inner` is done meanwhile, `edge` afterwards.
template <class Pulled, class Inner, class Edge>
void Solver::pullAround(Pulled &field, const Inner &inner, const Edge &edge) {
    const double begin = MPI_Wtime();
    field.trans.startPersistentPull();
    times_.start += MPI_Wtime() - begin;
    if (scheme_.overlap)
        inner();
    const double arrival = MPI_Wtime();
    field.trans.waitPersistentPull();
    times_.wait += MPI_Wtime() - arrival;
    for (const DNDS::PeerPath &path : field.trans.pullPaths())
        times_.bytes += path.bytesReceived;
    times_.pulls++;
    if (!scheme_.overlap)
        inner();
    edge();
}

GradientKernel Solver::gradientKernel() {
    return {view_,           readOnly(weights_), readOnly(faceCondition_), readOnly(conditions_),   gas_,
            scheme_.limiter, mesh_.dimension,    readOnly(state_),         gradient_.father->view()};
}

FluxKernel Solver::fluxKernel() {
    return {view_,        readOnly(faceCondition_), readOnly(conditions_), gas_,
            scheme_.flux, scheme_.entropyFix,       readOnly(state_),      readOnly(gradient_),
            flux_.view()};
}

RateKernel Solver::rateKernel() const { return {view_, flux_.view()}; }

void Solver::computeFluxes() {
    pullAround(
        state_, [&] { run(innerCells_, gradientKernel()); },
        [&] {
            if (turnedRows_.size() > 0)
                run(turnedRows_, TurnStateKernel{readOnly(turnedGhosts_), readOnly(turns_), state_.son->view()});
            run(edgeCells_, gradientKernel());
        });
    pullAround(
        gradient_, [&] { run(innerFaces_, fluxKernel()); },
        [&] {
            if (turnedRows_.size() > 0)
                run(turnedRows_, TurnGradientKernel{readOnly(turnedGhosts_), readOnly(turns_), gradient_.son->view()});
            run(edgeFaces_, fluxKernel());
        });
}

void Solver::runStages() {
    // How much of the state at the start of the step each stage keeps.
    static constexpr std::array<real, 2> second{0, 1.0 / 2};
    static constexpr std::array<real, 3> third{0, 3.0 / 4, 1.0 / 3};
    const std::span<const real> keeps = scheme_.time == TimeScheme::SspRk2 ? std::span<const real>(second) : third;
    std::copy_n(std::as_const(conserved_).data(), conserved_.dataSize(), start_.data());
    for (const real keep : keeps) {
        computeFluxes();
        run(allCells_, UpdateKernel{rateKernel(), gas_, keep, readOnly(timeStep_), readOnly(start_), conserved_.view(),
                                    state_.father->view()});
        times_.cellStages += mesh_.cells.owned;
    }
}

void Solver::computeTimeSteps() {
    run(allCells_, TimeStepKernel{view_, gas_, readOnly(*state_.father), timeStep_.view()});
}

index Solver::firstImpossibleCell() const {
    index first = noCell;
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        if (!Primitive::load((*state_.father)[cell]).physical())
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
    const real *allowed = std::as_const(timeStep_).data();
    real least = std::numeric_limits<real>::infinity();
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        least = std::min(least, allowed[cell]);
    least = mesh_.comm.allReduce(least, MPI_MIN);
    if (least < 0)
        checkState();
    const real step = std::min(cfl * least, longest);
    std::fill_n(timeStep_.data(), timeStep_.size(), step);
    runStages();
    return step;
}

void Solver::advanceLocally(real cfl) {
    computeTimeSteps();
    real *step = timeStep_.data();
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        step[cell] *= cfl;
    runStages();
}

void Solver::setState(const std::function<Primitive(Vector)> &flow) {
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Primitive w = flow(Vector::load(view_.centroids[cell]));
        w.store((*state_.father)[cell]);
        gas_.conserved(w).store(conserved_[cell]);
    }
}

void Solver::setConserved(const ParArray<real, variables> &conserved) {
    DNDS_CHECK(conserved.size() == mesh_.cells.owned, DNDS::ArgumentError, "{} has {} rows for {} cells",
               conserved.label(), conserved.size(), mesh_.cells.owned);
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Conserved amounts = Conserved::load(conserved[cell]);
        amounts.store(conserved_[cell]);
        gas_.primitive(amounts).store((*state_.father)[cell]);
    }
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
    const ResidualKernel kernel{rateKernel(), squares.view()};
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        kernel(cell);
    std::array<real, variables> sums{};
    sumColumns({std::as_const(squares).data(), toSize(squares.dataSize())}, sums);
    real volume = 0;
    sumColumns({view_.volumes.data(), toSize(mesh_.cells.owned)}, {&volume, 1});
    for (real &sum : sums)
        sum = std::sqrt(sum / volume);
    return sums;
}

Vector Solver::force(const std::vector<int> &patches, real reference) const {
    std::vector<real> rows;
    for (const int patch : patches)
        for (const LocalIndex face : mesh_.patches[toSize(patch)].faces)
            if (face < mesh_.faces.owned && faceCondition_(face) == patch) {
                const real *flux = flux_[face];
                const real *area = view_.areaVectors[face];
                for (int d = 0; d < 3; d++)
                    rows.push_back(flux[1 + d] - reference * area[d]);
            }
    std::array<real, 3> sums{};
    sumColumns(rows, sums);
    return Vector::load(sums.data());
}

std::array<real, variables> Solver::total() const {
    Array<real, variables> amounts;
    amounts.resize(mesh_.cells.owned);
    for (index cell = 0; cell < mesh_.cells.owned; cell++)
        (view_.volumes(cell) * Conserved::load(conserved_[cell])).store(amounts[cell]);
    std::array<real, variables> sums{};
    sumColumns({std::as_const(amounts).data(), toSize(amounts.dataSize())}, sums);
    return sums;
}

real Solver::wallPressure(index face) const {
    const Vector area = Vector::load(view_.areaVectors[face]);
    return dot(Conserved::load(flux_[face]).momentum, area) / dot(area, area);
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
    mesh_.comm.barrier();
    const double begin = MPI_Wtime();
    for (int i = 0; i < repetitions; i++) {
        state_.trans.startPersistentPull();
        state_.trans.waitPersistentPull();
        gradient_.trans.startPersistentPull();
        gradient_.trans.waitPersistentPull();
    }
    return (MPI_Wtime() - begin) / repetitions;
}

} // namespace Euler
