#include "ImplicitSteps.hpp"

#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Linear/BlockJacobi.hpp"
#include "DNDS/Linear/Krylov.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace Euler {

namespace {

using DNDS::toSize;
using Unknowns = DNDS::ArrayDof<variables, 1>;

/// Calls function(cell, variable, position) for each number of own cells.
template <class Function>
void forEachNumber(index cells, const Function &function) {
    for (index cell = 0; cell < cells; cell++)
        for (int k = 0; k < variables; k++)
            function(cell, k, variables * cell + k);
}

/// Block Jacobi, several times: each sweep corrects the solution by the residual that is left. Unlike those of Gauss
/// and Seidel, its sweeps do not depend on the partition.
class JacobiSweeps {
  public:
    JacobiSweeps(const DNDS::SparseMatrix<variables> &matrix, const Unknowns &like, int sweeps)
        : matrix_(matrix), jacobi_(matrix), sweeps_(sweeps) {
        rest_.clone(like);
        correction_.clone(like);
    }
    void operator()(const Unknowns &r, Unknowns &z) {
        jacobi_(r, z);
        for (int sweep = 1; sweep < sweeps_; sweep++) {
            matrix_.multiply(z, rest_);
            rest_ *= real(-1);
            rest_ += r;
            jacobi_(rest_, correction_);
            z += correction_;
        }
    }

  private:
    const DNDS::SparseMatrix<variables> &matrix_;
    DNDS::BlockJacobi<variables> jacobi_;
    Unknowns rest_, correction_;
    int sweeps_;
};

} // namespace

ImplicitSteps::ImplicitSteps(Solver &solver, const DNDS::Geom::UnstructuredMesh &mesh,
                             const DNDS::Geom::MeshMetrics &metrics, const Gas &gas, const Primitive &reference,
                             const Scheme &scheme, const ImplicitChoice &choice)
    : solver_(solver), mesh_(mesh), gas_(gas), exact_(scheme.reproducible), choice_(choice),
      matrix_("Jacobian", DNDS::MatrixPattern::create("cells", mesh.cells.pattern, mesh.cellCells)),
      right_(mesh.field<Unknowns>("right-hand side")), solution_(mesh.field<Unknowns>("solution")) {
    solver.prepareTrials();
    const real sound = gas.soundSpeed(reference);
    const real momentum = reference.density * sound;
    units_ = {reference.density, momentum, momentum, momentum, momentum * sound};
    record_.nextCfl = choice.cfl;
    mesh.comm.guarded([&] {
        const auto volumes = metrics.volumes.view();
        for (index cell = 0; cell < mesh.cells.size(); cell++)
            roots_.push_back(std::sqrt(volumes(cell, 0)));
        inverseSteps_.resize(toSize(mesh.cells.owned));
        rates_.setName("rates of the flow reached");
        rates_.resize(mesh.cells.owned);
    });
}

void ImplicitSteps::continueFrom(const ImplicitRecord &record) {
    record_ = record;
    if (!(record_.nextCfl > 0))
        record_.nextCfl = choice_.cfl;
    residual_ = -1;
}

std::size_t ImplicitSteps::bytes() const {
    const auto vector = toSize(variables * mesh_.cells.size());
    const auto owned = toSize(mesh_.cells.owned);
    const auto vectors = toSize(choice_.krylovIterations) + 9; // of GMRES, the preconditioner, and here
    return sizeof(real) * (vectors * vector + matrix_.values().size() + (variables * (variables + 3) + 1) * owned +
                           roots_.size() + 2 * variables * variables * toSize(mesh_.faces.size()));
}

/// The norm of change / step - rate, in which both the Krylov method and the steps measure: the root of the sum of
/// squares times volumes, in units of the reference flow. Collective.
real ImplicitSteps::norm(const DNDS::Array<real, variables> &rates, real share) const {
    std::vector<real> squares(toSize(variables * mesh_.cells.owned));
    const real *change = std::as_const(solver_).change().data();
    const real *rate = rates.data();
    forEachNumber(mesh_.cells.owned, [&](index cell, int k, index at) {
        const real rest = (share > 0 ? share * change[at] * inverseSteps_[toSize(cell)] : 0) - rate[at];
        const real number = scale(cell, k) * rest;
        squares[toSize(at)] = number * number;
    });
    real sum = 0;
    if (exact_) {
        DNDS::exactSums(mesh_.comm, squares, {&sum, 1});
        return std::sqrt(sum);
    }
    for (const real square : squares)
        sum += square;
    return std::sqrt(mesh_.comm.allReduce(sum, MPI_SUM));
}

void ImplicitSteps::evaluate() {
    std::fill_n(solver_.change().data(), solver_.change().dataSize(), real(0)); // it may be infinite
    const auto &rates = solver_.ratesWith(0);
    std::copy_n(rates.data(), rates.dataSize(), rates_.data());
    residual_ = norm(rates_, 0);
    if (!std::isfinite(residual_)) {
        solver_.checkState();
        throw DNDS::DataError(fmt::format("{}: the rates of change are not finite", mesh_.origin));
    }
    if (!(record_.first > 0))
        record_.first = residual_;
}

/// 1 / step - Jacobian of first order, between scaled vectors. Local.
void ImplicitSteps::setMatrix() {
    const auto &longest = solver_.longestTimeSteps();
    solver_.setJacobian(matrix_);
    const auto starts = matrix_.pattern().starts();
    const auto columns = matrix_.pattern().columns();
    for (index cell = 0; cell < mesh_.cells.owned; cell++) {
        const real inverse = 1 / (record_.nextCfl * longest(cell));
        inverseSteps_[toSize(cell)] = inverse;
        for (auto at = toSize(starts[toSize(cell)]); at < toSize(starts[toSize(cell) + 1]); at++) {
            auto block = matrix_.at(at);
            for (int row = 0; row < variables; row++)
                for (int column = 0; column < variables; column++)
                    block(row, column) *= -scale(cell, row) / scale(columns[at], column);
            if (columns[at] == cell)
                block.diagonal().array() += inverse;
        }
    }
}

/// The solver's change: `direction` without its scale, times a factor. Local.
void ImplicitSteps::setChange(const Unknowns &direction, real factor) {
    const real *from = std::as_const(*direction.father).data();
    real *change = solver_.change().data();
    forEachNumber(mesh_.cells.owned,
                  [&](index cell, int k, index at) { change[at] = factor * from[at] / scale(cell, k); });
}

/// The product of 1 / step - whole Jacobian with a direction, by a difference of rates. Collective.
void ImplicitSteps::differentiate(const Unknowns &direction, Unknowns &product) {
    constexpr real largest = 1e-6; // change, in units
    const real *from = std::as_const(*direction.father).data();
    real size = 0;
    forEachNumber(mesh_.cells.owned, [&](index cell, int /*k*/, index at) {
        size = larger(size, std::fabs(from[at]) / roots_[toSize(cell)]);
    });
    size = mesh_.comm.allReduce(size, MPI_MAX);
    real *to = product.father->data();
    if (!(size > 0)) { // GMRES begins with a direction of zeros
        std::copy_n(from, product.father->dataSize(), to);
        return;
    }
    const real factor = largest / size;
    setChange(direction, factor);
    const real *rate = solver_.ratesWith(1).data();
    const real *base = std::as_const(rates_).data();
    forEachNumber(mesh_.cells.owned, [&](index cell, int k, index at) {
        to[at] = from[at] * inverseSteps_[toSize(cell)] - scale(cell, k) * ((rate[at] - base[at]) / factor);
    });
}

/// Sets the solver's change to the solution of the linear system; false if it is not finite. Collective.
bool ImplicitSteps::solve() {
    setMatrix();
    const real *rate = std::as_const(rates_).data();
    real *right = right_.father->data();
    forEachNumber(mesh_.cells.owned, [&](index cell, int k, index at) { right[at] = scale(cell, k) * rate[at]; });
    solution_.setConstant(0);
    JacobiSweeps sweeps(matrix_, right_, choice_.sweeps);
    const bool whole = residual_ <= choice_.newtonBelow * record_.first;
    const DNDS::KrylovResult done = gmres(
        [&](Unknowns &d, Unknowns &y) {
            if (whole)
                differentiate(d, y);
            else
                matrix_.multiply(d, y);
        },
        std::as_const(right_), solution_, sweeps,
        {.relative = choice_.krylovTolerance,
         .maxIterations = choice_.krylovIterations,
         .restart = choice_.krylovIterations,
         .exactSums = exact_});
    record_.iterations += done.iterations;
    record_.unconverged += done.converged() ? 0 : 1;
    setChange(solution_, 1);
    return done.end != DNDS::KrylovResult::End::NotFinite;
}

/// The share of the change, halved as often as needed, that leaves each cell a fifth of its density and pressure; 0 if
/// that takes too many halvings. Collective.
real ImplicitSteps::allowedShare() const {
    constexpr real least = 0.2;
    constexpr real smallest = 1e-3;
    real share = 1;
    const auto &conserved = solver_.conserved();
    const auto &change = std::as_const(solver_).change();
    for (index cell = 0; cell < mesh_.cells.owned && share > 0; cell++) {
        const Primitive now = gas_.primitive(Conserved::load(conserved[cell]));
        const auto fits = [&] {
            const Primitive next = gas_.primitive(changed(conserved[cell], share, change[cell]));
            return next.density >= least * now.density && next.pressure >= least * now.pressure;
        };
        while (share > 0 && !fits())
            share = share > smallest ? share / 2 : 0;
    }
    return mesh_.comm.allReduce(share, MPI_MIN);
}

/// Makes the flow tried last the flow reached, and chooses the next CFL number. Collective.
void ImplicitSteps::take(const DNDS::Array<real, variables> &rates, real share) {
    solver_.accept(share);
    std::copy_n(rates.data(), rates.dataSize(), rates_.data());
    residual_ = norm(rates_, 0);
    record_.cfl = record_.nextCfl;
    const real relaxed = residual_ > 0 ? choice_.cfl * (record_.first / residual_) : choice_.cflMost;
    record_.nextCfl = share < 1 ? record_.cfl / 2 : std::min({choice_.cflMost, choice_.growth * record_.cfl, relaxed});
}

/// Solves the system, and takes a part of the change if one fits. Collective.
bool ImplicitSteps::attempt() {
    constexpr real allowedGrowth = 2;
    constexpr int halvings = 4;
    if (!solve())
        return false;
    real share = allowedShare();
    for (int halving = 0; halving <= halvings && share > 0; halving++, share /= 2) {
        const auto &rates = solver_.ratesWith(share);
        if (norm(rates, share) <= allowedGrowth * residual_) {
            take(rates, share);
            return true;
        }
    }
    return false;
}

void ImplicitSteps::advance() {
    constexpr real leastCfl = 1e-3;
    if (residual_ < 0)
        evaluate();
    while (!attempt()) {
        record_.rejected++;
        DNDS_CHECK(
            record_.nextCfl > leastCfl, DNDS::DataError,
            "{}: no implicit step is possible, even with the CFL number {:.2g}: density or pressure would become "
            "too small, or the residual would grow. Lower implicit.cfl and implicit.growth, raise "
            "implicit.krylovIterations, or choose another limiter or flux",
            mesh_.origin, record_.nextCfl);
        record_.nextCfl /= 10;
        evaluate(); // trials have left other states
    }
}

} // namespace Euler
