#include "DNDS/Blocks/BlockTasks.hpp"

#include <algorithm>
#include <utility>

namespace DNDS::Task {

namespace {

/// The push of a field's ghosts: `start` and `finish` are two steps of a plan, between which other tasks run.
class BlockPush final : public CalledExchange {
  public:
    BlockPush(BlockFieldCore &field, PushOp op) : field_(&field), op_(op) {}
    void start() override { field_->startPushGhosts(op_); }
    bool ready() override { return field_->pushReady(); }
    void finish() override { field_->finishPushGhosts(); }
    bool inFlight() const override { return field_->pushInFlight(); }
    bool isOf(const BlockFieldCore &field) const { return field_ == &field; }

  private:
    BlockFieldCore *field_;
    PushOp op_;
};

/// Whether a task may come between the start and the finish of a push: it neither writes the array nor reads ghosts,
/// into which a plan would pull while the push reads them.
bool fitsBetween(const TaskModel &task, std::size_t array) {
    return std::ranges::all_of(task.accesses, [array](const ArrayAccess &access) {
        const bool owned = access.range == AccessRange::SameRow || access.range == AccessRange::Owned;
        return access.array != array || (access.mode == AccessMode::Reads && owned);
    });
}

/// The object of the last start of this field's pushes, which its finish shares. Throws ArgumentError for tasks since
/// then that do not fit.
std::shared_ptr<CalledExchange> startedPush(const GraphModel &graph, BlockFieldCore &field, std::size_t array) {
    for (std::size_t k = graph.tasks.size(); k-- > 0;) {
        const TaskModel &task = graph.tasks[k];
        if (const auto *push = dynamic_cast<const BlockPush *>(task.exchange.get());
            push != nullptr && push->isOf(field))
            return task.exchange;
        DNDS_CHECK(fitsBetween(task, array), ArgumentError,
                   "task '{}' writes '{}' or reads its ghosts between the start and the finish of their push: declare "
                   "it before the start or after the finish",
                   task.name, field.name());
    }
    return std::make_shared<BlockPush>(field, PushOp::Sum); // without a start the push says so when it runs
}

} // namespace

// The accesses order both calls: a start reads cells, so it comes after earlier writers; a finish changes them, so
// later tasks come after it. A graph does not check that tasks between the two leave the cells unchanged, as pushes
// require.
void addPush(GraphModel &graph, BlockFieldCore &field, const std::shared_ptr<ArrayHandle> &array,
             std::optional<PushOp> op) {
    TaskModel task;
    task.name = fmt::format("{} push of '{}'", op ? "start" : "finish", field.name());
    task.kind = TaskKind::Call;
    const std::size_t number = graph.add(array);
    task.accesses.push_back({number, op ? AccessMode::Reads : AccessMode::ReadsWrites, AccessRange::Owned, {}, {}});
    task.exchange = op ? std::make_shared<BlockPush>(field, *op) : startedPush(graph, field, number);
    task.startsExchange = op.has_value();
    graph.add(std::move(task));
}

} // namespace DNDS::Task
