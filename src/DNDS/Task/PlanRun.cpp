// The operations of a run that both the host and the device need.

#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Task/DeviceRunner.hpp"
#include "DNDS/Task/HostRunner.hpp"

#include <algorithm>

namespace DNDS::Task {

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
    } catch (...) {
        throw StateError(where + "it threw something that is no std::exception");
    }
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
                                             array.son()->finishedBy() == finisherOf(a);
                         return pulled || (asLeft && plan.outcome[a].meetsEntry);
                     });
        if (dropped[k])
            ++statistics.dropped;
    }
}

Plan::State::Contents Plan::State::contentsOf(std::size_t array) const {
    const ArrayHandle &handle = *graph.arrays[array];
    return {handle.father().version(), handle.son() != nullptr ? handle.son()->version() : 0};
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

template <class IsReady, class Check>
void Plan::State::waitUntil(const IsReady &isReady, const Check &check) {
    if (isReady())
        return;
    Backoff backoff(context->comm().handle(), context->node().crowded);
    while (!isReady()) {
        requireAgreement();
        if (host && host->help())
            continue;
        backoff.pause();
        if (backoff.longWait())
            check(backoff.seconds());
    }
}

void Plan::State::wait(const Transfer &transfer, std::optional<Device::StreamHandle> stream) {
    const double begin = MPI_Wtime();
    const double traced = trace != nullptr ? Trace::now() : 0.0;
    Exchange &exchange = *exchanges[transfer.exchange];
    waitUntil([&] { return exchange.ready(); }, [](double /*seconds*/) {});
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
    array.setPulledFrom(array.father().version(), finisherOf(finish.array)); // its rows are as they were
}

bool Plan::State::isFinished(std::size_t array) const {
    return std::ranges::any_of(graph.finishes, [&](const PullFinish &finish) { return finish.array == array; });
}

void Plan::State::call(const TaskModel &task) {
    if (!task.exchange)
        return task.call();
    if (task.startsExchange) {
        starting = true;
        task.exchange->start();
        starting = false;
        return;
    }
    const double begin = MPI_Wtime();
    waitUntil(
        [&] {
            ProgressEngine::progressAll(); // peers may need rows before they send
            context->progressParked();
            return task.exchange->ready();
        },
        [](double /*seconds*/) {});
    statistics.secondsWaiting += MPI_Wtime() - begin;
    task.exchange->finish();
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
        call(task);
    } catch (...) {
        rethrowFrom(task, nullptr);
    }
    if (trace != nullptr)
        trace->record(
            {.kind = Trace::Kind::Part, .name = traceNames[operation.what], .begin = begin, .end = Trace::now()});
}

void Plan::State::noteOutcome() {
    for (std::size_t a = 0; a < graph.arrays.size(); ++a) {
        ArrayHandle &array = *graph.arrays[a];
        if (plan.outcome[a].written)
            array.markWritten(); // also where this rank had no rows to write, as the others have
        if (plan.outcome[a].current && (plan.outcome[a].written || plan.outcome[a].pulled))
            array.setPulledFrom(array.father().version(), finisherOf(a)); // replayed pulls do not tell
        left[a] = contentsOf(a);
    }
    std::fill(halfWritten.begin(), halfWritten.end(), 0);
}

} // namespace DNDS::Task
