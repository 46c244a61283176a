#include "DNDS/Sparse/SparseTasks.hpp"

namespace DNDS {

namespace {

class SparseExchangeCalls final : public Task::CalledExchange {
  public:
    explicit SparseExchangeCalls(SparseFields &fields) : fields_(&fields) {}

    void start() override {
        localSet_ = false;
        fields_->startExchangeGhosts();
    }
    bool ready() override {
        const bool all = fields_->receiveBoundBufs();
        if (!all && !std::exchange(localSet_, true))
            fields_->setBounds(BoundaryType::Local); // while messages are in flight
        return all;
    }
    void finish() override { fields_->setBounds(); }
    bool inFlight() const override { return fields_->inFlight(); }

  private:
    SparseFields *fields_;
    bool localSet_ = false; ///< set by `ready`
};

/// The same for pushes.
class SparsePushCalls final : public Task::CalledExchange {
  public:
    SparsePushCalls(SparseFields &fields, PushOp op) : fields_(&fields), op_(op) {}

    void start() override { fields_->startPushGhosts(op_); }
    bool ready() override { return fields_->receiveBoundBufs(); }
    void finish() override { fields_->finishPushGhosts(); }
    bool inFlight() const override { return fields_->inFlight(); }

  private:
    SparseFields *fields_;
    PushOp op_;
};

/// A call with fields: reads them, or changes all of them.
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

} // namespace

Task::RowSpace blocksOf(const SparseFieldCore &field) {
    return {fmt::format("the blocks of '{}'", field.name()), index{field.blocks()}};
}

void startExchangeGhosts(Task::Graph &graph, SparseFields &fields) {
    auto task = callWith(graph.model(), fmt::format("start exchange of '{}'", fields.name()), fields.rows(),
                         Task::AccessMode::Reads);
    task.exchange = std::make_shared<SparseExchangeCalls>(fields);
    task.startsExchange = true;
    graph.model().add(std::move(task));
}

void finishExchangeGhosts(Task::Graph &graph, SparseFields &fields) {
    auto task = callWith(graph.model(), fmt::format("finish exchange of '{}'", fields.name()), fields.rows(),
                         Task::AccessMode::ReadsWrites);
    task.exchange = std::make_shared<SparseExchangeCalls>(fields);
    graph.model().add(std::move(task));
}

void exchangeGhosts(Task::Graph &graph, SparseFields &fields) {
    startExchangeGhosts(graph, fields);
    finishExchangeGhosts(graph, fields);
}

void startPushGhosts(Task::Graph &graph, SparseFields &fields, PushOp op) {
    auto task = callWith(graph.model(), fmt::format("start push of '{}'", fields.name()), fields.rows(),
                         Task::AccessMode::Reads);
    task.exchange = std::make_shared<SparsePushCalls>(fields, op);
    task.startsExchange = true;
    graph.model().add(std::move(task));
}

void finishPushGhosts(Task::Graph &graph, SparseFields &fields) {
    auto task = callWith(graph.model(), fmt::format("finish push of '{}'", fields.name()), fields.rows(),
                         Task::AccessMode::ReadsWrites);
    task.exchange = std::make_shared<SparsePushCalls>(fields, PushOp::Sum); // its start is never called
    graph.model().add(std::move(task));
}

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
