#include "DNDS/Sparse/SparseTasks.hpp"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace DNDS {

namespace {

/// An exchange of ghosts or, with an operation, a push, for two tasks of a graph: `start` sends, `ready` polls and
/// fills ghosts within the rank at the first poll without result, `finish` sets the rest. Shared by both tasks.
class SparseCalls final : public Task::CalledExchange {
  public:
    SparseCalls(SparseFields &fields, std::optional<PushOp> push) : fields_(&fields), push_(push) {}

    void start() override {
        localSet_ = false;
        push_ ? fields_->startPushGhosts(*push_) : fields_->startExchangeGhosts();
    }
    bool ready() override {
        const bool all = fields_->receiveBoundBufs();
        if (!all && !push_ && !std::exchange(localSet_, true))
            fields_->setBounds(BoundaryType::Local); // while messages are in flight
        return all;
    }
    void finish() override { push_ ? fields_->finishPushGhosts() : fields_->setBounds(); }
    bool inFlight() const override { return fields_->inFlight(); }
    bool isOf(const SparseFields &fields, bool pushes) const {
        return fields_ == &fields && push_.has_value() == pushes;
    }

  private:
    SparseFields *fields_;
    std::optional<PushOp> push_;
    bool localSet_ = false; ///< since the start
};

/// The object of the last start of these fields, which its finish shares, as it knows whether `ready` has set the local
/// side. O(tasks), when the graph is made.
std::shared_ptr<Task::CalledExchange> startedCalls(const Task::GraphModel &graph, SparseFields &fields, bool pushes) {
    for (std::size_t k = graph.tasks.size(); k-- > 0;)
        if (graph.tasks[k].startsExchange)
            if (const auto *calls = dynamic_cast<const SparseCalls *>(graph.tasks[k].exchange.get());
                calls != nullptr && calls->isOf(fields, pushes))
                return graph.tasks[k].exchange;
    // Without a start the plan's check speaks.
    return std::make_shared<SparseCalls>(fields, pushes ? std::optional(PushOp::Sum) : std::nullopt);
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

/// The tasks of an exchange or a push. The start only reads the fields, so that tasks which read cells may run until
/// the finish, while messages are in flight; the finish changes ghosts and, for pushes, cells.
void addStart(Task::GraphModel &graph, SparseFields &fields, std::string_view what, std::optional<PushOp> push) {
    auto task =
        callWith(graph, fmt::format("start {} of '{}'", what, fields.name()), fields.rows(), Task::AccessMode::Reads);
    task.exchange = std::make_shared<SparseCalls>(fields, push);
    task.startsExchange = true;
    graph.add(std::move(task));
}
void addFinish(Task::GraphModel &graph, SparseFields &fields, std::string_view what, bool pushes) {
    auto task = callWith(graph, fmt::format("finish {} of '{}'", what, fields.name()), fields.rows(),
                         Task::AccessMode::ReadsWrites);
    task.exchange = startedCalls(graph, fields, pushes);
    graph.add(std::move(task));
}

} // namespace

Task::RowSpace blocksOf(const SparseFieldCore &field) {
    return {fmt::format("the blocks of '{}'", field.name()), index{field.blocks()}};
}

void startExchangeGhosts(Task::Graph &graph, SparseFields &fields) {
    addStart(graph.model(), fields, "exchange", std::nullopt);
}

void finishExchangeGhosts(Task::Graph &graph, SparseFields &fields) {
    addFinish(graph.model(), fields, "exchange", false);
}

void exchangeGhosts(Task::Graph &graph, SparseFields &fields) {
    startExchangeGhosts(graph, fields);
    finishExchangeGhosts(graph, fields);
}

void startPushGhosts(Task::Graph &graph, SparseFields &fields, PushOp op) {
    addStart(graph.model(), fields, "push", op);
}

void finishPushGhosts(Task::Graph &graph, SparseFields &fields) { addFinish(graph.model(), fields, "push", true); }

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
