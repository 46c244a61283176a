#include "DNDS/Task/DeviceRunner.hpp"

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Task/HostRunner.hpp"
#include "DNDS/Task/PlanState.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Task {

namespace {

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
    : graph(std::move(model)), comm(view), context(CommunicatorContext::of(view)), executor(where), options(chosen) {
    for (std::size_t a = 0; a < graph.arrays.size(); ++a)
        rows.push_back(rowsOf(a));
}

Plan::State::~State() {
    context->delist(*this);
    for (const TaskModel &task : graph.tasks)
        if (task.aside) // waits; nobody is left to hear what it throws
            *task.aside = std::future<void>();
}

void Plan::State::connect() {
    device.reset();
    host.reset();
    reductions.reset();
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

/// Compares the pulls that are saved with the rows that are computed more often, in the time of the rank for which it
/// pays least. Collective.
bool Plan::State::recomputingPays(PlanModel &other) {
    std::vector<double> seconds(transfers.exchanges(), options.secondsPerPull);
    if (options.secondsPerPull <= 0) {
        seconds = transfers.measure(executor);
        for (const PullFinish &finish : graph.finishes) // these pulls were not finished
            graph.arrays[finish.array]->setPulledFrom(0, 0);
    }
    const auto pullsOf = [](const PlanModel &model) {
        std::vector<const Transfer *> pulls;
        for (const Transfer &transfer : model.transfers)
            if (transfer.direction == Direction::Pull && !transfer.conditional) // those are left out in most runs
                pulls.push_back(&transfer);
        return pulls;
    };
    const std::vector<const Transfer *> mine = pullsOf(plan), theirs = pullsOf(other);
    double all = 0;
    for (const Transfer *pull : mine)
        all += seconds[pull->exchange];
    // Those that remain are taken to cost as much as the others.
    const double saved =
        mine.empty() ? 0 : all * (1 - static_cast<double>(theirs.size()) / static_cast<double>(mine.size()));
    double extra = 0;
    double unknown = -1; // number of a task whose rows cost nobody knows how much
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
        const auto more = static_cast<double>(other.taskRows[t].count() - plan.taskRows[t].count());
        extra += more * graph.tasks[t].secondsPerRow.value_or(0);
        if (more > 0 && !graph.tasks[t].secondsPerRow)
            unknown = static_cast<double>(t);
    }
    std::array<double, 3> worst{extra, -saved, unknown};
    comm.allReduce(worst.data(), 3, MPI_MAX);
    const bool pays = worst[2] < 0 && worst[0] < -worst[1];
    const std::string note =
        worst[2] >= 0
            ? fmt::format("ghosts are pulled: '{}' does not say what a row of it costs (costs())",
                          graph.tasks[static_cast<std::size_t>(worst[2])].name)
            : fmt::format("computing ghosts again would save {} of {} pulls, about {:.3g} microseconds a run, and cost "
                          "{:.3g} more on some rank: {}",
                          mine.size() - theirs.size(), mine.size(), -worst[1] * 1e6, worst[0] * 1e6,
                          pays ? "it is done" : "it is not done");
    plan.notes.push_back(note);
    other.notes.push_back(note);
    return pays;
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
        made->connect();
        comm.guarded([&] { made->context->enlist(*made); });
        return made;
    });
    if (!estimates)
        return Plan(std::move(state));
    first.recompute = CompileOptions::Recompute::WherePossible;
    PlanModel other = failTogether(comm, [&] { return compileGraph(state->graph, comm, first); });
    if (state->recomputingPays(other))
        failTogether(comm, [&] {
            state->plan = std::move(other);
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

void Plan::State::require(PlanEvent event) const {
    DNDS_CHECK(stageAfter(stage, event).has_value(), StateError,
               "'{}' is {} by one of its own tasks: let the run end first", graph.name,
               event == PlanEvent::Renew ? "recovered" : "run");
}

void Plan::State::enter(PlanEvent event) {
    require(event);
    stage = *stageAfter(stage, event);
}

/// From the begin of a run to its end, by an exception or not.
class Plan::State::RunScope {
  public:
    explicit RunScope(State &state) : state_(state) {
        state.enter(PlanEvent::Start);
        runningHere.push_back(&state);
    }
    RunScope(const RunScope &) = delete;
    RunScope &operator=(const RunScope &) = delete;
    ~RunScope() {
        runningHere.pop_back();
        if (state_.stage == PlanStage::Running)
            fail();
    }

    /// The operation that is under way.
    std::size_t &next() { return next_.emplace(0); }

  private:
    void fail() noexcept {
        state_.stage = *stageAfter(state_.stage, PlanEvent::Fail);
        if (state_.device)
            state_.device->abandon();
        if (state_.host)
            state_.host->abandon();
        if (next_) // in threads and on the device parts before it may have been skipped
            state_.history.noteFailure(*next_, state_.executor.onDevice() || state_.executor.threads() > 1);
        if (state_.comm.size() == 1) // which has nobody to recover with
            state_.transfers.endAlone();
    }

    State &state_;
    std::optional<std::size_t> next_; ///< none before the first operation
};

void Plan::State::runOnce() {
    require(PlanEvent::Start);
    requireArrays();
    requireOwnArrays();
    reductions->collect();
    const double begin = MPI_Wtime();
    RunScope scope(*this);
    ++statistics.runs;
    ++runsSinceRecovery;
    statistics.dropped += history.begin(runsSinceRecovery);
    requireSameRows();
    history.requireWritten();
    if (device)
        device->start(scope.next());
    else
        host->run(scope.next());
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

void Plan::State::waitForAsides() const {
    for (const TaskModel &task : graph.tasks)
        if (task.aside)
            inTask(task, nullptr, [&] { finishAside(*task.aside); });
}

void Plan::finish() {
    wait();
    const State &state = this->state();
    state.context->running("run of", state.graph.name, [&] { state.waitForAsides(); });
}

std::span<const real> Plan::result(Reduction chosen) {
    State &state = this->state();
    state.requireCommunicator();
    state.reductions->requireResult(chosen);
    state.context->running("result of", state.graph.name, [&] { state.reductions->collect(); });
    return state.reductions->result(chosen);
}

std::span<const real> Plan::previous(Reduction chosen) const { return state().reductions->previous(chosen); }

bool Plan::State::settle() noexcept {
    if (device && stage != PlanStage::Running)
        device->abandon();
    return true;
}

void Plan::State::renew() {
    enter(PlanEvent::Renew);
    runsSinceRecovery = 0;
    reductions->reset();
    history.forgetPulls();
}

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
