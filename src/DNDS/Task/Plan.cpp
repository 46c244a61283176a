#include "DNDS/Task/DeviceRunner.hpp"

#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Task/HostRunner.hpp"
#include "DNDS/Task/PlanState.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace DNDS::Task {

namespace {

/// The first of `count` numbers that nobody else gets; compared on one rank only.
std::uint64_t takeNumbers(std::size_t count) {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(count, std::memory_order_relaxed);
}

void requireAlive(const GraphModel &graph) {
    for (const auto &array : graph.arrays)
        DNDS_CHECK(array->alive(), StateError,
                   "'{}' was destroyed, and graph '{}' uses it: arrays must outlive graphs and plans", array->name(),
                   graph.name);
}

/// Graph and arrays belong to one communicator, which is still there. Ranks find the same, each for itself.
void requireOneCommunicator(const GraphModel &graph, const CommunicatorView &comm) {
    for (const auto &array : graph.arrays) {
        const auto pattern = array->alive() ? array->pattern() : nullptr;
        if (!pattern)
            continue;
        DNDS_CHECK(pattern->context().alive(), StateError,
                   "the communicator of '{}' was freed: graph '{}' cannot be compiled any more", array->name(),
                   graph.name);
        int relation = MPI_UNEQUAL;
        checkMpi(MPI_Comm_compare(pattern->context().comm().handle(), comm.handle(), &relation), "MPI_Comm_compare");
        DNDS_CHECK(relation == MPI_IDENT || relation == MPI_CONGRUENT, ArgumentError,
                   "graph '{}' is on another communicator than '{}': make it with that of its arrays", graph.name,
                   array->name());
    }
}

} // namespace

Plan::State::State(GraphModel model, const CommunicatorView &view, const Executor &where, const CompileOptions &chosen)
    : graph(std::move(model)), comm(view), context(CommunicatorContext::of(view)),
      firstFinisher(takeNumbers(graph.arrays.size())), executor(where), options(chosen) {
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

Plan::State::Rows Plan::State::rowsOf(std::size_t array) const {
    const ArrayHandle &handle = *graph.arrays[array];
    return {&handle.father(), handle.son(), handle.pattern().get(), handle.owned(), handle.size()};
}

void Plan::State::requireSameRows() const {
    for (std::size_t a = 0; a < rows.size(); ++a)
        DNDS_CHECK(
            rows[a] == rowsOf(a), StateError,
            "'{}' was resized, replaced or got another mapping after '{}' was compiled: it has {} owned rows "
            "and {} ghosts, and had {} and {}. Compile the graph again; to change places in a plan use swapData or a "
            "graph's swap, not std::swap",
            graph.arrays[a]->name(), graph.name, graph.arrays[a]->owned(),
            graph.arrays[a]->size() - graph.arrays[a]->owned(), rows[a].owned, rows[a].size - rows[a].owned);
    for (const ReductionModel &model : graph.reductions)
        graph.requireFits(model);
}

void Plan::State::requireArrays() const { requireAlive(graph); }

void Plan::State::requireCommunicator() const {
    DNDS_CHECK(context->alive(), StateError,
               "the communicator of plan '{}' was freed: free it after the last use of the plan", graph.name);
}

/// Ranks without rows to write know that an array was written only when the run has ended: they would leave out pulls
/// that others make.
void Plan::State::requireOwnArrays() const {
    const auto writes = [](const State &state, std::size_t array) { return state.plan.outcome[array].written; };
    for (const State *outer : runningHere)
        for (std::size_t a = 0; a < outer->graph.arrays.size(); ++a)
            for (std::size_t b = 0; b < graph.arrays.size(); ++b)
                DNDS_CHECK(&outer->graph.arrays[a]->father() != &graph.arrays[b]->father() ||
                               !(writes(*outer, a) || writes(*this, b)),
                           StateError, "'{}' is run in a call of '{}', and one of them writes '{}': run it after '{}'",
                           graph.name, outer->graph.name, graph.arrays[b]->name(), outer->graph.name);
}

thread_local std::vector<const Plan::State *> Plan::State::runningHere; // NOLINT: of this thread

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan &&other) noexcept = default;
Plan &Plan::operator=(Plan &&other) noexcept = default;
Plan::~Plan() = default;

Plan Plan::compile(GraphModel graph, const CommunicatorView &comm, const Executor &executor,
                   const CompileOptions &options) {
    requireOneCommunicator(graph, comm);
    const bool estimates = options.recompute == CompileOptions::Recompute::IfItPays;
    CompileOptions first = options;
    if (estimates)
        first.recompute = CompileOptions::Recompute::Never;
    std::unique_ptr<State> state = failTogether(comm, [&] {
        comm.guarded([&] { requireAlive(graph); });
        auto made = std::make_unique<State>(std::move(graph), comm, executor, options);
        comm.guarded([&] { made->graph.findReducedRows(); });
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
    const Doing doing("run of", state().graph.name);
    start();
    wait();
}

Plan::State &Plan::state() const {
    DNDS_CHECK(state_ != nullptr, StateError, "this plan was moved from");
    return *state_;
}

void Plan::start() {
    State &state = this->state();
    state.requireCommunicator();
    DNDS_CHECK(!state.failed, StateError, "a run of '{}' has failed: call recover() on all ranks before the next one",
               state.graph.name);
    DNDS_CHECK(!state.running, StateError, "'{}' is run by one of its own tasks", state.graph.name);
    try {
        state.requireArrays();
    } catch (...) { // arrays cannot be looked at, so this rank only says that it takes part no more
        ++state.statistics.runs;
        state.leaveRuns();
        throw;
    }
    state.requireOwnArrays();
    if (state.reduction)
        state.collectReductions();
    const double begin = MPI_Wtime();
    State::runningHere.push_back(&state);
    state.running = true;
    ++state.statistics.runs;
    std::size_t next = 0;
    bool begins = false;
    try {
        state.chooseTransfers();
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
        state.endRun();
        throw;
    }
    state.endRun();
    state.noteOutcome();
    try {
        state.startReductions();
    } catch (...) { // the others would wait for this rank's values
        state.leaveRuns();
        throw;
    }
    state.statistics.seconds += MPI_Wtime() - begin;
}

void Plan::wait() {
    State &state = this->state();
    if (!state.device)
        return;
    const double begin = MPI_Wtime();
    state.device->wait();
    state.statistics.seconds += MPI_Wtime() - begin;
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

std::span<const real> Plan::result(Reduction chosen) {
    State &state = this->state();
    state.requireCommunicator();
    state.requireReduction(chosen);
    DNDS_CHECK(state.reducedRuns > 0, StateError, "'{}' has no results before its first run", state.graph.name);
    state.collectReductions();
    return state.valuesOf(chosen, state.results);
}

std::span<const real> Plan::previous(Reduction chosen) const {
    const State &state = this->state();
    state.requireReduction(chosen);
    const bool collected = state.collectedRuns == state.reducedRuns;
    DNDS_CHECK(state.reducedRuns > 1, StateError, "'{}' has no results of the run before the last yet",
               state.graph.name);
    return state.valuesOf(chosen, collected ? state.resultsBefore : state.results);
}

const PlanGraphs *Plan::graphs() const { return state().device ? &state().device->use() : nullptr; }

void Plan::recover() {
    State &state = this->state();
    state.requireCommunicator();
    DNDS_CHECK(!state.running, StateError, "'{}' is recovered by one of its own tasks: let the run end first",
               state.graph.name);
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
        state.comm.guarded([&] { state.requireArrays(); });
        state.connect();
        state.forgetPulls();
    });
}

const PlanModel &Plan::model() const { return state().plan; }
const PlanStatistics &Plan::statistics() const { return state().statistics; }

std::vector<PeerPath> Plan::paths() const {
    std::vector<PeerPath> paths;
    for (const auto &exchange : state().exchanges) {
        const std::vector<PeerPath> each = exchange->paths();
        paths.insert(paths.end(), each.begin(), each.end());
    }
    return paths;
}

} // namespace DNDS::Task
