/// @file PlanState.hpp
/// @brief The parts of a plan.
#pragma once

#include "DNDS/Task/Plan.hpp"
#include "DNDS/Task/PlanHistory.hpp"
#include "DNDS/Task/PlanReductions.hpp"
#include "DNDS/Task/PlanStage.hpp"
#include "DNDS/Task/PlanTransfers.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace DNDS::Task {

/// One run at a time: chooses the pulls that it leaves out, agrees on that with peers, and lets a runner carry the
/// steps out.
/// Driven by one thread. Between runs no transfer is in flight; a reduction may be and, in PlanStage::Queued, work of
/// the device.
struct Plan::State final : Recoverable {
    State(GraphModel model, const CommunicatorView &comm, const Executor &where, const CompileOptions &chosen);
    ~State() override;

    /// Makes exchanges, reductions and runner for `plan`. Collective.
    void connect();

    /// Throws StateError where `event` must not happen now.
    void require(PlanEvent event) const;
    /// Goes to the stage after `event`. Throws as `require`.
    /// Only the thread that runs the plan calls it: the stage needs no lock.
    void enter(PlanEvent event);
    /// A run, except for work left on the device.
    void runOnce();
    /// Ends a run that has thrown.
    void fail() noexcept;
    void waitForDevice();
    void waitForAsyncCalls() const;

    /// For the communicator's recovery: waits for queued device work, so that nothing still reads memory that the
    /// recovery resets.
    bool settle() noexcept override;
    /// Called on all ranks by the communicator's recovery.
    void renew() override;

    // Shared by both runners.

    /// Whether a call takes place in this run.
    bool isDue(const TaskModel &task) const { return (runsSinceRecovery - 1) % task.every == 0; }
    /// Anything but a part.
    void run(const PlanStep &step);
    /// Runs `work`; names the part in what it throws.
    template <class Work>
    static void inTask(const TaskModel &task, const Part *part, const Work &work) {
        try {
            work();
        } catch (const std::exception &error) {
            rethrowFrom(error, task, part);
        }
    }
    /// The exception being handled, with the task in front of its text; of the same type where it is one of DNDS.
    [[noreturn]] static void rethrowFrom(const std::exception &error, const TaskModel &task, const Part *part);
    /// Waits for a transfer and completes it; finishes the ghosts of a pull `where` they are, `finished(k)` those of
    /// `graph.finishes[k]`.
    void wait(const Transfer &transfer, std::optional<Device::StreamHandle> stream, const Executor &where,
              const std::function<PartRows(std::size_t)> &finished);
    /// Helps with chunks meanwhile. Throws where ranks do not run the same.
    template <class IsReady, class What>
    void waitFor(const IsReady &isReady, const What &what);
    /// Calls the functor of a call or a swap, or does the step of its exchange.
    void call(const TaskModel &task);

    // Checks before a run.

    /// Throws StateError where the communicator was freed.
    void requireCommunicator() const;
    /// Throws where arrays are not the ones for which the parts were made.
    void requireSameRows() const;

    struct Rows;
    /// Compared before each run, O(1) an array: parts, masks and exchanges hold row numbers and are void once these
    /// have changed.
    Rows rowsOf(std::size_t array) const;

    // The order of members is the order of construction: history and transfers refer to `graph` and `plan`, runners
    // to all.
    GraphModel graph;
    CommunicatorView comm;
    std::shared_ptr<CommunicatorContext> context;
    Executor executor;
    CompileOptions options;
    PlanModel plan;
    PlanStage stage = PlanStage::Idle;
    PlanStatistics statistics;
    /// The same on all ranks, unlike `statistics.runs`, which counts failed runs that some ranks did not begin.
    /// `isDue` and the agreement with peers use it.
    index runsSinceRecovery = 0;
    PlanTrace trace;
    PlanHistory history{graph, plan};
    PlanTransfers transfers{graph, plan, trace, statistics};
    std::optional<PlanReductions> reductions;
    /// [tasks] The run in which views were taken last; -1: never. Views are taken once a run, as swaps and resizes
    /// move memory.
    std::vector<index> boundIn;
    std::vector<Rows> rows;               ///< [arrays] when it was compiled
    std::unique_ptr<HostRunner> host;     ///< null on the device
    std::unique_ptr<DeviceRunner> device; ///< null on the host. Last: destroyed before the memory that it uses
};

} // namespace DNDS::Task
