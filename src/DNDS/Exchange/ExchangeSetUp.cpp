#include "DNDS/Base/Error.hpp"
#include "DNDS/Exchange/Combine.hpp"
#include "DNDS/Exchange/ExchangeState.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Transport/TransportTable.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

namespace DNDS {

namespace {

/// A hash of options and layouts, equal on both ends of each pair. Peers compare the widths of the rows that move: the
/// fathers' on the sending side, the sons' on the receiving side.
std::uint64_t signatureOf(std::span<const RowLayout> layouts, Direction direction, PushOp op, GhostsAfterPush ghosts,
                          MemorySpace space) {
    // One word for everything that both sides of each pair must have in common; it is part of their fingerprints
    // (agreeOnPlan).
    std::uint64_t signature = static_cast<std::uint64_t>(ghosts) << 24U | static_cast<std::uint64_t>(space) << 16U |
                              static_cast<std::uint64_t>(direction) << 8U | static_cast<std::uint64_t>(op);
    // The step of the FNV-1 hash with its 64-bit prime, for words instead of bytes.
    for (const RowLayout &layout : layouts)
        signature = signature * 0x100000001b3U ^ layout.signature;
    return signature;
}

/// The members' names, joined: ranks compare them.
std::string namesOf(std::span<const ExchangeMember> members) {
    std::string names;
    for (const ExchangeMember &member : members)
        names += (names.empty() ? "" : ", ") + member.name;
    return names;
}

/// Bytes of all parts of an array, for reports.
std::size_t bytesOf(const RowLayout &layout) {
    std::size_t bytes = 0;
    for (int part = 0; part < layout.partCount && layout.rows > 0; ++part)
        bytes += layout.parts[static_cast<std::size_t>(part)].begin(layout.rows);
    return bytes;
}

std::size_t bytesOf(const PeerRows &peers) {
    std::size_t bytes = peers.values.size_bytes() + peers.starts.size_bytes() + peers.ranks.size_bytes();
    for (const RowList &rows : peers.lists)
        bytes += sizeof rows + (rows.boxes() ? rows.boxes()->size() * sizeof(RowBox) : 0);
    return bytes;
}

/// One path for each peer that gives or gets rows, ascending. `choices` has the transport of each.
std::vector<PeerPath> pathsOf(const ExchangePattern &pattern, Direction direction, const MessagePlan &plan,
                              const std::map<int, TransportChoice> &choices) {
    // For reports: one line a peer, both directions together.
    std::map<int, PeerPath> paths;
    for (const auto &[peer, choice] : choices)
        paths[peer] = {.peer = peer, .transport = choice.kind, .name = choice.name, .why = choice.why};
    const auto note = [&](const PeerRows &peers, index PeerPath::*rows) {
        for (std::size_t k = 0; k < peers.size(); ++k)
            paths[peers.ranks[k]].*rows = peers.starts[k + 1] - peers.starts[k];
    };
    const bool pull = direction == Direction::Pull;
    note(pattern.readers(), pull ? &PeerPath::rowsSent : &PeerPath::rowsReceived);
    note(pattern.owners(), pull ? &PeerPath::rowsReceived : &PeerPath::rowsSent);
    for (const Outgoing &outgoing : plan.outgoing)
        paths[outgoing.peer].bytesSent = outgoing.bytes;
    for (const Incoming &incoming : plan.incoming)
        paths[incoming.peer].bytesReceived = incoming.bytes;
    std::vector<PeerPath> list;
    for (auto &[peer, path] : paths)
        list.push_back(std::move(path));
    return list;
}

/// The requested memory space; a requested transport implies one. Local.
ExchangeSpace requestedSpace(const ExchangeOptions &options) {
    const TransportDescriptor *requested = findTransport(options.transport);
    if (options.space != ExchangeSpace::Auto || requested == nullptr)
        return options.space;
    return requested->servesHost ? ExchangeSpace::Host : ExchangeSpace::Device;
}

/// The memory space of an exchange's copies: the same answer on all ranks. Collective; one reduction where there may be
/// devices. Throws ArgumentError on all ranks where some ask for one space and some for the other.
/// O(members) and one reduction of three numbers. All ranks derive the space from reduced numbers, hence the same
/// one.
MemorySpace agreeOnSpace(const CommunicatorView &comm, std::span<const ExchangeMember> members,
                         ExchangeSpace requested) {
    if (Device::name() == "absent")
        return MemorySpace::Host; // on all ranks; a request for the device throws on all of them later
    const bool onDevice = Device::available() && std::ranges::all_of(members, [](const ExchangeMember &member) {
                              return member.onDevice && member.onDevice();
                          });
    // Minima over ranks: whether no rank asks for the host, no rank asks for the device, and each rank either asks
    // for a space or has all arrays on the device.
    std::array<int, 3> all{requested != ExchangeSpace::Host ? 1 : 0, requested != ExchangeSpace::Device ? 1 : 0,
                           requested != ExchangeSpace::Auto || onDevice ? 1 : 0};
    comm.allReduce(all.data(), 3, MPI_MIN);
    const bool hostUnwanted = all[0] == 1;
    const bool deviceUnwanted = all[1] == 1;
    DNDS_CHECK(hostUnwanted || deviceUnwanted, ArgumentError,
               "some ranks ask for rows in host memory, others for rows in device memory: choose the same space or "
               "transport on all ranks");
    return !deviceUnwanted || (hostUnwanted && all[2] == 1) ? MemorySpace::Device : MemorySpace::Host;
}

/// Throws on this rank alone: without a pattern there is no communicator to tell the others by.
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

// A shared_ptr to the exchange inside an optional: the constructor is collective, so its memory must be there before.
std::shared_ptr<Exchange> Exchange::make(CommunicatorContext &context, Direction direction,
                                         const std::function<ExchangeRequest()> &describe,
                                         const ExchangeOptions &options, PushOp op) {
    // Memory for the object comes first. A rank without it takes part in the collective constructor with an
    // exception instead of a request, and all ranks throw it.
    std::shared_ptr<std::optional<Exchange>> place;
    const std::exception_ptr noMemory = attempt([&] { place = std::make_shared<std::optional<Exchange>>(); });
    if (noMemory)
        Exchange(
            context, direction, [&]() -> ExchangeRequest { std::rethrow_exception(noMemory); }, options, op);
    place->emplace(context, direction, describe, options, op);
    return {place, &**place};
}

Exchange::Exchange(CommunicatorContext &context, Direction direction, const std::function<ExchangeRequest()> &describe,
                   const ExchangeOptions &options, PushOp op)
    : Exchange(CommunicatorContext::SetUp(context), context, direction, describe, options, op) {}

// Collective steps, in this order on all ranks, whatever fails on one: the channel; the memory space (a reduction where
// there are devices); the transports' preparation; the plan (a reduction, which carries failures); `connect` (an
// agreement). All of the rest is local.
Exchange::Exchange(const CommunicatorContext::SetUp &setUp, CommunicatorContext &context, Direction direction,
                   const std::function<ExchangeRequest()> &describe, const ExchangeOptions &options, PushOp op)
    : direction_(direction), op_(op), ghosts_(direction == Direction::Push ? options.ghosts : GhostsAfterPush::Keep) {
    const Channel channel = context.nextChannel(); // before anything can fail: ranks stay in step
    announceReport(context);
    std::exception_ptr failure;
    attempt(failure, [&] {
        setUp.requireAlone();
        state_ = std::make_shared<State>();
        state_->context = context.shared_from_this();
        state_->channel = channel;
        state_->moves = direction;
        state_->use = &context.useOf(state_->ownUse);
        ExchangeRequest request = describe();
        (void)contextOf(request.pattern);
        pattern_ = std::move(request.pattern);
        state_->members = std::move(request.members);
    });
    const ExchangeSpace requested = requestedSpace(options);
    space_ = agreeOnSpace(context.comm(), failure ? std::span<const ExchangeMember>() : state_->members, requested);
    prepareTransports(context, space_);
    // From here on a failure is kept until `agreeOnPlan`, the first point at which all ranks compare.
    ExchangeIdentity identity;
    identity.tag = channel.tag;
    if (!failure)
        attempt(failure, [&] {
            DNDS_CHECK(
                ghosts_ == GhostsAfterPush::Keep || op_ == PushOp::Sum, ArgumentError,
                "GhostsAfterPush::Zero is for PushOp::Sum only: after another operation, zeros would take part in the "
                "next push. Use GhostsAfterPush::Keep");
            if (requested == ExchangeSpace::Device)
                Device::requireDevice("exchange rows of device memory");
            identity.pattern = pattern_->serial();
            identity.names = namesOf(state_->members);
            identity.signature = prepare(context, options);
            beginCounting(identity.names);
        });
    if (failure) // perhaps without a state
        agreeOnPlan(context, MessagePlan{}, identity, PeerKinds{}, failure);
    else
        agreeOnPlan(context, state_->plan, identity, state_->kinds, nullptr);
    connect(context.comm());
    state_->releaseArrays();
}

// Everything local: topology, plans, buffers, transports. May throw on this rank alone, which `agreeOnPlan` passes on.
// Returns the signature on which pairs must agree.
// O(rows exchanged): lists of rows become runs, boxes or row numbers, once for all epochs.
std::uint64_t Exchange::prepare(CommunicatorContext &context, const ExchangeOptions &options) {
    State &state = *state_;
    state.space = space_;
    const std::size_t count = state.members.size();
    for (std::vector<RowLayout> *layouts : {&state.fathers, &state.sons, &state.fathersNow, &state.sonsNow})
        layouts->resize(count);
    // One transport for each peer in either direction: both ends come to the same choice, from the topology and
    // settings that they share. `agreeOnPlan` checks it.
    std::map<int, TransportChoice> choices;
    bool sonsInArena = false; // in memory that the ranks of the node share
    for (const PeerRows *peers : {&pattern_->readers(), &pattern_->owners()})
        for (const int peer : peers->ranks) {
            const TransportChoice choice = chooseTransport(context, peer, options.transport, space_);
            state.kinds[peer] = choice.kind;
            choices.emplace(peer, choice);
            sonsInArena = sonsInArena || transportOf(choice.kind).destinationsInArena;
        }
    // All device work of the exchange is on one stream of its own.
    if (space_ == MemorySpace::Device)
        state.stream = std::make_shared<ExchangeStream>();
    for (std::size_t m = 0; m < count; ++m) {
        locateRows(*pattern_, direction_, space_, state.members[m], state.fathers[m], state.sons[m]);
        if (direction_ == Direction::Push)
            combineFunction(state.fathers[m].parts[0].kind, op_);
    }
    // From rows to bytes: transports know only parts, offsets and peers.
    state.plan = planMessages(*pattern_, direction_, state.fathers, state.sons);
    // Pushed rows arrive in staging buffers, and are combined when all are there: the order of arrival does not
    // matter. They lie in the arena where a transport lets peers write to them.
    if (direction_ == Direction::Push)
        for (const std::size_t bytes : state.plan.destinationBytes)
            state.addStaging(bytes, sonsInArena ? HostMemoryResource(context.node().arena) : nullptr);
    if (direction_ == Direction::Push && space_ == MemorySpace::Device)
        state.combine = std::make_unique<DeviceCombine>(*pattern_, op_, state.fathers, state.stream->stream);
    if (ghosts_ == GhostsAfterPush::Zero)
        state.zeroing.emplace(*pattern_, state.sons, space_, state.streamHandle(), false);
    // One transport object for each kind that some peer needs, with the messages of its peers.
    state.transports =
        makeTransports(splitByTransport(state.plan, state.channel, state.kinds), {context, state.stream});
    for (const auto &transport : state.transports)
        state.needsProgress = state.needsProgress || transport->descriptor().needsProgress;
    state.pollsMpi = state.transports.size() == 1 && state.transports.front()->descriptor().pollsMpi;
    paths_ = pathsOf(*pattern_, direction_, state.plan, choices);
    // A rank without owned rows has no widths of its own, but its ghosts have.
    return signatureOf(pattern_->fatherSize() > 0 ? state.fathers : state.sons, direction_, op_, ghosts_, space_);
}

void Exchange::beginCounting(const std::string &names) {
    State &state = *state_;
    // Null, and so free, while counting is off; else shared with all exchanges of this name.
    state.counts = countsOf(pattern_->context(), fmt::format("{} of '{}'", directionName(direction_), names));
    if (!state.counts)
        return;
    const std::lock_guard lock(CountsOfProcess::instance().mutex);
    ExchangeCounts &counts = *state.counts;
    counts.describe(paths_, space_ == MemorySpace::Device);
    counts.numbers[Count::Owned] = static_cast<double>(pattern_->fatherSize());
    counts.numbers[Count::Ghosts] = static_cast<double>(pattern_->sonSize());
    counts.numbers[Count::ListBytes] = static_cast<double>(bytesOf(pattern_->readers()) + bytesOf(pattern_->owners()));
    for (const std::size_t bytes : state.plan.destinationBytes)
        counts.numbers[Count::BufferBytes] += static_cast<double>(bytes);
    for (std::size_t m = 0; m < state.members.size(); ++m)
        counts.arrays[state.members[m].name] = {bytesOf(state.fathers[m]), bytesOf(state.sons[m])};
}

// Collective: notes between ranks of a node, and one agreement. Afterwards all ranks have the exchange or none has
// it.
void Exchange::connect(const CommunicatorView &comm) {
    State &state = *state_;
    // Buffers, peers' memory and descriptors: if one rank fails to get them, all ranks throw.
    comm.guarded([&] {
        std::exception_ptr unconnected; // peers expect that each of them was connected, whatever happened to others
        for (const auto &transport : state.transports)
            attempt(unconnected, [&] { transport->connect(); });
        if (unconnected)
            std::rethrow_exception(unconnected);
        for (const auto &transport : state.transports)
            transport->bind(state.endpoints(direction_));
        state.context->enlist(state);
    });
}

} // namespace DNDS
