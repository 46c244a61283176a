#include "DNDS/Task/PlanState.hpp"

#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Task {

namespace {

/// The exception being handled, with the task in front of its text; of the same type where it is one of DNDS.
[[noreturn]] void rethrowFrom(const TaskModel &task, const Part *part) {
    const std::string where = part == nullptr
                                  ? fmt::format("in task '{}': ", task.name)
                                  : fmt::format("in task '{}' ({} of {} rows, the first of which is {}): ", task.name,
                                                part->urgent ? "boundary part" : "part", part->rows.count,
                                                part->rows.count > 0 ? part->rows(0) : 0);
    try {
        throw;
    } catch (const MpiError &) {
        throw;
    } catch (const Error &error) {
        throwError(error.kind(), where + error.message(), error.where());
    } catch (const std::bad_alloc &) {
        throw MemoryError(where + "out of memory");
    } catch (const std::exception &error) {
        throw StateError(where + error.what());
    }
}

} // namespace

Plan::State::State(GraphModel model, const CommunicatorView &view, const Executor &where, const CompileOptions &chosen)
    : graph(std::move(model)), comm(view), executor(where), options(chosen) {}

void Plan::State::connect() {
    exchanges.clear();
    zeroing.clear();
    std::map<std::pair<Direction, std::vector<std::size_t>>, std::size_t> known;
    for (Transfer &transfer : plan.transfers) {
        const auto [place, isNew] = known.try_emplace({transfer.direction, transfer.arrays}, exchanges.size());
        transfer.exchange = place->second;
        if (!isNew)
            continue;
        ExchangeOptions choice = options.exchange;
        choice.space = executor.onDevice() ? ExchangeSpace::Device : ExchangeSpace::Host;
        choice.ghosts = GhostsAfterPush::Zero;
        exchanges.push_back(Exchange::make(
            transfer.pattern->context(), transfer.direction,
            [&] {
                ExchangeRequest request{transfer.pattern, {}};
                for (const std::size_t array : transfer.arrays)
                    request.members.push_back(graph.arrays[array]->member());
                return request;
            },
            choice, transfer.direction == Direction::Push ? PushOp::Sum : PushOp::Replace));
    }
    dropped.assign(plan.transfers.size(), false);
    boundIn.assign(graph.tasks.size(), -1);
    left.assign(graph.arrays.size(), {});
    halfWritten.resize(graph.arrays.size(), false);
    failed = false;
}

Plan::State::Contents Plan::State::contentsOf(std::size_t array) const {
    const ArrayHandle &handle = *graph.arrays[array];
    return {handle.father().version(), handle.son() != nullptr ? handle.son()->version() : 0};
}

/// All ranks come to the same answer as long as they write arrays between the same runs. Ranks without rows or ghosts
/// decide by versions, too.
void Plan::State::chooseTransfers() {
    for (std::size_t k = 0; k < plan.transfers.size(); ++k) {
        const Transfer &transfer = plan.transfers[k];
        dropped[k] = transfer.conditional && std::ranges::all_of(transfer.arrays, [&](std::size_t a) {
                         const bool asLeft = left[a] == contentsOf(a);
                         const ArrayHandle &array = *graph.arrays[a];
                         const bool pulled = array.son()->pulledFrom() == array.father().version() &&
                                             (asLeft || !isFinished(a)); // other pulls are not finished
                         return pulled || (asLeft && plan.outcome[a].meetsEntry);
                     });
        if (dropped[k])
            ++statistics.dropped;
    }
}

void Plan::State::requireWritten() const {
    for (std::size_t a = 0; a < halfWritten.size(); ++a)
        DNDS_CHECK(!halfWritten[a] || !(left[a] == contentsOf(a)), StateError,
                   "'{}' is half written: a run of '{}' failed while a task was writing it. Write it anew before the "
                   "next run",
                   graph.arrays[a]->name(), graph.name);
}

void Plan::State::runPart(const Part &part) {
    const TaskModel &task = graph.tasks[part.task];
    try {
        if (std::exchange(boundIn[part.task], statistics.runs) != statistics.runs || !part.guards.empty())
            task.body->bind(executor.space(), part.guards);
        if (part.toGhosts) {
            std::vector<RowLayout> sons;
            for (const ArrayAccess &access : task.accesses)
                if (access.mode == Mode::Adds)
                    graph.arrays[access.array]->member().son(executor.space(), Access::Write, sons.emplace_back());
            auto place = zeroing.find(part.task);
            if (place == zeroing.end())
                place = zeroing
                            .try_emplace(part.task, *graph.arrays[task.accesses.back().array]->pattern(), sons,
                                         executor.space(), executor.stream())
                            .first;
            place->second.run(sons, executor.stream());
        }
        if (part.adds)
            task.body->runAdding(part.rows, part.firstTarget, part.lastTarget);
        else
            task.body->run(executor, part.rows, 0, part.rows.count);
    } catch (...) {
        rethrowFrom(task, &part);
    }
    ++statistics.parts;
}

void Plan::State::start(const Transfer &transfer) {
    const double begin = MPI_Wtime();
    exchanges[transfer.exchange]->start(executor.stream());
    ++statistics.transfers;
    statistics.secondsStarting += MPI_Wtime() - begin;
}

void Plan::State::wait(const Transfer &transfer) {
    const double begin = MPI_Wtime();
    exchanges[transfer.exchange]->wait();
    statistics.secondsWaiting += MPI_Wtime() - begin;
    if (transfer.direction == Direction::Pull)
        for (std::size_t k = 0; k < graph.finishes.size(); ++k)
            if (std::ranges::find(transfer.arrays, graph.finishes[k].array) != transfer.arrays.end())
                finish(graph.finishes[k], plan.finishes[k]);
}

void Plan::State::finish(const PullFinish &finish, const Part &part) {
    finish.body->bind(executor.space(), {});
    finish.body->run(executor, part.rows, 0, part.rows.count);
    ArrayHandle &array = *graph.arrays[finish.array];
    array.setPulledFrom(array.father().version()); // its rows are as they were
}

bool Plan::State::isFinished(std::size_t array) const {
    return std::ranges::any_of(graph.finishes, [&](const PullFinish &finish) { return finish.array == array; });
}

void Plan::State::run(const Operation &operation) {
    switch (operation.kind) {
    case OperationKind::Part:
        return runPart(plan.parts[operation.what]);
    case OperationKind::Start:
        return dropped[operation.what] ? void() : start(plan.transfers[operation.what]);
    case OperationKind::Wait:
        return dropped[operation.what] ? void() : wait(plan.transfers[operation.what]);
    case OperationKind::Call:
    case OperationKind::Swap:
        break;
    }
    const TaskModel &task = graph.tasks[operation.what];
    try {
        task.call();
    } catch (...) {
        rethrowFrom(task, nullptr);
    }
}

void Plan::State::giveUp(std::size_t next) noexcept {
    failed = true;
    try {
        std::vector<bool> begun(graph.tasks.size(), false), complete(graph.tasks.size(), true);
        for (std::size_t k = 0; k < plan.operations.size(); ++k) {
            const Operation &operation = plan.operations[k];
            if (operation.kind == OperationKind::Start || operation.kind == OperationKind::Wait)
                continue;
            const std::size_t task =
                operation.kind == OperationKind::Part ? plan.parts[operation.what].task : operation.what;
            begun[task] = begun[task] || k <= next;
            complete[task] = complete[task] && k < next;
        }
        for (std::size_t t = 0; t < begun.size(); ++t)
            for (const ArrayAccess &access : graph.tasks[t].accesses)
                if (begun[t] && !complete[t] && access.mode != Mode::Reads)
                    halfWritten[access.array] = true;
        for (std::size_t a = 0; a < left.size(); ++a)
            left[a] = contentsOf(a);
    } catch (...) { // no memory: nothing that is allocated here is needed below
    }
    // A start that throws has told its peers.
    const bool startFailed = next < plan.operations.size() && plan.operations[next].kind == OperationKind::Start;
    for (std::size_t k = startFailed ? next + 1 : next; k < plan.operations.size(); ++k) {
        const Operation &operation = plan.operations[k];
        const bool starts = operation.kind == OperationKind::Start, waits = operation.kind == OperationKind::Wait;
        if (!(starts || waits) || dropped[operation.what])
            continue;
        try {
            Exchange &exchange = *exchanges[plan.transfers[operation.what].exchange];
            if (starts && !exchange.inFlight())
                exchange.refuse();
            else if (waits && exchange.inFlight())
                exchange.wait();
        } catch (...) { // what comes first is thrown
            continue;
        }
    }
}

void Plan::State::noteOutcome() {
    for (std::size_t a = 0; a < graph.arrays.size(); ++a) {
        ArrayHandle &array = *graph.arrays[a];
        if (plan.outcome[a].written)
            array.markWritten(); // also where this rank had no rows to write, as the others have
        if (plan.outcome[a].written && plan.outcome[a].current)
            array.setPulledFrom(array.father().version());
        left[a] = contentsOf(a);
    }
    std::fill(halfWritten.begin(), halfWritten.end(), false);
}

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan &&other) noexcept = default;
Plan &Plan::operator=(Plan &&other) noexcept = default;
Plan::~Plan() = default;

Plan Plan::compile(GraphModel graph, const CommunicatorView &comm, const Executor &executor,
                   const CompileOptions &options) {
    return failTogether(comm, [&] {
        auto state = std::make_unique<State>(std::move(graph), comm, executor, options);
        state->plan = compileGraph(state->graph, comm, options);
        state->connect();
        return Plan(std::move(state));
    });
}

void Plan::run() {
    State &state = *state_;
    DNDS_CHECK(!state.failed, StateError, "a run of '{}' has failed: call recover() on all ranks before the next one",
               state.graph.name);
    const double begin = MPI_Wtime();
    ++state.statistics.runs;
    state.chooseTransfers();
    std::size_t next = 0;
    try {
        state.requireWritten();
        for (; next < state.plan.operations.size(); ++next)
            state.run(state.plan.operations[next]);
    } catch (...) {
        state.giveUp(next);
        throw;
    }
    state.noteOutcome();
    state.statistics.seconds += MPI_Wtime() - begin;
}

void Plan::recover() {
    failTogether(state_->comm, [&] { state_->connect(); });
}

const PlanModel &Plan::model() const noexcept { return state_->plan; }
const PlanStatistics &Plan::statistics() const noexcept { return state_->statistics; }

std::vector<PeerPath> Plan::paths() const {
    std::vector<PeerPath> paths;
    for (const auto &exchange : state_->exchanges) {
        const std::vector<PeerPath> each = exchange->paths();
        paths.insert(paths.end(), each.begin(), each.end());
    }
    return paths;
}

} // namespace DNDS::Task
