#include "DNDS/Blocks/BlockTasks.hpp"

#include <memory>
#include <utility>

namespace DNDS::Task {

// The accesses order both calls: a start reads cells, so it follows earlier writers; a finish changes them, so
// later tasks come after it.
void addPush(GraphModel &graph, BlockFieldCore &field, const std::shared_ptr<ArrayHandle> &array,
             std::optional<PushOp> op) {
    TaskModel task;
    task.name = fmt::format("{} push of '{}'", op ? "start" : "finish", field.name());
    task.kind = TaskKind::Call;
    const std::size_t number = graph.add(array);
    task.accesses.push_back({number, op ? AccessMode::Reads : AccessMode::ReadsWrites, AccessRange::Owned, {}, {}});
    if (!op)
        task.exchange = graph.startedExchange(&field, true, {&number, 1});
    if (task.exchange == nullptr) // a finish without a start says so when it runs
        task.exchange = std::make_shared<CalledExchange>(
            CalledExchange{&field, true, [&field, op = op.value_or(PushOp::Sum)] { field.startPushGhosts(op); },
                           [&field] { return field.pushReady(); }, [&field] { field.finishPushGhosts(); },
                           [&field] { return field.pushInFlight(); }});
    task.startsExchange = op.has_value();
    graph.add(std::move(task));
}

} // namespace DNDS::Task
