/// @file BoomerAmg.hpp
/// @brief Algebraic multigrid of hypre as a preconditioner.
#pragma once

#include "DNDS/Hypre/Matrix.hpp"

#include <HYPRE_parcsr_ls.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <type_traits>

namespace DNDS::Hypre {

/// z = one cycle of BoomerAMG for A z = r (Henson and Yang, BoomerAMG, Applied Numerical Mathematics 41, 2002), for the
/// solvers of DNDS:
///
///     const Hypre::BoomerAmg amg(a);
///     const KrylovResult done = conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, b, x, amg);
///
/// For matrices of blocks, each component of a row is an unknown function of its own. The cycle is a symmetric operator
/// if the matrix is symmetric, unless configured otherwise. Its bits, and so those of the solution, depend on the
/// partition. It works on the host.
template <int b>
class BoomerAmg {
  public:
    /// Copies the matrix and sets up its hierarchy: for other values, make another object. Before the set-up,
    /// `configure` may call HYPRE_BoomerAMGSet..., such as HYPRE_BoomerAMGSetStrongThreshold(solver, 0.5) for three
    /// dimensions, identically on all ranks; hypre checks little of it. Collective. Throws on all ranks the errors of
    /// Hypre::Matrix, hypre and `configure`.
    explicit BoomerAmg(const SparseMatrix<b> &matrix, const std::function<void(HYPRE_Solver)> &configure = {})
        : matrix_(matrix) {
        const CommunicatorView comm = matrix_.comm();
        ArrayDof<b, 1> any; // hypre reads only the numbers of the rows
        comm.guarded([&] {
            HYPRE_Solver made = nullptr;
            check(HYPRE_BoomerAMGCreate(&made), "HYPRE_BoomerAMGCreate");
            solver_.reset(made);
            check(HYPRE_BoomerAMGSetTol(made, 0), "HYPRE_BoomerAMGSetTol");
            check(HYPRE_BoomerAMGSetMaxIter(made, 1), "HYPRE_BoomerAMGSetMaxIter");
            if (b > 1)
                check(HYPRE_BoomerAMGSetNumFunctions(made, b), "HYPRE_BoomerAMGSetNumFunctions");
            if (configure)
                configure(made);
            check(HYPRE_GetError(), "the configuration of BoomerAMG");
        });
        any.initPair("rows of a hierarchy", comm);
        comm.guarded([&] { any.father->resize(matrix.pattern().rows()); });
        if (matrix_.globalRows() == 0) // hypre cannot set up an empty hierarchy
            return;
        comm.guarded([&] {
            const Vector rows = matrix_.vector(any);
            check(HYPRE_BoomerAMGSetup(solver_.get(), matrix_.get(), rows.get(), rows.get()),
                  fmt::format("HYPRE_BoomerAMGSetup of '{}' (a row of zeros has no multigrid)", matrix.name()));
        });
    }

    /// Sets the owned rows of z. Collective: hypre waits for its neighbours. Throws on this rank LayoutError for
    /// vectors of other rows, ArgumentError if r and z are the same, and errors of hypre.
    void operator()(const ArrayDof<b, 1> &r, ArrayDof<b, 1> &z) const {
        const Vector from = matrix_.vector(r);
        const Vector to = matrix_.vector(z);
        DNDS_CHECK(r.father != z.father, ArgumentError,
                   "multigrid cannot overwrite '{}', to which it is applied, with the result: give another vector",
                   r.father->label());
        if (matrix_.globalRows() == 0)
            return;
        std::fill_n(z.father->data(), z.father->dataSize(), real(0));
        check(HYPRE_BoomerAMGSolve(solver_.get(), matrix_.get(), from.get(), to.get()), "HYPRE_BoomerAMGSolve");
    }

    /// The object of hypre, for its own calls.
    HYPRE_Solver get() const noexcept { return solver_.get(); }

  private:
    struct Destroy {
        void operator()(HYPRE_Solver solver) const noexcept {
            if (mpiActive())
                HYPRE_BoomerAMGDestroy(solver);
        }
    };

    Matrix<b> matrix_;
    std::unique_ptr<std::remove_pointer_t<HYPRE_Solver>, Destroy> solver_;
};

} // namespace DNDS::Hypre
