#include "Conduction.hpp"

namespace Poisson {

SystemSolver solveByPetsc() {
    throw DNDS::NotBuiltError("this build has no PETSc (scripts/install-deps.sh --petsc, then configure anew)");
}

} // namespace Poisson
