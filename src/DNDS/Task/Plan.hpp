/// @file Plan.hpp
/// @brief A graph compiled for one executor: run every step.
#pragma once

#include "DNDS/Device/Executor.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Task/PlanModel.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Task {

/// Counts of this rank's work in all runs of a plan.
struct PlanStatistics {
    index runs = 0;
    index parts = 0;
    index transfers = 0;        ///< pulls and pushes made
    index dropped = 0;          ///< pulls left out, because the ghosts were current
    double seconds = 0;         ///< seconds in `run`
    double secondsStarting = 0; ///< seconds starting exchanges
    double secondsWaiting = 0;  ///< seconds waiting for exchanges, late peers included
    std::size_t bytesSent = 0;
    std::size_t bytesReceived = 0;
};

/// One or several numbers computed at the end of each run of a plan; from Graph::reduce.
struct Reduction {
    std::size_t number = 0;
};

/// The plan's use of device graphs.
struct PlanGraphs {
    index graphs = 0;       ///< number captured
    index launches = 0;     ///< launches of graphs
    bool wholeRuns = false; ///< a run is one graph: no rows are exchanged with other ranks
    std::string whyNot;     ///< reason why kernels are started one by one; empty if graphs are used
};

/// A graph's tasks, split into parts, with their pulls and pushes, in the order in which this rank runs
/// them. Made by Graph::compile. Move-only; destroying it is Local.
class Plan {
  public:
    Plan(Plan &&other) noexcept;
    Plan &operator=(Plan &&other) noexcept;
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan();

    /// Runs the tasks once. On all ranks; waits only for peers whose rows are needed. On return all work is
    /// done, on the device, too. Costs less than 0.1 microseconds a part beside the work itself. The same as `start`
    /// and `wait`.
    ///
    /// Pulls of ghosts that are current when it begins are left out: the array was not written since the last pull,
    /// or since the last run of this plan that left its ghosts current. So an array written outside of plans
    /// must be written, or `changed`, on all ranks.
    ///
    /// Throws on this rank a task's exception, with task and rows in front of the text; RevokedError where another rank
    /// failed; StateError where a peer entered the run in another state (it wrote an array that this rank did not), at
    /// the latest in the next run. Then call `recover` on all ranks before the next run, and reset the graph's output
    /// from a common state: a failed task leaves its output partly written. On a communicator of one rank the next run
    /// needs no `recover`. Ranks run their plans in the same order.
    void run();

    /// As `run`, but queued device work may still run when it returns: after the present work of the executor's
    /// stream, before its later work. Neither host nor other streams may use the arrays before `wait`;
    /// the next `start` may follow at once.
    void start();
    /// Returns when all runs are done. Local. Throws the errors of kernels.
    void wait();

    /// Waits for asynchronous calls (Graph::asyncCall), too. Throws their exceptions.
    void finish();

    /// Result of the last run, one number a column. Waits for all ranks to end that run: call it on all of them,
    /// as each has to pass on the numbers of others. Valid until the next run. Throws StateError before the first
    /// run since a recovery, RevokedError if the run failed on some rank.
    std::span<const real> result(Reduction reduction);
    /// Result of the run before the last, without waiting: for steps that can use an older number. Local. Throws
    /// StateError before the second run.
    std::span<const real> previous(Reduction reduction) const;

    /// After `run` threw on any rank: recovers the communicator, as DNDS::recover does, with all its users. Pulls
    /// are forgotten, and runs and results counted from 0: calls of every n-th run take place in the next one.
    /// Collective; not needed on the way to the end of the program. Throws StateError within a run.
    void recover();

    /// A readable table: parts in their order, rows, dependences, and pulls made or dropped, with reasons.
    /// Local.
    std::string describe() const;
    /// The same as a graph in the language of Graphviz: `dot -Tsvg`. Local.
    std::string dot() const;
    /// Parts, transfers and their order. Local.
    const PlanModel &model() const;
    const PlanStatistics &statistics() const;
    /// Use of device graphs; null on the host.
    const PlanGraphs *graphs() const;
    /// Paths of the plan's exchanges to each peer. Local.
    std::vector<PeerPath> paths() const;

    /// For Graph::compile. Collective.
    static Plan compile(GraphModel graph, const CommunicatorView &comm, const Executor &executor,
                        const CompileOptions &options);

  private:
    struct State;
    class HostRunner;
    class DeviceRunner;
    explicit Plan(std::unique_ptr<State> state);
    /// Throws StateError if this was moved from.
    State &state() const;

    std::unique_ptr<State> state_;
};

/// Marks an array as written in a way that the library does not see (through a stored view), or by another
/// rank that wrote its rows of it, so that the next run pulls it: to be called on all ranks. Local, O(1).
template <class TArray>
void changed(TArray &array) {
    if constexpr (requires { array.father->markWritten(); })
        array.father->markWritten();
    else
        array.markWritten();
}

} // namespace DNDS::Task
