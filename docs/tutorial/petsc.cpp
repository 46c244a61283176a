// The PETSc section of docs/guides/linear.md: a plate that loses heat to air of 300 K, solved with a matrix and
// without.
//
//   mpiexec -n 3 petsc
//   PETSC_OPTIONS="-plate_pc_type jacobi -plate_ksp_view" mpiexec -n 3 petsc

#include "DNDS/Petsc/Petsc.hpp"
#include "DNDS/Geom/Geom.hpp"

#include <fmt/core.h>

#include <cmath>

namespace {

namespace Geom = DNDS::Geom;
namespace Petsc = DNDS::Petsc;
using DNDS::Index;

int solve(DNDS::CommunicatorView world) {
    const Petsc::Session petsc;
    const Geom::UnstructuredMesh mesh = Geom::buildMesh(
        world, Geom::makeBoxMesh({.fill = Geom::BoxCells::Quadrilaterals, .cells = {48, 32, 1}}, world));
    DNDS::SparseMatrix<> a("conduction", DNDS::MatrixPattern::create("cells", mesh.cells.pattern, mesh.cellCells));
    for (Index cell = 0; cell < mesh.cells.owned; ++cell)
        for (const DNDS::LocalIndex other : a.pattern().columns(cell)) {
            a.add(cell, cell, other == cell ? 0.01 : 1); // to the air, to a neighbour
            if (other != cell)
                a.add(cell, other, -1);
        }
    auto right = mesh.field<DNDS::ArrayDof<1, 1>>("right-hand side");
    auto temperature = mesh.field<DNDS::ArrayDof<1, 1>>("temperature");
    right.setConstant(0.01 * 300);

    const Petsc::Matrix matrix(a);
    Petsc::Solver solver(matrix.get(), "plate_"); // -plate_ksp_type cg -plate_pc_type gamg -plate_ksp_rtol 1e-10
    const DNDS::KrylovResult done = solver.solve(right, temperature);

    const Petsc::ShellMatrix product(right, [&](auto &d, auto &y) { a.multiply(d, y); });
    auto again = mesh.field<DNDS::ArrayDof<1, 1>>("temperature, without a matrix");
    const DNDS::KrylovResult free = Petsc::Solver(product.get(), "plate_", matrix.get()).solve(right, again);

    Petsc::Vector rows(temperature.father); // a Vec in the memory of the array
    Petsc::check(VecShift(rows.get(), -273.15), "VecShift");
    rows.noteWrites();
    const DNDS::real mean = temperature.sum() / 1536;
    if (world.rank() == 0)
        fmt::print("{}\nwithout a matrix: {}\nmean {:.2f} degrees Celsius\n", done.text(), free.text(), mean);
    return done.converged() && free.converged() && std::abs(mean - 26.85) < 0.1 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) { return DNDS::runMain(argc, argv, solve); }
