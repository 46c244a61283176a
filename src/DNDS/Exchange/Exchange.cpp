#include "DNDS/Exchange/Exchange.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Exchange/Combine.hpp"
#include "DNDS/Exchange/PathReport.hpp"
#include "DNDS/Exchange/PushedRows.hpp"
#include "DNDS/Exchange/Traffic.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/Backoff.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"
#include "DNDS/Transport/ProgressEngine.hpp"
#include "DNDS/Transport/TransportTable.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace DNDS {

namespace {

/// A hash of the bytes that go to one peer from one part.
std::uint64_t hashOf(const RowGather &rows, const std::byte *base) {
    ContentHash hash;
    for (const ByteBlock &block : rows.blocks())
        hash.addBytes(base + block.offset, block.bytes);
    return hash.value();
}

} // namespace

namespace {

/// Process memory under a name of its own, so that arrays can be moved to it from process memory.
class OrdinaryMemory final : public std::pmr::memory_resource {
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        return defaultHostMemory()->allocate(bytes, alignment);
    }
    void do_deallocate(void *memory, std::size_t bytes, std::size_t alignment) override {
        defaultHostMemory()->deallocate(memory, bytes, alignment);
    }
    bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};

} // namespace

/// Everything that must stay alive while bytes move.
struct Exchange::State {
    std::vector<ExchangeMember> members;
    std::vector<RowLayout> fathers;
    std::vector<RowLayout> sons;
    std::vector<RowLayout> fathersNow; ///< what `start` finds, until it is accepted; what `wait` finds
    std::vector<RowLayout> sonsNow;
    Traffic traffic;
    std::vector<std::uint64_t> sent; ///< with debug checks: hashes of what leaves, by peer and part
    MemorySpace space = MemorySpace::Host;
    std::shared_ptr<ExchangeStream> lane; ///< on the device
    std::vector<HostDeviceBuffer> stagingOnHost;
    std::vector<Device::DeviceBuffer<std::byte>> stagingOnDevice;
    std::vector<std::byte *> staging;       ///< pushes: where each part arrives, until it is combined
    std::unique_ptr<DeviceCombine> combine; ///< pushes on the device
    std::optional<GhostZeroing> zeroing;    ///< pushes that leave zero ghosts
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<TransportKind> kinds; ///< by rank
    bool sonsInArena = false;
    std::thread::id maker = std::this_thread::get_id();
    ProgressEngine engine;
    bool bound = true; ///< false after planning or binding failed half-way
    bool inFlight = false;
    bool refused = false;        ///< some epoch: what peers sent in it may still be under way
    bool broken = false;         ///< a peer did not come, or the device failed: bytes may still move
    std::shared_ptr<State> kept; ///< itself, while nobody else does

    void addStaging(std::size_t bytes, const HostMemoryResource &memory) {
        staging.push_back(
            space == MemorySpace::Device
                ? stagingOnDevice.emplace_back(bytes).data()
                : stagingOnHost.emplace_back(bytes, memory).write(MemorySpace::Host, "staging of a push"));
    }

    /// The data that arrived is complete, so memory that arrays gave up meanwhile may go. Where kernels may still run
    /// it is kept until the next start.
    void letGo() {
        for (std::vector<RowLayout> *layouts : {&fathers, &sons, &fathersNow, &sonsNow})
            for (RowLayout &layout : *layouts)
                for (RowPart &part : layout.parts)
                    part.hold.reset();
    }

    /// Waits for what the lane holds, before somebody handles an error: rows of other peers may still be on their way.
    void drain() const noexcept {
        try {
            if (lane)
                lane->stream.synchronize();
        } catch (...) { // the device is lost: nothing runs there
            return;
        }
    }

    /// Whether this thread may call MPI for this exchange: the one that made it may, others where MPI allows it to all.
    bool mayCallMpi() const noexcept {
        int level = MPI_THREAD_SINGLE;
        return maker == std::this_thread::get_id() ||
               (MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE);
    }

    void abandon() noexcept {
        for (const auto &transport : transports)
            transport->abandon();
    }

    /// Gives the sons other memory: rows of peers that come late land in that which they had, and which is kept here.
    /// Not from a thread that the arrays may be in use on another.
    void leaveSons(const HostMemoryResource &arena) const noexcept {
        if (space != MemorySpace::Host || maker != std::this_thread::get_id())
            return;
        for (const ExchangeMember &member : members)
            try {
                if (!member.rehostSon)
                    continue;
                member.rehostSon(std::make_shared<OrdinaryMemory>()); // another one than it has, wherever it is
                if (sonsInArena)
                    member.rehostSon(arena);
            } catch (...) { // no memory: then they share it with what comes late, as the documents say
                return;
            }
    }

    /// Of the host's rows that peers get: found again at wait where nobody wrote them. O(bytes sent).
    void hashSent(Direction direction, std::vector<std::uint64_t> &into) const {
        into.clear();
        const std::vector<const std::byte *> sources = endpointsOf(direction, fathers, sons).sources;
        for (const Outgoing &outgoing : traffic.outgoing)
            for (std::size_t p = 0; p < outgoing.parts.size(); ++p)
                into.push_back(hashOf(outgoing.parts[p], sources[p]));
    }

    Endpoints endpoints(Direction direction) {
        Endpoints ends = endpointsOf(direction, fathers, sons);
        ends.destinations.insert(ends.destinations.end(), staging.begin(), staging.end());
        return ends;
    }
};

namespace {

#if defined(DNDS_DEBUG_CHECKS)
constexpr bool debugChecks = true;
#else
constexpr bool debugChecks = false;
#endif

const char *nameOf(Direction direction) { return direction == Direction::Pull ? "pull" : "push"; }

/// The memory of a member now: checked against the pattern.
void fetch(const ExchangePattern &pattern, Direction direction, MemorySpace space, const ExchangeMember &member,
           RowLayout &father, RowLayout &son) {
    DNDS_CHECK(!member.pattern || member.pattern() == &pattern, StateError,
               "the ghost mapping of '{}' was replaced since its {} was set up: call createMPITypes, and set up the "
               "exchange again (in a new group, where it is in one)",
               member.name, nameOf(direction));
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

/// The widths that matter to peers are those of the rows that move: fathers' where they are sent, sons' where they
/// arrive.
std::uint64_t signatureOf(std::span<const RowLayout> layouts, Direction direction, PushOp op, GhostsAfterPush ghosts,
                          MemorySpace space) {
    std::uint64_t signature = static_cast<std::uint64_t>(ghosts) << 24U | static_cast<std::uint64_t>(space) << 16U |
                              static_cast<std::uint64_t>(direction) << 8U | static_cast<std::uint64_t>(op);
    for (const RowLayout &layout : layouts)
        signature = signature * 0x100000001b3U ^ layout.signature;
    return signature;
}

/// All of their names, which ranks compare.
std::string namesOf(std::span<const ExchangeMember> members) {
    std::string names;
    for (const ExchangeMember &member : members)
        names += (names.empty() ? "" : ", ") + member.name;
    return names;
}

/// Splits the traffic by transport.
std::map<TransportKind, TransportPlan> plansOf(const Traffic &traffic, const Channel &channel,
                                               std::span<const TransportKind> kinds) {
    std::map<TransportKind, TransportPlan> plans;
    const auto planOf = [&](int peer) -> TransportPlan & {
        TransportPlan &plan = plans[kinds[static_cast<std::size_t>(peer)]];
        plan.channel = channel;
        return plan;
    };
    for (const Outgoing &outgoing : traffic.outgoing)
        planOf(outgoing.peer).outgoing.push_back(outgoing);
    for (const Incoming &incoming : traffic.incoming)
        planOf(incoming.peer).incoming.push_back(incoming);
    return plans;
}

/// The space that this rank asks for: a transport serves one only.
ExchangeSpace wishOf(const TransportTable &transports, const ExchangeOptions &options) {
    const TransportDescriptor *wished = transports.find(options.transport);
    if (options.space != ExchangeSpace::Auto || wished == nullptr)
        return options.space;
    return wished->servesHost ? ExchangeSpace::Host : ExchangeSpace::Device;
}

/// Which copies an exchange moves: the same answer on all ranks. Collective; one reduction where there may be devices.
/// Throws ArgumentError on all ranks where some ask for one space and some for the other.
MemorySpace agreeOnSpace(const CommunicatorView &comm, std::span<const ExchangeMember> members, ExchangeSpace wish) {
    if (Device::name() == "absent")
        return MemorySpace::Host; // on all ranks; whoever asks for the device throws, and all of them then
    const bool onDevice = Device::available() && std::ranges::all_of(members, [](const ExchangeMember &member) {
                              return member.onDevice && member.onDevice();
                          });
    std::array<int, 3> all{wish != ExchangeSpace::Host ? 1 : 0, wish != ExchangeSpace::Device ? 1 : 0,
                           wish != ExchangeSpace::Auto || onDevice ? 1 : 0};
    comm.allReduce(all.data(), 3, MPI_MIN);
    const bool hostUnwanted = all[0] == 1;
    const bool deviceUnwanted = all[1] == 1;
    DNDS_CHECK(hostUnwanted || deviceUnwanted, ArgumentError,
               "some ranks ask for rows in host memory, others for rows in device memory: choose the same space or "
               "transport on all ranks");
    return !deviceUnwanted || (hostUnwanted && all[2] == 1) ? MemorySpace::Device : MemorySpace::Host;
}

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

/// Lets it go on; whether it is complete. What fails is not: nobody is there to hear of it.
bool completed(Transport &transport) noexcept {
    try {
        return transport.progress();
    } catch (...) {
        return false;
    }
}

bool allCompleted(std::span<const std::unique_ptr<Transport>> transports) noexcept {
    bool complete = true;
    for (const auto &transport : transports)
        complete = completed(*transport) && complete;
    return complete;
}

} // namespace

namespace {

CommunicatorContext &contextOf(const std::shared_ptr<const ExchangePattern> &pattern) {
    DNDS_CHECK(pattern != nullptr, StateError, "an exchange needs a pattern: create a ghost mapping first");
    return pattern->context();
}

} // namespace

Exchange::Exchange(std::shared_ptr<const ExchangePattern> pattern, Direction direction,
                   std::vector<ExchangeMember> members, const ExchangeOptions &options, PushOp op)
    : Exchange(
          contextOf(pattern), direction,
          [&] {
              return ExchangeRequest{std::move(pattern), std::move(members)};
          },
          options, op) {}

std::unique_ptr<Exchange> Exchange::make(CommunicatorContext &context, Direction direction,
                                         const std::function<ExchangeRequest()> &describe,
                                         const ExchangeOptions &options, PushOp op) {
    std::unique_ptr<Exchange> made(new (std::nothrow) Exchange(context, direction, describe, options, op));
    if (!made)
        Exchange(
            context, direction, []() -> ExchangeRequest { throw std::bad_alloc(); }, options, op);
    return made;
}

Exchange::Exchange(CommunicatorContext &context, Direction direction, const std::function<ExchangeRequest()> &describe,
                   const ExchangeOptions &options, PushOp op)
    : direction_(direction), op_(op), ghosts_(direction == Direction::Push ? options.ghosts : GhostsAfterPush::Keep),
      channel_(context.nextChannel()) { // before anything can fail: ranks stay in step
    const std::uint64_t round = context.nextRound();
    const TransportTable &transports = TransportTable::of(context);
    std::exception_ptr failure;
    const auto attempt = [&](auto &&action) {
        if (!failure)
            try {
                action();
            } catch (...) {
                failure = std::current_exception();
            }
    };
    attempt([&] {
        state_ = std::make_shared<State>();
        ExchangeRequest request = describe();
        (void)contextOf(request.pattern);
        pattern_ = std::move(request.pattern);
        state_->members = std::move(request.members);
    });
    const ExchangeSpace wish = wishOf(transports, options);
    space_ = agreeOnSpace(context.comm(), failure ? std::span<const ExchangeMember>() : state_->members, wish);
    transports.prepare(context, space_);
    Created created;
    created.tag = channel_.tag;
    std::uint64_t signature = 0;
    attempt([&] {
        DNDS_CHECK(
            ghosts_ == GhostsAfterPush::Keep || op_ == PushOp::Sum, ArgumentError,
            "GhostsAfterPush::Zero is for PushOp::Sum only: after another operation, zeros would take part in the "
            "next push. Use GhostsAfterPush::Keep");
        if (wish == ExchangeSpace::Device)
            Device::requireDevice("exchange rows of device memory");
        State &state = *state_;
        state.space = space_;
        created.mapping = pattern_->mapping()->serial();
        created.names = namesOf(state.members);
        const std::size_t count = state.members.size();
        for (std::vector<RowLayout> *layouts : {&state.fathers, &state.sons, &state.fathersNow, &state.sonsNow})
            layouts->resize(count);
        state.kinds.assign(static_cast<std::size_t>(context.comm().size()), TransportKind::Auto);
        std::map<int, TransportChoice> choices;
        for (const RankLists *peers : {&pattern_->readers(), &pattern_->owners()})
            for (const int peer : peers->ranks) {
                const TransportChoice choice = transports.choose(context, peer, options.transport, space_);
                state.kinds[static_cast<std::size_t>(peer)] = choice.kind;
                choices.emplace(peer, choice);
                state.sonsInArena = state.sonsInArena || transports.at(choice.kind).destinationsInArena;
            }
        if (space_ == MemorySpace::Device)
            state.lane = std::make_shared<ExchangeStream>();
        for (std::size_t m = 0; m < count; ++m) {
            if (state.sonsInArena && direction_ == Direction::Pull && state.members[m].rehostSon)
                state.members[m].rehostSon(context.node().arena);
            fetch(*pattern_, direction_, space_, state.members[m], state.fathers[m], state.sons[m]);
            if (direction_ == Direction::Push)
                combineFunction(state.fathers[m].parts[0].kind, op_);
        }
        // A rank without owned rows has no widths of its own, but its ghosts have.
        signature =
            signatureOf(pattern_->fatherSize() > 0 ? state.fathers : state.sons, direction_, op_, ghosts_, space_);
        state.traffic = planTraffic(*pattern_, direction_, state.fathers, state.sons);
        if (direction_ == Direction::Push)
            for (const std::size_t bytes : state.traffic.destinationBytes)
                state.addStaging(bytes, state.sonsInArena ? HostMemoryResource(context.node().arena) : nullptr);
        if (direction_ == Direction::Push && space_ == MemorySpace::Device)
            state.combine = std::make_unique<DeviceCombine>(*pattern_, op_, state.fathers, state.lane->stream);
        if (ghosts_ == GhostsAfterPush::Zero)
            state.zeroing.emplace(state.sons, space_, state.lane ? state.lane->stream.handle() : nullptr);
        state.transports = transports.make(plansOf(state.traffic, channel_, state.kinds), {context, round, state.lane});
        paths_ = pathsOf(*pattern_, direction_, state.traffic, choices);
    });
    const Traffic none;
    agreeOnTraffic(context, failure ? none : state_->traffic, signature, created,
                   failure ? std::span<const TransportKind>() : state_->kinds, failure);

    State &state = *state_;
    // Buffers, peers' memory, descriptors: what one rank does not get, all ranks do without.
    context.comm().guarded([&] {
        std::exception_ptr unconnected; // peers expect that each of them was connected, whatever happened to others
        for (const auto &transport : state.transports)
            try {
                transport->connect();
            } catch (...) {
                unconnected = std::current_exception();
            }
        if (unconnected)
            std::rethrow_exception(unconnected);
        for (const auto &transport : state.transports)
            transport->bind(state.endpoints(direction_));
    });
    state.letGo();
}

Exchange::~Exchange() {
    if (!mpiActive())
        return;
    const bool moving = state_->inFlight || state_->broken || state_->refused;
    const bool mayCallMpi = state_->mayCallMpi();
    if (!moving && mayCallMpi)
        return;
    State *const state = state_.get();
    state->kept = std::move(state_); // leaks where the rest fails, rather than to free what MPI still uses
    const auto finished = [state] { return allCompleted(state->transports); };
    try {
        if (!mayCallMpi) { // not even to free requests: a thread that may does all of it
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
                state->leaveSons(pattern_->context().node().arena);
            pattern_->context().park(state->kept, finished);
        }
    } catch (...) { // no memory
        return;
    }
    const auto last = std::move(state->kept);
}

bool Exchange::inFlight() const noexcept { return state_->inFlight; }

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
        fmt::format("{} of '{}'{}{}", nameOf(direction_), label(),
                    state_->members.size() > 1 ? fmt::format(" and {} more", state_->members.size() - 1) : "",
                    space_ == MemorySpace::Device ? " on the device" : ""),
        paths_);
}

void Exchange::requireCommunicator() const {
    requireMpiActive("an exchange is used");
    DNDS_CHECK(pattern_->context().alive(), StateError,
               "the communicator of '{}' was freed before its exchange was complete: free it after the last use",
               label());
}

void Exchange::start(Device::StreamHandle producer) {
    State &state = *state_;
    requireCommunicator();
    DNDS_CHECK(!state.inFlight, StateError, "the exchange of '{}' is already started: wait for it first", label());
    DNDS_CHECK(!state.broken, StateError, "the exchange of '{}' lost a peer: destroy it", label());
    try {
        DNDS_CHECK(!state.lane || !Device::isCapturing(producer) || capturable(), StateError,
                   "the exchange of '{}' cannot be started on a stream whose work is captured for a graph", label());
        bool moved = false;
        bool changed = false;
        for (std::size_t m = 0; m < state.members.size(); ++m) {
            RowLayout &father = state.fathersNow[m];
            RowLayout &son = state.sonsNow[m];
            fetch(*pattern_, direction_, space_, state.members[m], father, son);
            moved = moved || !sameMemory(state.fathers[m], father) || !sameMemory(state.sons[m], son);
            changed = changed || !sameRows(state.fathers[m], father) || !sameRows(state.sons[m], son);
        }
        if (changed || !state.bound) [[unlikely]] {
            state.bound = false;
            Traffic traffic = planTraffic(*pattern_, direction_, state.fathersNow, state.sonsNow);
            DNDS_CHECK(traffic.sameAs(state.traffic), StateError,
                       "the row widths of '{}' changed since the exchange was made: call createMPITypes and init again",
                       state.members.front().name);
            auto plans = plansOf(traffic, channel_, state.kinds);
            for (const auto &transport : state.transports)
                transport->replacePlan(std::move(plans[transport->descriptor().kind]));
            if (state.combine)
                state.combine = std::make_unique<DeviceCombine>(*pattern_, op_, state.fathersNow, state.lane->stream);
            state.traffic = std::move(traffic);
        }
        state.fathers.swap(state.fathersNow);
        state.sons.swap(state.sonsNow);
        if (moved || changed || !state.bound) [[unlikely]] {
            state.bound = false;
            for (const auto &transport : state.transports)
                transport->bind(state.endpoints(direction_));
            state.bound = true;
        }
        if (debugChecks && space_ == MemorySpace::Host)
            state.hashSent(direction_, state.sent);
        if (state.lane)
            state.lane->follow(producer);
        state.engine.begin(state.transports);
    } catch (...) {
        state.refused = true;
        refuseAll(state.transports);
        throw;
    }
    state.inFlight = true;
    std::size_t started = 0;
    try {
        for (; started < state.transports.size(); ++started)
            state.transports[started]->start();
    } catch (...) {
        const std::span transports(state.transports);
        state.refused = true;
        refuseAll(transports.subspan(started));
        state.inFlight = false;
        state.broken = !allCompleted(transports.first(started)); // then it is served until it is destroyed
        if (!state.broken)
            state.engine.end();
        state.drain();
        throw;
    }
}

void Exchange::wait() {
    finish();
    if (state_->lane) {
        state_->lane->stream.synchronize();
        state_->letGo();
    }
}

void Exchange::wait(Device::StreamHandle consumer) {
    finish();
    if (state_->lane)
        state_->lane->precede(consumer);
}

void Exchange::finish() {
    State &state = *state_;
    DNDS_CHECK(state.inFlight, StateError, "wait for '{}' without start", label());
    requireCommunicator(); // where it is gone the exchange stays in flight, and its memory is kept
    state.inFlight = false;
    state.engine.end();
    try {
        complete();
        requireUnchanged();
        if (direction_ == Direction::Push)
            combinePushed();
    } catch (...) {
        state.drain();
        if (!state.broken)
            state.letGo();
        throw;
    }
    if (!state.lane)
        state.letGo();
}

void Exchange::complete() {
    const auto &transports = state_->transports;
    // complete all transports, then report the first failure
    std::exception_ptr failure = state_->engine.takeFailure();
    const auto attempt = [&](auto &&action) {
        try {
            action();
        } catch (...) {
            if (!failure)
                failure = std::current_exception();
        }
    };
    // Several transports wait together, so that none starves while another one is waited for, also those of other
    // exchanges.
    if (transports.size() > 1 || state_->lane || ProgressEngine::busy()) {
        Backoff backoff(channel_.comm, pattern_->context().node().crowded);
        const auto allComplete = [&] {
            bool complete = true;
            for (const auto &transport : transports)
                try {
                    complete = transport->progress() && complete;
                } catch (const MpiError &) { // nothing can be relied on then
                    throw;
                } catch (...) { // told once, and the rest goes on
                    complete = false;
                    failure = failure ? failure : std::current_exception();
                }
            ProgressEngine::progressAll();
            return complete;
        };
        attempt([&] {
            while (!allComplete()) {
                backoff.pause();
                if (backoff.longWait())
                    for (const auto &transport : transports)
                        transport->checkPeers(backoff.seconds());
            }
        });
    }
    for (const auto &transport : transports)
        if (!failure || completed(*transport))
            attempt([&] { transport->wait(); });
    if (!failure)
        return;
    state_->broken = !allCompleted(transports);
    std::rethrow_exception(failure);
}

void Exchange::requireUnchanged() {
    State &state = *state_;
    const bool pull = direction_ == Direction::Pull;
    const auto unchanged = [](const RowLayout &atStart, const RowLayout &now) {
        return sameMemory(atStart, now) && sameRows(atStart, now);
    };
    for (std::size_t m = 0; m < state.members.size(); ++m) {
        const ExchangeMember &member = state.members[m];
        RowLayout &father = state.fathersNow[m];
        RowLayout &son = state.sonsNow[m];
        try {
            member.father(space_, pull ? Access::Read : Access::Write, father);
            member.son(space_, pull || state.zeroing ? Access::Write : Access::Read, son);
        } catch (const Error &error) {
            throw StateError(fmt::format("'{}' was changed between start and wait of a {}: {}", member.name,
                                         nameOf(direction_), error.message()));
        }
        DNDS_CHECK(unchanged(state.fathers[m], father), StateError,
                   "father of '{}' was resized, swapped or moved between start and wait of a {}{}", member.name,
                   nameOf(direction_), pull ? ": peers got the rows that it had at start" : "");
        DNDS_CHECK(unchanged(state.sons[m], son), StateError,
                   "son of '{}' was resized, swapped or moved between start and wait of a {}: {}", member.name,
                   nameOf(direction_),
                   pull ? "its ghosts arrived in the memory that it had at start"
                        : "owners got the rows that it had at start");
    }
    if (!debugChecks || space_ != MemorySpace::Host)
        return;
    std::vector<std::uint64_t> now;
    state.hashSent(direction_, now);
    const auto [was, is] = std::ranges::mismatch(state.sent, now);
    if (was == state.sent.end())
        return;
    const auto changed = static_cast<std::size_t>(was - state.sent.begin());
    const std::size_t parts = state.traffic.outgoing.front().parts.size();
    std::size_t member = 0;
    for (std::size_t part = changed % parts; part >= static_cast<std::size_t>(state.fathers[member].partCount);
         ++member)
        part -= static_cast<std::size_t>(state.fathers[member].partCount);
    throw StateError(fmt::format("{} of '{}' that rank {} gets were written between start and wait of a {}: it has got "
                                 "what they held at any moment in between",
                                 pull ? "rows" : "ghosts", state.members[member].name,
                                 state.traffic.outgoing[changed / parts].peer, nameOf(direction_)));
}

void Exchange::combinePushed() {
    State &state = *state_;
    const std::vector<RowLayout> &fathers = state.fathersNow; // as requireUnchanged found them
    if (state.combine) {
        state.combine->launch(fathers, state.staging, state.lane->stream);
        if (state.combine->checks()) {
            state.lane->stream.synchronize();
            state.combine->check(state.members);
        }
    } else {
        combineOnHost(*pattern_, op_, state.members, fathers, state.staging);
    }
    if (state.zeroing)
        state.zeroing->run(state.sonsNow, state.lane ? state.lane->stream.handle() : nullptr);
}

} // namespace DNDS
