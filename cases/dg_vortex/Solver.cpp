#include "Solver.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Task/Graph.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

namespace DgVortex {

namespace {

using Geom::Point;

template <class TArray>
void allocate(TArray &array, const char *name, index rows) {
    array.setName(name);
    array.resize(rows);
}

/// Shape functions of `type` at the points of a rule, which `place` maps to its reference coordinates; from row `first`
/// on.
template <class Place>
void tabulate(DNDS::Array<TablePoint, 1> &table, index first, Geom::ElementType type, const Geom::QuadratureView &rule,
              const Place &place) {
    for (index q = 0; q < rule.size(); q++)
        table(first + q) = {rule.weight(q), Geom::shapeFunctions(type, place(rule.point(q)))};
}

/// Integrals over a cell: its area, its mass, the square of the error of its density. On the host, since the exact flow
/// calls exp() and pow(), which round differently on a GPU.
struct IntegralKernel {
    MethodView method;
    MethodView::Table fine;
    Vortex vortex;

    template <class Read, class Write>
    void operator()(index cell, const Read &u, const DNDS::Task::ReadValue<real> &time, const Write &integrals) const {
        real sums[3] = {};
        for (index q = 0; q < fine.size(); q++) {
            const auto &[weight, functions] = fine(q);
            const Geom::MappedPoint at = method.map(cell, functions);
            const real density = MethodView::valueAt(functions, u[cell])[0];
            const real error = density - vortex.at(at.position[0], at.position[1], time())[0];
            const real area = weight * at.measure();
            sums[0] += area;
            sums[1] += area * density;
            sums[2] += area * error * error;
        }
        for (int k = 0; k < 3; k++)
            integrals(cell, k) = sums[k];
    }
};

} // namespace

Geom::UnstructuredMesh bentMesh(DNDS::CommunicatorView comm, const Options &options) {
    const real side = options.vortex.side;
    Geom::SourceMesh source = Geom::makeBoxMesh({.fill = options.fill,
                                                 .cells = {options.cells, options.cells},
                                                 .lengths = {side, side},
                                                 .shuffled = options.shuffled,
                                                 .periodic = {true, true},
                                                 .secondOrder = true},
                                                comm);
    for (auto &[x, y, z] : source.coordinates) {
        const real a = 2 * std::numbers::pi * x / side;
        const real b = 2 * std::numbers::pi * y / side;
        x += options.bend * std::sin(b) * std::cos(a);
        y += options.bend * std::sin(a + b);
    }
    return Geom::buildMesh(comm, std::move(source), {.ghostsBy = Geom::GhostNeighbours::Faces});
}

Solver::Solver(DNDS::CommunicatorView comm, const Options &options)
    : options_(options), mesh_(bentMesh(comm, options)), metrics_(Geom::computeMetrics(mesh_, {.curved = true})),
      faces_(Geom::faceElements(mesh_)),
      type_(options.fill == Geom::BoxCells::Triangles ? Geom::ElementType::Tri6 : Geom::ElementType::Quad9) {
    const int number = DNDS::rankOnMachine(comm);
    comm.guarded([&] {
        DNDS_CHECK(std::ranges::all_of(mesh_.cellTypes, [&](Geom::ElementType type) { return type == type_; }),
                   DNDS::ArgumentError, "{}: the vortex needs triangles or quadrilaterals", mesh_.origin);
        if (options.device) {
            DNDS::Device::requireDevice("compute on the device");
            DNDS::Device::useDevice(number);
            stream_.emplace();
        }
        makeTables();
        invertMasses();
        allocate(start_, "state at the start", mesh_.cells.owned);
        allocate(flux_, "flux", mesh_.faces.size());
        allocate(integrals_, "integrals", mesh_.cells.owned);
    });
    u_.initPair("state", comm);
    u_.father->resize(mesh_.cells.owned);
    Geom::attachField(u_, mesh_.cells);
    setVortex();
    declareStep();
    declareIntegrals();
}

/// Degree 5 for fluxes, exact for the geometry, so that uniform flows stay; degree 8 for mass matrices and errors.
void Solver::makeTables() {
    const Geom::ReferenceShape shape = Geom::elementLayout(type_).shape;
    const auto same = [](const Point &at) { return at; };
    for (const auto &[table, degree, name] :
         {std::tuple(&inCell_, 5, "points of cells"), std::tuple(&fine_, 8, "fine points of cells")}) {
        const Geom::Quadrature rule(shape, degree);
        allocate(*table, name, rule.size());
        tabulate(*table, 0, type_, rule.view(), same);
    }
    const Geom::Quadrature rule(Geom::ReferenceShape::Segment, 2 * facePoints - 1);
    allocate(onFace_, "points of faces", facePoints);
    tabulate(onFace_, 0, Geom::ElementType::Bar3, rule.view(), same);
    makeSides(rule.view());
}

/// Cells have few different faces, each in two directions: their tables are shared.
void Solver::makeSides(const Geom::QuadratureView &rule) {
    std::vector<Geom::SubElement> parts;
    allocate(faceInCells_, "faces in cells", mesh_.faces.size());
    for (index face = 0; face < mesh_.faces.size(); face++)
        for (const int side : {0, 1}) {
            if (mesh_.faceCells(face, side) < 0)
                continue; // at the edge of the ghosts: no task comes there
            const Geom::SubElement part = Geom::faceInCell(mesh_, faces_, face, side);
            const auto found =
                std::ranges::find_if(parts, [&](const Geom::SubElement &other) { return other.node == part.node; });
            faceInCells_(face, side) = static_cast<int>(found - parts.begin());
            if (found == parts.end())
                parts.push_back(part);
        }
    allocate(atFace_, "points of faces in cells", static_cast<index>(parts.size()) * facePoints);
    for (std::size_t k = 0; k < parts.size(); k++)
        tabulate(atFace_, static_cast<index>(k) * facePoints, type_, rule,
                 [&](const Point &at) { return Geom::inElement(type_, parts[k], at); });
}

/// Integrals of products of shape functions, cell by cell: in curved cells they differ.
void Solver::invertMasses() {
    MethodView method;
    method.mesh = Geom::viewOf(mesh_, metrics_);
    const int nodes = fine_(0).functions.nodes;
    using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, 0, maxNodes, maxNodes>;
    allocate(inverseMass_, "inverse mass matrices", mesh_.cells.owned);
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        Matrix mass = Matrix::Zero(nodes, nodes);
        for (index q = 0; q < fine_.size(); q++) {
            const auto &[weight, functions] = std::as_const(fine_)(q);
            const Eigen::Map<const Eigen::VectorXd> values(functions.values.data(), nodes);
            mass += weight * method.map(cell, functions).measure() * values * values.transpose();
        }
        const Matrix inverse = mass.llt().solve(Matrix::Identity(nodes, nodes));
        for (int i = 0; i < nodes; i++)
            for (int j = 0; j < nodes; j++)
                inverseMass_(cell, maxNodes * i + j) = inverse(i, j);
    }
}

/// The polynomials that have the values of the vortex at nodes.
void Solver::setVortex() {
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const Geom::ElementNodes nodes{std::as_const(mesh_.coordinates).view(), std::as_const(mesh_.cellNodes)[cell]};
        for (int n = 0; n < Geom::elementLayout(type_).nodes; n++) {
            const State state = options_.vortex.at(nodes(n)[0], nodes(n)[1], 0);
            std::ranges::copy(state, (*u_.father)[cell] + variables * n);
        }
    }
}

void Solver::declareIntegrals() {
    DNDS::Task::Graph graph("integrals", mesh_.comm);
    mesh_.comm.guarded([&] {
        MethodView method;
        method.mesh = Geom::viewOf(mesh_, metrics_);
        graph.task("integrals", mesh_.cells)
            .reads(u_, time_)
            .writes(integrals_)
            .run(IntegralKernel{method, std::as_const(fine_).view(), options_.vortex});
        sums_ = graph.reduce("sums", DNDS::ReduceOp::Sum, integrals_);
    });
    measure_ = graph.compile(DNDS::Executor::host());
}

real Solver::timeStep(real cfl) {
    real longest = std::numeric_limits<real>::infinity();
    const auto &u = state();
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        real around = 0;
        for (const LocalIndex face : std::as_const(mesh_.cellFaces)[cell])
            around += std::as_const(metrics_.surfaceAreas)(face);
        const real size = 4 * std::as_const(metrics_.volumes)(cell) / around; // the side of a square
        for (int n = 0; n < Geom::elementLayout(type_).nodes; n++) {
            State state{};
            std::copy_n(u[cell] + variables * n, variables, state.begin());
            const real step =
                size / (std::fabs(state[1] / state[0]) + std::fabs(state[2] / state[0]) + 2 * soundSpeed(state));
            longest = std::min(longest, step > 0 ? step : 0); // not a number: 0
        }
    }
    longest = mesh_.comm.allReduce(longest, MPI_MIN);
    DNDS_CHECK(longest > 0, DNDS::DataError,
               "no time step: some density or pressure is negative or not finite; begin "
               "again with shorter steps");
    return cfl / 5 * longest; // 2 * degree + 1
}

void Solver::advance(real dt, int steps) {
    dt_.set(dt);
    for (int step = 0; step < steps; step++)
        step_->run();
}

Integrals Solver::integrals(real time) {
    u_.toHost();
    time_.set(time);
    measure_->run();
    const auto sums = measure_->result(*sums_);
    return {sums[0], sums[1], std::sqrt(sums[2] / sums[0])};
}

const DNDS::ParArray<real, width> &Solver::state() {
    u_.father->toHost();
    return *u_.father;
}

} // namespace DgVortex
