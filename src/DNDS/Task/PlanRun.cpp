// The steps of a run that both the host and the device need.

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Task/DeviceRunner.hpp"
#include "DNDS/Task/HostRunner.hpp"

#include <algorithm>

namespace DNDS::Task {

/// Errors of MPI and revocations pass unchanged: they describe a peer, not this task. Others keep their kind, so that
/// callers can catch them by type.
void Plan::State::rethrowFrom(const std::exception &error, const TaskModel &task, const Part *part) {
    const std::string where = part == nullptr
                                  ? fmt::format("in task '{}': ", task.name)
                                  : fmt::format("in task '{}' ({} of {} rows, the first of which is {}): ", task.name,
                                                part->urgent ? "boundary part" : "part", part->rows.count,
                                                part->rows.count > 0 ? part->rows(0) : 0);
    const auto *own = dynamic_cast<const Error *>(&error);
    if (own != nullptr && (own->kind() == ErrorKind::Mpi || own->kind() == ErrorKind::Revoked))
        throw;
    if (own != nullptr)
        throwError(own->kind(), where + own->message(), own->where());
    throwError(describeFailure(std::current_exception()).kind, where + error.what());
}

/// One loop for all waits of a plan: progress of the exchange, the peers' agreement on dropped pulls, and useful
/// work. waitUntil polls MPI and the communicator's revocation between calls, so a failed peer ends the wait.
/// A rank whose peer made another decision does not hang: `history.look` throws when the peer's word arrives.
template <class IsReady, class What>
void Plan::State::waitFor(const IsReady &isReady, const What &what) {
    waitUntil(
        *context,
        [&] {
            while (!isReady()) {
                history.look();
                if (!(host && host->help()))
                    return false;
            }
            return true;
        },
        what);
}

/// Finishing kernels run right after their pull, so that no step in between sees unfinished ghosts. Taking their views
/// raises versions although no owned row changes, so the record of the pull is renewed. Collective among peers in
/// effect: all ranks wait for the same transfers in the same order.
void Plan::State::wait(const Transfer &transfer, std::optional<Device::StreamHandle> stream, const Executor &where,
                       const std::function<PartRows(std::size_t)> &finished) {
    const double begin = MPI_Wtime();
    waitFor(
        [&] { return transfers.ready(transfer); },
        [&] { return fmt::format("the ranks' rows in the {}, in plan '{}'", nameOf(graph, transfer), graph.name); });
    transfers.finish(transfer, stream, begin);
    if (transfer.direction == Direction::Push)
        return;
    for (std::size_t k = 0; k < graph.finishes.size(); ++k) {
        const PullFinish &finish = graph.finishes[k];
        if (std::ranges::find(transfer.arrays, finish.array) == transfer.arrays.end())
            continue;
        const PartRows ghosts = finished(k);
        finish.body->bind(where.space(), {});
        finish.body->run(where, ghosts, 0, ghosts.count);
        ArrayHandle &array = *graph.arrays[finish.array];
        array.setPulledFrom(array.father().version(), history.finisherOf(finish.array)); // its rows are as they were
    }
}

// Calls that are halves of an exchange wait like transfers, so that chunks run meanwhile.
void Plan::State::call(const TaskModel &task) {
    if (task.launch)
        return task.launch(device ? device->executor() : executor);
    if (!task.exchange)
        return task.call();
    if (task.startsExchange)
        return task.exchange->start();
    const double begin = MPI_Wtime();
    waitFor([&] { return task.exchange->ready(); },
            [&] { return fmt::format("messages, to {} in plan '{}'", task.name, graph.name); });
    statistics.secondsWaiting += MPI_Wtime() - begin;
    task.exchange->finish();
}

/// Parts are run by the runners, which also decide about threads and streams.
/// A dropped transfer skips both its start and its wait; peers skip the same pair, which `history` verifies.
void Plan::State::run(const PlanStep &step) {
    switch (step.kind) {
    case StepKind::Part:
        return;
    case StepKind::Start:
        return history.isDropped(step.what) ? void() : transfers.start(plan.transfers[step.what], nullptr);
    case StepKind::Wait:
        if (!history.isDropped(step.what))
            wait(plan.transfers[step.what], {}, executor, [&](std::size_t k) { return plan.finishes[k].rows; });
        return;
    case StepKind::Call:
    case StepKind::Swap:
        break;
    }
    const TaskModel &task = graph.tasks[step.what];
    if (!isDue(task))
        return;
    trace.record(step.what, 0, 0, [&] { inTask(task, nullptr, [&] { call(task); }); });
}

} // namespace DNDS::Task
