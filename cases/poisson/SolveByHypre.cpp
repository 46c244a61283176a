#include "Conduction.hpp"

#include "DNDS/Hypre/BoomerAmg.hpp"
#include "DNDS/Linear/Krylov.hpp"

namespace Poisson {

using namespace DNDS;

SystemSolver solveByHypre() {
    return [](const SparseMatrix<> &a, const Temperature &right, Temperature &x, const KrylovOptions &options) {
        return conjugateGradients([&](Temperature &d, Temperature &y) { a.multiply(d, y); }, right, x,
                                  Hypre::BoomerAmg(a), options);
    };
}

} // namespace Poisson
