#include "DNDS/Task/Plan.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Task {

namespace {

/// Sorts the rows of tasks by the last exchange that they depend on, and by whether the next exchange depends on them.
/// Two passes. Forwards (findLate): each row of each array gets the number of the last exchange on which its contents
/// depend, as data-flow analysis does; a row of a task is late if that is the latest exchange. Backwards
/// (findUrgent): rows from which the next exchange sends, and the rows from which these are computed, through any
/// number of tasks. O(tasks x (rows + adjacency entries)) time, O(arrays x rows) memory while compiling.
class Split {
  public:
    Split(const GraphModel &graph, const CompileOptions &options, PlanModel &plan)
        : graph_(graph), options_(options), plan_(plan) {
        // Nothing depends on an exchange yet, and nothing is sent after the last task.
        for (const auto &array : graph.arrays) {
            awaited_.emplace_back(toSize(array->size()), index{0});
            sent_.emplace_back(array->size());
        }
        for (const RowMask &rows : plan.taskRows) {
            late_.emplace_back(rows.size());
            urgent_.emplace_back(rows.size());
        }
    }

    /// Fills `late_`.
    void findLate();
    /// Fills `urgent_`.
    void findUrgent();
    /// Fills `plan_.parts`, in the order of tasks.
    void makeParts();

  private:
    void passTransfers(std::size_t t, Direction direction);
    void passTask(std::size_t t);
    index awaitedBy(const TaskModel &task, index row) const;
    /// The part of a task with these rows; `late` and `urgent` only label it.
    Part makePart(std::size_t t, bool late, bool urgent, const RowMask &rows) const;
    void addPart(std::size_t t, bool late, bool urgent, const RowMask &rows);
    void addSums(std::size_t t);
    void guard(Part &part, const RowMask &rows) const;

    const GraphModel &graph_;
    const CompileOptions &options_;
    PlanModel &plan_;
    std::vector<std::vector<index>> awaited_; ///< [arrays][rows] number of the last exchange that the row depends on
    std::vector<RowMask> sent_;               ///< [arrays] rows that the next exchange sends, or depends on
    std::vector<RowMask> late_, urgent_;      ///< [tasks]
    index number_ = 0;                        ///< number of the latest exchange
};

/// A pull renews all ghosts; a push changes the boundary rows, to which peers have added.
void Split::passTransfers(std::size_t t, Direction direction) {
    for (const Transfer &transfer : plan_.transfers) {
        if (transfer.task != t || transfer.direction != direction)
            continue;
        number_ = transfer.number;
        for (const std::size_t array : transfer.arrays) {
            std::vector<index> &awaited = awaited_[array];
            if (direction == Direction::Pull)
                std::fill(awaited.begin() + graph_.arrays[array]->owned(), awaited.end(), number_);
            else
                for (const index row : transfer.pattern->boundaryRows())
                    awaited[toSize(row)] = number_;
        }
    }
}

/// The last exchange on which row `row` of the task depends through its own row or its adjacencies.
/// Exchanges are totally ordered by their numbers, so one number a row stands for the whole set of exchanges that it
/// depends on: overlap needs only the latest. O(neighbours) a row.
index Split::awaitedBy(const TaskModel &task, index row) const {
    index last = 0;
    for (const ArrayAccess &access : task.accesses) {
        const std::vector<index> &awaited = awaited_[access.array];
        if (access.range == AccessRange::SameRow && access.reads())
            last = std::max(last, awaited[toSize(row)]);
        if (access.range == AccessRange::Through) // sums, too: they change existing contents
            for (const LocalIndex entry : access.adjacency.row(row))
                last = entry >= 0 ? std::max(last, awaited[toSize(entry)]) : last;
    }
    return last;
}

/// Finds the task's late rows, then passes the numbers on to the rows that it writes. They are collected first, since
/// a task may write the array through whose rows others of its rows depend.
/// A call may do anything, so it depends on all exchanges before it. O(rows + adjacency entries) a task.
void Split::passTask(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    if (task.kind == TaskKind::Swap)
        return awaited_[task.accesses[0].array].swap(awaited_[task.accesses[1].array]);
    // Dependences that many rows share
    index common = task.kind == TaskKind::Call ? number_ : 0;
    for (const ArrayAccess &access : task.accesses)
        if (access.reads() && access.range != AccessRange::SameRow && access.range != AccessRange::Through)
            rowsSeen(graph_, task, access, plan_.taskRows[t]).forEach([&](index row) {
                common = std::max(common, awaited_[access.array][toSize(row)]);
            });
    if (task.kind == TaskKind::Call) {
        for (const ArrayAccess &access : task.accesses)
            if (access.mode != AccessMode::Reads)
                std::fill(awaited_[access.array].begin(), awaited_[access.array].end(), common);
        return;
    }
    // Rows and the exchanges that they depend on.
    std::vector<std::pair<index, index>> found;
    plan_.taskRows[t].forEach([&](index row) {
        const index last = std::max(common, awaitedBy(task, row));
        if (last == number_ && number_ > 0)
            late_[t].set(row);
        found.emplace_back(row, last);
    });
    for (const ArrayAccess &access : task.accesses) {
        if (access.mode == AccessMode::Reads)
            continue;
        std::vector<index> &awaited = awaited_[access.array];
        for (const auto &[row, last] : found)
            if (access.range == AccessRange::Through) {
                for (const LocalIndex entry : access.adjacency.row(row))
                    if (entry >= 0)
                        awaited[toSize(entry)] = std::max(awaited[toSize(entry)], last);
            } else {
                awaited[toSize(row)] = last;
            }
    }
}

// Forwards, in the order of the program.
void Split::findLate() {
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
        passTransfers(t, Direction::Pull);
        passTask(t);
        passTransfers(t, Direction::Push);
    }
}

/// Each exchange starts from an empty set: rows that an exchange further on needs are not urgent for this one, and
/// must not delay it.
/// A backward slice from each exchange: the rows that it sends, then the inputs of these rows in the tasks before, up
/// to the exchange before it. O(tasks x (rows + adjacency entries)), local.
void Split::findUrgent() {
    // Backwards past the exchanges of a task: the rows that a pull sends; a push sends ghosts only.
    const auto passSent = [&](std::size_t t, Direction direction) {
        const bool any = std::ranges::any_of(plan_.transfers, [&](const Transfer &transfer) {
            return transfer.task == t && transfer.direction == direction;
        });
        if (!any)
            return;
        for (RowMask &sent : sent_)
            sent.clear();
        for (const Transfer &transfer : plan_.transfers)
            if (transfer.task == t && transfer.direction == direction && direction == Direction::Pull)
                for (const std::size_t array : transfer.arrays)
                    for (const index row : transfer.pattern->boundaryRows())
                        sent_[array].set(row);
    };
    for (std::size_t t = graph_.tasks.size(); t-- > 0;) {
        const TaskModel &task = graph_.tasks[t];
        passSent(t, Direction::Push);
        if (task.kind == TaskKind::Swap)
            std::swap(sent_[task.accesses[0].array], sent_[task.accesses[1].array]);
        if (task.kind == TaskKind::Loop) {
            RowMask &urgent = urgent_[t];
            for (const ArrayAccess &access : task.accesses)
                if (access.mode == AccessMode::Writes || access.mode == AccessMode::ReadsWrites) {
                    const RowMask &sent = sent_[access.array];
                    plan_.taskRows[t].forEach([&](index row) {
                        if (row < sent.size() && sent.test(row))
                            urgent.set(row);
                    });
                }
            // Inputs of urgent rows are urgent in the tasks that compute them.
            if (urgent.any())
                for (const ArrayAccess &access : task.accesses)
                    if (access.reads())
                        sent_[access.array] |= rowsSeen(graph_, task, access, urgent);
        }
        passSent(t, Direction::Pull);
    }
}

/// For builds of programs with DNDS_DEBUG_CHECKS; a mask an access, O(rows / 8) bytes.
void Split::guard(Part &part, const RowMask &rows) const {
    if (!graph_.guarded)
        return;
    const TaskModel &task = graph_.tasks[part.task];
    for (const ArrayAccess &access : task.accesses) {
        const ArrayHandle &array = *graph_.arrays[access.array];
        part.guards.push_back({rowsSeen(graph_, task, access, rows), task.name, std::string(array.name()),
                               array.owned(), accessModeName(access.mode), access.range == AccessRange::SameRow});
    }
}

/// A contiguous part is stored as a range: its loop needs no list, and compilers vectorise it.
Part Split::makePart(std::size_t t, bool late, bool urgent, const RowMask &rows) const {
    Part part;
    part.task = t;
    part.late = late;
    part.urgent = urgent;
    part.list = rows.list();
    part.rows.count = static_cast<index>(part.list.size());
    guard(part, rows);
    if (part.rows.count > 0 && part.list.back() - part.list.front() + 1 == part.rows.count) {
        part.rows.first = part.list.front();
        part.list = {};
    }
    return part;
}

void Split::addPart(std::size_t t, bool late, bool urgent, const RowMask &rows) {
    if (rows.any())
        plan_.parts.push_back(makePart(t, late, urgent, rows));
}

/// Sums in ghosts first, which are pushed while the others are computed. Rows that add to both are computed twice.
/// Both parts keep ascending rows, and each drops contributions outside its targets: a target gets the contributions of
/// the sequential loop in the same order, hence the same bits. O(rows x targets of a row).
void Split::addSums(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    const auto sums = std::ranges::find(task.accesses, AccessMode::Adds, &ArrayAccess::mode);
    const ArrayHandle &array = *graph_.arrays[sums->array]; // the others have the same rows
    for (const bool ghosts : {true, false}) {
        if (ghosts && (!array.pattern() || array.size() == array.owned()))
            continue;
        RowMask rows(plan_.taskRows[t].size());
        plan_.taskRows[t].forEach([&](index row) {
            forEachTarget(task, row, [&](index target) {
                if (target >= 0 && (target >= array.owned()) == ghosts)
                    rows.set(row);
            });
        });
        Part part = makePart(t, late_[t].any(), ghosts, rows); // without rows the ghosts become zero all the same
        part.adds = true;
        part.toGhosts = ghosts;
        part.firstTarget = ghosts ? array.owned() : 0;
        part.lastTarget = ghosts ? array.size() : array.owned();
        plan_.parts.push_back(std::move(part));
    }
}

/// The order of a task's parts is a hint only; OrderSteps sorts by urgency. An urgent part that needs no exchange
/// comes first.
/// The four parts of a task are disjoint and cover its rows: any order of running gives the results of the whole loop,
/// as tasks that do not add write only the row that they are at.
void Split::makeParts() {
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
        if (graph_.tasks[t].kind != TaskKind::Loop)
            continue;
        if (std::ranges::any_of(graph_.tasks[t].accesses,
                                [](const ArrayAccess &a) { return a.mode == AccessMode::Adds; })) {
            addSums(t);
            continue;
        }
        if (!options_.overlap) {
            addPart(t, late_[t].any(), urgent_[t].any(), plan_.taskRows[t]);
            continue;
        }
        for (const bool late : {false, true})
            for (const bool urgent : {true, false}) {
                RowMask rows = plan_.taskRows[t];
                late ? rows &= late_[t] : rows -= late_[t];
                urgent ? rows &= urgent_[t] : rows -= urgent_[t];
                addPart(t, late, urgent, rows);
            }
    }
}

} // namespace

/// The rows of a part ascend, so each list ascends and a repeated row is the last one of its list. O(contributions).
std::vector<std::vector<LocalIndex>> addingRows(const TaskModel &task, const Part &part, index width) {
    const index targets = part.lastTarget - part.firstTarget;
    std::vector<std::vector<LocalIndex>> lists(toSize(std::max<index>(1, (targets + width - 1) / width)));
    for (index i = 0; i < part.rows.count; ++i)
        forEachTarget(task, part.rows(i), [&](index target) {
            if (target < part.firstTarget || target >= part.lastTarget)
                return;
            std::vector<LocalIndex> &list = lists[toSize((target - part.firstTarget) / width)];
            if (list.empty() || list.back() != part.rows(i))
                list.push_back(static_cast<LocalIndex>(part.rows(i)));
        });
    return lists;
}

void splitTasks(const GraphModel &graph, const CompileOptions &options, PlanModel &plan) {
    Split split(graph, options, plan);
    split.findLate();
    split.findUrgent();
    split.makeParts();
    for (const PullFinish &finish : graph.finishes) {
        Part &part = plan.finishes.emplace_back();
        part.list = finish.ghosts.rows()->list();
        part.rows.count = static_cast<index>(part.list.size());
    }
    for (std::vector<Part> *parts : {&plan.parts, &plan.finishes}) // which no longer move
        for (Part &part : *parts)
            if (!part.list.empty())
                part.rows.list = part.list.data();
}

} // namespace DNDS::Task
