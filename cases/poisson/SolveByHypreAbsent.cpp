#include "Conduction.hpp"

namespace Poisson {

SystemSolver solveByHypre() {
    throw DNDS::NotBuiltError("this build has no hypre (scripts/install-deps.sh --petsc, then configure anew)");
}

} // namespace Poisson
