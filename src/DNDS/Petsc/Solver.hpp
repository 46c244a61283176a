/// @file Solver.hpp
/// @brief Linear systems by PETSc's KSP.
#pragma once

#include "DNDS/Linear/Krylov.hpp"
#include "DNDS/Petsc/Vector.hpp"

#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace DNDS::Petsc {

/// A KSP whose method, preconditioner and tolerances are options of PETSc with a prefix of its own. It starts from the
/// x given.
///
///     Petsc::Solver solver(matrix.get(), "heat_");   // -heat_ksp_type cg -heat_pc_type gamg -heat_ksp_rtol 1e-10
///     const KrylovResult done = solver.solve(b, x);
///
/// Options override settings made by `get()` before the first solve. Preconditioners are kept between solves until the
/// values of the matrix change.
class Solver {
  public:
    /// `preconditioner` is the matrix from which preconditioners are made, by default A itself. Collective. Throws on
    /// all ranks errors of PETSc (ErrorNotes::check).
    explicit Solver(Mat a, const std::string &prefix = {}, Mat preconditioner = nullptr)
        : comm_(PetscObjectComm(reinterpret_cast<PetscObject>(a))) {
        onAllRanks(comm_, [&](const ErrorNotes &notes) {
            notes.check(KSPCreate(comm_.handle(), ksp_.out()), "KSPCreate");
            notes.check(KSPSetOptionsPrefix(get(), prefix.c_str()), "KSPSetOptionsPrefix");
            notes.check(KSPSetOperators(get(), a, preconditioner != nullptr ? preconditioner : a), "KSPSetOperators");
            notes.check(KSPSetInitialGuessNonzero(get(), PETSC_TRUE), "KSPSetInitialGuessNonzero");
            notes.check(KSPSetResidualHistory(get(), nullptr, PETSC_DECIDE, PETSC_TRUE), "KSPSetResidualHistory");
        });
    }

    /// PETSc's object, for its own calls.
    KSP get() const noexcept { return ksp_.get(); }

    /// Solves A x = b over owned rows, in the host memory of b and x; ghosts of x are stale afterwards. The result has
    /// PETSc's reason; norms are those of the KSP's stopping test, 0 if it computes none. Collective. Throws on all
    /// ranks exceptions of the operator on any rank (ShellMatrix), and errors of Petsc::Vector and PETSc.
    template <class TVector>
    KrylovResult solve(const TVector &b, TVector &x) {
        using Rows = typename TVector::ArrayType;
        const Vector<const Rows> right{std::shared_ptr<const Rows>(b.father)};
        const Vector<Rows> solution{std::shared_ptr<Rows>(x.father)};
        return solve(right.get(), solution.get());
    }
    // All ranks agree twice: on exceptions of the operator, and then on PETSc's own errors.
    KrylovResult solve(Vec b, Vec x) {
        KrylovResult result;
        configure();
        comm_.beforeCollective();
        const ErrorNotes notes;
        PetscErrorCode code = 0;
        comm_.guarded([&] {
            std::exception_ptr &failure = Detail::failureOfProduct();
            failure = nullptr; // discards failures outside a solve
            code = KSPSolve(get(), b, x);
            if (const std::exception_ptr thrown = std::exchange(failure, nullptr))
                std::rethrow_exception(thrown);
        });
        comm_.guarded([&] { // last: an exception of the operator on one rank takes precedence over PETSc's reaction
            notes.check(code, "KSPSolve");
            result = resultOf(notes);
        });
        return result;
    }

  private:
    // At the first solve, so that settings made by `get()` come before the options.
    void configure() {
        if (std::exchange(configured_, true))
            return;
        onAllRanks(comm_, [&](const ErrorNotes &notes) {
            notes.check(KSPSetFromOptions(get()), "KSPSetFromOptions");
            PetscBool direct = PETSC_FALSE;
            notes.check(PetscObjectTypeCompare(reinterpret_cast<PetscObject>(get()), KSPPREONLY, &direct),
                        "PetscObjectTypeCompare");
            if (direct == PETSC_TRUE) // it does not accept an initial guess
                notes.check(KSPSetInitialGuessNonzero(get(), PETSC_FALSE), "KSPSetInitialGuessNonzero");
        });
    }
    KrylovResult resultOf(const ErrorNotes &notes) const {
        KrylovResult result;
        KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
        notes.check(KSPGetConvergedReason(get(), &reason), "KSPGetConvergedReason");
        const char *name = nullptr;
        notes.check(KSPGetConvergedReasonString(get(), &name), "KSPGetConvergedReasonString");
        PetscInt number = 0;
        notes.check(KSPGetIterationNumber(get(), &number), "KSPGetIterationNumber");
        const PetscReal *norms = nullptr;
        PetscInt count = 0;
        notes.check(KSPGetResidualHistory(get(), &norms, &count), "KSPGetResidualHistory");
        notes.check(KSPGetResidualNorm(get(), &result.residual), "KSPGetResidualNorm");
        result.end = endOf(reason);
        result.reason = name;
        result.iterations = static_cast<int>(number);
        result.first = count > 0 ? norms[0] : 0;
        return result;
    }
    // All other negative reasons are failures of PETSc.
    static KrylovResult::End endOf(KSPConvergedReason reason) {
        using End = KrylovResult::End;
        switch (reason) {
        case KSP_DIVERGED_ITS:
            return End::IterationLimit;
        case KSP_DIVERGED_INDEFINITE_PC:
        case KSP_DIVERGED_INDEFINITE_MAT:
            return End::NotPositiveDefinite;
        case KSP_DIVERGED_BREAKDOWN:
        case KSP_DIVERGED_BREAKDOWN_BICG:
            return End::Breakdown;
        case KSP_DIVERGED_NANORINF:
            return End::NotFinite;
        default:
            return reason > 0 ? End::Converged : End::Failed;
        }
    }

    CommunicatorView comm_;
    Owner<KSP, KSPDestroy> ksp_;
    bool configured_ = false;
};

/// A single solve, by a temporary Solver.
template <class TVector>
KrylovResult solve(Mat a, const TVector &b, TVector &x, const std::string &prefix = {}) {
    return Solver(a, prefix).solve(b, x);
}

} // namespace DNDS::Petsc
