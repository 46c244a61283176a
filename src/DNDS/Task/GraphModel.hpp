/// @file GraphModel.hpp
/// @brief A graph without types: arrays, and tasks in program order with their reads and writes.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Storage/ArrayBase.hpp"
#include "DNDS/Task/KernelRows.hpp"
#include "DNDS/Task/Region.hpp"

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
class ArrayHandle {
  public:
    virtual ~ArrayHandle() = default;
    /// The array's name in messages.
    virtual std::string_view name() const = 0;
    /// The rows that this rank owns; all of them for arrays without ghosts.
    virtual const ArrayBase &father() const = 0;
    /// The ghosts; null for arrays that cannot be pulled.
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
    std::size_t array = 0; ///< number in the model
    AccessMode mode = AccessMode::Reads;
    AccessRange range = AccessRange::SameRow;
    Adjacency adjacency;          ///< AccessRange::Through
    std::optional<Region> region; ///< AccessRange::Region

    /// Whether the functor may see contents from before the task.
    bool reads() const noexcept { return mode == AccessMode::Reads || mode == AccessMode::ReadsWrites; }
    bool writes() const noexcept { return mode != AccessMode::Reads; }
};

/// Rows of a part of a task: a list, or [first, first + count) without one.
struct PartRows {
    const LocalIndex *list = nullptr;
    index first = 0;
    index count = 0;

    /// Row `i` of the part, i < count.
    DNDS_HOST_DEVICE index operator()(index i) const { return list != nullptr ? list[i] : first + i; }
    /// The rows from number `begin` on; `count` is as it was.
    PartRows from(index begin) const { return {list != nullptr ? list + begin : nullptr, first + begin, count}; }
};

/// The rows that add to each of some rows, by row: for sums on the device.
struct Contributions {
    const LocalIndex *targets = nullptr; ///< [count]
    const LocalIndex *starts = nullptr;  ///< [count + 1] in `rows`
    const LocalIndex *rows = nullptr;
    index count = 0;
};

/// The functor of a task.
class TaskBody {
  public:
    virtual ~TaskBody() = default;
    /// Takes views of the arrays in `space`, with the guards of the accesses, if any. Local. Not while it runs.
    /// Throws StaleError.
    virtual void bind(MemorySpace space, std::span<const RowGuard> guards) = 0;
    /// Runs it for rows [begin, end) of the part. On the host in any thread, several at a time.
    virtual void run(const Executor &executor, const PartRows &rows, index begin, index end) const = 0;
    /// The same for a task that adds, limited to rows [first, last) of the arrays that it adds to.
    virtual void runAdding(const PartRows & /*rows*/, index /*first*/, index /*last*/) const {}
    /// The same on the device.
    virtual void runAdding(const Executor & /*executor*/, const Contributions & /*sums*/) const {}
    /// A number that changes with values other than arrays that it depends on, the same on all ranks.
    virtual std::uint64_t inputs() const { return 0; }
    /// Rows that a thread takes at once, as set by the program; 0: as many as pay off for cells.
    virtual index rowsPerChunk() const { return 0; }
};

/// An exchange that the plan does not make itself, as two calls of a graph: one starts it, a later one finishes it.
class CalledExchange {
  public:
    virtual ~CalledExchange() = default;
    /// Does not wait.
    virtual void start() = 0;
    /// Whether all has arrived. Does not wait.
    virtual bool ready() = 0;
    /// Finishes the exchange, after `ready`.
    virtual void finish() = 0;
    virtual bool inFlight() const = 0;
};

/// Kind of a task.
enum class TaskKind : unsigned char {
    Loop, ///< a functor called for each row
    Call, ///< a functor called once, on the host, by the thread that runs the plan
    Swap  ///< exchanges the contents of two arrays
};

/// A task as declared by the program, without its types.
struct TaskModel {
    std::string name;
    TaskKind kind = TaskKind::Loop;
    std::optional<Region> loop;
    std::vector<ArrayAccess> accesses;
    std::shared_ptr<TaskBody> body; ///< loops
    std::function<void()> call;     ///< calls and swaps
    index every = 1;                ///< calls: number of runs from one to the next
    /// The latest call that runs in a thread of its own.
    std::shared_ptr<std::future<void>> async;
    std::shared_ptr<CalledExchange> exchange; ///< calls that start or finish one, in place of `call`
    bool startsExchange = false;              ///< it starts the exchange
    bool recomputesGhosts = false;            ///< it also computes ghosts if that saves a pull
};

/// Waits for work in a thread of its own, if there is any; throws its exception, once.
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
struct PullFinish {
    std::size_t array = 0;
    Region ghosts;
    std::shared_ptr<TaskBody> body;
    bool readsOwned = false; ///< it also reads owned rows
};

/// Reduced rows, a list for each group of columns: one for all, or one a column if each has rows of its
/// own.
using ReducedLists = std::vector<std::vector<LocalIndex>>;

/// Numbers computed at the end of a run: the columns of an array's owned rows, over all ranks.
struct ReductionModel {
    std::string name;
    std::size_t array = 0;
    ReduceOp op = ReduceOp::Sum;
    rowsize columns = 1;
    std::optional<index> rows;                 ///< the number of rows from the first; empty: all
    std::shared_ptr<const ReducedLists> lists; ///< instead of the first rows; null for none
    std::string region;                        ///< the name of their region
    std::function<rowsize()> width; ///< the present number of values in a row of the array, or its components
    /// The elements of the owned rows in a memory space.
    std::function<std::span<const real>(MemorySpace)> elements;
};

/// A graph as declared by the program: the input of plans.
struct GraphModel {
    std::string name;
    /// Whether this source is compiled with DNDS_DEBUG_CHECKS.
#if defined(DNDS_DEBUG_CHECKS)
    static constexpr bool checkedHere = true;
#else
    static constexpr bool checkedHere = false;
#endif
    bool guarded = checkedHere; ///< whether the program, not the library, was built with DNDS_DEBUG_CHECKS
    std::vector<std::shared_ptr<ArrayHandle>> arrays;
    std::vector<TaskModel> tasks;
    std::vector<PullFinish> finishes;
    std::vector<ReductionModel> reductions;

    /// The number of an array, which is added if it is new. Throws ArgumentError if the same rows are declared as
    /// a pair and as its father.
    std::size_t add(const std::shared_ptr<ArrayHandle> &array);
    /// Appends a task after the checks that one rank can do. Throws ArgumentError naming task and array.
    void add(TaskModel task);
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
