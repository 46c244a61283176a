#include "DNDS/Task/DeviceRunner.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Task/Trace.hpp"

#include <algorithm>

namespace DNDS::Task {

namespace {

// When full, all are captured again; programs that swap a few arrays stay below it.
constexpr std::size_t graphsKept = 8; ///< for each batch: one for each order in which arrays were swapped

/// A copy of a list; waits for it, as the source may be a temporary. Only at set-up.
template <class T>
Device::DeviceBuffer<T> onDevice(const std::vector<T> &values) {
    Device::DeviceBuffer<T> buffer(values.size());
    if (!values.empty()) {
        Device::copy(buffer.data(), MemorySpace::Device, values.data(), MemorySpace::Host, values.size() * sizeof(T),
                     nullptr);
        Device::synchronize(nullptr);
    }
    return buffer;
}

} // namespace

/// Lists of rows of a part on the device.
/// Owns the lists; `rows` and `sums` point into them, in device memory.
struct Plan::DeviceRunner::Rows {
    Device::DeviceBuffer<LocalIndex> list, targets, starts;
    PartRows rows;
    Contributions sums;
};

/// Times of device work, taken by host functions queued before and after it.
/// The device calls these functions on its own host thread, between the kernels of the stream. They must not call the
/// device.
struct Plan::DeviceRunner::Times {
    Trace *trace = nullptr;
    Trace::Span span;

    static void begin(void *times) { static_cast<Times *>(times)->span.begin = Trace::now(); }
    static void end(void *times) {
        Times &taken = *static_cast<Times *>(times);
        taken.span.end = Trace::now();
        taken.trace->record(taken.span);
    }
};

/// A run becomes a single graph if every step is device work that can be captured: no calls or swaps, and exchanges
/// that need no host (PlanTransfers::capturable).
Plan::DeviceRunner::DeviceRunner(State &state) : state_(state) {
    for (const Part &part : state.plan.parts) {
        Rows &rows = rows_.emplace_back();
        rows.rows = part.rows;
        copyRows(rows, part.list);
        // Sums also need the rows by target.
        if (part.adds)
            copySums(rows, part);
    }
    for (const Part &part : state.plan.finishes) {
        finishRows_.emplace_back().rows = part.rows;
        // Ghosts that are finished after pulls, always as a list.
        copyRows(finishRows_.back(), part.list);
    }
    for (const ReductionModel &reduction : state.graph.reductions) {
        std::vector<Rows> &lists = reducedRows_.emplace_back();
        for (const std::vector<LocalIndex> &list : reduction.lists ? *reduction.lists : ReducedLists{}) {
            lists.emplace_back().rows = {nullptr, 0, static_cast<index>(list.size())};
            copyRows(lists.back(), list);
        }
    }
    makeBatches();
    if (state.trace.trace != nullptr)
        times_.resize(state.plan.steps.size());
    // Calls and swaps need the host between steps.
    const bool onlyDevice =
        state.transfers.capturable() && std::ranges::none_of(state.plan.steps, [](const PlanStep &step) {
            return step.kind == StepKind::Call || step.kind == StepKind::Swap;
        });
    if (onlyDevice)
        whole_.emplace();
    use_.wholeRuns = onlyDevice;
    if (!state.options.graphs)
        use_.whyNot = "not asked for";
}

Plan::DeviceRunner::~DeviceRunner() { abandon(); }

// A contiguous part has no list and keeps its range.
void Plan::DeviceRunner::copyRows(Rows &rows, const std::vector<LocalIndex> &list) const {
    rows.list = onDevice(list);
    rows.rows.list = list.empty() ? nullptr : rows.list.data();
}

/// For each row that gets a sum, the rows that add to it, ascending.
void Plan::DeviceRunner::copySums(Rows &rows, const Part &part) const {
    const std::vector<std::vector<LocalIndex>> adding = addingRows(state_.graph.tasks[part.task], part, 1);
    std::vector<LocalIndex> named, starts{0}, list;
    for (std::size_t target = 0; target < adding.size(); ++target) {
        // Rows to which nothing is added keep their contents.
        if (adding[target].empty())
            continue;
        named.push_back(static_cast<LocalIndex>(toSize(part.firstTarget) + target));
        list.insert(list.end(), adding[target].begin(), adding[target].end());
        starts.push_back(static_cast<LocalIndex>(list.size()));
    }
    rows.targets = onDevice(named);
    rows.starts = onDevice(starts);
    rows.list = onDevice(list);
    rows.sums = {rows.targets.data(), rows.starts.data(), rows.list.data(), static_cast<index>(named.size())};
}

/// Parts that no exchange waits for or feeds run beside the exchanges, on the inner stream.
std::size_t Plan::DeviceRunner::streamIdOf(const PlanStep &step) const {
    if (step.kind != StepKind::Part)
        return Boundary;
    const Part &part = state_.plan.parts[step.what];
    return part.late || part.urgent ? Boundary : Inner;
}

// Gives the batch its number; no effect if none is open.
void Plan::DeviceRunner::close(std::optional<Batch> &open) {
    if (!open)
        return;
    for (const std::size_t step : open->steps)
        batchOf_[step] = batches_.size();
    batches_.push_back(std::move(*open));
    open.reset();
}

/// Walks through the steps with one open batch for each stream. A batch is closed when the host is about to wait (a
/// peer may need its results), when the other stream has to wait for one of its steps, and when the next step would
/// add a wait that it did not start with. Waits refer to closed batches with smaller numbers, so queueing the batches
/// in order never waits for an event that is not recorded yet.
void Plan::DeviceRunner::makeBatches() {
    constexpr std::size_t unplaced = ~std::size_t{0};
    const std::vector<PlanStep> &steps = state_.plan.steps;
    batchOf_.assign(steps.size(), unplaced);
    std::array<std::optional<Batch>, 2> open;
    for (std::size_t k = 0; k < steps.size(); ++k) {
        const PlanStep &step = steps[k];
        const auto streamId = static_cast<StreamId>(streamIdOf(step));
        const bool part = step.kind == StepKind::Part;
        // Queued work must be submitted before the host waits.
        if (!part)
            close(open[Boundary]);
        if (!part && step.kind != StepKind::Start)
            close(open[Inner]);
        std::vector<std::size_t> waits;
        for (const std::size_t before : step.after) {
            if (streamIdOf(steps[before]) == streamId)
                continue;
            // The step is still in the other stream's open batch, whose event comes at its end.
            if (batchOf_[before] == unplaced)
                close(open[1 - streamId]);
            waits.push_back(batchOf_[before]);
        }
        std::ranges::sort(waits);
        waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
        for (const std::size_t batch : waits)
            batches_[batch].awaited = true;
        if (part && open[streamId] && !std::ranges::includes(open[streamId]->waits, waits))
            close(open[streamId]);
        if (!open[streamId]) {
            open[streamId].emplace();
            open[streamId]->streamId = streamId;
            open[streamId]->waits = std::move(waits);
        }
        open[streamId]->steps.push_back(k);
        if (!part)
            close(open[streamId]);
    }
    close(open[Boundary]);
    close(open[Inner]);
}

/// Copies only arrays that the host has written since the last run. Of the others it only notes the side, on all ranks
/// alike: exchanges of blocks go by it.
void Plan::DeviceRunner::bringToDevice() {
    const auto bring = [&](std::size_t number) { state_.graph.arrays[number]->toDevice(); };
    for (const TaskModel &task : state_.graph.tasks)
        if (!task.onHost())
            for (const ArrayAccess &access : task.accesses)
                bring(access.array);
    for (const ReductionModel &reduction : state_.graph.reductions)
        bring(reduction.array);
}

// Takes the views of each task once a run.
void Plan::DeviceRunner::bind(const Batch &batch) {
    for (const std::size_t step : batch.steps) {
        if (state_.plan.steps[step].kind != StepKind::Part)
            continue;
        const std::size_t task = state_.plan.parts[state_.plan.steps[step].what].task;
        if (std::exchange(state_.boundIn[task], state_.statistics.runs) != state_.statistics.runs)
            state_.graph.tasks[task].body->bind(MemorySpace::Device, {});
    }
}

// A captured graph holds addresses and the pulls that were made: another key means another graph.
std::uint64_t Plan::DeviceRunner::memoryKey() const {
    ContentHash hash;
    for (const auto &array : state_.graph.arrays) {
        hash.add(array->father().generation());
        hash.add(array->son() != nullptr ? array->son()->generation() : 0);
    }
    for (const bool dropped : state_.history.dropped())
        hash.add(dropped ? 1 : 2);
    return hash.value();
}

/// Runs, captures or replays device work on the batch's stream. First run: directly, so that nothing is initialised
/// lazily during capture. Second: captured and launched. A device that cannot do so says it once: all is direct then.
/// Exchanges write new addresses of arrays where graphs read them: such runs are direct, too, and older graphs end.
template <class Work>
void Plan::DeviceRunner::replay(Batch &batch, const Work &work) {
    const Device::StreamHandle stream = streamOf(batch.streamId);
    if (!use_.whyNot.empty())
        return work();
    const std::uint64_t key = memoryKey();
    auto found = batch.graphs.find(key);
    const bool binds =
        whole_ && state_.transfers.exchanges() > 0 && (found == batch.graphs.end() || state_.runsSinceRecovery == 1);
    if (!std::exchange(batch.known, true) || binds) {
        batch.graphs.clear();
        work();
        return static_cast<void>(batch.graphs.try_emplace(key)); // to be captured
    }
    if (found == batch.graphs.end() || !found->second) {
        if (batch.graphs.size() >= graphsKept) // rare
            batch.graphs.clear();
        try {
            found = batch.graphs.insert_or_assign(key, Device::Graph::capture(stream, work)).first;
            ++use_.graphs;
        } catch (const StateError &error) {
            use_.whyNot = error.message();
            return work();
        }
    }
    found->second.launch(stream);
    ++use_.launches;
}

// Queues the part; returns before it has run.
void Plan::DeviceRunner::runPart(const Part &part, const Rows &rows) {
    const TaskModel &task = state_.graph.tasks[part.task];
    const Executor executor = Executor::device(part.late || part.urgent ? boundary_.handle() : inner_.handle());
    state_.transfers.zeroGhosts(part, executor);
    if (part.adds)
        task.body->runAdding(executor, rows.sums);
    else
        task.body->run(executor, rows.rows, 0, rows.rows.count);
}

const PartRows &Plan::DeviceRunner::reducedRows(std::size_t reduction, std::size_t k) const {
    return reducedRows_[reduction][k].rows;
}

Device::StreamHandle Plan::DeviceRunner::streamOf(DeviceBatch::StreamId streamId) const {
    return streamId == Inner ? inner_.handle() : boundary_.handle();
}

// Host functions in the stream take the times, as events cannot be compared with the host's clock.
template <class Work>
void Plan::DeviceRunner::record(std::size_t step, DeviceBatch::StreamId streamId, const Work &work) {
    if (times_.empty())
        return work();
    const Part &part = state_.plan.parts[state_.plan.steps[step].what];
    Times &times = times_[step];
    times.trace = state_.trace.trace;
    times.span = {.kind = Trace::Kind::Part,
                  .name = state_.trace.names[part.task],
                  .rows = part.rows.count,
                  .thread = streamId == Inner ? Trace::innerStream : Trace::boundaryStream};
    Device::callHost(streamOf(streamId), &Times::begin, &times);
    work();
    Device::callHost(streamOf(streamId), &Times::end, &times);
}

void Plan::DeviceRunner::runParts(const Batch &batch) {
    for (const std::size_t step : batch.steps) {
        const std::size_t number = state_.plan.steps[step].what;
        const Part &part = state_.plan.parts[number];
        state_.inTask(state_.graph.tasks[part.task], &part,
                      [&] { record(step, batch.streamId, [&] { runPart(part, rows_[number]); }); });
    }
}

void Plan::DeviceRunner::runBatch(Batch &batch) {
    bind(batch);
    if (whole_) // captured as a whole
        runParts(batch);
    else
        replay(batch, [&] { runParts(batch); });
    state_.statistics.parts += static_cast<index>(batch.steps.size());
}

/// Functions of the program see arrays on the host, which costs a synchronization and two copies of them; launches,
/// exchanges and swaps take them where they are.
void Plan::DeviceRunner::runCallOrSwap(const PlanStep &step) {
    const TaskModel &task = state_.graph.tasks[step.what];
    if (!state_.isDue(task))
        return;
    if (task.kind == TaskKind::Call && !task.launch)
        wait();
    if (task.onHost())
        for (const ArrayAccess &access : task.accesses)
            state_.graph.arrays[access.array]->toHost();
    state_.run(step);
    if (task.onHost())
        bringToDevice();
}

/// Runs on the host. Waits for peers take place here, in the Wait steps, while the streams work.
void Plan::DeviceRunner::issue(Batch &batch) {
    const Device::StreamHandle stream = streamOf(batch.streamId);
    for (const std::size_t before : batch.waits)
        batches_[before].event.holdBack(stream);
    const PlanStep &step = state_.plan.steps[batch.steps.front()];
    switch (step.kind) {
    case StepKind::Part:
        runBatch(batch);
        break;
    case StepKind::Start:
        if (!state_.history.isDropped(step.what))
            state_.transfers.start(state_.plan.transfers[step.what], stream);
        break;
    case StepKind::Wait:
        if (!state_.history.isDropped(step.what)) {
            const Transfer &transfer = state_.plan.transfers[step.what];
            if (transfer.direction == Direction::Push) // owned rows were written since its start, unknown to it
                Device::synchronize(stream);
            state_.wait(transfer, stream, Executor::device(stream), [&](std::size_t k) { return finishRows_[k].rows; });
        }
        break;
    case StepKind::Call:
    case StepKind::Swap:
        runCallOrSwap(step);
        break;
    }
    if (batch.awaited)
        batch.event.record(stream);
}

/// For a single graph, views and versions are brought up to date first, since a replay touches neither.
void Plan::DeviceRunner::start() {
    bringToDevice();
    const Device::StreamHandle user = state_.executor.stream();
    // Both streams start after what the program has queued so far, and its stream continues after both.
    Device::runAfter(boundary_, user);
    Device::runAfter(inner_, user);
    const auto issueAll = [&] {
        for (Batch &batch : batches_)
            issue(batch);
    };
    if (whole_) {
        // Views first: the graph has pointers to them.
        for (const Batch &batch : batches_)
            bind(batch);
        for (std::size_t k = 0; k < state_.plan.transfers.size(); ++k)
            if (!state_.history.isDropped(k)) // replays do not tell the arrays that they are written
                for (const std::size_t array : state_.plan.transfers[k].arrays) {
                    RowLayout written;
                    state_.graph.arrays[array]->member().son(MemorySpace::Device, Access::Write, written);
                }
        bool issued = false; // and counted; a graph that was captured before runs without
        replay(*whole_, [&] {
            issued = true;
            Device::runAfter(inner_, boundary_);
            issueAll();
            Device::runAfter(boundary_, inner_);
        });
        for (std::size_t k = 0; k < state_.plan.transfers.size() && !issued; ++k)
            if (!state_.history.isDropped(k))
                state_.transfers.count(state_.plan.transfers[k]);
    } else {
        issueAll();
    }
    Device::runAfter(user, inner_);
    Device::runAfter(user, boundary_);
}

void Plan::DeviceRunner::wait() {
    // Errors of kernels are reported here.
    inner_.synchronize();
    boundary_.synchronize();
}

void Plan::DeviceRunner::abandon() noexcept {
    for (const Device::Stream *stream : {&inner_, &boundary_}) // another error is being handled
        static_cast<void>(attempt([&] { stream->synchronize(); }));
}

} // namespace DNDS::Task
