#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Table.hpp"
#include "DNDS/Exchange/ExchangeState.hpp"
#include "DNDS/Mpi/Revocation.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

namespace {

/// Hashes the bytes of one part that one peer gets.
std::uint64_t hashOf(const RowGather &rows, const std::byte *base) {
    ContentHash hash;
    for (const ByteBlock &block : rows.blocks())
        hash.addBytes(base + block.offset, block.bytes);
    return hash.value();
}

} // namespace

const char *directionName(Direction direction) { return direction == Direction::Pull ? "pull" : "push"; }

void locateRows(const ExchangePattern &pattern, Direction direction, MemorySpace space, const ExchangeMember &member,
                RowLayout &father, RowLayout &son) {
    DNDS_CHECK(!member.pattern || pattern.moves(member.pattern()), StateError,
               "the ghost mapping of '{}' was replaced since its {} was set up: call createMPITypes, and set up the "
               "exchange again (in a new group, where it is in one)",
               member.name, directionName(direction));
    // The layouts hold their memory from now on: an array that is resized in flight leaves it to the exchange.
    father.keepsMemory = son.keepsMemory = true;
    member.father(space, Access::Read, father);
    member.son(space, direction == Direction::Pull ? Access::Write : Access::Read, son);
    DNDS_CHECK(father.rows == pattern.fatherSize(), StateError,
               "father of '{}' has {} rows, but the mapping was made for {}: make a new mapping after resizing",
               member.name, father.rows, pattern.fatherSize());
    DNDS_CHECK(son.rows == pattern.sonSize(), StateError,
               "son of '{}' has {} rows, but the mapping has {} ghosts: call createMPITypes after making a mapping",
               member.name, son.rows, pattern.sonSize());
    DNDS_CHECK(father.partCount == son.partCount &&
                   (father.rows == 0 || son.rows == 0 || father.signature == son.signature),
               LayoutError, "father and son of '{}' differ in element type, layout or width", member.name);
}

Exchange::State::~State() {
    if (context && !inForkedChild()) // where the lock may be another thread's of the parent
        context->delist(*this);
}

bool Exchange::State::settle() noexcept {
    engine.end();
    if (stage == Stage::InFlight) {
        stage = Stage::Idle;
        notifyFailed(moves);
    }
    bool settled = true;
    for (const auto &transport : transports)
        settled = transport->settle() && settled;
    return settled;
}

void Exchange::State::renew() {
    channel = context->renewed(channel);
    stage = Stage::Unbound;
    for (const auto &transport : transports)
        transport->renew(*context);
}

bool Exchange::State::exposed() const noexcept {
    return std::ranges::any_of(transports, [](const auto &transport) { return transport->exposed(); });
}

bool Exchange::State::progress() const {
    bool complete = true;
    for (const auto &transport : transports)
        complete = transport->progress() && complete;
    return complete;
}

void Exchange::State::abandon(Direction direction) noexcept {
    engine.end();
    if (stage == Stage::InFlight)
        stage = Stage::Idle;
    notifyFailed(direction);
    drain();
}

void Exchange::State::addStaging(std::size_t bytes, const HostMemoryResource &memory) {
    staging.push_back(space == MemorySpace::Device
                          ? stagingOnDevice.emplace_back(bytes).data()
                          : stagingOnHost.emplace_back(bytes, memory).write(MemorySpace::Host, "staging of a push"));
}

void Exchange::State::releaseArrays() {
    for (std::vector<RowLayout> *layouts : {&fathers, &sons, &fathersNow, &sonsNow})
        for (RowLayout &layout : *layouts)
            for (RowPart &part : layout.parts)
                part.hold.reset();
}

void Exchange::State::drain() const noexcept {
    if (stream)
        stream->drain();
}

void Exchange::State::notifyPulled(Direction direction, const ExchangePattern &pattern, bool arrived) const {
    if (direction != Direction::Pull)
        return;
    for (const ExchangeMember &member : members)
        // A member that was given another mapping meanwhile has other ghosts: these rows are not news of them.
        if (member.pulled && (!arrived || !member.pattern || pattern.moves(member.pattern())))
            member.pulled(arrived, !pattern.isRestriction());
}

void Exchange::State::notifyFailed(Direction direction) const noexcept {
    if (direction == Direction::Pull)
        for (const ExchangeMember &member : members)
            if (member.pulled)
                member.pulled(false, false);
}

bool Exchange::State::checksSent() const noexcept {
    const auto checked = [](const ExchangeMember &member) { return member.checked; };
    return space == MemorySpace::Host && (debugChecks || std::ranges::any_of(members, checked));
}

void Exchange::State::hashSent(Direction direction, std::vector<std::uint64_t> &into) const {
    into.clear();
    const std::vector<const std::byte *> sources = endpointsOf(direction, fathers, sons).sources;
    for (const Outgoing &outgoing : plan.outgoing)
        for (std::size_t p = 0; p < outgoing.parts.size(); ++p)
            into.push_back(hashOf(outgoing.parts[p], sources[p]));
}

Endpoints Exchange::State::endpoints(Direction direction) const {
    Endpoints ends = endpointsOf(direction, fathers, sons);
    ends.destinations.insert(ends.destinations.end(), staging.begin(), staging.end());
    return ends;
}

Exchange::~Exchange() {
    if (!state_ || !mpiActive()) // moved from, or MPI has ended
        return;
    const std::shared_ptr<CommunicatorContext> context = state_->context;
    // Other ranks wait for rows that this one will not send any more. Callbacks of members run on the maker's
    // thread only.
    if (inFlight() && context->alive()) {
        context->revocation().revoke(directionName(direction_),
                                     fmt::format("it destroyed the exchange of '{}' in flight", label()),
                                     Revocation::Caller::Destructor);
        if (state_->maker == std::this_thread::get_id())
            state_->notifyFailed(direction_);
        state_->stage = State::Stage::Idle;
    }
    state_->engine.end();
    context->delist(*state_);
    // Peers may still write to memory of this exchange: it outlives the object until all ranks have stopped.
    if (state_->exposed())
        context->keepUntilRecovery(state_);
    context->park(
        state_, [state = state_.get()] { return state->settle(); }, state_->maker);
}

bool Exchange::inFlight() const noexcept { return state_->stage == State::Stage::InFlight; }

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
    Table table({8, -12, 9, 11, 9, 11, 0});
    table.text = fmt::format("{} of '{}'{}{}\n", directionName(direction_), label(),
                             state_->members.size() > 1 ? fmt::format(" and {} more", state_->members.size() - 1) : "",
                             space_ == MemorySpace::Device ? " on the device" : "");
    table.add({"peer", "path", "rows out", "bytes out", "rows in", "bytes in", "why"});
    for (const PeerPath &path : paths())
        table.add({fmt::to_string(path.peer), path.name, fmt::to_string(path.rowsSent), fmt::to_string(path.bytesSent),
                   fmt::to_string(path.rowsReceived), fmt::to_string(path.bytesReceived), path.why});
    return table.text;
}

std::vector<PeerPath> Exchange::paths() const {
    std::vector<PeerPath> paths = paths_;
    for (PeerPath &path : paths)
        for (const auto &transport : state_->transports) {
            if (transport->descriptor().kind != path.transport)
                continue;
            const StagedTraffic staged = transport->stagedFrom(path.peer);
            path.bytesThroughSlot = staged.bytes;
            if (staged.bytes > 0)
                path.why += fmt::format("{}{} bytes in through a slot: {}", path.why.empty() ? "" : "; ", staged.bytes,
                                        staged.why);
        }
    return paths;
}

void Exchange::requireCommunicator() const {
    requireMpiActive("an exchange is used");
    DNDS_CHECK(pattern_->context().alive(), StateError,
               "the communicator of '{}' was freed before its exchange was complete: free it after the last use",
               label());
}

void Exchange::requireStarted() const {
    DNDS_CHECK(inFlight(), StateError,
               "wait for '{0}' without start: call startPersistent{1} (of a bare exchange, start) before each wait",
               label(), direction_ == Direction::Pull ? "Pull" : "Push");
}

ThreadUse::Scope Exchange::enter() const {
    return ThreadUse::Scope(*state_->use,
                            [this] { return fmt::format("the {} of '{}'", directionName(direction_), label()); });
}

template <class Body>
decltype(auto) Exchange::running(std::string_view pull, std::string_view push, Body &&body) {
    const ThreadUse::Scope use = enter(); // concurrent use throws
    requireCommunicator();
    return state_->context->running(direction_ == Direction::Pull ? pull : push, label(), std::forward<Body>(body));
}

void Exchange::start(Device::StreamHandle producer) {
    running("the start of the pull of", "the start of the push of", [&] {
        State &state = *state_;
        DNDS_CHECK(!inFlight(), StateError, "the exchange of '{}' is already started: wait for it first", label());
        const double begin = state.counts ? monotonicSeconds() : 0.0;
        DNDS_CHECK(!state.stream || !Device::isCapturing(producer) || capturable(), StateError,
                   "the exchange of '{}' cannot be started on a stream whose work is captured for a graph", label());
        rebindChanged();
        if (state.checksSent())
            state.hashSent(direction_, state.sent);
        if (state.stream)
            state.stream->follow(producer);
        // Ghosts are stale from here on, before the first byte may move; the exchange is in flight before any
        // transport starts, so that a failure half-way is cleaned up as a whole.
        state.notifyPulled(direction_, *pattern_, false);
        state.stage = State::Stage::InFlight;
        ++state.starts;
        try {
            if (state.needsProgress)
                state.engine.begin([&state] { static_cast<void>(state.progress()); });
            for (const auto &transport : state.transports)
                transport->start();
        } catch (...) {
            state.abandon(direction_);
            throw;
        }
        if (state.counts)
            state.counts->started(begin);
    });
}

void Exchange::rebindChanged() {
    State &state = *state_;
    // Rows changed: plans are made again, the same for peers. Addresses moved: transports are bound again. O(parts).
    bool moved = false;
    bool changed = false;
    for (std::size_t m = 0; m < state.members.size(); ++m) {
        RowLayout &father = state.fathersNow[m];
        RowLayout &son = state.sonsNow[m];
        locateRows(*pattern_, direction_, space_, state.members[m], father, son);
        moved = moved || !sameMemory(state.fathers[m], father) || !sameMemory(state.sons[m], son);
        changed = changed || !sameRows(state.fathers[m], father) || !sameRows(state.sons[m], son);
    }
    if (changed || state.stage == State::Stage::Unbound) [[unlikely]] {
        state.stage = State::Stage::Unbound;
        MessagePlan plan = planMessages(*pattern_, direction_, state.fathersNow, state.sonsNow);
        DNDS_CHECK(plan.sameAs(state.plan), StateError,
                   "the row widths of '{}' changed since the exchange was made: call createMPITypes and init again",
                   state.members.front().name);
        auto plans = splitByTransport(plan, state.channel, state.kinds);
        for (const auto &transport : state.transports)
            transport->replacePlan(std::move(plans[transport->descriptor().kind]));
        if (state.combine)
            state.combine = std::make_unique<DeviceCombine>(*pattern_, op_, state.fathersNow, state.stream->stream);
        if (state.zeroing)
            state.zeroing.emplace(*pattern_, state.sonsNow, space_, state.streamHandle(), false);
        state.plan = std::move(plan);
    }
    state.fathers.swap(state.fathersNow);
    state.sons.swap(state.sonsNow);
    if (moved || state.stage == State::Stage::Unbound) [[unlikely]] {
        state.stage = State::Stage::Unbound;
        for (const auto &transport : state.transports)
            transport->bind(state.endpoints(direction_));
        state.stage = State::Stage::Idle;
    }
}

void Exchange::wait() {
    finish();
    if (state_->stream) {
        state_->stream->stream.synchronize();
        state_->releaseArrays();
    }
}

void Exchange::wait(Device::StreamHandle consumer) {
    finish();
    if (state_->stream)
        state_->stream->precede(consumer);
}

void Exchange::finish() {
    const ThreadUse::Scope use = enter(); // concurrent use throws
    requireCommunicator();
    try {
        state_->context->running(direction_ == Direction::Pull ? "the wait for the pull of"
                                                               : "the wait for the push of",
                                 label(), [&] { completeEpoch(); });
    } catch (...) {
        if (inFlight())
            state_->abandon(direction_);
        throw;
    }
}

void Exchange::completeEpoch() {
    State &state = *state_;
    requireStarted();
    const ActivityScope activity(direction_ == Direction::Pull ? "wait for the pull of" : "wait for the push of",
                                 label(), state.starts);
    const double begin = state.counts ? monotonicSeconds() : 0.0;
    complete();
    requireUnchanged();
    if (direction_ == Direction::Push)
        combinePushed();
    state.notifyPulled(direction_, *pattern_, true);
    state.stage = State::Stage::Idle;
    if (!state.stream)
        state.releaseArrays();
    if (state.counts)
        state.counts->waited(begin);
}

bool Exchange::ready() {
    return running("the pull of", "the push of", [&] {
        requireStarted();
        State &state = *state_;
        // A thread other than the one that started it may wait: progress belongs to the waiting thread.
        state.engine.moveHere();
        if (const std::exception_ptr failure = state.engine.takeFailure())
            std::rethrow_exception(failure);
        const bool complete = state.progress();
        ProgressEngine::progressAll();
        state.context->progressParked();
        return complete;
    });
}

std::string Exchange::awaited() const {
    for (const auto &transport : state_->transports)
        if (std::string text = transport->awaited(); !text.empty())
            return fmt::format("{} of '{}'", text, label());
    return fmt::format("rows of '{}'", label());
}

void Exchange::complete() {
    State &state = *state_;
    state.engine.end(); // from here on this thread alone asks
    if (const std::exception_ptr failure = state.engine.takeFailure())
        std::rethrow_exception(failure);
    waitUntil(
        *state.context, [&] { return state.progress(); }, [&] { return awaited(); },
        state.pollsMpi ? PollTarget::Mpi : PollTarget::Memory);
    for (const auto &transport : state.transports)
        transport->finish();
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
    // All ghosts have been sent. On the device the zeros are queued on the same stream, after the combination.
    if (state.zeroing)
        state.zeroing->run(state.sonsNow, state.streamHandle());
}

} // namespace DNDS
