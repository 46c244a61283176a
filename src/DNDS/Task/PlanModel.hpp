/// @file PlanModel.hpp
/// @brief A compiled graph: parts of tasks, exchanges, and the order in which a rank runs them.
#pragma once

#include "DNDS/Task/GraphModel.hpp"

#include <cstdint>
#include <memory>
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
struct Part {
    std::size_t task = 0;
    bool late = false;            ///< needs the results of the last exchange before the task
    bool urgent = false;          ///< the next exchange sends its results
    std::vector<LocalIndex> list; ///< empty if the rows are a range
    PartRows rows;
    /// Tasks that add: the rows of the arrays whose sums are computed here, [first, last).
    bool adds = false;
    bool toGhosts = false;
    index firstTarget = 0, lastTarget = 0;
    std::vector<RowGuard> guards; ///< with DNDS_DEBUG_CHECKS: one per access
};

/// A pull or push that the library inserted.
struct Transfer {
    Direction direction = Direction::Pull;
    std::size_t task = 0; ///< the task that it precedes (pulls) or follows (pushes)
    std::vector<std::size_t> arrays;
    std::shared_ptr<const ExchangePattern> pattern;
    bool conditional = false; ///< moves contents from before the run: dropped where the ghosts are current
    std::size_t exchange = 0; ///< number of the exchange that moves it; several transfers may share one
    index number = 0;         ///< in program order, from 1; exchanges due together have the same number
};

enum class StepKind : unsigned char { Part, Call, Swap, Start, Wait };

/// A step of the plan. `what` numbers a part, a task (Call, Swap) or a transfer (Start, Wait).
struct PlanStep {
    StepKind kind = StepKind::Part;
    std::size_t what = 0;
    std::vector<std::size_t> after; ///< earlier steps that have to be complete
};

/// State in which a run leaves an array's ghosts.
struct ArrayOutcome {
    bool written = false;
    bool pulled = false;
    bool current = false; ///< all ghosts equal their owners' rows, on all ranks
    /// The first reader's needs are met by the previous run, on all ranks, unless the array was written since.
    bool meetsEntry = false;
};

/// The steps of a plan on this rank, and their order: the result of `compile`, without the program's functions.
struct PlanModel {
    std::vector<RowMask> taskRows; ///< [tasks] on this rank
    std::vector<Part> parts;
    std::vector<Part> finishes; ///< [as in the graph] rows that are finished after pulls
    std::vector<Transfer> transfers;
    std::vector<PlanStep> steps;       ///< in the order in which they run
    std::vector<ArrayOutcome> outcome; ///< [arrays]
    std::vector<bool> recomputes;      ///< [tasks]
    std::vector<std::string> notes;    ///< decisions, readable
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

} // namespace DNDS::Task
