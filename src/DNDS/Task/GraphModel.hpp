/// @file GraphModel.hpp
/// @brief A graph without types: arrays, and tasks in program order with their reads and writes.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Storage/ArrayBase.hpp"
#include "DNDS/Task/KernelRows.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Task {

/// An array of a graph, without its type. The array must outlive graph and plans.
/// It is the only place where plans meet the types of arrays: compilation and runs work on these functions alone, so
/// that they are compiled once. Two handles mean the same array if their `father()` is the same object
/// (GraphModel::add).
class ArrayHandle {
  public:
    virtual ~ArrayHandle() = default;
    /// The array's name in messages.
    /// It stays readable after the array has been destroyed, unlike everything else but `alive`.
    virtual std::string_view name() const = 0;
    /// The rows that this rank owns; all of them for arrays without ghosts.
    virtual const ArrayBase &father() const = 0;
    /// The ghosts; null for arrays that cannot be pulled.
    /// Its rows follow those of `father` in the numbering of tasks: ghost `g` is row `owned() + g`.
    virtual const ArrayBase *son() const { return nullptr; }
    /// Pattern of its pulls, and the array as exchanges take it; null and empty for arrays that cannot be pulled.
    virtual std::shared_ptr<const ExchangePattern> pattern() const { return nullptr; }
    virtual ExchangeMember member() const { return {}; }
    /// Whether it may be written.
    virtual bool writable() const = 0;
    /// Brings the array and its ghosts to the device, or back to the host; marks its owned rows as written.
    virtual void toDevice() = 0;
    virtual void toHost() = 0;
    virtual void markWritten() = 0;
    /// See ArrayBase::setPulledFrom, for the ghosts.
    /// Called after runs that left all ghosts current on all ranks, as replayed device graphs do not run the
    /// exchange's own bookkeeping.
    virtual void setPulledFrom(std::uint64_t /*version*/, std::uint64_t /*finishedBy*/) {}
    /// Whether all ranks have the same contents.
    virtual bool sameOnAllRanks() const { return false; }
    /// False if the array is known to be destroyed: then no other function may be called.
    virtual bool alive() const { return true; }

    /// The number of rows that this rank owns; the same with the ghosts, which follow them.
    index owned() const { return father().size(); }
    index size() const { return father().size() + (son() != nullptr ? son()->size() : 0); }
};

/// An array without ghosts, or a stand-in for another object: a value, the blocks of a sparse field.
/// The array may have rows for ghosts all the same; the library then cannot pull them, and tasks that write it
/// compute the copies that later tasks read (PlaceTransfers.cpp).
class RowsHandle : public ArrayHandle {
  public:
    /// Refers to the rows; `lifetime` expires with them.
    template <class Rows>
    RowsHandle(const Rows &rows, bool writable, bool sameOnAllRanks = false)
        : rows_(const_cast<Rows *>(&rows)), name_(rows.label()), lifetime_(rows.lifetime()),
          writable_(writable), // NOLINT
          same_(sameOnAllRanks) {}

    std::string_view name() const override { return name_; }
    bool alive() const override { return !lifetime_.expired(); }
    const ArrayBase &father() const override { return *rows_; }
    bool writable() const override { return writable_; }
    bool sameOnAllRanks() const override { return same_; }
    // Copies between host and device change no contents.
    void toDevice() override { rows_->toDevice(); }
    void toHost() override { rows_->toHost(); }
    void markWritten() override { rows_->markWritten(); }

  private:
    ArrayBase *rows_;
    std::string name_; ///< for messages even after the end of the rows
    /// Expires with the rows: they may be destroyed before the graph, by mistake.
    std::weak_ptr<const void> lifetime_;
    bool writable_, same_;
};

/// Kind of a task's access to an array.
enum class AccessMode : unsigned char { Reads, Writes, ReadsWrites, Adds };
/// "reads", "writes", ...
const char *accessModeName(AccessMode mode);

/// The rows of an array that a task sees while it works on a row of its own.
enum class AccessRange : unsigned char {
    SameRow, ///< the row of the same number
    Through, ///< rows that an adjacency names
    Whole,   ///< all owned rows and ghosts
    Owned,   ///< all owned rows
    Region   ///< those of a region
};

/// A task's access to an array.
struct ArrayAccess {
    /// Index into GraphModel::arrays.
    std::size_t array = 0;
    AccessMode mode = AccessMode::Reads;
    AccessRange range = AccessRange::SameRow;
    /// AccessRange::Through; its row function is called during compilation and, for sums, when parts are made. Loops
    /// on the device never call it: their kernels hold adjacency views of their own.
    Adjacency adjacency;
    /// AccessRange::Region; empty otherwise. The rows are fixed when the access is declared.
    std::optional<Region> region;

    /// Whether the functor may see contents from before the task.
    bool reads() const noexcept { return mode == AccessMode::Reads || mode == AccessMode::ReadsWrites; }
    bool writes() const noexcept { return mode != AccessMode::Reads; }
};

/// Rows of a part of a task: a list, or [first, first + count) without one.
struct PartRows {
    /// Ascending; owned by the Part (host) or by DeviceRunner::Rows (device), in the memory of the executor that reads
    /// it.
    /// Ascending order matters: LoopBody looks only at the last row of a chunk to learn whether it has ghosts.
    const LocalIndex *list = nullptr;
    index first = 0;
    index count = 0;

    /// Row `i` of the part, i < count.
    DNDS_HOST_DEVICE index operator()(index i) const { return list != nullptr ? list[i] : first + i; }
    /// The rows from number `begin` on; `count` is as it was.
    PartRows from(index begin) const { return {list != nullptr ? list + begin : nullptr, first + begin, count}; }
};

/// The rows that add to each of some rows, by row: for sums on the device.
/// It is the transpose of the adjacency through which a task adds: one device thread computes one target, from its
/// contributions in ascending order of rows. No atomic additions are needed, and the bits are those of the host.
struct Contributions {
    const LocalIndex *targets = nullptr; ///< [count]
    const LocalIndex *starts = nullptr;  ///< [count + 1] in `rows`
    const LocalIndex *rows = nullptr;
    index count = 0;
};

/// The functor of a task.
/// A body keeps the views of its last `bind`. Several threads call `run` and `runAdding` at once, so these change
/// nothing in it; `bind` must not run beside them.
class TaskBody {
  public:
    virtual ~TaskBody() = default;
    /// Takes views of the arrays in `space`, with the guards of the accesses, if any. Local. Not while it runs.
    /// Throws StaleError.
    virtual void bind(MemorySpace space, std::span<const RowGuard> guards) = 0;
    /// Runs it for rows [begin, end) of the part. On the host in any thread, several at a time.
    virtual void run(const Executor &executor, const PartRows &rows, index begin, index end) const = 0;
    /// The same for a task that adds, limited to rows [first, last) of the arrays that it adds to.
    /// `rows` contains every row that adds to one of [first, last), and others perhaps: contributions outside the
    /// range are dropped, because another call computes them.
    virtual void runAdding(const PartRows & /*rows*/, index /*first*/, index /*last*/) const {}
    /// The same on the device.
    virtual void runAdding(const Executor & /*executor*/, const Contributions & /*sums*/) const {}
    /// A number that changes with values other than arrays that it depends on, the same on all ranks.
    /// PlanHistory makes it a part of the mark of finished ghosts, so that a pull is repeated when, say, the time of
    /// a boundary condition has changed.
    virtual std::uint64_t inputs() const { return 0; }
    /// Rows that a thread takes at once, as set by the program; 0: chosen for loops over cells.
    virtual index rowsPerChunk() const { return 0; }
};

/// An exchange that the plan does not make itself, as two calls of a graph: one starts it, a later one finishes it.
/// The two calls are steps of the plan, so a plan overlaps such an exchange with the parts between them. While one
/// waits, the plan calls `ready` again and again, between chunks of parts. Exchanges of sparse fields, and pushes of
/// blocks.
struct CalledExchange {
    const void *of = nullptr; ///< the exchanged object; the same for start and finish
    bool pushes = false;      ///< ghosts go to cells
    std::function<void()> start;
    std::function<bool()> ready;  ///< whether all has arrived; does not wait
    std::function<void()> finish; ///< after `ready`
    std::function<bool()> inFlight;
};

/// Kind of a task.
enum class TaskKind : unsigned char {
    Loop, ///< a functor called for each row
    Call, ///< a functor called once, on the host, by the thread that runs the plan
    Swap  ///< exchanges the contents of two arrays
};

/// A task as declared by the program, without its types.
/// Filled by TaskBuilder and never changed after GraphModel::add, apart from `async`, which each run replaces.
struct TaskModel {
    /// The same on all ranks, and not empty: ranks compare it, and errors and recordings show it.
    std::string name;
    TaskKind kind = TaskKind::Loop;
    /// The rows of a TaskKind::Loop; empty for calls and swaps.
    std::optional<Region> loop;
    /// One entry for each declaration, in the order of the functor's arguments. An array that is written appears once
    /// (requireFits).
    std::vector<ArrayAccess> accesses;
    /// Loops only. Plans compiled from one graph share it; each binds it again in every run.
    std::shared_ptr<TaskBody> body;
    /// Calls and swaps: the whole task, run by the thread that runs the plan.
    std::function<void()> call;
    /// Calls that queue work where the plan runs, in place of `call`.
    std::function<void(const Executor &)> launch;
    /// Calls: number of runs from one call to the next, counted from the first run after compilation or recovery.
    index every = 1;
    /// The latest call that runs in a thread of its own.
    /// Set if the call is asynchronous. The next such call, Plan::finish and the plan's destructor wait for it.
    std::shared_ptr<std::future<void>> async;
    std::shared_ptr<CalledExchange> exchange; ///< calls that start or finish one, in place of `call`
    bool startsExchange = false;              ///< it starts the exchange
    bool recomputesGhosts = false;            ///< it also computes ghosts if that saves a pull

    /// Whether it needs its arrays on the host, wherever the plan runs.
    bool onHost() const noexcept { return kind == TaskKind::Call && !launch && !exchange; }
};

/// Waits for work in a thread of its own, if there is any; throws its exception, once.
/// Local; blocks without polling MPI, as the work may not depend on messages.
inline void finishAsync(std::future<void> &work) {
    if (work.valid())
        std::exchange(work, {}).get();
}

/// Calls `visit(target)` for each row that `row` of a task adds to, in each of its arrays. -1 stands for none.
template <class Visit>
void forEachTarget(const TaskModel &task, index row, Visit &&visit) {
    for (const ArrayAccess &access : task.accesses) {
        if (access.mode != AccessMode::Adds)
            continue;
        if (access.range == AccessRange::SameRow)
            visit(row);
        else
            for (const LocalIndex target : access.adjacency.row(row))
                visit(index{target});
    }
}

/// The kernel that finishes ghosts after each pull.
/// Such ghosts differ from their owners' rows: values rotated at a periodic boundary, or set from a boundary
/// condition. So a finished pull cannot be replaced by recomputing the ghosts, and swaps do not carry finished ghosts
/// along.
struct PullFinish {
    /// Index into GraphModel::arrays; at most one finish an array is found.
    std::size_t array = 0;
    Region ghosts;
    /// Called once for each row of `ghosts` in the wait of the pull, by the thread that runs the plan or on its stream.
    std::shared_ptr<TaskBody> body;
    /// It also reads owned rows: then writers of these must be ordered against the wait that runs it
    /// (OrderSteps.cpp).
    bool readsOwned = false;
};

/// Reduced rows, a list for each group of columns: one for all, or one a column if each has rows of its
/// own.
using ReducedLists = std::vector<std::vector<LocalIndex>>;

/// Numbers computed at the end of a run: the columns of an array's owned rows, over all ranks.
struct ReductionModel {
    std::string name;
    /// Index into GraphModel::arrays.
    std::size_t array = 0;
    /// Sums are exact (ReductionValue), so the result has the same bits for any distribution of rows to ranks and
    /// threads.
    ReduceOp op = ReduceOp::Sum;
    /// The number of results. A declaration fixes it; `requireFits` compares it with `width` before each run.
    rowsize columns = 1;
    /// The number of rows from the first; empty: all. For an array without ghosts, Plan::compile finds it from the
    /// graph's loops (findReducedRows): rows beyond it may be copies of other ranks' rows, which count at their
    /// owners.
    std::optional<index> rows;
    /// Rows named one by one, in place of the first `rows`; null for none.
    std::shared_ptr<const ReducedLists> lists;
    /// The name of the region from which `lists` was made; ranks compare it.
    std::string region;
    std::function<rowsize()> width; ///< the present number of values in a row of the array, or its components
    /// The elements of the owned rows in a memory space.
    std::function<std::span<const real>(MemorySpace)> elements;
};

/// A graph as declared by the program: the input of plans.
/// A value: Graph::compile copies it into each plan, while handles, bodies and call functors are shared with the
/// graph.
struct GraphModel {
    std::string name;
    /// Whether this source is compiled with DNDS_DEBUG_CHECKS.
#if defined(DNDS_DEBUG_CHECKS)
    static constexpr bool checkedHere = true;
#else
    static constexpr bool checkedHere = false;
#endif
    bool guarded = checkedHere; ///< whether the program, not the library, was built with DNDS_DEBUG_CHECKS
    /// Each array once. Their indices are the array numbers used everywhere in models of graphs and plans, the same
    /// on all ranks if these declare the same tasks.
    std::vector<std::shared_ptr<ArrayHandle>> arrays;
    /// In program order, which defines the meaning of the graph: a run gives the results of running the tasks one
    /// after another with all ghosts current.
    std::vector<TaskModel> tasks;
    /// Applied after each pull of their array, in this order.
    std::vector<PullFinish> finishes;
    /// Indexed by Reduction::number.
    std::vector<ReductionModel> reductions;

    /// The number of an array, which is added if it is new. Throws ArgumentError if the same rows are declared as
    /// a pair and as its father.
    /// O(arrays): graphs have tens of them. A writable handle replaces a const one of the same array.
    std::size_t add(const std::shared_ptr<ArrayHandle> &array);
    /// Appends a task after the checks that one rank can do. Throws ArgumentError naming task and array.
    /// Facts that need other ranks are checked by compileGraph.
    void add(TaskModel task);
    /// The exchange that was started last by a task of this graph, for its finish; null without one. `arrays` are
    /// exchanged by it. Throws ArgumentError for a task since then that writes one of them, which messages may or may
    /// not show, or reads ghosts, into which a plan would pull. O(tasks).
    std::shared_ptr<CalledExchange> startedExchange(const void *of, bool pushes,
                                                    std::span<const std::size_t> exchanged) const;
    /// The same checks of an added task, as arrays may have changed.
    void requireFits(const TaskModel &task) const;
    /// Throws ArgumentError if the array no longer has the rows and columns of the reduction's declaration.
    void requireFits(const ReductionModel &reduction) const;
    /// The owned rows of an array without ghosts, which may have more: the number of rows of the loops and regions in
    /// which its rows are those of the same number. Empty if the graph has no such loop or region. Throws
    /// ArgumentError if they differ.
    std::optional<index> ownRows(std::size_t array) const;
    /// Whether an array without ghosts is only seen whole: then ranks are assumed to have the same contents.
    bool isTable(std::size_t array) const;
    /// Whether pulls of the array have to be finished (Graph::finishPulls).
    bool isFinished(std::size_t array) const noexcept {
        return std::ranges::find(finishes, array, &PullFinish::array) != finishes.end();
    }
    /// Finds the rows of reductions of arrays without ghosts that the program does not give. Throws ArgumentError
    /// if the graph does not define them.
    void findReducedRows();
    /// Throws ArgumentError if ghosts would add to an array with ghosts: their owners do.
    void requireOwnTerms(const TaskModel &task) const;
    /// Throws ArgumentError if the region has ghosts, or is not one of the reduced array.
    void requireReducible(const ReductionModel &reduction, const Region &region) const;
    /// Throws ArgumentError unless the region consists of ghosts of the array.
    void add(PullFinish finish);
};

} // namespace DNDS::Task
