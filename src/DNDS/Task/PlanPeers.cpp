// What ranks tell each other of a run beside rows: that they do the same, and that one has failed.

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Task/DeviceRunner.hpp"
#include "DNDS/Task/HostRunner.hpp"

#include <fmt/ranges.h>

#include <utility>

namespace DNDS::Task {

template <class Work>
void Plan::State::atPeers(const Work &work) {
    try {
        work();
    } catch (const StateError &error) {
        throwDisagreement(error);
    } catch (const PeerError &) { // a peer has given up a run before: nothing comes of it any more
        disagrees = true;
        throw;
    }
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
    atPeers([&] { agreement->begin(word.value()); });
}

void Plan::State::requireAgreement() {
    if (agreement && agreement->disagreeing())
        atPeers([&] { agreement->finish(); });
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

void Plan::State::giveUp(std::size_t next, bool begins) noexcept {
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
    giveUpCalled(next);
    if (disagrees) { // who waits for this rank's rows is told that its exchanges are gone
        exchanges.clear();
        agreement.reset();
        starting = false;
    } else {
        refuseRest(next);
    }
    leaveRuns();
}

void Plan::State::leaveRuns() noexcept {
    failed = true;
    try {
        if (agreement) // peers that begin another run are told
            agreement->leave();
        if (reduction && reducedRuns < statistics.runs)
            reduceNothing();
    } catch (...) { // what comes first is thrown
        return;
    }
}

/// Peers of exchanges that calls start wait for this rank, too.
void Plan::State::giveUpCalled(std::size_t next) noexcept {
    for (std::size_t k = next; k < plan.operations.size(); ++k) {
        const Operation &operation = plan.operations[k];
        if (operation.kind != OperationKind::Call)
            continue;
        const TaskModel &task = graph.tasks[operation.what];
        // A start that throws has told its peers.
        if (task.exchange && isDue(task) && task.exchange->inFlight() != task.startsExchange &&
            !(k == next && starting))
            task.exchange->giveUp();
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
            if (waits && exchange.inFlight())
                exchange.wait();
        } catch (...) { // what comes first is thrown
            continue;
        }
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

} // namespace DNDS::Task
