/// @file RunReport.hpp
/// @brief Costs and results of a run, as text and JSON; and, before a run, its plan.
#pragma once

#include "Configuration.hpp"
#include "RunResult.hpp"
#include "Solver.hpp"

#include <string>

namespace Euler {

/// Breakdown of the run time; the same on all ranks.
struct RunCosts {
    int ranks = 1;
    index cells = 0;   ///< cells of all ranks
    index steps = 0;   ///< steps of this run
    double stages = 3; ///< stages of a step, a mean; of implicit ones: number of rate evaluations
    double seconds = 0;
    double computing = 0, computingMost = 0;        ///< means of ranks and the slowest rank
    double starting = 0, waiting = 0;               ///< seconds of pulls: means of ranks
    double pulls = 0, pullsMost = 0;                ///< both: means of ranks and the slowest rank
    double pullsOfStage = 0;                        ///< seconds of a rank, late peers included
    double pullsOfStageAlone = 0;                   ///< when nothing is computed meanwhile
    index pullsMade = 0;                            ///< pulls by each rank
    index bytesSent = 0, bytesPulled = 0;           ///< bytes of all ranks
    std::optional<DNDS::Task::PlanGraphs> graphUse; ///< on the device: of rank 0
    int ranksWithGraphs = 0;
    double kinetics = 0, kineticsMost = 0; ///< a mean of ranks, and the slowest rank
    BalanceResult balance;
    PictureResult pictures; ///< of the slowest rank; not part of `seconds`

    double cellsPerSecondAndRank() const {
        return seconds > 0 ? static_cast<double>(cells) * static_cast<double>(steps) / seconds / ranks : 0;
    }
    /// Seconds of a rank outside kernels and pulls: copies and reductions, including their waiting time.
    double rest() const { return seconds - computing - kinetics - pulls; }
    /// Achieved overlap: the share of the pulls' time hidden by computing.
    double hidden() const;
};

/// Measures the cost of pulls without overlap and collects the times of all ranks. Collective.
RunCosts measureCosts(DNDS::CommunicatorView comm, Solver &solver, const Kinetics *kinetics,
                      const BalanceResult &balance, index cells, index steps, double seconds);
std::string textOf(const RunCosts &costs);
/// Summary of implicit steps, as a line.
std::string textOf(const ImplicitRecord &record, index steps);

/// run.json: result, costs and the names of the other files. Rank 0 writes it; Collective. Throws DataError on all
/// ranks if it cannot be written.
void writeRunReport(DNDS::CommunicatorView comm, const std::string &path, const Configuration &configuration,
                    const std::string &origin, const RunResult &result, const RunCosts &costs);

/// For `--dry-run`: cells, ghosts, memory and messages of each rank. Collective; complete on all ranks.
/// `implicit` may be null.
std::string planOf(const DNDS::Geom::UnstructuredMesh &mesh, const Solver &solver, const ImplicitSteps *implicit,
                   const Scheme &scheme);

/// Throws DataError on all ranks unless the output folder is writable or can be created. Creates nothing. Collective.
void checkOutputFolder(DNDS::CommunicatorView comm, const std::string &folder);

} // namespace Euler
