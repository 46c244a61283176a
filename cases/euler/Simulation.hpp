/// @file Simulation.hpp
/// @brief A whole run: mesh, start, steps, histories, files, report.
#pragma once

#include "Configuration.hpp"
#include "Progress.hpp"
#include "Solver.hpp"

#include <iosfwd>
#include <memory>

namespace Euler {

/// A mesh as the solver needs it. Collective. Throws as readers and `buildMesh` do.
DNDS::Geom::UnstructuredMesh buildMeshOf(DNDS::CommunicatorView comm, const MeshChoice &choice);

/// What a run has come to; the same on all ranks and for any number of ranks.
struct RunResult {
    index steps = 0;
    real time = 0;
    bool converged = false; ///< the residual came down to the tolerance
    std::array<real, variables> residual{};
    real drag = 0; ///< coefficients
    real lift = 0;
    /// Mean and root mean square difference of density from what is known of the flow; 0 where nothing is.
    real meanError = 0;
    real squareError = 0;
    std::array<real, variables> total{}; ///< integrals of conserved amounts
};

/// A configuration with its mesh and solver.
class Simulation {
  public:
    /// Builds everything and sets the initial flow. Collective. Throws on all ranks what is wrong with the
    /// configuration or the mesh.
    Simulation(DNDS::CommunicatorView comm, Configuration configuration);

    /// Computes until the end. Rank 0 reports on `out` if given; files are written where a folder is configured.
    /// Collective.
    RunResult operator()(std::ostream *out, ProgressStyle style = ProgressStyle::Lines);

    /// What would be computed. Collective; the text is complete on rank 0.
    std::string describe() const;
    /// For `--dry-run`: memory and messages of each rank. Collective. Throws DataError on all ranks where the output
    /// folder could not be written.
    std::string plan() const;

    const DNDS::Geom::UnstructuredMesh &mesh() const { return mesh_; }
    const Configuration &configuration() const { return configuration_; }
    Solver &solver() { return *solver_; }
    const Solver &solver() const { return *solver_; }

  private:
    real step(real time);
    RunResult measure(index steps, real time) const;
    void measureErrors(RunResult &result) const;

    DNDS::CommunicatorView comm_;
    Configuration configuration_;
    DNDS::Geom::UnstructuredMesh mesh_;
    DNDS::Geom::MeshMetrics metrics_;
    std::unique_ptr<Solver> solver_;
    std::vector<int> forcePatches_;
    index cells_ = 0; ///< of all ranks
};

} // namespace Euler
