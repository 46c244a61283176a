/// @file Simulation.hpp
/// @brief A whole run: mesh, start, steps, histories, files, report.
#pragma once

#include "Checkpoint.hpp"
#include "Configuration.hpp"
#include "Kinetics.hpp"
#include "Progress.hpp"
#include "Solver.hpp"

#include "DNDS/Geom/Repartition/Repartition.hpp"

#include <iosfwd>
#include <memory>
#include <optional>

namespace Euler {

/// A mesh for the solver. Collective. Throws as readers and `buildMesh` do.
DNDS::Geom::UnstructuredMesh buildMeshOf(DNDS::CommunicatorView comm, const MeshChoice &choice);

/// A configuration with its mesh and solver.
class Simulation {
  public:
    /// Builds everything and sets the initial flow. Collective. Throws on all ranks for errors in the configuration or
    /// the mesh.
    Simulation(DNDS::CommunicatorView comm, Configuration configuration);

    /// Continues from a checkpoint; as `readCheckpoint`. Collective.
    void restart(const std::string &path, const RestartChoice &choice, std::ostream *out);

    /// Computes until the end, or until SIGTERM or SIGUSR1. Rank 0 reports on `out` if given; files are written if a
    /// folder is configured. Collective.
    RunResult operator()(std::ostream *out, ProgressStyle style = ProgressStyle::Lines);

    /// A summary of the run. Collective; the text is complete on rank 0.
    std::string describe() const;
    /// For `--dry-run`: memory and messages of each rank. Collective. Throws DataError on all ranks if the output
    /// folder is not writable.
    std::string plan() const;

    const DNDS::Geom::UnstructuredMesh &mesh() const { return mesh_; }
    const Configuration &configuration() const { return configuration_; }
    Solver &solver() { return *solver_; }
    const Solver &solver() const { return *solver_; }
    /// Null without `"kinetics"`.
    const Kinetics *kinetics() const { return kinetics_ ? &*kinetics_ : nullptr; }
    const BalanceResult &balance() const { return balance_; }

  private:
    class Files;

    real step(real time);
    std::string rebalance(Files &files, const RunResult &now);
    std::vector<index> costs(real time) const;
    void moveTo(const std::vector<int> &targets);
    RunResult measure(index steps, real time) const;
    void measureErrors(RunResult &result) const;
    void finish(RunResult &now, Files &files, double seconds, std::ostream *out);

    DNDS::CommunicatorView comm_;
    Configuration configuration_;
    DNDS::Geom::UnstructuredMesh mesh_;
    DNDS::Geom::MeshMetrics metrics_;
    std::unique_ptr<Solver> solver_;
    std::optional<ImplicitSteps> implicit_;
    std::optional<Kinetics> kinetics_;
    std::optional<DNDS::Geom::Rebalancing> policy_;
    BalanceResult balance_;
    double counted_ = 0; ///< seconds of this rank's own work that `policy_` knows of
    RunPoint start_;
    std::vector<int> forcePatches_;
    index cells_ = 0; ///< cells of all ranks
};

} // namespace Euler
