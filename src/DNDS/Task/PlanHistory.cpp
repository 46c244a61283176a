#include "DNDS/Task/PlanHistory.hpp"

#include "DNDS/Base/ContentHash.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

namespace DNDS::Task {

namespace {

/// The first of `count` numbers that are unique in the process; compared on one rank only.
std::uint64_t takeNumbers(std::size_t count) {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(count, std::memory_order_relaxed);
}

} // namespace

PlanHistory::PlanHistory(const GraphModel &graph, const PlanModel &plan)
    : graph_(graph), plan_(plan), firstFinisher_(takeNumbers(graph.arrays.size())) {}

// Agreement is needed only among ranks that exchange messages.
void PlanHistory::connect() {
    dropped_.assign(plan_.transfers.size(), false);
    left_.assign(graph_.arrays.size(), {});
    std::vector<std::shared_ptr<const ExchangePattern>> patterns;
    for (const Transfer &transfer : plan_.transfers)
        patterns.push_back(transfer.pattern);
    if (!patterns.empty())
        agreement_.emplace(patterns.front()->sharedContext(), fmt::format("plan '{}'", graph_.name),
                           PeerAgreement::peersOf(patterns));
}

// The agreement knows numbers only: the error is completed by what this rank has decided.
template <class Work>
void PlanHistory::explaining(const Work &work) const {
    try {
        work();
    } catch (const StateError &error) {
        std::vector<std::string> made;
        for (std::size_t k = 0; k < dropped_.size(); ++k)
            if (plan_.transfers[k].conditional)
                for (const std::size_t a : plan_.transfers[k].arrays)
                    made.push_back(fmt::format("'{}' {}", graph_.arrays[a]->name(), dropped_[k] ? "left out" : "made"));
        throw StateError(fmt::format(
            "{}. Here this is run {}, with pulls of {}. An array that only some ranks write outside "
            "of the plan has to be told to all: call changed() on the others. Reading through an array that is not "
            "const counts as writing: use std::as_const",
            error.message(), run_, made.empty() ? "nothing" : fmt::format("{}", fmt::join(made, ", "))));
    }
}

/// All ranks decide the same as long as they write arrays between the same runs. Ranks without rows or ghosts
/// decide by versions, too.
index PlanHistory::begin(index run) {
    if (agreement_)
        explaining([&] { agreement_->finish(); });
    run_ = run;
    // The digest covers the graph, the run's number and each decision: peers that run another graph, or are a run
    // ahead, are found as well.
    ContentHash digest;
    digest.addText(graph_.name);
    digest.add(static_cast<std::uint64_t>(run));
    for (std::size_t k = 0; k < plan_.transfers.size(); ++k) {
        const Transfer &transfer = plan_.transfers[k];
        dropped_[k] = transfer.conditional && std::ranges::all_of(transfer.arrays, [&](std::size_t a) {
                          // Two reasons to drop a pull: the ghosts were pulled (by any plan or call) from the
                          // father's present version, or nothing has changed since this plan's last run, which meets
                          // the needs of its first reader.
                          const bool asLeft = left_[a] == contentsOf(a);
                          const ArrayHandle &array = *graph_.arrays[a];
                          const bool pulled = array.son()->pulledFrom() == array.father().version() &&
                                              array.son()->finishedBy() == finisherOf(a);
                          return pulled || (asLeft && plan_.outcome[a].meetsEntry);
                      });
        digest.add(dropped_[k] ? 1 : 2);
    }
    if (agreement_)
        agreement_->begin(digest.value());
    return std::ranges::count(dropped_, true);
}

// 0 without a finishing kernel; else it changes with the kernel's inputs, so that ghosts are finished again.
std::uint64_t PlanHistory::finisherOf(std::size_t array) const {
    const auto finish = std::ranges::find(graph_.finishes, array, &PullFinish::array);
    if (finish == graph_.finishes.end())
        return 0;
    ContentHash mark;
    mark.add(firstFinisher_ + array);
    mark.add(finish->body->inputs());
    return mark.value();
}

PlanHistory::Contents PlanHistory::contentsOf(std::size_t array) const {
    const ArrayHandle &handle = *graph_.arrays[array];
    return {handle.father().version(), handle.son() != nullptr ? handle.son()->version() : 0, finisherOf(array)};
}

void PlanHistory::look() {
    if (agreement_)
        explaining([&] { agreement_->look(); });
}

/// Order matters: marking the father as written raises its version, from which the ghosts then count as pulled;
/// `left_` is taken last.
void PlanHistory::noteOutcome() {
    for (std::size_t a = 0; a < graph_.arrays.size(); ++a) {
        ArrayHandle &array = *graph_.arrays[a];
        if (plan_.outcome[a].written)
            array.markWritten(); // even if this rank had no rows to write, as the others have
        if (plan_.outcome[a].current && (plan_.outcome[a].written || plan_.outcome[a].pulled))
            array.setPulledFrom(array.father().version(), finisherOf(a)); // replayed pulls do not set it
        left_[a] = contentsOf(a);
    }
}

/// Raising the versions of all fathers makes every record of a pull out of date, in this plan and in others.
void PlanHistory::forgetPulls() {
    for (const auto &array : graph_.arrays)
        if (array->alive())
            array->markWritten();
}

} // namespace DNDS::Task
