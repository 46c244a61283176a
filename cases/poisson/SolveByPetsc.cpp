#include "Conduction.hpp"

#include "DNDS/Petsc/Petsc.hpp"

#include <memory>

namespace Poisson {

using namespace DNDS;

SystemSolver solveByPetsc() {
    return [session = std::make_shared<Petsc::Session>()](const SparseMatrix<> &a, const Temperature &right,
                                                          Temperature &x, const KrylovOptions &options) {
        const Petsc::Matrix<1> matrix(a, "poisson_");
        Petsc::Solver solver(matrix.get(), "poisson_");
        Petsc::check(KSPSetType(solver.get(), KSPCG), "KSPSetType");
        Petsc::check(KSPSetNormType(solver.get(), KSP_NORM_UNPRECONDITIONED), "KSPSetNormType");
        Petsc::check(
            KSPSetTolerances(solver.get(), options.relative, options.absolute, PETSC_DEFAULT, options.maxIterations),
            "KSPSetTolerances");
        return solver.solve(right, x);
    };
}

} // namespace Poisson
