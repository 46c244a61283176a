#include "DNDS/Task/DeviceRunner.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Task/HostRunner.hpp"
#include "DNDS/Task/PlanState.hpp"

namespace DNDS::Task {

namespace {

/// Before anything else touches an array: other functions of a dead handle must not be called.
void requireAlive(const GraphModel &graph) {
    for (const auto &array : graph.arrays)
        DNDS_CHECK(array->alive(), StateError,
                   "'{}' was destroyed, and graph '{}' uses it: arrays must outlive graphs and plans", array->name(),
                   graph.name);
}

/// Checks that graph and arrays belong to one live communicator. Ranks get the same result, each for itself.
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

/// The properties of an array that must not change.
struct Plan::State::Rows {
    const void *father = nullptr, *son = nullptr, *pattern = nullptr;
    index owned = 0, size = 0;
    bool operator==(const Rows &other) const = default;
};

Plan::State::State(GraphModel model, const CommunicatorView &view, const Executor &where, const CompileOptions &chosen)
    : graph(std::move(model)), comm(view), context(CommunicatorContext::of(view)), executor(where), options(chosen) {
    for (std::size_t a = 0; a < graph.arrays.size(); ++a)
        rows.push_back(rowsOf(a));
}

Plan::State::~State() {
    context->delist(*this);
    for (const TaskModel &task : graph.tasks)
        if (task.async) // waits; no caller is left to catch its exception
            *task.async = std::future<void>();
}

// Collective. Runners come last, as they ask the exchanges whether they can be captured.
void Plan::State::connect() {
    trace.begin(graph, plan, comm);
    transfers.connect(executor, options.exchange);
    history.connect();
    boundIn.assign(graph.tasks.size(), -1);
    reductions.emplace(graph, context);
    comm.guarded([&] {
        if (executor.onDevice())
            device = std::make_unique<DeviceRunner>(*this);
        else
            host = std::make_unique<HostRunner>(*this);
    });
}

// Facts that must not change as long as the plan is used.
Plan::State::Rows Plan::State::rowsOf(std::size_t array) const {
    const ArrayHandle &handle = *graph.arrays[array];
    return {&handle.father(), handle.son(), handle.pattern().get(), handle.owned(), handle.size()};
}

/// O(arrays). Compares addresses of the array objects, not of their memory: reallocation is allowed, resizing is not.
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

// MPI first: after its end every communicator counts as freed, and the program needs the better reason.
void Plan::State::requireCommunicator() const {
    requireMpiActive("a plan is used");
    DNDS_CHECK(context->alive(), StateError,
               "the communicator of plan '{}' was freed: free it after the last use of the plan", graph.name);
}

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan &&other) noexcept = default;
Plan &Plan::operator=(Plan &&other) noexcept = default;
Plan::~Plan() = default;

/// failTogether makes all ranks throw if one does. The plan is enlisted with the communicator last, so that a
/// recovery never meets one that is not complete.
/// The graph is copied: later declarations do not change the plan.
Plan Plan::compile(GraphModel graph, const CommunicatorView &comm, const Executor &executor,
                   const CompileOptions &options) {
    requireOneCommunicator(graph, comm);
    return Plan(failTogether(comm, [&] {
        comm.guarded([&] { requireAlive(graph); });
        auto made = std::make_unique<State>(std::move(graph), comm, executor, options);
        comm.guarded([&] { made->graph.findReducedRows(); });
        made->plan = compileGraph(made->graph, comm, options);
        made->connect();
        comm.guarded([&] { made->context->enlist(*made); });
        return made;
    }));
}

void Plan::run() {
    const ActivityScope activity("run of", state().graph.name);
    start();
    wait();
}

Plan::State &Plan::state() const {
    DNDS_CHECK(state_ != nullptr, StateError, "this plan was moved from");
    return *state_;
}

// Checks only; `enter` also changes the stage.
void Plan::State::require(PlanEvent event) const {
    DNDS_CHECK(stageAfter(stage, event).has_value(), StateError,
               "'{}' is {} by one of its own tasks: let the run end first", graph.name,
               event == PlanEvent::Renew ? "recovered" : "run");
}

void Plan::State::enter(PlanEvent event) {
    require(event);
    stage = *stageAfter(stage, event);
}

/// Waits for workers and streams: they still use memory of the caller, which unwinds next.
/// On several ranks peers may be waiting for this one: messages in flight stay until a recovery discards them. Alone,
/// the exchanges are completed here, since no peer can fail.
void Plan::State::fail() noexcept {
    stage = *stageAfter(stage, PlanEvent::Fail);
    if (device)
        device->abandon();
    if (host)
        host->abandon();
    if (comm.size() > 1)
        return;
    transfers.endAlone(); // has no peers to recover with
    for (const TaskModel &task : graph.tasks)
        if (task.exchange && task.exchange->inFlight && task.exchange->inFlight())
            static_cast<void>(attempt([&] { // the run's own error is thrown
                while (!task.exchange->ready()) {
                }
                task.exchange->finish();
            }));
}

/// Phases: collect the last run's reductions, decide with peers which
/// pulls to drop, run or queue the steps, note versions, start this run's reductions. A throw in between fails the
/// stage and, through CommunicatorContext::running, revokes the communicator.
/// Overhead beside tasks and exchanges: O(arrays + transfers + steps).
void Plan::State::runOnce() {
    require(PlanEvent::Start);
    requireAlive(graph);
    reductions->collect();
    const double begin = MPI_Wtime();
    enter(PlanEvent::Start);
    const OnFailure undo([this] { fail(); });
    ++statistics.runs;
    ++runsSinceRecovery;
    statistics.dropped += history.begin(runsSinceRecovery);
    requireSameRows();
    if (device)
        device->start();
    else
        host->run();
    // For device runs the work is only queued here. The versions describe the arrays as they will be in stream order,
    // which is the order in which all later work sees them.
    history.noteOutcome();
    reductions->start(executor, [&](std::size_t n, std::size_t k) {
        const std::vector<LocalIndex> &list = (*graph.reductions[n].lists)[k];
        return device ? device->reducedRows(n, k) : PartRows{list.data(), 0, static_cast<index>(list.size())};
    });
    enter(device ? PlanEvent::Queue : PlanEvent::Complete);
    statistics.seconds += MPI_Wtime() - begin;
}

void Plan::start() {
    State &state = this->state();
    state.requireCommunicator();
    state.context->running("run of", state.graph.name, [&] { state.runOnce(); });
}

// Errors of the device's kernels are thrown here, within `running`.
void Plan::State::waitForDevice() {
    const double begin = MPI_Wtime();
    device->wait();
    statistics.seconds += MPI_Wtime() - begin;
    if (stage == PlanStage::Queued) // not within a run
        enter(PlanEvent::Complete);
}

void Plan::wait() {
    State &state = this->state();
    if (state.device && state.stage == PlanStage::Queued)
        state.context->running("run of", state.graph.name, [&] { state.waitForDevice(); });
}

// Asynchronous calls work on copies: nothing but their exceptions has to be waited for.
void Plan::State::waitForAsyncCalls() const {
    for (const TaskModel &task : graph.tasks)
        if (task.async)
            inTask(task, nullptr, [&] { finishAsync(*task.async); });
}

void Plan::finish() {
    wait();
    const State &state = this->state();
    state.context->running("run of", state.graph.name, [&] { state.waitForAsyncCalls(); });
}

std::span<const real> Plan::result(Reduction chosen) {
    State &state = this->state();
    state.requireCommunicator();
    state.reductions->requireResult(chosen);
    state.context->running("result of", state.graph.name, [&] { state.reductions->collect(); });
    return state.reductions->result(chosen);
}

std::span<const real> Plan::previous(Reduction chosen) const { return state().reductions->previous(chosen); }

// Called by a recovery: kernels must not use memory any more. A run in progress ends with its own error.
bool Plan::State::settle() noexcept {
    if (device && stage != PlanStage::Running)
        device->abandon();
    return true;
}

// After a recovery: counters of runs start together on all ranks, and earlier pulls no longer count.
void Plan::State::renew() {
    enter(PlanEvent::Renew);
    runsSinceRecovery = 0;
    reductions->reset();
    history.forgetPulls();
}

/// With one rank there is no communicator to recover, and pulls are forgotten at once.
void Plan::recover() {
    State &state = this->state();
    state.requireCommunicator();
    state.require(PlanEvent::Renew);
    if (state.comm.size() == 1)
        state.renew();
    else
        state.context->recover();
}

const PlanGraphs *Plan::graphs() const { return state().device ? &state().device->use() : nullptr; }

const PlanModel &Plan::model() const { return state().plan; }
const PlanStatistics &Plan::statistics() const { return state().statistics; }

std::vector<PeerPath> Plan::paths() const { return state().transfers.paths(); }

} // namespace DNDS::Task
