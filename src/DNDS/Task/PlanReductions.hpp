/// @file PlanReductions.hpp
/// @brief The reductions of a plan.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Task/Plan.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace DNDS::Task {

struct Reduction;

/// The reductions of a plan, over all ranks: those of a run are in flight until the next one.
class PlanReductions {
  public:
    /// The rows of list `k` of reduction `n`, in the executor's memory.
    using ListedRows = std::function<PartRows(std::size_t n, std::size_t k)>;

    /// Refers to the graph. Collective.
    PlanReductions(const GraphModel &graph, const std::shared_ptr<CommunicatorContext> &context);

    /// Computes this rank's values, and starts the reductions of a run. Local.
    /// It copies the values, so later runs may overwrite the arrays while the reduction is in flight.
    void start(const Executor &executor, const ListedRows &listed);
    /// Waits for the reductions of the last run, if any were started.
    /// Every rank must call it before its next `start`, as each passes on the numbers of others.
    void collect();
    /// Throws ArgumentError for unknown reductions, StateError before the first run.
    void requireResult(Reduction chosen) const;
    /// Result of the last run, after `collect`. Local.
    std::span<const real> result(Reduction chosen) const;
    /// Result of the run before. Local. Throws ArgumentError, StateError before the second run.
    std::span<const real> previous(Reduction chosen) const;
    /// Forgets the results of all runs.
    /// After a recovery, in which the pending reduction was cancelled.
    void reset() noexcept { started_ = collected_ = 0; }

  private:
    void require(Reduction chosen) const;
    std::span<const real> valuesOf(Reduction chosen, const std::vector<real> &all) const;

    const GraphModel &graph_;
    std::unique_ptr<PendingReduction> pending_; ///< null without reductions
    std::vector<std::size_t> first_{0};         ///< [reductions + 1] number of columns before each
    /// `collect` swaps the two, so that memory is allocated by the first two runs only.
    std::vector<real> last_, before_;   ///< [columns] results of the last run, and of the one before
    index started_ = 0, collected_ = 0; ///< numbers of runs
};

} // namespace DNDS::Task
