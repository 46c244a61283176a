/// @file Solver.hpp
/// @brief The finite-volume method on one rank's part of a mesh: fields, exchanges, time steps.
#pragma once

#include "StepKernels.hpp"

#include "Geom/Mesh/MeshMetrics.hpp"
#include "Geom/Mesh/UnstructuredMesh.hpp"

#include <array>
#include <functional>
#include <span>
#include <vector>

namespace Euler {

enum class TimeScheme : unsigned char { SspRk2, SspRk3 };

struct Scheme {
    FluxScheme flux = FluxScheme::Hllc;
    real entropyFix = 0.1;
    GradientScheme gradient = GradientScheme::LeastSquares;
    LimiterChoice limiter;
    TimeScheme time = TimeScheme::SspRk3;
    bool overlap = true; ///< compute while ghosts travel; results are the same
    /// Residuals, forces and totals are exact sums: the same bits on any number of ranks. States are so anyway.
    bool reproducible = true;
};

/// Seconds of this rank, and what it pulled.
struct SolverTimes {
    double compute = 0;
    double start = 0; ///< of pulls
    double wait = 0;
    index pulls = 0;
    std::size_t bytes = 0; ///< received
    index cellStages = 0;  ///< cells times stages computed
};

/// Cell-centred, second order. State variables are pulled and, while they travel, gradients computed in cells that need
/// no ghost; limited gradients are pulled while fluxes between own cells are computed. Nothing else is exchanged.
///
/// Results are the same to the bit for any number of ranks: all sums follow the order of faces in the file. (Those over
/// all cells do not if the scheme is not to be reproducible.)
class Solver {
  public:
    /// Collective. `conditions` is [patches of the mesh]. Mesh and metrics must outlive the solver; ghosts are needed
    /// in one layer, by faces. Throws ArgumentError on all ranks for meshes of curved surfaces.
    Solver(const DNDS::Geom::UnstructuredMesh &mesh, const DNDS::Geom::MeshMetrics &metrics, Gas gas,
           const Scheme &scheme, std::vector<BoundaryCondition> conditions);

    /// Sets own cells by their centroids. Local.
    void setState(const std::function<Primitive(Vector)> &flow);
    /// Sets own cells to conserved amounts that `conserved` has had, behind a step. Local.
    void setConserved(const ParArray<real, variables> &conserved);

    /// One step for all cells: by `cfl`, but at most `longest`. Collective. Returns its length. Throws DataError on all
    /// ranks where a cell has no density or pressure any more, naming the cell.
    real advance(real cfl, real longest);
    /// One step with time steps of each cell's own, towards a steady flow. Local but for pulls.
    void advanceLocally(real cfl);
    /// Throws DataError on all ranks where a cell has no density or pressure any more. Collective.
    void checkState();

    /// Root mean squares of the changes in a unit of time, at the start of the last stage computed. Collective.
    std::array<real, variables> residual() const;
    /// The force of the pressure beyond `reference` on the faces of `patches`, at the same time. Collective.
    Vector force(const std::vector<int> &patches, real reference) const;
    /// The integral of conserved amounts. Collective.
    std::array<real, variables> total() const;

    /// Fields of own cells.
    const ParArray<real, variables> &state() const { return *state_.father; }
    const ParArray<real, variables> &conserved() const { return conserved_; }
    /// Limited; of the last stage computed.
    const ParArray<real, gradientWidth> &gradient() const { return *gradient_.father; }
    /// The pressure at a boundary face at the start of the last stage. Local.
    real wallPressure(index face) const;

    const SolverTimes &times() const noexcept { return times_; }
    /// Whom the pulls of a stage reach, and how; both pulls one after the other. Local.
    std::vector<DNDS::PeerPath> pullPaths() const;
    /// Of the fields of this rank, ghosts included. Local.
    std::size_t bytes() const;
    /// Seconds that the pulls of one stage take when nothing is computed meanwhile: the mean of some. Collective.
    double timePulls(int repetitions);

  private:
    using List = DNDS::Array<index>;

    void classify();
    void findTurnedGhosts();
    template <class Kernel>
    void run(const List &rows, const Kernel &kernel);
    template <class Pulled, class Inner, class Edge>
    void pullAround(Pulled &field, const Inner &inner, const Edge &edge);
    void computeFluxes();
    void runStages();
    GradientKernel gradientKernel();
    FluxKernel fluxKernel();
    RateKernel rateKernel() const;
    void computeTimeSteps();
    index firstImpossibleCell() const;
    void sumColumns(std::span<const real> rows, std::span<real> sums) const;

    const DNDS::Geom::UnstructuredMesh &mesh_;
    DNDS::Geom::MeshView view_;
    Gas gas_;
    Scheme scheme_;
    DNDS::Array<BoundaryCondition> conditions_;
    DNDS::Array<int> faceCondition_;
    DNDS::Array<real, DNDS::NonUniformSize> weights_;
    /// Own cells and their faces: those that need no ghosts, and the others.
    List allCells_, innerCells_, edgeCells_, innerFaces_, edgeFaces_;
    List turnedGhosts_, turnedRows_; ///< rows of the sons that are turned, and 0, 1, ...
    DNDS::Array<real, 9> turns_;

    Field<variables> state_; ///< primitive
    Field<gradientWidth> gradient_;
    ParArray<real, variables> conserved_;
    ParArray<real, variables> start_; ///< conserved, at the start of a step
    ParArray<real, 1> timeStep_;
    DNDS::Array<real, variables> flux_;
    SolverTimes times_;
};

} // namespace Euler
