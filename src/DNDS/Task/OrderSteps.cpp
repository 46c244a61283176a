#include "DNDS/Task/Plan.hpp"

#include <algorithm>
#include <functional>
#include <optional>

namespace DNDS::Task {

namespace {

/// A step's access to rows of an array.
struct Touch {
    std::size_t array;
    RowMask rows;
    bool writes;
};

/// Steps in program order, each with its dependences; then the same in the order of running.
/// Two local phases: `find` derives dependences from program order, `sort` picks an order of running. Rows decide about
/// parts only. Exchanges, calls and swaps of an array, and all calls against all exchanges, are ordered by the program,
/// because a rank without rows must keep the order of its peers.
class Order {
  public:
    Order(const GraphModel &graph, PlanModel &plan)
        : graph_(graph), plan_(plan), live_(graph.arrays.size()), turns_(graph.arrays.size()) {}

    void find();
    void sort();

  private:
    /// A step that later steps may have to wait for, by the rows that it touched.
    /// Later steps may have written some of `rows`; `add` drops the entry when one write covers all of them.
    struct Live {
        std::size_t step;
        RowMask rows;
        bool writes;
    };

    /// Appends a step and its dependences: after earlier steps that touch the same rows, unless both only read.
    std::size_t add(StepKind kind, std::size_t what, const std::vector<Touch> &touches);
    void addTransfers(std::size_t t, Direction direction);
    void addParts(std::size_t t);
    void addCall(std::size_t t);
    /// Rows that the part reads and writes, by array.
    std::vector<Touch> touchesOf(const Part &part) const;
    /// Priority of a ready step: the least runs first.
    int rank(const PlanStep &step) const;

    const GraphModel &graph_;
    PlanModel &plan_;
    std::vector<PlanStep> steps_;         ///< in program order
    std::vector<std::vector<Live>> live_; ///< [arrays] steps that later ones may have to wait for
    /// Order of the steps of an array in which rows do not matter, since all ranks must have the same one.
    struct Turns {
        std::optional<std::size_t> last, swap; ///< the last step other than a part; the last swap
        std::vector<std::size_t> sinceSwap;
    };
    std::vector<Turns> turns_;           ///< [arrays]
    std::vector<std::size_t> exchanges_; ///< starts and waits so far
    /// Calls so far: later calls and exchanges wait for all of them.
    std::vector<std::size_t> calls_;
};

/// Cost: O(live steps of the array x rows / 64) for each touch. A write that covers an earlier access replaces it in
/// `live_`, because a step that conflicts with the earlier one conflicts with the write, too: lists stay as short as
/// the number of parts that share an array.
std::size_t Order::add(StepKind kind, std::size_t what, const std::vector<Touch> &touches) {
    const std::size_t number = steps_.size();
    PlanStep step{kind, what, {}};
    for (const Touch &touch : touches) {
        // All accesses to the array that no later write has covered.
        std::vector<Live> &live = live_[touch.array];
        std::erase_if(live, [&](const Live &earlier) {
            if (earlier.step == number || !(earlier.writes || touch.writes) || !earlier.rows.intersects(touch.rows))
                return false;
            step.after.push_back(earlier.step);
            return touch.writes && touch.rows.contains(earlier.rows); // all later accesses wait for this one
        });
    }
    // Added after the search: a step does not depend on itself.
    for (const Touch &touch : touches)
        live_[touch.array].push_back({number, touch.rows, touch.writes});
    // Exchanges and swaps of an array take turns, and all steps before a swap stay before it, even if this rank
    // has none of the rows.
    for (const Touch &touch : touches) {
        Turns &turns = turns_[touch.array];
        if (turns.swap)
            step.after.push_back(*turns.swap);
        if (kind == StepKind::Swap) {
            step.after.insert(step.after.end(), turns.sinceSwap.begin(), turns.sinceSwap.end());
            turns = {number, number, {}};
            continue;
        }
        if (kind != StepKind::Part && turns.last)
            step.after.push_back(*turns.last);
        if (kind != StepKind::Part)
            turns.last = number;
        turns.sinceSwap.push_back(number);
    }
    std::erase(step.after, number);
    steps_.push_back(std::move(step));
    return number;
}

/// The functors of calls may communicate: they keep their place among exchanges, or two ranks could wait for each
/// other.
void Order::addCall(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    std::vector<Touch> touches;
    for (const ArrayAccess &access : task.accesses)
        touches.push_back({access.array, rowsSeen(graph_, task, access, {}), access.mode != AccessMode::Reads});
    const bool swap = task.kind == TaskKind::Swap;
    const std::size_t number = add(swap ? StepKind::Swap : StepKind::Call, t, touches);
    if (swap)
        return;
    std::vector<std::size_t> &after = steps_[number].after;
    after.insert(after.end(), exchanges_.begin(), exchanges_.end());
    after.insert(after.end(), calls_.begin(), calls_.end());
    calls_.push_back(number);
}

/// Adds all starts, then all waits. A start depends on the last writers of the rows that it sends; parts that need
/// the ghosts depend on the wait. Between the two any other part may run: that is the overlap.
/// Starts of a task's transfers precede all of its waits, so that several arrays are in flight together.
void Order::addTransfers(std::size_t t, Direction direction) {
    std::vector<std::size_t> transfers;
    for (std::size_t k = 0; k < plan_.transfers.size(); ++k)
        if (plan_.transfers[k].task == t && plan_.transfers[k].direction == direction)
            transfers.push_back(k);
    for (const bool wait : {false, true})
        for (const std::size_t k : transfers) {
            const Transfer &transfer = plan_.transfers[k];
            // Ghosts, and the boundary rows from which or into which the exchange copies.
            std::vector<Touch> touches;
            for (const std::size_t a : transfer.arrays) {
                const ArrayHandle &array = *graph_.arrays[a];
                RowMask owned(array.size());
                const bool readsOwned = wait && direction == Direction::Pull &&
                                        std::ranges::any_of(graph_.finishes, [&](const PullFinish &finish) {
                                            return finish.array == a && finish.readsOwned;
                                        });
                if (readsOwned)
                    owned = RowMask(array.size(), 0, array.owned());
                for (const index row : transfer.pattern->boundaryRows())
                    owned.set(row);
                RowMask ghosts(array.size(), array.owned(), array.size());
                // Between start and wait the source must not change and the destination not be used. Pushed rows
                // are combined with the owned rows in the wait.
                touches.push_back({a, std::move(ghosts), true});
                if (direction == Direction::Pull)
                    touches.push_back({a, std::move(owned), false});
                else if (wait)
                    touches.push_back({a, std::move(owned), true});
            }
            const std::size_t number = add(wait ? StepKind::Wait : StepKind::Start, k, touches);
            std::vector<std::size_t> &after = steps_[number].after;
            if (wait)
                // Starts and waits are added in the same order, so a wait's start is transfers.size() steps before
                // it.
                after.push_back(number - transfers.size());
            after.insert(after.end(), calls_.begin(), calls_.end());
            exchanges_.push_back(number);
        }
}

/// O(rows / 64 + adjacency entries of the part) for each access. Sums touch their targets only: the rows of the loop
/// belong to the other accesses.
std::vector<Touch> Order::touchesOf(const Part &part) const {
    const TaskModel &task = graph_.tasks[part.task];
    // The part's rows as a mask, from which the rows of each access follow.
    RowMask rows(plan_.taskRows[part.task].size());
    for (index i = 0; i < part.rows.count; ++i)
        rows.set(part.rows(i));
    std::vector<Touch> touches;
    for (const ArrayAccess &access : task.accesses) {
        RowMask seen = access.mode == AccessMode::Adds
                           ? RowMask(graph_.arrays[access.array]->size(), part.firstTarget, part.lastTarget)
                           : rowsSeen(graph_, task, access, rows);
        touches.push_back({access.array, std::move(seen), access.mode != AccessMode::Reads});
    }
    return touches;
}

void Order::addParts(std::size_t t) {
    for (std::size_t p = 0; p < plan_.parts.size(); ++p)
        if (plan_.parts[p].task == t)
            add(StepKind::Part, p, touchesOf(plan_.parts[p]));
}

/// Dependences are read after write, write after read and write after write, as in a compiler's scheduling graph. Steps
/// are added in program order, so edges lead to earlier steps only and the graph has no cycle.
void Order::find() {
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
        addTransfers(t, Direction::Pull);
        if (graph_.tasks[t].kind == TaskKind::Loop)
            addParts(t);
        else
            addCall(t);
        addTransfers(t, Direction::Push);
    }
    // Several reasons for one dependence count once.
    for (PlanStep &step : steps_) {
        std::ranges::sort(step.after);
        step.after.erase(std::unique(step.after.begin(), step.after.end()), step.after.end());
    }
}

/// Exchanges start as early as they can and are waited for last, in program order on all ranks: so no rank waits for an
/// exchange that its peer only starts after another one.
/// Why no deadlock: while no step other than a wait is ready, all steps before the earliest outstanding wait are
/// complete. That wait is then ready and has the smallest number, so waits run in program order on every rank. On each
/// peer its start precedes that wait and all later ones; by induction over the program no circle of waiting ranks can
/// form.
int Order::rank(const PlanStep &step) const {
    switch (step.kind) {
    case StepKind::Start:
        return 0;
    case StepKind::Part:
        return plan_.parts[step.what].urgent ? 1 : 2;
    case StepKind::Swap:
        return 2;
    case StepKind::Call:
        return graph_.tasks[step.what].startsExchange ? 0 : 3;
    case StepKind::Wait:
        break;
    }
    return 4;
}

/// Takes the ready step of least rank, again and again: O((steps + dependences) log steps). Method: Kahn, Topological
/// sorting of large networks, Communications of the ACM 5, 1962, with a heap of the ready steps.
/// The key is (rank, number in program order): the order is deterministic, and equal on ranks with equal graphs and
/// rows.
void Order::sort() {
    std::vector<std::size_t> missing(steps_.size());
    std::vector<std::vector<std::size_t>> next(steps_.size());
    std::vector<std::pair<int, std::size_t>> ready; // a heap: the smallest first
    const auto push = [&](std::size_t k) {
        ready.emplace_back(rank(steps_[k]), k);
        std::ranges::push_heap(ready, std::greater<>());
    };
    for (std::size_t k = 0; k < steps_.size(); ++k) {
        // A step is ready when none of the steps before it is missing.
        missing[k] = steps_[k].after.size();
        for (const std::size_t before : steps_[k].after)
            next[before].push_back(k);
    }
    for (std::size_t k = 0; k < steps_.size(); ++k)
        if (missing[k] == 0)
            push(k);
    std::vector<std::size_t> place(steps_.size());
    while (!ready.empty()) {
        std::ranges::pop_heap(ready, std::greater<>());
        const std::size_t k = ready.back().second;
        ready.pop_back();
        place[k] = plan_.steps.size();
        plan_.steps.push_back(steps_[k]);
        for (const std::size_t later : next[k])
            if (--missing[later] == 0)
                push(later);
    }
    // Dependences by the new positions.
    for (PlanStep &step : plan_.steps) {
        for (std::size_t &before : step.after)
            before = place[before];
        std::ranges::sort(step.after);
    }
}

} // namespace

void orderSteps(const GraphModel &graph, PlanModel &plan) {
    Order order(graph, plan);
    order.find();
    order.sort();
}

} // namespace DNDS::Task
