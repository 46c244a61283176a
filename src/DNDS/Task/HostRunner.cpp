#include "DNDS/Task/HostRunner.hpp"

#include <algorithm>
#include <thread>

namespace DNDS::Task {

namespace {

/// Number of `rows` that a thread takes at once.
/// Four chunks a thread even out their differences; below 256 rows the cost of claiming a chunk would show.
/// Sizes are fixed when the plan is made; threads claim chunks as they become free, which balances uneven rows.
index rowsOfChunk(index rows, int threads, index asked) {
    constexpr index worthAChunk = 256, chunksPerThread = 4;
    return asked > 0 ? std::clamp<index>(rows, 1, asked)
                     : std::max(worthAChunk, rows / (threads * chunksPerThread) + 1);
}

/// Numbers workers, from 1 on, in the order in which they first run a chunk.
int workerNumber() {
    static std::atomic<int> next{1};
    thread_local const int number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

} // namespace

/// A part in chunks.
/// Made once, from the part; `work` is published again in each run and stays at its address, as workers hold
/// pointers to it.
/// Chunks of a part write disjoint rows, so they need no order among each other and no locks.
struct Plan::HostRunner::Chunks {
    ThreadTeam::Loop work;
    HostRunner *runner = nullptr;
    const Part *part = nullptr;
    index rows = 0; ///< rows of each chunk
    bool published = false;
    /// One chunk, for which the next step waits, or the end of the run: a worker would only delay it.
    bool ofCaller = false;
    /// Parts that add: the rows that add to [targets[k], targets[k + 1]), by chunk.
    /// Fewer, larger ranges of targets repeat fewer rows.
    std::vector<index> targets;
    std::vector<std::vector<LocalIndex>> lists;
};

/// With one thread parts run whole, in the order of steps, and nothing is cut or published.
Plan::HostRunner::HostRunner(State &state) : state_(state), team_(state.executor.threads()) {
    if (team_.threads() == 1)
        return;
    chunks_ = std::vector<Chunks>(state.plan.parts.size());
    for (std::size_t k = 0; k < chunks_.size(); ++k)
        cut(chunks_[k], state.plan.parts[k]);
    const std::vector<PlanStep> &steps = state.plan.steps;
    for (std::size_t k = 0; k < steps.size(); ++k)
        if (steps[k].kind == StepKind::Part && chunks_[steps[k].what].work.chunks == 1)
            chunks_[steps[k].what].ofCaller =
                k + 1 == steps.size() || std::ranges::find(steps[k + 1].after, k) != steps[k + 1].after.end();
    shares_ = !std::ranges::all_of(chunks_, &Chunks::ofCaller);
}

Plan::HostRunner::~HostRunner() = default;

void Plan::HostRunner::cut(Chunks &chunks, const Part &part) {
    // Pointers back, as the team calls a plain function.
    chunks.runner = this;
    chunks.part = &part;
    if (part.adds) {
        cutSums(chunks, part);
        chunks.work.chunks = static_cast<index>(chunks.lists.size());
    } else {
        // The program's choice is stronger than the task's.
        const index ofProgram = state_.options.rowsPerChunk;
        const index ofBody = state_.graph.tasks[part.task].body->rowsPerChunk();
        chunks.rows = rowsOfChunk(part.rows.count, team_.threads(), ofProgram > 0 ? ofProgram : ofBody);
        chunks.work.chunks = (part.rows.count + chunks.rows - 1) / chunks.rows;
    }
    chunks.work.run = runChunk;
    chunks.work.context = &chunks;
}

/// Each chunk computes the sums of some rows: rows that add to several chunks are computed in each of them.
/// Threads need no atomic additions, and each sum has the order of the sequential loop: same bits for any number of
/// threads, for the price of repeated rows where chunks of targets meet.
/// Owner computes: the chunk that owns a target evaluates every row that contributes to it. Set-up O(contributions),
/// once.
void Plan::HostRunner::cutSums(Chunks &chunks, const Part &part) const {
    const index targets = part.lastTarget - part.firstTarget;
    const index width = rowsOfChunk(targets, team_.threads(), state_.options.rowsPerChunk);
    chunks.lists = addingRows(state_.graph.tasks[part.task], part, width);
    for (index k = 0; k <= static_cast<index>(chunks.lists.size()); ++k)
        chunks.targets.push_back(std::min(part.lastTarget, part.firstTarget + k * width));
}

/// In any thread; calls neither MPI nor anything of the plan that changes.
void Plan::HostRunner::runChunk(void *context, index chunk) {
    Chunks &chunks = *static_cast<Chunks *>(context);
    State &state = chunks.runner->state_;
    const Part &part = *chunks.part;
    const TaskBody &body = *state.graph.tasks[part.task].body;
    const bool inWorker = std::this_thread::get_id() != chunks.runner->caller_;
    const int thread = state.trace.trace != nullptr && inWorker ? workerNumber() : 0;
    if (part.adds) {
        const std::vector<LocalIndex> &list = chunks.lists[toSize(chunk)];
        const PartRows rows{list.data(), 0, static_cast<index>(list.size())};
        const index *targets = &chunks.targets[toSize(chunk)];
        state.trace.record(part.task, rows.count, thread, [&] { body.runAdding(rows, targets[0], targets[1]); });
    } else {
        // The last chunk may have fewer rows.
        const index first = chunk * chunks.rows;
        const index rows = std::min(chunks.rows, part.rows.count - first);
        state.trace.record(part.task, rows, thread,
                           [&] { body.run(Executor::host(), part.rows, first, first + rows); });
    }
}

/// With one thread the guards of debug checks belong to a part, so views are taken again for each; with several, once
/// a run and without guards.
/// `boundIn` also keeps `bind` from running beside chunks: the first part of a task binds before it is published.
void Plan::HostRunner::runPart(std::size_t number) {
    const Part &part = state_.plan.parts[number];
    const bool alone = team_.threads() == 1;
    const auto prepare = [&](TaskBody &body) {
        // With threads, other parts of the task may be running: they have taken their views already.
        if (std::exchange(state_.boundIn[part.task], state_.statistics.runs) != state_.statistics.runs ||
            (alone && !part.guards.empty()))
            body.bind(MemorySpace::Host, alone ? std::span<const RowGuard>(part.guards) : std::span<const RowGuard>());
        state_.transfers.zeroGhosts(part, state_.executor);
    };
    const auto runOrPublish = [&] {
        TaskBody &body = *state_.graph.tasks[part.task].body;
        prepare(body);
        if (!alone && !chunks_[number].ofCaller) {
            chunks_[number].published = true;
            return team_.publish(chunks_[number].work);
        }
        state_.trace.record(part.task, part.rows.count, 0, [&] {
            if (part.adds)
                body.runAdding(part.rows, part.firstTarget, part.lastTarget);
            else
                body.run(state_.executor, part.rows, 0, part.rows.count);
        });
    };
    state_.inTask(state_.graph.tasks[part.task], &part, runOrPublish);
    ++state_.statistics.parts;
}

// While it waits, the calling thread runs chunks and lets exchanges advance.
// Of the edges only those from published parts can be open: the calling thread has run all other steps itself, in
// order. `progress` is called between chunks, since MPI may advance messages only within calls.
void Plan::HostRunner::awaitBefore(const PlanStep &step) {
    for (const std::size_t before : step.after) {
        const PlanStep &earlier = state_.plan.steps[before];
        if (earlier.kind == StepKind::Part && chunks_[earlier.what].published)
            team_.wait(chunks_[earlier.what].work, [&] { state_.transfers.progress(); });
    }
    if (team_.failed())
        end();
}

/// ThreadTeam keeps the first failure in program order, so the error does not depend on the number of threads.
void Plan::HostRunner::end() {
    team_.end();
    if (!team_.failed())
        return;
    const ThreadTeam::Failure &failure = team_.failure();
    const Chunks &chunks = *static_cast<const Chunks *>(failure.loop->context);
    state_.inTask(state_.graph.tasks[chunks.part->task], chunks.part,
                  [&] { std::rethrow_exception(failure.exception); });
}

/// Steps are taken in the plan's order, which is the same among exchanges on all ranks. Publishing a part does not
/// wait, so the calling thread soon reaches the next start or wait of an exchange and helps with chunks there.
void Plan::HostRunner::run() {
    const bool alone = team_.threads() == 1;
    if (!alone) {
        caller_ = std::this_thread::get_id();
        if (shares_)
            team_.begin(static_cast<index>(chunks_.size()));
        for (Chunks &chunks : chunks_)
            chunks.published = false;
    }
    try {
        for (const PlanStep &step : state_.plan.steps) {
            if (!alone)
                awaitBefore(step);
            if (step.kind == StepKind::Part)
                runPart(step.what);
            else
                state_.run(step);
        }
    } catch (...) {
        end(); // an earlier part may fail in a worker: that failure comes first
        throw;
    }
    end();
}

} // namespace DNDS::Task
