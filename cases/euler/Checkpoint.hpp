/// @file Checkpoint.hpp
/// @brief Checkpoints of a run: when they are written, which are kept, and what is compared on restart.
#pragma once

#include "Configuration.hpp"
#include "RunResult.hpp"
#include "Solver.hpp"
#include "StopSignal.hpp"

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace Euler {

/// The position of a run between two steps, besides the state of its cells.
struct RunPoint {
    RunResult now;
    real firstResidual = 0; ///< residual of mass, after the first step
};

/// Messages after a step; the same on all ranks.
struct CheckpointNotice {
    bool stopped = false; ///< a signal has ended the run, and its checkpoint is written
    std::string message;  ///< a line, or nothing
};

/// Writes checkpoints to the folder of a run: `checkpoint-00000100.h5` after step 100. A run without a folder has none.
class Checkpoints {
  public:
    /// During its lifetime, SIGTERM and SIGUSR1 end the run after a step. Collective. Mesh and configuration must
    /// outlive it. `clock` gives seconds; rank 0's counts. Throws NotBuiltError on all ranks if checkpoints are
    /// configured and there is no HDF5.
    Checkpoints(const DNDS::Geom::UnstructuredMesh &mesh, const Configuration &configuration,
                std::function<double()> clock = MPI_Wtime);

    /// Call it after each step, with `last` after the last one. Writes a checkpoint if one is due. Collective; what
    /// ranks must agree on is reduced during the next step.
    ///
    /// If a checkpoint cannot be written, the message says so and the run continues; for the last one, the DataError is
    /// thrown on all ranks.
    CheckpointNotice afterStep(const Solver &solver, const Kinetics *kinetics, const RunPoint &point, bool last);

    /// Writes one and removes all but the newest. Collective. Returns its path. Throws as CheckpointWriter.
    std::string write(const Solver &solver, const Kinetics *kinetics, const RunPoint &point) const;

  private:
    const DNDS::Geom::UnstructuredMesh &mesh_;
    const Configuration &configuration_;
    std::function<double()> clock_;
    std::optional<StopSignal> signal_;
    double begin_ = 0;          ///< begin of the time to the next one
    std::uint64_t fingerprint_; ///< fingerprint of the mesh
};

/// Checks that a continued run skips.
struct RestartChoice {
    bool allowChanges = false; ///< other settings
    bool otherMesh = false;    ///< another mesh, or numbering, of as many cells
};

/// Sets the solver's cells from a checkpoint: a file, or "latest" of the configured folder. If the latest is damaged,
/// this is reported on `out` and the one before is used. Collective. @throws on all ranks: ArgumentError for another
/// mesh and for settings that differ, unless `choice` allows them, and if there is no checkpoint; DataError for an
/// unreadable file.
RunPoint readCheckpoint(const DNDS::Geom::UnstructuredMesh &mesh, const Configuration &configuration, Solver &solver,
                        Kinetics *kinetics, const std::string &path, const RestartChoice &choice, std::ostream *out);

} // namespace Euler
