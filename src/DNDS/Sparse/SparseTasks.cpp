#include "DNDS/Sparse/SparseTasks.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

/// An exchange of ghosts or, with an operation, a push, for two tasks of a graph. `ready` polls, and fills the ghosts
/// within the rank at the first poll without result; `finish` sets the rest.
/// The two tasks share this object, so that a plan starts and finishes the same exchange; a graph may hold several.
std::shared_ptr<Task::CalledExchange> calls(SparseFields &fields, bool pushes, PushOp op) {
    auto result = std::make_shared<Task::CalledExchange>();
    result->of = &fields;
    result->pushes = pushes;
    result->inFlight = [&fields] { return fields.inFlight(); };
    if (pushes) {
        result->start = [&fields, op] { fields.startPushGhosts(op); };
        result->ready = [&fields] { return fields.receiveBoundBufs(); };
        result->finish = [&fields] { fields.finishPushGhosts(); };
        return result;
    }
    const auto localSet = std::make_shared<bool>(false); // since the start
    result->start = [&fields, localSet] {
        *localSet = false;
        fields.startExchangeGhosts();
    };
    result->ready = [&fields, localSet] {
        const bool all = fields.receiveBoundBufs();
        if (!all && !std::exchange(*localSet, true))
            fields.setBounds(BoundaryType::Local); // while messages are in flight
        return all;
    };
    result->finish = [&fields] { fields.setBounds(); };
    return result;
}

/// A task that calls a function, and as a whole reads or changes all of `fields`: from these accesses the graph derives
/// its order.
Task::TaskModel callWith(Task::GraphModel &graph, std::string name, const std::vector<Array<std::uint8_t, 0> *> &fields,
                         Task::AccessMode mode) {
    Task::TaskModel task;
    task.name = std::move(name);
    task.kind = Task::TaskKind::Call;
    for (const auto *rows : fields)
        task.accesses.push_back(
            {graph.add(std::make_shared<Task::RowsHandle>(*rows, true)), mode, Task::AccessRange::Whole, {}, {}});
    return task;
}

/// Half of an exchange or a push. The start only reads the fields, so that tasks which read cells may run until the
/// finish, while messages are in flight; the finish changes ghosts and, for pushes, cells.
void addHalf(Task::GraphModel &graph, SparseFields &fields, bool starts, bool pushes, PushOp op = PushOp::Sum) {
    auto task = callWith(
        graph, fmt::format("{} {} of '{}'", starts ? "start" : "finish", pushes ? "push" : "exchange", fields.name()),
        fields.rows(), starts ? Task::AccessMode::Reads : Task::AccessMode::ReadsWrites);
    if (!starts) {
        std::vector<std::size_t> exchanged;
        for (const Task::ArrayAccess &access : task.accesses)
            exchanged.push_back(access.array);
        task.exchange = graph.startedExchange(&fields, pushes, exchanged);
    }
    if (task.exchange == nullptr) // a finish without a start says so when it runs
        task.exchange = calls(fields, pushes, op);
    task.startsExchange = starts;
    graph.add(std::move(task));
}

} // namespace

Task::RowSpace blocksOf(const SparseFieldCore &field) {
    return {fmt::format("the blocks of '{}'", field.name()), index{field.blocks()}};
}

void startExchangeGhosts(Task::Graph &graph, SparseFields &fields) { addHalf(graph.model(), fields, true, false); }

void finishExchangeGhosts(Task::Graph &graph, SparseFields &fields) { addHalf(graph.model(), fields, false, false); }

void exchangeGhosts(Task::Graph &graph, SparseFields &fields) {
    startExchangeGhosts(graph, fields);
    finishExchangeGhosts(graph, fields);
}

void startPushGhosts(Task::Graph &graph, SparseFields &fields, PushOp op) {
    addHalf(graph.model(), fields, true, true, op);
}

void finishPushGhosts(Task::Graph &graph, SparseFields &fields) { addHalf(graph.model(), fields, false, true); }

void pushGhosts(Task::Graph &graph, SparseFields &fields, PushOp op) {
    startPushGhosts(graph, fields, op);
    finishPushGhosts(graph, fields);
}

void swapStages(Task::Graph &graph, SparseFieldCore &field, int a, int b) {
    auto task = callWith(graph.model(), fmt::format("swap stages {} and {} of '{}'", a, b, field.name()),
                         {&field.rows()}, Task::AccessMode::ReadsWrites);
    task.launch = [&field, a, b](const Executor & /*executor*/) { field.swapStages(a, b); }; // kernels keep their views
    graph.model().add(std::move(task));
}

} // namespace DNDS
