#pragma once

#include "DNDS/Geom/Geom.hpp"
#include "DNDS/Linear/Krylov.hpp"
#include "DNDS/Linear/SparseMatrix.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Heat conduction in a body, by linear finite elements on the nodes of any mesh of linear cells.
namespace Poisson {

using DNDS::index; // POSIX has a function of that name
using DNDS::real;
using Temperature = DNDS::ArrayDof<1, 1>;
using Position = std::span<const real, 3>;
using Function = std::function<real(Position)>;

/// capacity dT/dt = div(conductivity grad T) + source. SI units; on patches that are not fixed no heat passes.
struct Material {
    real conductivity = 1; ///< W / (m K)
    real capacity = 1;     ///< density times heat capacity, J / (m^3 K)
    Function source{};     ///< W / m^3 (in two dimensions for a plate 1 m thick); none: 0
};

/// Solves A x = right, from the x given. Collective.
using SystemSolver = std::function<DNDS::KrylovResult(const DNDS::SparseMatrix<> &a, const Temperature &right,
                                                      Temperature &x, const DNDS::KrylovOptions &options)>;
/// Conjugate gradients of DNDS, preconditioned by block Jacobi.
DNDS::KrylovResult solveByDnds(const DNDS::SparseMatrix<> &a, const Temperature &right, Temperature &x,
                               const DNDS::KrylovOptions &options);
/// The KSP of PETSc whose options have the prefix poisson_, conjugate gradients unless they say otherwise. PETSc runs
/// as long as the function lives. Collective. Throws NotBuiltError on all ranks in builds without PETSc.
SystemSolver solveByPetsc();

/// Conjugate gradients of DNDS, preconditioned by algebraic multigrid of hypre. Throws NotBuiltError on all ranks in
/// builds without hypre.
SystemSolver solveByHypre();

/// The discrete body. Rows of the matrix are computed by the ranks that own their nodes from all cells around them, in
/// the order of the file, so that no bit of a result depends on the number of ranks.
class Conduction {
  public:
    /// `fixed`: the temperature on patches, in K. Collective. Throws ArgumentError on all ranks for patches that there
    /// are not, for periodic meshes, and for cells that are not linear.
    Conduction(const DNDS::Geom::UnstructuredMesh &mesh, Material material,
               const std::map<std::string, Function> &fixed);

    /// Instead of solveByDnds. Local.
    void setSolver(SystemSolver solver) { solver_ = std::move(solver); }
    /// A temperature of 0 K but where it is fixed. Collective.
    Temperature start() const;
    /// Makes T the steady temperature, or advances it by an implicit Euler step of `seconds`. Collective.
    DNDS::KrylovResult solveSteady(Temperature &t, const DNDS::KrylovOptions &options);
    DNDS::KrylovResult step(Temperature &t, real seconds, const DNDS::KrylovOptions &options);
    /// The heat that enters through each fixed patch, in W, when T is steady. Collective; exact sums.
    std::map<std::string, real> heatEntering(Temperature &t) const;
    /// The root of the mean square of T - exact over the body. Collective; exact sums.
    real error(const Temperature &t, const Function &exact) const;

  private:
    void assemble();
    void fixTemperatures(const std::map<std::string, Function> &fixed);
    DNDS::KrylovResult solve(Temperature &t, real massPerTime, const DNDS::KrylovOptions &options);
    DNDS::SparseMatrix<> systemOf(real massPerTime) const;

    const DNDS::Geom::UnstructuredMesh &mesh_;
    Material material_;
    SystemSolver solver_ = solveByDnds;
    std::vector<std::string> names_; ///< names of fixed patches
    std::shared_ptr<const DNDS::MatrixPattern> pattern_;
    std::unique_ptr<DNDS::SparseMatrix<>> stiffness_;
    std::vector<real> volumes_;                          ///< [own nodes] the share of the body
    std::vector<real> heat_;                             ///< [own nodes] the share of the source, in W
    DNDS::ArrayPair<DNDS::ParArray<int, 1>> fixedPatch_; ///< [nodes] number in `names_`, -1 where free
    Temperature fixed_;                                  ///< [nodes] where it is fixed; else 0
};

} // namespace Poisson
