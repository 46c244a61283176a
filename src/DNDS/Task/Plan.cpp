#include "DNDS/Task/DeviceRunner.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Task/HostRunner.hpp"
#include "DNDS/Task/PlanState.hpp"

#include "DNDS/Transport/Backoff.hpp"
#include "DNDS/Transport/ProgressEngine.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace DNDS::Task {

Plan::State::State(GraphModel model, const CommunicatorView &view, const Executor &where, const CompileOptions &chosen)
    : graph(std::move(model)), comm(view), executor(where), options(chosen) {
    halfWritten.assign(graph.arrays.size(), 0);
    for (std::size_t a = 0; a < graph.arrays.size(); ++a)
        rows.push_back(rowsOf(a));
}

Plan::State::~State() {
    for (const TaskModel &task : graph.tasks)
        if (task.aside)
            try {
                task.aside->wait();
            } catch (...) { // nobody is left to hear of it
                continue;
            }
}

void Plan::State::rethrowFrom(const TaskModel &task, const Part *part) {
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

void Plan::State::connect() {
    device.reset();
    host.reset();
    agreement.reset();
    exchanges.clear();
    traffic.clear();
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
                for (const std::size_t array : transfer.arrays) {
                    if (executor.onDevice())
                        graph.arrays[array]->toDevice();
                    request.members.push_back(graph.arrays[array]->member());
                }
                return request;
            },
            choice, transfer.direction == Direction::Push ? PushOp::Sum : PushOp::Replace));
    }
    dropped.assign(plan.transfers.size(), false);
    boundIn.assign(graph.tasks.size(), -1);
    left.assign(graph.arrays.size(), {});
    for (const auto &exchange : exchanges) {
        Traffic &bytes = traffic.emplace_back();
        for (const PeerPath &path : exchange->paths()) {
            bytes.sent += path.bytesSent;
            bytes.received += path.bytesReceived;
        }
    }
    startedAt.resize(exchanges.size());
    std::vector<std::shared_ptr<const ExchangePattern>> patterns;
    for (const Transfer &transfer : plan.transfers)
        patterns.push_back(transfer.pattern);
    if (!patterns.empty())
        agreement = std::make_unique<PeerAgreement>(
            patterns.front()->sharedContext(), fmt::format("plan '{}'", graph.name), PeerAgreement::peersOf(patterns));
    firstResult.assign(1, 0);
    for (const ReductionModel &model : graph.reductions)
        firstResult.push_back(firstResult.back() + static_cast<std::size_t>(model.columns));
    if (!graph.reductions.empty()) {
        const auto context = CommunicatorContext::of(comm);
        comm.guarded([&] { reduction = std::make_unique<PendingReduction>(context); });
    }
    reducedRuns = collectedRuns = 0;
    comm.guarded([&] {
        if (executor.onDevice())
            device = std::make_unique<DeviceRunner>(*this);
        else
            host = std::make_unique<HostRunner>(*this);
    });
    failed = false;
}

/// Names for the recording, if there is one. Collective.
void Plan::State::record() {
    trace = Trace::active();
    if (trace == nullptr)
        return;
    trace->begin(comm);
    traceNames.clear();
    for (const TaskModel &task : graph.tasks)
        traceNames.push_back(trace->intern(task.name));
    for (const Transfer &transfer : plan.transfers) {
        std::vector<std::string_view> names;
        for (const std::size_t array : transfer.arrays)
            names.push_back(graph.arrays[array]->name());
        traceNames.push_back(trace->intern(
            fmt::format("{} {}", transfer.direction == Direction::Pull ? "pull" : "push", fmt::join(names, ", "))));
    }
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
        DNDS_CHECK(halfWritten[a] == 0 || halfWritten[a] != graph.arrays[a]->father().version() ||
                       !plan.outcome[a].readsEntry,
                   StateError,
                   "'{}' is half written: a run of '{}' failed while a task was writing it. Write it anew before the "
                   "next run",
                   graph.arrays[a]->name(), graph.name);
}

Plan::State::Rows Plan::State::rowsOf(std::size_t array) const {
    const ArrayHandle &handle = *graph.arrays[array];
    return {&handle.father(), handle.son(), handle.pattern().get(), handle.owned(), handle.size()};
}

void Plan::State::requireSameRows() const {
    for (std::size_t a = 0; a < rows.size(); ++a)
        DNDS_CHECK(rows[a] == rowsOf(a), StateError,
                   "'{}' was resized, replaced or got another mapping after '{}' was compiled: it has {} owned rows "
                   "and {} ghosts, and had {} and {}. Compile the graph again",
                   graph.arrays[a]->name(), graph.name, graph.arrays[a]->owned(),
                   graph.arrays[a]->size() - graph.arrays[a]->owned(), rows[a].owned, rows[a].size - rows[a].owned);
}

void Plan::State::zeroGhosts(const Part &part, const Executor &where) {
    if (!part.toGhosts)
        return;
    const TaskModel &task = graph.tasks[part.task];
    const auto sums = std::ranges::find(task.accesses, Mode::Adds, &ArrayAccess::mode); // the others share its pattern
    std::vector<RowLayout> sons;
    for (const ArrayAccess &access : task.accesses)
        if (access.mode == Mode::Adds)
            graph.arrays[access.array]->member().son(where.space(), Access::Write, sons.emplace_back());
    auto place = zeroing.find(part.task);
    if (place == zeroing.end())
        place =
            zeroing.try_emplace(part.task, *graph.arrays[sums->array]->pattern(), sons, where.space(), where.stream())
                .first;
    place->second.run(sons, where.stream());
}

void Plan::State::agree() {
    disagrees = false;
    if (!agreement)
        return;
    ContentHash word;
    word.addText(graph.name);
    word.add(static_cast<std::uint64_t>(statistics.runs));
    for (const bool isDropped : dropped)
        word.add(isDropped ? 1 : 2);
    try {
        agreement->begin(word.value());
    } catch (const StateError &error) {
        throwDisagreement(error);
    } catch (const PeerError &) { // a peer has given up a run before: nothing comes of it any more
        disagrees = true;
        throw;
    }
}

void Plan::State::requireAgreement() {
    if (!agreement || !agreement->disagreeing())
        return;
    try {
        agreement->finish();
    } catch (const StateError &error) {
        throwDisagreement(error);
    } catch (const PeerError &) {
        disagrees = true;
        throw;
    }
}

void Plan::State::throwDisagreement(const StateError &error) {
    disagrees = true;
    std::vector<std::string> made;
    for (std::size_t k = 0; k < dropped.size(); ++k)
        if (plan.transfers[k].conditional)
            for (const std::size_t a : plan.transfers[k].arrays)
                made.push_back(fmt::format("'{}' {}", graph.arrays[a]->name(), dropped[k] ? "left out" : "made"));
    throw StateError(fmt::format(
        "{}. Here this is run {}, with pulls of {}. An array that only some ranks write outside "
        "of the plan has to be told to all: call changed() on the others. Reading through an array that is not const "
        "counts as writing: use std::as_const",
        error.message(), statistics.runs, made.empty() ? "nothing" : fmt::format("{}", fmt::join(made, ", "))));
}

void Plan::State::progress() noexcept {
    for (const auto &exchange : exchanges)
        try {
            if (exchange->inFlight())
                static_cast<void>(exchange->ready());
        } catch (...) { // told by wait
            continue;
        }
}

void Plan::State::start(const Transfer &transfer, Device::StreamHandle stream) {
    const double begin = MPI_Wtime();
    if (trace != nullptr)
        startedAt[transfer.exchange] = Trace::now();
    starting = true;
    exchanges[transfer.exchange]->start(stream);
    starting = false;
    ++statistics.transfers;
    statistics.bytesSent += traffic[transfer.exchange].sent;
    statistics.bytesReceived += traffic[transfer.exchange].received;
    statistics.secondsStarting += MPI_Wtime() - begin;
}

void Plan::State::wait(const Transfer &transfer, std::optional<Device::StreamHandle> stream) {
    const double begin = MPI_Wtime();
    const double traced = trace != nullptr ? Trace::now() : 0.0;
    Exchange &exchange = *exchanges[transfer.exchange];
    if (!exchange.ready()) {
        CommunicatorContext &context = transfer.pattern->context();
        Backoff backoff(context.comm().handle(), context.node().crowded);
        while (!exchange.ready()) {
            requireAgreement();
            if (host && host->help())
                continue;
            backoff.pause();
            if (backoff.longWait())
                exchange.checkPeers(backoff.seconds());
        }
    }
    stream ? exchange.wait(*stream) : exchange.wait();
    statistics.secondsWaiting += MPI_Wtime() - begin;
    if (trace == nullptr)
        return;
    const std::string_view name =
        traceNames[graph.tasks.size() + static_cast<std::size_t>(&transfer - plan.transfers.data())];
    const double end = Trace::now();
    trace->record({.kind = Trace::Kind::Wait, .name = name, .begin = traced, .end = end});
    trace->record({.kind = transfer.direction == Direction::Pull ? Trace::Kind::Pull : Trace::Kind::Push,
                   .name = name,
                   .begin = startedAt[transfer.exchange],
                   .end = end,
                   .bytes = traffic[transfer.exchange].sent});
}

bool Plan::State::finishes(const Transfer &transfer, std::size_t k) const {
    return transfer.direction == Direction::Pull &&
           std::ranges::find(transfer.arrays, graph.finishes[k].array) != transfer.arrays.end();
}

void Plan::State::finish(std::size_t k, const PartRows &finished, const Executor &where) {
    const PullFinish &finish = graph.finishes[k];
    finish.body->bind(where.space(), {});
    finish.body->run(where, finished, 0, finished.count);
    ArrayHandle &array = *graph.arrays[finish.array];
    array.setPulledFrom(array.father().version()); // its rows are as they were
}

bool Plan::State::isFinished(std::size_t array) const {
    return std::ranges::any_of(graph.finishes, [&](const PullFinish &finish) { return finish.array == array; });
}

void Plan::State::run(const Operation &operation) {
    switch (operation.kind) {
    case OperationKind::Part:
        return;
    case OperationKind::Start:
        return dropped[operation.what] ? void() : start(plan.transfers[operation.what], nullptr);
    case OperationKind::Wait:
        if (dropped[operation.what])
            return;
        wait(plan.transfers[operation.what], {});
        for (std::size_t k = 0; k < plan.finishes.size(); ++k)
            if (finishes(plan.transfers[operation.what], k))
                finish(k, plan.finishes[k].rows, executor);
        return;
    case OperationKind::Call:
    case OperationKind::Swap:
        break;
    }
    const TaskModel &task = graph.tasks[operation.what];
    if (!isDue(task))
        return;
    const double begin = trace != nullptr ? Trace::now() : 0.0;
    try {
        task.call();
    } catch (...) {
        rethrowFrom(task, nullptr);
    }
    if (trace != nullptr)
        trace->record(
            {.kind = Trace::Kind::Part, .name = traceNames[operation.what], .begin = begin, .end = Trace::now()});
}

void Plan::State::giveUp(std::size_t next, bool begins) noexcept {
    failed = true;
    if (device)
        device->abandon();
    if (host)
        host->abandon();
    try {
        const bool beside = executor.onDevice() || executor.threads() > 1; // parts before `next` may have been skipped
        std::vector<bool> begun(graph.tasks.size(), false), complete(graph.tasks.size(), true);
        for (std::size_t k = 0; k < plan.operations.size(); ++k) {
            const Operation &operation = plan.operations[k];
            if (operation.kind == OperationKind::Start || operation.kind == OperationKind::Wait)
                continue;
            const std::size_t task =
                operation.kind == OperationKind::Part ? plan.parts[operation.what].task : operation.what;
            begun[task] = begun[task] || k < next || (begins && k == next);
            complete[task] = complete[task] && k < next && !beside;
        }
        for (std::size_t t = 0; t < begun.size(); ++t)
            for (const ArrayAccess &access : graph.tasks[t].accesses)
                if (begun[t] && !complete[t] && access.mode != Mode::Reads && graph.arrays[access.array]->owned() > 0)
                    halfWritten[access.array] = graph.arrays[access.array]->father().version();
        for (std::size_t a = 0; a < left.size(); ++a)
            left[a] = contentsOf(a);
    } catch (...) { // no memory: nothing that is allocated here is needed below
    }
    if (disagrees) { // who waits for this rank's rows is told that its exchanges are gone
        exchanges.clear();
        agreement.reset();
    } else {
        refuseRest(next);
    }
    try {
        if (agreement) // peers that begin another run are told
            agreement->leave();
        if (reduction && reducedRuns < statistics.runs)
            reduceNothing();
    } catch (...) { // what comes first is thrown
        return;
    }
}

void Plan::State::refuseRest(std::size_t next) noexcept {
    // A start that throws has told its peers.
    const bool startFailed = std::exchange(starting, false);
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

/// This rank has no values for the reductions of a run: all ranks start equally many.
void Plan::State::reduceNothing() {
    std::vector<ReductionValue> nothing;
    for (const ReductionModel &model : graph.reductions)
        for (rowsize column = 0; column < model.columns; ++column)
            nothing.emplace_back(ReductionValue::none(model.op)).failed = true;
    awaitReductions();
    reduction->start(nothing);
    ++reducedRuns;
}

void Plan::State::awaitReductions() {
    if (!reduction->pending())
        return;
    const auto context = CommunicatorContext::of(comm);
    Backoff backoff(context->comm().handle(), context->node().crowded);
    while (!reduction->ready()) { // peers may need this rank before they end their run
        progress();
        ProgressEngine::progressAll();
        context->progressParked();
        backoff.pause();
    }
}

void Plan::State::startReductions() {
    if (!reduction)
        return;
    collectReductions();
    std::vector<ReductionValue> mine;
    for (const ReductionModel &model : graph.reductions)
        reduceRows(executor, model.elements(executor.space()), model.columns, model.op, mine);
    reduction->start(mine);
    ++reducedRuns;
}

void Plan::State::collectReductions() {
    if (collectedRuns == reducedRuns)
        return;
    awaitReductions();
    const std::span<const ReductionValue> values = reduction->wait();
    const bool broken = std::ranges::any_of(values, &ReductionValue::failed);
    if (!broken) {
        collectedRuns = reducedRuns;
        results.swap(resultsBefore);
        results.clear();
        for (const ReductionValue &value : values)
            results.push_back(value.value());
    }
    failed = failed || broken;
    DNDS_CHECK(!broken, PeerError, "a run of '{}' has failed on some rank: see that rank's own error", graph.name);
}

/// Some ranks have pulled what others have not, and written what others have not: for all plans the ghosts are old.
void Plan::State::forgetPulls() {
    for (std::size_t a = 0; a < graph.arrays.size(); ++a) {
        ArrayHandle &array = *graph.arrays[a];
        const bool half = halfWritten[a] == array.father().version();
        array.markWritten();
        if (half)
            halfWritten[a] = array.father().version();
    }
}

void Plan::State::noteOutcome() {
    for (std::size_t a = 0; a < graph.arrays.size(); ++a) {
        ArrayHandle &array = *graph.arrays[a];
        if (plan.outcome[a].written)
            array.markWritten(); // also where this rank had no rows to write, as the others have
        if (plan.outcome[a].current && (plan.outcome[a].written || plan.outcome[a].pulled))
            array.setPulledFrom(array.father().version()); // replayed pulls do not tell
        left[a] = contentsOf(a);
    }
    std::fill(halfWritten.begin(), halfWritten.end(), 0);
}

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan &&other) noexcept = default;
Plan &Plan::operator=(Plan &&other) noexcept = default;
Plan::~Plan() = default;

Plan Plan::compile(GraphModel graph, const CommunicatorView &comm, const Executor &executor,
                   const CompileOptions &options) {
    const bool estimates = options.recompute == CompileOptions::Recompute::IfItPays;
    CompileOptions first = options;
    if (estimates)
        first.recompute = CompileOptions::Recompute::Never;
    std::unique_ptr<State> state = failTogether(comm, [&] {
        auto made = std::make_unique<State>(std::move(graph), comm, executor, options);
        made->plan = compileGraph(made->graph, comm, first);
        made->record();
        made->connect();
        return made;
    });
    if (!estimates)
        return Plan(std::move(state));
    first.recompute = CompileOptions::Recompute::WherePossible;
    PlanModel other = failTogether(comm, [&] { return compileGraph(state->graph, comm, first); });
    if (state->recomputingPays(other))
        failTogether(comm, [&] {
            state->plan = std::move(other);
            state->record();
            state->connect();
        });
    return Plan(std::move(state));
}

void Plan::run() {
    start();
    wait();
}

void Plan::start() {
    DNDS_CHECK(state_ != nullptr, StateError, "this plan was moved from");
    State &state = *state_;
    DNDS_CHECK(!state.failed, StateError, "a run of '{}' has failed: call recover() on all ranks before the next one",
               state.graph.name);
    DNDS_CHECK(!state.running, StateError, "'{}' is run by one of its own tasks", state.graph.name);
    if (state.reduction)
        state.collectReductions();
    const double begin = MPI_Wtime();
    ++state.statistics.runs;
    state.running = true;
    state.chooseTransfers();
    std::size_t next = 0;
    bool begins = false;
    try {
        state.agree();
        state.requireSameRows();
        state.requireWritten();
        begins = true;
        if (state.device)
            state.device->start(next);
        else
            state.host->run(next);
    } catch (...) {
        state.giveUp(next, begins);
        state.running = false;
        throw;
    }
    state.running = false;
    state.noteOutcome();
    state.startReductions();
    state.statistics.seconds += MPI_Wtime() - begin;
}

void Plan::wait() {
    DNDS_CHECK(state_ != nullptr, StateError, "this plan was moved from");
    if (!state_->device)
        return;
    const double begin = MPI_Wtime();
    state_->device->wait();
    state_->statistics.seconds += MPI_Wtime() - begin;
}

void Plan::finish() {
    wait();
    for (const TaskModel &task : state_->graph.tasks)
        if (task.aside)
            try {
                task.aside->wait();
            } catch (...) {
                State::rethrowFrom(task, nullptr);
            }
}

void Plan::State::requireReduction(Reduction chosen) const {
    DNDS_CHECK(chosen.number < graph.reductions.size(), ArgumentError,
               "'{}' has {} reductions, not one of number {}: was it declared after the plan was compiled?", graph.name,
               graph.reductions.size(), chosen.number);
}

std::span<const real> Plan::result(Reduction chosen) {
    DNDS_CHECK(state_ != nullptr, StateError, "this plan was moved from");
    State &state = *state_;
    state.requireReduction(chosen);
    DNDS_CHECK(state.reducedRuns > 0, StateError, "'{}' has no results before its first run", state.graph.name);
    state.collectReductions();
    return std::span<const real>(state.results)
        .subspan(state.firstResult[chosen.number],
                 state.firstResult[chosen.number + 1] - state.firstResult[chosen.number]);
}

std::span<const real> Plan::previous(Reduction chosen) const {
    DNDS_CHECK(state_ != nullptr, StateError, "this plan was moved from");
    const State &state = *state_;
    state.requireReduction(chosen);
    const bool collected = state.collectedRuns == state.reducedRuns;
    DNDS_CHECK(state.reducedRuns > 1, StateError, "'{}' has no results of the run before the last yet",
               state.graph.name);
    return std::span<const real>(collected ? state.resultsBefore : state.results)
        .subspan(state.firstResult[chosen.number],
                 state.firstResult[chosen.number + 1] - state.firstResult[chosen.number]);
}

const PlanGraphs *Plan::graphs() const noexcept { return state_->device ? &state_->device->use() : nullptr; }

void Plan::recover() {
    DNDS_CHECK(state_ != nullptr, StateError, "this plan was moved from");
    State &state = *state_;
    state.failed = true; // until all of it is made anew
    // Ranks may have begun different numbers of runs, and of reductions.
    std::array<index, 2> most{state.statistics.runs, state.reducedRuns};
    state.comm.allReduce(most.data(), 2, MPI_MAX);
    state.statistics.runs = most[0];
    while (state.reduction && state.reducedRuns < most[1])
        state.reduceNothing();
    if (state.reduction)
        state.awaitReductions();
    failTogether(state.comm, [&] {
        state.connect();
        state.forgetPulls();
    });
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
