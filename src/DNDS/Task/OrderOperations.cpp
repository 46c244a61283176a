#include "DNDS/Task/PlanModel.hpp"

#include <algorithm>
#include <functional>
#include <optional>

namespace DNDS::Task {

namespace {

/// What an operation does with rows of an array.
struct Touch {
    std::size_t array;
    RowMask rows;
    bool writes;
};

/// Operations in program order, with what each has to wait for; then the same in the order of running.
class Order {
  public:
    Order(const GraphModel &graph, PlanModel &plan)
        : graph_(graph), plan_(plan), live_(graph.arrays.size()), turns_(graph.arrays.size()) {}

    void find();
    void sort();

  private:
    struct Live {
        std::size_t operation;
        RowMask rows;
        bool writes;
    };

    std::size_t add(OperationKind kind, std::size_t what, const std::vector<Touch> &touches);
    void addTransfers(std::size_t t, Direction direction);
    void addParts(std::size_t t);
    void addCall(std::size_t t);
    std::vector<Touch> touchesOf(const Part &part) const;
    int rank(const Operation &operation) const;

    const GraphModel &graph_;
    PlanModel &plan_;
    std::vector<Operation> operations_;   ///< in program order
    std::vector<std::vector<Live>> live_; ///< [arrays] operations that later ones may have to wait for
    struct Turns {
        std::optional<std::size_t> last, swap; ///< the last operation that is no part; the last swap
        std::vector<std::size_t> sinceSwap;
    };
    std::vector<Turns> turns_;           ///< [arrays]
    std::vector<std::size_t> exchanges_; ///< starts and waits so far
    std::vector<std::size_t> calls_;
};

std::size_t Order::add(OperationKind kind, std::size_t what, const std::vector<Touch> &touches) {
    const std::size_t number = operations_.size();
    Operation operation{kind, what, {}};
    for (const Touch &touch : touches) {
        std::vector<Live> &live = live_[touch.array];
        std::erase_if(live, [&](const Live &earlier) {
            if (earlier.operation == number || !(earlier.writes || touch.writes) ||
                !earlier.rows.intersects(touch.rows))
                return false;
            operation.after.push_back(earlier.operation);
            return touch.writes && touch.rows.contains(earlier.rows); // whoever comes later waits for this one
        });
    }
    for (const Touch &touch : touches)
        live_[touch.array].push_back({number, touch.rows, touch.writes});
    // Exchanges and swaps of an array take turns, and all that is before a swap stays before it, also where this rank
    // has none of the rows.
    for (const Touch &touch : touches) {
        Turns &turns = turns_[touch.array];
        if (turns.swap)
            operation.after.push_back(*turns.swap);
        if (kind == OperationKind::Swap) {
            operation.after.insert(operation.after.end(), turns.sinceSwap.begin(), turns.sinceSwap.end());
            turns = {number, number, {}};
            continue;
        }
        if (kind != OperationKind::Part && turns.last)
            operation.after.push_back(*turns.last);
        if (kind != OperationKind::Part)
            turns.last = number;
        turns.sinceSwap.push_back(number);
    }
    std::erase(operation.after, number);
    operations_.push_back(std::move(operation));
    return number;
}

/// The functors of calls may communicate: they keep their place among exchanges, or two ranks could wait for each
/// other.
void Order::addCall(std::size_t t) {
    const TaskModel &task = graph_.tasks[t];
    std::vector<Touch> touches;
    for (const ArrayAccess &access : task.accesses)
        touches.push_back({access.array, rowsSeen(graph_, task, access, {}), access.mode != Mode::Reads});
    const bool swap = task.kind == TaskKind::Swap;
    const std::size_t number = add(swap ? OperationKind::Swap : OperationKind::Call, t, touches);
    if (swap)
        return;
    std::vector<std::size_t> &after = operations_[number].after;
    after.insert(after.end(), exchanges_.begin(), exchanges_.end());
    after.insert(after.end(), calls_.begin(), calls_.end());
    calls_.push_back(number);
}

void Order::addTransfers(std::size_t t, Direction direction) {
    std::vector<std::size_t> transfers;
    for (std::size_t k = 0; k < plan_.transfers.size(); ++k)
        if (plan_.transfers[k].task == t && plan_.transfers[k].direction == direction)
            transfers.push_back(k);
    for (const bool wait : {false, true})
        for (const std::size_t k : transfers) {
            const Transfer &transfer = plan_.transfers[k];
            std::vector<Touch> touches;
            for (const std::size_t a : transfer.arrays) {
                const ArrayHandle &array = *graph_.arrays[a];
                RowMask owned(array.size());
                for (const index row : transfer.pattern->boundaryRows())
                    owned.set(row);
                RowMask ghosts(array.size(), array.owned(), array.size());
                // Between start and wait the source must not change and the destination not be used. What is pushed
                // meets the owned rows in the wait.
                touches.push_back({a, std::move(ghosts), true});
                if (direction == Direction::Pull)
                    touches.push_back({a, std::move(owned), false});
                else if (wait)
                    touches.push_back({a, std::move(owned), true});
            }
            const std::size_t number = add(wait ? OperationKind::Wait : OperationKind::Start, k, touches);
            std::vector<std::size_t> &after = operations_[number].after;
            if (wait)
                after.push_back(number - transfers.size());
            after.insert(after.end(), calls_.begin(), calls_.end());
            exchanges_.push_back(number);
        }
}

std::vector<Touch> Order::touchesOf(const Part &part) const {
    const TaskModel &task = graph_.tasks[part.task];
    RowMask rows(plan_.taskRows[part.task].size());
    for (index i = 0; i < part.rows.count; ++i)
        rows.set(part.rows(i));
    std::vector<Touch> touches;
    for (const ArrayAccess &access : task.accesses) {
        RowMask seen = access.mode == Mode::Adds
                           ? RowMask(graph_.arrays[access.array]->size(), part.firstTarget, part.lastTarget)
                           : rowsSeen(graph_, task, access, rows);
        touches.push_back({access.array, std::move(seen), access.mode != Mode::Reads});
    }
    return touches;
}

void Order::addParts(std::size_t t) {
    for (std::size_t p = 0; p < plan_.parts.size(); ++p)
        if (plan_.parts[p].task == t)
            add(OperationKind::Part, p, touchesOf(plan_.parts[p]));
}

void Order::find() {
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
        addTransfers(t, Direction::Pull);
        if (graph_.tasks[t].kind == TaskKind::Loop)
            addParts(t);
        else
            addCall(t);
        addTransfers(t, Direction::Push);
    }
    for (Operation &operation : operations_) {
        std::ranges::sort(operation.after);
        operation.after.erase(std::unique(operation.after.begin(), operation.after.end()), operation.after.end());
    }
}

/// Exchanges start as early as they can and are waited for last, in program order on all ranks: so nobody waits for an
/// exchange that its peer only starts after another one.
int Order::rank(const Operation &operation) const {
    switch (operation.kind) {
    case OperationKind::Start:
        return 0;
    case OperationKind::Part:
        return plan_.parts[operation.what].urgent ? 1 : 2;
    case OperationKind::Swap:
        return 2;
    case OperationKind::Call:
        return graph_.tasks[operation.what].startsExchange ? 0 : 3;
    case OperationKind::Wait:
        break;
    }
    return 4;
}

void Order::sort() {
    std::vector<std::size_t> missing(operations_.size());
    std::vector<std::vector<std::size_t>> next(operations_.size());
    std::vector<std::pair<int, std::size_t>> ready; // a heap: the smallest first
    const auto push = [&](std::size_t k) {
        ready.emplace_back(rank(operations_[k]), k);
        std::ranges::push_heap(ready, std::greater<>());
    };
    for (std::size_t k = 0; k < operations_.size(); ++k) {
        missing[k] = operations_[k].after.size();
        for (const std::size_t before : operations_[k].after)
            next[before].push_back(k);
    }
    for (std::size_t k = 0; k < operations_.size(); ++k)
        if (missing[k] == 0)
            push(k);
    std::vector<std::size_t> place(operations_.size());
    while (!ready.empty()) {
        std::ranges::pop_heap(ready, std::greater<>());
        const std::size_t k = ready.back().second;
        ready.pop_back();
        place[k] = plan_.operations.size();
        plan_.operations.push_back(operations_[k]);
        for (const std::size_t later : next[k])
            if (--missing[later] == 0)
                push(later);
    }
    for (Operation &operation : plan_.operations) {
        for (std::size_t &before : operation.after)
            before = place[before];
        std::ranges::sort(operation.after);
    }
}

} // namespace

void orderOperations(const GraphModel &graph, PlanModel &plan) {
    Order order(graph, plan);
    order.find();
    order.sort();
}

} // namespace DNDS::Task
