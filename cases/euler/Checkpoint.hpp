/// @file Checkpoint.hpp
/// @brief Files from which a run goes on: when they are written, which are kept, and what must fit on reading.
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

/// Where a run is between two steps, besides the state of its cells.
struct RunPoint {
    RunResult now;
    real firstResidual = 0; ///< of mass, after the first step
};

/// What people should know behind a step; the same on all ranks.
struct CheckpointNotice {
    bool stopped = false; ///< a signal has ended the run, and its checkpoint is written
    std::string message;  ///< a line, or nothing
};

/// Writes checkpoints to the folder of a run: `checkpoint-00000100.h5` after step 100. A run without folder has none.
class Checkpoints {
  public:
    /// While it lives, SIGTERM and SIGUSR1 end the run behind a step. Collective. Mesh and configuration must outlive
    /// it. `clock` gives seconds; that of rank 0 counts. Throws NotBuiltError on all ranks where checkpoints are
    /// configured and there is no HDF5.
    Checkpoints(const DNDS::Geom::UnstructuredMesh &mesh, const Configuration &configuration,
                std::function<double()> clock = MPI_Wtime);

    /// Called behind each step; `last` behind the last one. Writes a checkpoint where one is due. Collective; what
    /// ranks must agree on travels during the next step.
    ///
    /// Where a checkpoint cannot be written, the message says so, and computing goes on; but where it is the last
    /// chance, the DataError is thrown on all ranks.
    CheckpointNotice afterStep(const Solver &solver, const RunPoint &point, bool last);

    /// Writes one, and removes all but the newest. Collective. Returns its path. Throws as CheckpointWriter.
    std::string write(const Solver &solver, const RunPoint &point) const;

  private:
    const DNDS::Geom::UnstructuredMesh &mesh_;
    const Configuration &configuration_;
    std::function<double()> clock_;
    std::optional<StopSignal> signal_;
    double begin_ = 0;          ///< of the time to the next one
    std::uint64_t fingerprint_; ///< of the mesh
};

/// What a run that goes on does not ask of its checkpoint.
struct RestartChoice {
    bool allowChanges = false; ///< other settings
    bool otherMesh = false;    ///< another mesh, or numbering, of as many cells
};

/// Sets the solver's cells from a checkpoint: a file, or "latest" of the configured folder. A latest one that is
/// damaged is reported on `out`, and the one before is taken. Collective.
/// @throws on all ranks: ArgumentError for another mesh and for settings that differ, unless `choice` says otherwise,
/// and where there is none; DataError for a file that cannot be read.
RunPoint readCheckpoint(const DNDS::Geom::UnstructuredMesh &mesh, const Configuration &configuration, Solver &solver,
                        const std::string &path, const RestartChoice &choice, std::ostream *out);

} // namespace Euler
