#include "DNDS/Task/PlanHistory.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <string>

namespace DNDS::Task {

namespace {

/// The first of `count` numbers that are unique in the process; compared on one rank only.
/// Ranks may draw different numbers, so marks made of them are never sent.
std::uint64_t takeNumbers(std::size_t count) {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(count, std::memory_order_relaxed);
}

} // namespace

/// Contents of an array at some moment.
struct PlanHistory::Contents {
    std::uint64_t father = 0, son = 0; ///< versions
    std::uint64_t finisher = 0;        ///< `finisherOf`
    bool operator==(const Contents &other) const = default;
};

PlanHistory::PlanHistory(const GraphModel &graph, const PlanModel &plan)
    : graph_(graph), plan_(plan), firstFinisher_(takeNumbers(graph.arrays.size())) {}

PlanHistory::~PlanHistory() {
    if (!link_)
        return;
    context_->delist(*this);
    if (context_->alive()) // messages can arrive
        // These peers send a word of this run, or revoke; it must not reach a later user of the channel.
        for (const std::size_t k : missing_)
            link_->dropNext(k);
}

/// Agreement is needed only among ranks that exchange messages. Two reductions. Enlisted before the plan, which
/// Plan::compile enlists last: a recovery settles and renews the link before the plan resets the numbers of its runs.
void PlanHistory::connect() {
    dropped_.assign(plan_.transfers.size(), false);
    left_.assign(graph_.arrays.size(), {});
    if (plan_.transfers.empty()) // on all ranks
        return;
    context_ = plan_.transfers.front().pattern->sharedContext();
    const CommunicatorContext::SetUp setUp(*context_);
    const CommunicatorView comm = context_->comm();
    const Channel channel = context_->nextChannel(); // before any failure: ranks stay in step
    comm.guarded([&] {
        setUp.requireAlone();
        std::set<int> peers;
        for (const Transfer &transfer : plan_.transfers)
            for (const PeerRows *rows : {&transfer.pattern->readers(), &transfer.pattern->owners()})
                peers.insert(rows->ranks.begin(), rows->ranks.end());
        peers.erase(comm.rank());
        peers_.assign(peers.begin(), peers.end());
        missing_.reserve(peers_.size());
        link_.emplace(context_, channel, peers_);
    });
    link_->connect();
    comm.guarded([&] { context_->enlist(*this); });
}

/// A peer one run ahead has its next word wait in the link until this one is taken.
bool PlanHistory::look() {
    std::erase_if(missing_, [&](std::size_t k) {
        if (!link_->receive(k))
            return false;
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, link_->received(k).data(), sizeof theirs);
        if (theirs != word_)
            throwDisagreement(peers_[k]);
        link_->take(k);
        return true;
    });
    return missing_.empty();
}

/// Words are hashes, so the error can list only this rank's decisions, to be compared with the peer's.
void PlanHistory::throwDisagreement(int peer) const {
    std::vector<std::string> made;
    for (std::size_t k = 0; k < dropped_.size(); ++k)
        if (plan_.transfers[k].conditional)
            for (const std::size_t a : plan_.transfers[k].arrays)
                made.push_back(fmt::format("'{}' {}", graph_.arrays[a]->name(), dropped_[k] ? "left out" : "made"));
    throw StateError(fmt::format(
        "rank {} and this rank disagree about plan '{}'. Here this is run {}, with pulls of {}. An array that only "
        "some ranks write outside of the plan has to be told to all: call changed() on the others. Reading through an "
        "array that is not const counts as writing: use std::as_const",
        peer, graph_.name, run_, made.empty() ? "nothing" : fmt::format("{}", fmt::join(made, ", "))));
}

/// All ranks decide the same as long as they write arrays between the same runs. Ranks without rows or ghosts
/// decide by versions, too.
/// Cost: O(transfers + arrays) and one message of 8 bytes a peer. No deadlock: a rank waits for the words of run n at
/// the start of run n + 1, when it has sent its own word and all rows of run n.
index PlanHistory::begin(index run) {
    // All words of the run before: so no rank is two runs ahead, and the two buffers of the link suffice without
    // waiting.
    if (link_)
        waitUntil(
            *context_, [&] { return look(); },
            [&] {
                return fmt::format("rank {} to begin run {} of plan '{}'", peers_[missing_.front()], run_, graph_.name);
            });
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
    // Sent without waiting for the peers' words: they are compared while this run waits for rows, or in the next one.
    word_ = digest.value();
    for (std::size_t k = 0; k < peers_.size(); ++k) {
        std::memcpy(link_->prepare(k, sizeof word_).data(), &word_, sizeof word_);
        link_->send(k, sizeof word_);
        missing_.push_back(k);
    }
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

/// Order matters: marking the father as written raises its version, from which the ghosts then count as pulled;
/// `left_` is taken last.
/// O(arrays), local. Versions are per rank, but the same arrays are marked on all ranks, as `outcome` is agreed on.
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

/// The link drops words in flight; runs start over with the plan.
bool PlanHistory::settle() noexcept {
    missing_.clear();
    return link_->settle();
}

void PlanHistory::renew() { link_->renew(); }

/// Raising the versions of all fathers makes every record of a pull out of date, in this plan and in others.
/// O(arrays). Needs no message: a recovery calls it on all ranks.
void PlanHistory::forgetPulls() {
    for (const auto &array : graph_.arrays)
        if (array->alive())
            array->markWritten();
}

} // namespace DNDS::Task
