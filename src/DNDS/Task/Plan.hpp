/// @file Plan.hpp
/// @brief A graph compiled for one executor: run every step.
///
/// `PlanModel` is the compiled graph: parts of tasks, exchanges, and the order in which a rank runs them.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Task/GraphModel.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS::Task {

/// Choices for a plan; the same on all ranks.
struct CompileOptions {
    /// Whether ghosts are recomputed instead of pulled.
    enum class Recompute : unsigned char {
        AsDeclared, ///< for tasks with recomputeGhosts()
        Never,
        WherePossible ///< for all tasks
    };
    Recompute recompute = Recompute::AsDeclared;
    bool overlap = true;        ///< split tasks so that pulls overlap with rows that need none; results are the same
    bool fuse = true;           ///< pulls due together on one pattern use one message a peer
    bool dropPulls = true;      ///< leave out pulls of ghosts that are current when a run begins
    bool graphs = true;         ///< on the device: replay parts from captured graphs
    index rowsPerChunk = 0;     ///< rows that a thread takes at once; 0: chosen by the size of parts
    ExchangeOptions exchange{}; ///< options of pulls and pushes; the space is that of the executor
};

/// Rows of a task that run together.
/// A task has up to four parts (late or not, urgent or not), or two if it adds: sums of ghosts, sums of owned rows.
/// A row's part depends on this rank's ghosts, so ranks differ in the number of parts; all that ranks must
/// agree on is in Transfer and in calls.
struct Part {
    std::size_t task = 0;
    /// Some row needs the results of the last exchange before the task; other parts may run while it is in flight.
    bool late = false;
    /// The next exchange sends its results, or depends on them: such parts run first.
    bool urgent = false;
    /// The rows, ascending; empty if they are a range. `rows.list` points into it, so a Part is not copied once
    /// `splitTasks` has set that pointer.
    std::vector<LocalIndex> list;
    PartRows rows;
    /// Tasks that add: the rows of the arrays whose sums are computed here, [first, last).
    /// For these parts `rows` names all rows that add to a target in the range, at least once.
    bool adds = false;
    /// The targets are ghosts: they are set to zero before the part and pushed after it.
    bool toGhosts = false;
    index firstTarget = 0, lastTarget = 0;
    std::vector<RowGuard> guards; ///< with DNDS_DEBUG_CHECKS: one per access
};

/// A pull or push that the library inserted.
/// The list of transfers is the same on all ranks in length, order, arrays and numbers: every rank makes the same
/// exchanges in the same order. Only `pattern` describes rows of this rank.
struct Transfer {
    Direction direction = Direction::Pull;
    std::size_t task = 0; ///< the task that it precedes (pulls) or follows (pushes)
    /// Moved together, in one message a peer; all of them have `pattern`.
    std::vector<std::size_t> arrays;
    std::shared_ptr<const ExchangePattern> pattern;
    /// Moves contents from before the run. PlanHistory drops it in runs that begin with current ghosts; others are
    /// always made.
    bool conditional = false;
    /// Number of the exchange that moves it, set by PlanTransfers::connect. Transfers of the same arrays in the same
    /// direction share one; OrderSteps makes them take turns.
    std::size_t exchange = 0;
    /// In program order, from 1; transfers due before or after one task have the same number. SplitTasks orders rows
    /// by it.
    index number = 0;
};

enum class StepKind : unsigned char { Part, Call, Swap, Start, Wait };

/// A step of the plan. `what` numbers a part, a task (Call, Swap) or a transfer (Start, Wait).
struct PlanStep {
    StepKind kind = StepKind::Part;
    std::size_t what = 0;
    /// Earlier steps that have to be complete; ascending, without duplicates. A host run in one thread needs only the
    /// order; several threads and device streams need these edges.
    std::vector<std::size_t> after;
};

/// State in which a run leaves an array's ghosts.
/// PlanHistory reads it to decide which pulls the next run may leave out. All members are the same on all ranks.
struct ArrayOutcome {
    /// Some task writes or swaps the array.
    bool written = false;
    /// Some transfer of the plan pulls it.
    bool pulled = false;
    bool current = false; ///< all ghosts equal their owners' rows, on all ranks
    /// The first reader's needs are met by the previous run, on all ranks, unless the array was written since.
    /// Weaker than `current`: a plan may recompute just the ghosts that it reads first, and leave the others stale.
    bool meetsEntry = false;
};

/// The steps of a plan on this rank, and their order: the result of `compile`, without the program's functions.
struct PlanModel {
    /// [tasks] The rows that this rank computes: owned ones, and ghosts that are recomputed. Empty masks for calls
    /// and swaps.
    std::vector<RowMask> taskRows;
    std::vector<Part> parts;
    std::vector<Part> finishes; ///< [as in the graph] rows that are finished after pulls
    std::vector<Transfer> transfers;
    std::vector<PlanStep> steps;       ///< in the order in which they run
    std::vector<ArrayOutcome> outcome; ///< [arrays]
    /// [tasks] Whether the task computes ghosts so that a pull can be left out; the same on all ranks.
    std::vector<bool> recomputes;
    std::vector<std::string> notes; ///< decisions, readable
};

/// Decides which arrays are pulled when, and the order of all steps. Collective: some reductions a task. Throws on
/// all ranks ArgumentError or IndexError naming task, array and row.
PlanModel compileGraph(const GraphModel &graph, const CommunicatorView &comm, const CompileOptions &options);

// Steps of compileGraph, in this order.

/// The rows of the array that the access needs for the rows of the task. Local.
RowMask rowsSeen(const GraphModel &graph, const TaskModel &task, const ArrayAccess &access, const RowMask &rows);
/// Finds the rows of each task and which of them compute ghosts; places pulls and pushes. Collective.
void placeTransfers(const GraphModel &graph, const CommunicatorView &comm, const CompileOptions &options,
                    PlanModel &plan);
/// For each `width` of the rows whose sums a part computes, at least once, the rows that add to these, ascending.
/// Local.
std::vector<std::vector<LocalIndex>> addingRows(const TaskModel &task, const Part &part, index width);
/// Splits tasks into parts. Local.
void splitTasks(const GraphModel &graph, const CompileOptions &options, PlanModel &plan);
/// Finds dependences between steps, and an order. Local.
void orderSteps(const GraphModel &graph, PlanModel &plan);

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
    /// done, on the device, too. Costs some 0.3 microseconds, and less than 0.1 a part, beside the work itself. The
    /// same as `start` and `wait`.
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
