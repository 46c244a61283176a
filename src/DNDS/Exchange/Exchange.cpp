#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Exchange/ExchangeState.hpp"
#include "DNDS/Exchange/PathReport.hpp"
#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

namespace {

/// Tells all peers and takes what they send, so that none of them waits for this rank.
void refuseAll(std::span<const std::unique_ptr<Transport>> transports) noexcept {
    // In reverse, because messages may have to wait for memory: the ranks of the node are told first.
    for (auto transport = transports.rbegin(); transport != transports.rend(); ++transport) {
        try {
            (*transport)->refuse();
        } catch (...) { // the reason for refusing is on its way to the caller already
            continue;
        }
    }
}

} // namespace

Exchange::~Exchange() {
    if (!mpiActive())
        return;
    const bool moving = state_->inFlight || state_->broken || state_->refused;
    const bool mayCall = mayCallMpi(state_->maker);
    if (!moving && mayCall)
        return;
    State *const state = state_.get();
    if (state->inFlight && state->maker == std::this_thread::get_id())
        state->tellFailed(direction_);
    state->kept = std::move(state_); // leaks where the rest fails, rather than to free what MPI still uses
    const auto finished = [state] { return allCompleted(state->transports); };
    try {
        if (!mayCall) { // not even to free requests: a thread that may does all of it
            pattern_->context().leave(nullptr, [state, finished, told = !moving]() mutable {
                state->engine.end();
                if (finished()) {
                    const auto last = std::move(state->kept);
                    return true;
                }
                if (!std::exchange(told, true))
                    state->abandon();
                return false;
            });
            return;
        }
        state->engine.end();
        if (!finished()) { // what could not be moved is given up like the rest, and peers are told
            state->abandon();
            if (direction_ == Direction::Pull)
                state->moveSonsAway(pattern_->context().node().arena);
            pattern_->context().park(state->kept, finished);
        }
    } catch (...) { // no memory
        return;
    }
    const auto last = std::move(state->kept);
}

bool Exchange::inFlight() const noexcept { return state_->inFlight; }

std::uint64_t Exchange::starts() const noexcept { return state_->starts; }

const std::string &Exchange::label() const {
    static const std::string none;
    return state_->members.empty() ? none : state_->members.front().name;
}

bool Exchange::capturable() const {
    return space_ == MemorySpace::Device && direction_ == Direction::Pull &&
           std::ranges::all_of(state_->transports, [](const auto &t) { return t->descriptor().withinRank; });
}

std::string Exchange::describe() const {
    return pathTable(
        fmt::format("{} of '{}'{}{}", directionName(direction_), label(),
                    state_->members.size() > 1 ? fmt::format(" and {} more", state_->members.size() - 1) : "",
                    space_ == MemorySpace::Device ? " on the device" : ""),
        paths());
}

std::vector<PeerPath> Exchange::paths() const {
    std::vector<PeerPath> paths = paths_;
    for (PeerPath &path : paths)
        for (const auto &transport : state_->transports) {
            if (transport->descriptor().kind != path.transport)
                continue;
            const Detour detour = transport->detourFrom(path.peer);
            path.bytesThroughSlot = detour.bytes;
            if (detour.bytes > 0)
                path.why += fmt::format("{}{} bytes in through a slot: {}", path.why.empty() ? "" : "; ", detour.bytes,
                                        detour.why);
        }
    return paths;
}

void Exchange::requireCommunicator() const {
    requireMpiActive("an exchange is used");
    DNDS_CHECK(pattern_->context().alive(), StateError,
               "the communicator of '{}' was freed before its exchange was complete: free it after the last use",
               label());
}

void Exchange::requireStartable() const {
    requireCommunicator();
    DNDS_CHECK(!state_->inFlight, StateError, "the exchange of '{}' is already started: wait for it first", label());
    DNDS_CHECK(!state_->broken, StateError, "the exchange of '{}' lost a peer: destroy it", label());
}

void Exchange::requireStarted() const {
    DNDS_CHECK(state_->inFlight, StateError,
               "wait for '{0}' without start: call startPersistent{1} (of a bare exchange, start) before each wait",
               label(), direction_ == Direction::Pull ? "Pull" : "Push");
    requireCommunicator(); // where it is gone the exchange stays in flight, and its memory is kept
}

ThreadUse::Scope Exchange::enter() const {
    return ThreadUse::Scope(*state_->use,
                            [this] { return fmt::format("the {} of '{}'", directionName(direction_), label()); });
}

void Exchange::refuse() {
    const ThreadUse::Scope use = enter();
    requireStartable();
    state_->refused = true;
    refuseAll(state_->transports);
}

void Exchange::start(Device::StreamHandle producer) {
    State &state = *state_;
    const ThreadUse::Scope use = enter();
    requireStartable();
    const double begin = state.counts ? monotonicSeconds() : 0.0;
    state.failure = nullptr;
    state.lost = false;
    try {
        DNDS_CHECK(!state.stream || !Device::isCapturing(producer) || capturable(), StateError,
                   "the exchange of '{}' cannot be started on a stream whose work is captured for a graph", label());
        rebindChanged();
        if (state.checksSent())
            state.hashSent(direction_, state.sent);
        if (state.stream)
            state.stream->follow(producer);
        if (std::ranges::any_of(state.transports, [](const auto &t) { return t->descriptor().needsProgress; }))
            state.engine.begin([&state] {
                for (const auto &transport : state.transports)
                    if (transport->descriptor().needsProgress)
                        transport->progress();
            });
        state.tellPulled(direction_, *pattern_, false);
    } catch (...) {
        state.refused = true;
        refuseAll(state.transports);
        throw;
    }
    state.inFlight = true;
    ++state.starts;
    std::size_t started = 0;
    try {
        for (; started < state.transports.size(); ++started)
            state.transports[started]->start();
    } catch (...) {
        const std::span transports(state.transports);
        state.refused = true;
        state.tellFailed(direction_);
        refuseAll(transports.subspan(started));
        state.inFlight = false;
        state.broken = !allCompleted(transports.first(started)); // then it is served until it is destroyed
        if (!state.broken)
            state.engine.end();
        state.drain();
        throw;
    }
    if (state.counts)
        state.counts->started(begin);
}

void Exchange::rebindChanged() {
    State &state = *state_;
    bool moved = false;
    bool changed = false;
    for (std::size_t m = 0; m < state.members.size(); ++m) {
        RowLayout &father = state.fathersNow[m];
        RowLayout &son = state.sonsNow[m];
        locateRows(*pattern_, direction_, space_, state.members[m], father, son);
        moved = moved || !sameMemory(state.fathers[m], father) || !sameMemory(state.sons[m], son);
        changed = changed || !sameRows(state.fathers[m], father) || !sameRows(state.sons[m], son);
    }
    if (changed || !state.bound) [[unlikely]] {
        state.bound = false;
        MessagePlan plan = planMessages(*pattern_, direction_, state.fathersNow, state.sonsNow);
        DNDS_CHECK(plan.sameAs(state.plan), StateError,
                   "the row widths of '{}' changed since the exchange was made: call createMPITypes and init again",
                   state.members.front().name);
        auto plans = splitByTransport(plan, channel_, state.kinds);
        for (const auto &transport : state.transports)
            transport->replacePlan(std::move(plans[transport->descriptor().kind]));
        if (state.combine)
            state.combine = std::make_unique<DeviceCombine>(*pattern_, op_, state.fathersNow, state.stream->stream);
        state.plan = std::move(plan);
    }
    state.fathers.swap(state.fathersNow);
    state.sons.swap(state.sonsNow);
    if (moved || changed || !state.bound) [[unlikely]] {
        state.bound = false;
        for (const auto &transport : state.transports)
            transport->bind(state.endpoints(direction_));
        state.bound = true;
    }
}

void Exchange::wait() {
    const ThreadUse::Scope use = enter();
    finish();
    synchronize();
}

void Exchange::waitAndDrop() {
    const ThreadUse::Scope use = enter();
    finish(false);
    synchronize();
}

void Exchange::synchronize() {
    if (state_->stream) {
        state_->stream->stream.synchronize();
        state_->releaseArrays();
    }
}

void Exchange::wait(Device::StreamHandle consumer) {
    const ThreadUse::Scope use = enter();
    finish();
    if (state_->stream)
        state_->stream->precede(consumer);
}

void Exchange::finish(bool combines) {
    State &state = *state_;
    requireStarted();
    const double begin = state.counts ? monotonicSeconds() : 0.0;
    state.inFlight = false;
    state.engine.end();
    try {
        complete();
        requireUnchanged();
        if (combines && direction_ == Direction::Push)
            combinePushed();
        state.tellPulled(direction_, *pattern_, true);
    } catch (...) {
        state.tellFailed(direction_);
        state.drain();
        if (!state.broken)
            state.releaseArrays();
        throw;
    }
    if (!state.stream)
        state.releaseArrays();
    if (state.counts)
        state.counts->waited(begin);
}

bool Exchange::ready() {
    const ThreadUse::Scope use = enter();
    requireStarted();
    state_->engine.moveHere();
    return progress();
}

void Exchange::checkPeers(double secondsWaited) {
    const ThreadUse::Scope use = enter();
    requireStarted();
    state_->engine.moveHere();
    state_->checkPeers(secondsWaited);
}

bool Exchange::progress() {
    State &state = *state_;
    bool complete = true;
    for (const auto &transport : state.transports)
        try {
            complete = transport->progress() && complete;
        } catch (const MpiError &) { // nothing can be relied on then
            state.noteFailure(std::current_exception());
            state.lost = true;
        } catch (...) { // told once, and the rest goes on
            state.noteFailure(std::current_exception());
            complete = false;
        }
    ProgressEngine::progressAll();
    pattern_->context().progressParked();
    return complete || state.lost;
}

void Exchange::complete() {
    State &state = *state_;
    const Doing doing(direction_ == Direction::Pull ? "wait for the pull of" : "wait for the push of", label(),
                      state.starts);
    const auto &transports = state.transports;
    // complete all transports, then report the first failure
    state.noteFailure(state.engine.takeFailure());
    // Several transports wait together, so that none starves while another one is waited for, also those of other
    // exchanges.
    CommunicatorContext &context = pattern_->context();
    if (transports.size() > 1 || state.stream || state.failure || ProgressEngine::busy() || context.hasParked()) {
        Backoff backoff(channel_.comm, context.node().crowded);
        while (!progress()) {
            backoff.pause();
            if (backoff.longWait())
                state.checkPeers(backoff.seconds());
        }
    }
    for (const auto &transport : transports)
        if (!state.failure || completed(*transport))
            try {
                transport->wait();
            } catch (...) {
                state.noteFailure(std::current_exception());
            }
    if (!state.failure)
        return;
    state.broken = !allCompleted(transports);
    std::rethrow_exception(std::exchange(state.failure, nullptr));
}

void Exchange::combinePushed() {
    State &state = *state_;
    const std::vector<RowLayout> &fathers = state.fathersNow; // as requireUnchanged found them
    if (state.combine) {
        state.combine->launch(fathers, state.staging, state.stream->stream);
        if (state.combine->checks()) {
            state.stream->stream.synchronize();
            state.combine->check(state.members);
        }
    } else {
        combineOnHost(*pattern_, op_, state.members, fathers, state.staging);
    }
    if (state.zeroing)
        state.zeroing->run(state.sonsNow, state.stream ? state.stream->stream.handle() : nullptr);
}

} // namespace DNDS
