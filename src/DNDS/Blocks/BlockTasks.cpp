#include "DNDS/Blocks/BlockTasks.hpp"

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

/// The object of the last start of this field's pushes, which its finish shares.
std::shared_ptr<CalledExchange> startedPush(const GraphModel &graph, BlockFieldCore &field) {
    for (std::size_t k = graph.tasks.size(); k-- > 0;)
        if (const auto *push = dynamic_cast<const BlockPush *>(graph.tasks[k].exchange.get());
            push != nullptr && push->isOf(field))
            return graph.tasks[k].exchange;
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
    task.accesses.push_back(
        {graph.add(array), op ? AccessMode::Reads : AccessMode::ReadsWrites, AccessRange::Owned, {}, {}});
    task.exchange = op ? std::make_shared<BlockPush>(field, *op) : startedPush(graph, field);
    task.startsExchange = op.has_value();
    graph.add(std::move(task));
}

} // namespace DNDS::Task
