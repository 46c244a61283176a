/// @file ImplicitSteps.hpp
/// @brief Implicit steps towards a steady flow: Newton's method, with GMRES for its linear systems.
#pragma once

#include "RunResult.hpp"
#include "Solver.hpp"

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Linear/SparseMatrix.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace Euler {

struct ImplicitChoice {
    real cfl = 10;              ///< CFL number of the first step
    real growth = 1.5;          ///< the CFL number grows by this factor a step at most
    real cflMost = 1e6;         ///< and up to this
    real newtonBelow = 1e-3;    ///< from this share of the first residual on, the whole Jacobian is used
    real krylovTolerance = 0.1; ///< GMRES ends where its residual is this share of the right-hand side,
    int krylovIterations = 40;  ///< or after so many iterations
    int sweeps = 10;            ///< sweeps of block Jacobi for one preconditioning
};

/// Each cell makes a step of the implicit Euler method of its own length, CFL number times `longestTimeSteps`: one
/// iteration of Newton's method for (u' - u) / step = rate(u'). GMRES solves its linear system, preconditioned by
/// sweeps of block Jacobi for the Jacobian of first order (`Solver::setJacobian`).
///
/// While shocks move, that matrix is also the operator: a step with the whole Jacobian is too bold there, and the
/// dissipation of the first order keeps large CFL numbers stable. Nearer to the steady flow, products with the whole
/// Jacobian are differences of rates (Knoll and Keyes, J. Comput. Phys. 193 (2004)), for Newton's convergence. The CFL
/// number grows as the residual falls (switched evolution relaxation: Mulder and van Leer, J. Comput. Phys. 59 (1985)).
///
/// A step is halved until density and pressure keep a share in all cells and the residual of the implicit step is at
/// most twice that before. If that fails, the system is solved again with a smaller CFL number.
///
/// The same bits on any number of ranks, also after a restart, if sums are exact (`Scheme::reproducible`).
class ImplicitSteps {
  public:
    /// Collective. Solver and mesh must outlive it. `reference` gives units.
    ImplicitSteps(Solver &solver, const DNDS::Geom::UnstructuredMesh &mesh, const DNDS::Geom::MeshMetrics &metrics,
                  const Gas &gas, const Primitive &reference, const Scheme &scheme, const ImplicitChoice &choice);

    /// One step. Collective. Throws DataError on all ranks if no step can be made, and for impossible states.
    void advance();
    /// Makes the solver's residual and force those of the flow reached. Collective.
    void evaluate();

    const ImplicitRecord &record() const { return record_; }
    /// After the solver got the states of a checkpoint with this record. Local.
    void continueFrom(const ImplicitRecord &record);
    /// Of this rank. Local.
    std::size_t bytes() const;

  private:
    using Unknowns = DNDS::ArrayDof<variables, 1>;

    void setMatrix();
    void differentiate(const Unknowns &direction, Unknowns &product);
    bool solve();
    void setChange(const Unknowns &direction, real factor);
    real allowedShare() const;
    bool attempt();
    void take(const DNDS::Array<real, variables> &rates, real share);
    real norm(const DNDS::Array<real, variables> &rates, real share) const;
    /// The factor from a rate or a change of a cell to numbers of vectors.
    real scale(index cell, int variable) const {
        return roots_[DNDS::toSize(cell)] / units_[static_cast<std::size_t>(variable)];
    }

    Solver &solver_;
    const DNDS::Geom::UnstructuredMesh &mesh_;
    Gas gas_;
    bool exact_; ///< sums
    ImplicitChoice choice_;
    ImplicitRecord record_;
    std::array<real, variables> units_{}; ///< units of conserved variables
    std::vector<real> roots_;             ///< roots of volumes, of all cells
    std::vector<real> inverseSteps_;      ///< by own cell
    DNDS::Array<real, variables> rates_;  ///< rates of the flow reached
    real residual_ = -1;                  ///< their norm; negative: unknown
    DNDS::SparseMatrix<variables> matrix_;
    Unknowns right_, solution_;
};

} // namespace Euler
