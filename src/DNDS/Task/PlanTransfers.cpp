#include "DNDS/Task/PlanTransfers.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Task/Plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace DNDS::Task {

namespace {

// The names of the arrays that travel together.
std::vector<std::string_view> arraysOf(const GraphModel &graph, const Transfer &transfer) {
    std::vector<std::string_view> names;
    for (const std::size_t array : transfer.arrays)
        names.push_back(graph.arrays[array]->name());
    return names;
}

} // namespace

// Tasks, then transfers; the trace keeps the names beyond the plan's life.
void PlanTrace::begin(const GraphModel &graph, const PlanModel &plan, const CommunicatorView &comm) {
    trace = Trace::active();
    if (trace == nullptr)
        return;
    trace->begin(comm);
    names.clear();
    for (const TaskModel &task : graph.tasks)
        names.push_back(trace->intern(task.name));
    for (const Transfer &transfer : plan.transfers)
        names.push_back(trace->intern(fmt::format("{} {}", transfer.direction == Direction::Pull ? "pull" : "push",
                                                  fmt::join(arraysOf(graph, transfer), ", "))));
}

struct PlanTransfers::Traffic {
    std::size_t sent = 0, received = 0; ///< bytes, each time
    /// Transfers that share an exchange take turns, so one value is enough.
    double startedAt = 0; ///< for the recording
};

PlanTransfers::PlanTransfers(const GraphModel &graph, PlanModel &plan, const PlanTrace &trace,
                             PlanStatistics &statistics)
    : graph_(graph), plan_(plan), trace_(trace), statistics_(statistics) {}

PlanTransfers::~PlanTransfers() = default;

/// Transfers of the same arrays and direction share an exchange, with its buffers and connections: a Runge-Kutta step
/// pulls the same state in each stage.
/// Memory: buffers for the rows of distinct (direction, arrays) pairs, whatever the number of transfers. Transfers of
/// one exchange never overlap, since OrderSteps makes the steps of an array take turns.
void PlanTransfers::connect(const Executor &executor, const ExchangeOptions &options) {
    std::map<std::pair<Direction, std::vector<std::size_t>>, std::size_t> known;
    for (Transfer &transfer : plan_.transfers) {
        const auto [place, isNew] = known.try_emplace({transfer.direction, transfer.arrays}, exchanges_.size());
        transfer.exchange = place->second;
        if (!isNew)
            continue;
        ExchangeOptions choice = options;
        choice.space = executor.onDevice() ? ExchangeSpace::Device : ExchangeSpace::Host;
        // Pushed ghosts are contributions, not values: zero until the next task adds to them.
        choice.ghosts = GhostsAfterPush::Zero;
        exchanges_.push_back(Exchange::make(
            transfer.pattern->context(), transfer.direction,
            [&] {
                ExchangeRequest request{transfer.pattern, {}};
                for (const std::size_t array : transfer.arrays) {
                    if (executor.onDevice())
                        graph_.arrays[array]->toDevice();
                    request.members.push_back(graph_.arrays[array]->member());
                }
                return request;
            },
            choice, transfer.direction == Direction::Push ? PushOp::Sum : PushOp::Replace));
        // Bytes of a transfer never change: summed once.
        Traffic &bytes = traffic_.emplace_back();
        for (const PeerPath &path : exchanges_.back()->paths()) {
            bytes.sent += path.bytesSent;
            bytes.received += path.bytesReceived;
        }
    }
}

void PlanTransfers::count(const Transfer &transfer) {
    const Traffic &traffic = traffic_[transfer.exchange];
    ++statistics_.transfers;
    statistics_.bytesSent += traffic.sent;
    statistics_.bytesReceived += traffic.received;
}

// Time that `start` takes is counted apart from waiting: it packs and sends.
void PlanTransfers::start(const Transfer &transfer, Device::StreamHandle stream) {
    const double begin = MPI_Wtime();
    Traffic &traffic = traffic_[transfer.exchange];
    if (trace_.trace != nullptr)
        traffic.startedAt = Trace::now();
    exchanges_[transfer.exchange]->start(stream);
    count(transfer);
    statistics_.secondsStarting += MPI_Wtime() - begin;
}

/// A recording gets two spans: the rank's wait, and the transfer from start to end, which may overlap with parts.
void PlanTransfers::finish(const Transfer &transfer, std::optional<Device::StreamHandle> stream, double began) {
    Exchange &exchange = *exchanges_[transfer.exchange];
    stream ? exchange.wait(*stream) : exchange.wait();
    const double waited = MPI_Wtime() - began;
    statistics_.secondsWaiting += waited;
    if (trace_.trace == nullptr)
        return;
    const std::string_view name =
        trace_.names[graph_.tasks.size() + static_cast<std::size_t>(&transfer - plan_.transfers.data())];
    const Traffic &traffic = traffic_[transfer.exchange];
    const double end = Trace::now();
    trace_.trace->record({.kind = Trace::Kind::Wait, .name = name, .begin = end - waited, .end = end});
    trace_.trace->record({.kind = transfer.direction == Direction::Pull ? Trace::Kind::Pull : Trace::Kind::Push,
                          .name = name,
                          .begin = traffic.startedAt,
                          .end = end,
                          .bytes = traffic.sent});
}

std::string nameOf(const GraphModel &graph, const Transfer &transfer) {
    return fmt::format("{} of '{}'", transfer.direction == Direction::Pull ? "pull" : "push",
                       fmt::join(arraysOf(graph, transfer), "' and '"));
}

/// For transports that advance only when they are polled. O(exchanges).
void PlanTransfers::progress() {
    for (const auto &exchange : exchanges_)
        if (exchange->inFlight())
            static_cast<void>(exchange->ready());
}

void PlanTransfers::endAlone() noexcept {
    for (const auto &exchange : exchanges_)
        if (exchange->inFlight())
            static_cast<void>(attempt([&] { exchange->wait(); })); // the run's own error is thrown
}

/// The zeroing of a task's ghosts is prepared at its first run, then repeated with the arrays' present memory, as
/// swaps move it.
/// Ghosts collect this rank's contributions to rows of other ranks, so they start at zero. O(ghosts x width).
void PlanTransfers::zeroGhosts(const Part &part, const Executor &where) {
    if (!part.toGhosts)
        return;
    const TaskModel &task = graph_.tasks[part.task];
    const auto sums =
        std::ranges::find(task.accesses, AccessMode::Adds, &ArrayAccess::mode); // the others share its pattern
    std::vector<RowLayout> sons;
    for (const ArrayAccess &access : task.accesses)
        if (access.mode == AccessMode::Adds)
            graph_.arrays[access.array]->member().son(where.space(), Access::Write, sons.emplace_back());
    auto place = zeroing_.find(part.task);
    if (place == zeroing_.end())
        place = zeroing_
                    .try_emplace(part.task, *graph_.arrays[sums->array]->pattern(), sons, where.space(), where.stream(),
                                 true)
                    .first;
    place->second.run(sons, where.stream());
}

// One exchange that needs the host prevents a single graph.
bool PlanTransfers::capturable() const {
    return std::ranges::all_of(exchanges_, [](const auto &exchange) { return exchange->capturable(); });
}

std::vector<PeerPath> PlanTransfers::paths() const {
    std::vector<PeerPath> paths;
    for (const auto &exchange : exchanges_) {
        const std::vector<PeerPath> each = exchange->paths();
        paths.insert(paths.end(), each.begin(), each.end());
    }
    return paths;
}

} // namespace DNDS::Task
