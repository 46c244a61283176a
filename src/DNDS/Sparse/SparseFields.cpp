#include "DNDS/Sparse/SparseFields.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Table.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Revocation.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Sparse/SparseFieldsState.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

bool isLocal(BoundaryType which) { return which != BoundaryType::NonLocal; }
bool isNonLocal(BoundaryType which) { return which != BoundaryType::Local; }
/// Whether DNDS was built for a device: the same on all ranks.
bool hasDevices() { return Device::name() != "absent"; }

} // namespace

/// Local: links are connected by the constructor of SparseFields. All sizes are known here, so that steps allocate only
/// messages and blocks.
SparseFields::State::State(std::string label, std::span<SparseFieldCore *const> cores, const Channel &channel,
                           const Channel &deviceChannel)
    : name(std::move(label)), title(fmt::format("the exchange of '{}'", name)), pattern(cores.front()->pattern()),
      context(pattern->context()) {
    std::size_t widest = 0;
    for (SparseFieldCore *core : cores) {
        Member &member = members.emplace_back();
        member.field = core->state_;
        const SparseFieldState &field = *member.field;
        member.copies = &pattern->copies(field.cellBytes);
        member.wanted.resize(field.blocks.size());
        member.fresh.resize(field.blocks.size());
        if (!field.options.sendBelowThreshold)
            member.withheld.resize(Bits::words(pattern->localChannels().size()));
        member.defaults.resize(toSize(pattern->maxCells()) * field.cellBytes);
        field.elements->fill(member.defaults.data(), member.defaults.size() / field.elements->bytes());
        // Defaults for the largest shape serve every shape: a scatter reads as many cells as its shape has.
        widest = std::max(widest, member.defaults.size());
    }
    scratch.resize(widest);
    sources.reserve(pattern->blocks().size());
    std::vector<int> ranks;
    for (const PeerChannels &channels : pattern->peers()) {
        ranks.push_back(channels.rank);
        peers.emplace_back();
    }
    link = std::make_unique<MessageLink>(context, channel, ranks);
    if (hasDevices())
        choosePaths(ranks, deviceChannel);
    context->enlist(*this);
}

/// The paths of data between devices, by the rules of exchanges of arrays. Both ranks of a pair choose alike, also
/// where they find that the transport of DNDS_TRANSPORT is impossible: the error is thrown when fields are on the
/// device.
void SparseFields::State::choosePaths(std::span<const int> ranks, const Channel &channel) {
    std::vector<TransportKind> kinds;
    for (std::size_t p = 0; p < peers.size(); ++p) {
        TransportChoice &path = peers[p].path;
        try {
            path = chooseTransport(*context, ranks[p], TransportKind::Auto, MemorySpace::Device);
        } catch (const StateError &) { // on both ranks of the pair; for lack of memory the set-up fails
            whyNotOnDevice = std::current_exception();
        }
        if (!isOnDevice(path.kind))
            path = {TransportKind::Staged, "staged", path.why};
        kinds.push_back(path.kind);
    }
    deviceLink = std::make_unique<MessageLink>(context, channel, ranks, kinds);
}

std::string SparseFields::State::describe() const {
    Table table({8, -12, 0});
    const bool there = members.front().field->space == MemorySpace::Device;
    table.text = fmt::format("exchange of '{}'{}\n", name, there ? " on the device" : "");
    table.add({"peer", "path", "why"});
    for (std::size_t p = 0; p < peers.size(); ++p)
        table.add({fmt::to_string(pattern->peers()[p].rank), there ? peers[p].path.name : "host",
                   there ? peers[p].path.why : std::string()});
    return table.text;
}

SparseFields::State::~State() {
    abandon("its SparseFields was destroyed in flight");
    context->delist(*this);
}

template <class Body>
decltype(auto) SparseFields::State::running(std::string_view call, Body &&body) {
    // After an error the fields are at rest at once: programs may free, move and read blocks before they recover.
    const OnFailure undo([this] { leave(); });
    requireMpiActive("exchange a sparse field");
    static_cast<void>(context->comm()); // throws where the communicator was freed
    return context->running(call, name, std::forward<Body>(body));
}

/// The two sides have a step each, which alone decides which calls are allowed: see `stepAfter`.
/// Called before any effect of the call, so that nothing is packed or sent by one that is refused.
void SparseFields::State::step(Side side, ExchangeCall call) {
    constexpr std::array<std::string_view, exchangeCalls> calls{"sendBoundBufs", "receiveBoundBufs", "setBounds", ""};
    const auto next = stepAfter(steps[side], call);
    DNDS_CHECK(next.has_value(), StateError,
               "{} makes no sense for {}, which {} on channels {}: call sendBoundBufs, receiveBoundBufs until it is "
               "true, and setBounds, each once",
               calls[static_cast<std::size_t>(call)], title, exchangeStepName(steps[side]),
               side == Local ? "within this rank" : "to other ranks");
    steps[side] = *next;
}

/// Begins an exchange with its first send, of either side. Everything that can be wrong with the fields is checked
/// before anything changes. The epoch counts exchanges on this rank: peers compare it, so that a skipped exchange is an
/// error instead of a shift by one step (as the tags of AMReX).
/// Local, O(fields): ranks compare epoch, signature and stages when messages arrive, at no extra message.
void SparseFields::State::begin(Device::StreamHandle producer) {
    if (inFlight())
        return;
    for (const Member &member : members)
        DNDS_CHECK(member.field->inFlight == 0, StateError,
                   "'{}' cannot begin: '{}' is in another exchange, which is not finished", name, member.field->name);
    for (const Member &member : members)
        DNDS_CHECK(member.field->space == members.front().field->space, StateError,
                   "'{}' cannot begin: '{}' is on the {}, and '{}' is not", name, members.front().field->name,
                   members.front().field->space == MemorySpace::Host ? "host" : "device", member.field->name);
    space = members.front().field->space;
    // `swapStages` permutes places without telling other ranks; their hash travels in each message.
    ContentHash places;
    for (const Member &member : members)
        places.add(static_cast<std::uint64_t>(member.field->places.front()));
    stages = places.value();
    if (onDevice() && whyNotOnDevice)
        std::rethrow_exception(whyNotOnDevice);
    if (onDevice() && device == nullptr)
        device = std::make_unique<SparseDevice>();
    // Jobs of an exchange that has failed.
    if (device != nullptr)
        device->clear();
    asked.clear();
    if (onDevice())
        Device::runAfter(device->stream(), producer);
    polling.reset();
    ++epoch;
    for (Member &member : members) {
        ++member.field->inFlight;
        member.wanted.clear();
        member.fresh.clear();
        std::ranges::fill(member.withheld, 0);
    }
}

/// Forgets the exchange in flight. Messages of it may still arrive: the communicator is revoked, and a recovery
/// discards them.
void SparseFields::State::leave() noexcept {
    if (!inFlight())
        return;
    for (Member &member : members)
        --member.field->inFlight;
    steps = {};
    push.reset();
    for (Peer &peer : peers)
        peer.accepted = peer.apart = peer.arrived = false;
}

void SparseFields::State::abandon(std::string_view why) noexcept {
    if (inFlight() && context->alive())
        context->revocation().revoke(title, why, Revocation::Caller::Destructor);
    leave();
}

bool SparseFields::State::settle() noexcept {
    leave();
    if (device != nullptr) // kernels that an error has left
        static_cast<void>(attempt([&] { Device::synchronize(device->stream()); }));
    const bool settled = link->settle();
    return (deviceLink == nullptr || deviceLink->settle()) && settled;
}

void SparseFields::State::renew() {
    link->renew();
    if (deviceLink != nullptr)
        deviceLink->renew();
    epoch = 0;
}

/// Marks, for each peer, the channels whose block is allocated, and bounds the bytes of their data. O(channels of
/// allocated blocks): absent blocks are never visited.
void SparseFields::State::build() {
    for (std::size_t p = 0; p < peers.size(); ++p) {
        peers[p].present.assign(Bits::words(outgoing(p).size() * members.size()), 0);
        peers[p].rims = peers[p].maxBytes = 0;
    }
    for (std::size_t f = 0; f < members.size(); ++f) {
        const Member &member = members[f];
        member.field->allocated.forEach([&](int block) {
            for (const SparsePattern::Place &place : push ? pattern->receivedBy(block) : pattern->givenBy(block)) {
                const std::vector<ChannelEnd> &channels = outgoing(toSize(place.peer));
                Peer &peer = peers[toSize(place.peer)];
                Bits::set(peer.present.data(), f * channels.size() + toSize(place.channel));
                ++peer.rims;
                peer.maxBytes += member.gather(channels[toSize(place.channel)]).bytes();
            }
        });
    }
}

/// Packs a rim, and returns whether it is sent. On the device both were done for all rims by `packOnDevice`, whose
/// order is that of these calls: then only the next result is read.
bool SparseFields::State::packRim(const Member &member, const ChannelEnd &channel, std::byte *to) {
    if (onDevice())
        return packedSent[nextPacked++];
    member.gather(channel).gather(member.field->memory(channel.block), to);
    return !mayWithhold(member) || member.isAbove(channel, to, withheldBelow(member));
}

void SparseFields::State::judge(Member &member, std::size_t k, bool isAbove) const {
    if (isAbove)
        member.want(pattern->localChannels()[k].to.block);
    else if (!member.withheld.empty())
        Bits::set(member.withheld.data(), k);
}

/// The receiver compares, as it alone knows which of its blocks are absent: rims for blocks that are there are never
/// looked at.
void SparseFields::State::ask(Member &member, const ChannelEnd &end, const std::byte *rim) {
    if (!member.mayWant(end.block))
        return;
    if (onDevice())
        askOnDevice(member, end, rim);
    else if (member.isAbove(end, rim, member.field->options.allocationThreshold))
        member.want(end.block);
}

/// Within a rank nothing is copied yet: `setLocal` copies from block to block.
void SparseFields::State::sendLocal() {
    step(Local, ExchangeCall::Send);
    if (onDevice())
        return sendLocalOnDevice();
    forEachAsking([&](Member &member, std::size_t k, const LocalChannel &channel) {
        member.gather(channel.from).gather(member.field->memory(channel.from.block), scratch.data());
        judge(member, k, member.isAbove(channel.from, scratch.data(), withheldBelow(member)));
    });
}

void SparseFields::State::sendNonLocal() {
    step(NonLocal, ExchangeCall::Send);
    build();
    if (onDevice())
        packOnDevice();
    for (std::size_t p = 0; p < peers.size(); ++p) {
        traffic.bytes += sendTo(p);
        ++traffic.messages;
    }
}

/// Packs and sends the message to peer `p`, in one pass over the channels of allocated blocks; returns its bytes. Bits
/// first (see SparseHeader), then the data. A rim that is not sent clears its bit, and the next rim is packed over it,
/// so that data have no gaps.
/// O(channels / 64 + bytes of present rims), one message a peer whatever the number of fields and blocks.
std::size_t SparseFields::State::sendTo(std::size_t p) {
    Peer &peer = peers[p];
    const std::vector<ChannelEnd> &channels = outgoing(p);
    const std::size_t dataStart = dataStartOf(channels);
    const std::size_t depositorBytes = push ? peer.rims * sizeof(std::int32_t) : 0;
    const std::size_t dataBytes = sendsApart(p) ? 0 : peer.maxBytes + 8 * members.size();
    // Room for all present rims, of which some may be withheld. Waits while the peer has not taken the message before
    // the last: at most two exchanges are in flight between two ranks.
    std::byte *const to = link->prepare(p, dataStart + dataBytes + depositorBytes).data();
    std::byte *const data = to + dataStart;
    DataPlaces places;
    depositors.clear();
    forEachChannel(peer.present.data(), peer.present.size(), channels.size(), [&](std::size_t f, std::size_t k) {
        const ChannelEnd &channel = channels[k];
        const bool sent = packRim(members[f], channel, data + places.next(f));
        ++(sent ? traffic.rims : traffic.withheld);
        if (!sent)
            return Bits::unset(peer.present.data(), f * channels.size() + k);
        if (push)
            depositors.push_back(pattern->blocks()[toSize(channel.block)].block);
        places.add(f, members[f].gather(channel).bytes());
    });
    // Data in device memory are a message of another link. The header says whether there is one: each link keeps the
    // order of its messages, so that the two parts of an exchange meet.
    const bool apart = sendsApart(p) && places.end > 0;
    if (apart)
        deviceLink->send(p, places.end);
    else if (onDevice() && places.end > 0)
        std::memcpy(data, peer.packed, places.end);
    const std::size_t here = apart ? 0 : places.end;
    const std::size_t numberBytes = depositors.size() * sizeof(std::int32_t);
    if (numberBytes > 0)
        std::memcpy(data + here, depositors.data(), numberBytes);
    const SparseHeader header{epoch, kind(), stages, apart ? 1U : 0U};
    std::memcpy(to, &header, sparseHeaderBytes);
    std::ranges::copy(peer.present, reinterpret_cast<std::uint64_t *>(to + sparseHeaderBytes));
    link->send(p, dataStart + here + numberBytes);
    return dataStart + places.end + numberBytes;
}

/// Whether everything has arrived on the channels of one side. Polls all peers even if one is late, so that their
/// messages are accepted in any order.
/// O(peers) a call, without waiting: programs may poll it while they compute.
bool SparseFields::State::receive(Side side) {
    if (!stepAfter(steps[side], ExchangeCall::Receive))
        step(side, ExchangeCall::Receive); // throws
    bool all = true;
    for (std::size_t p = 0; p < peers.size() && side == NonLocal; ++p) {
        Peer &peer = peers[p];
        if (!peer.accepted && link->receive(p))
            accept(p);
        peer.arrived = peer.accepted && (!peer.apart || deviceLink->receive(p));
        all = all && peer.arrived;
    }
    if (all)
        step(side, ExchangeCall::Receive);
    return all;
}

/// Reads the header of an arrived message; its bits and data stay in the link's buffer until `endExchange`. O(1).
void SparseFields::State::accept(std::size_t p) {
    const int rank = pattern->peers()[p].rank;
    SparseHeader header;
    std::memcpy(&header, link->received(p).data(), sparseHeaderBytes);
    DNDS_CHECK(
        header.epoch == epoch && header.signature == kind(), StateError,
        "rank {} is in exchange {} of '{}', this rank in exchange {}, or their fields differ, or one pushes: all "
        "ranks have to make the same exchanges",
        rank, header.epoch, name, epoch);
    DNDS_CHECK(header.stages == stages, StateError,
               "rank {} sends another stage of a field of '{}' than this rank in exchange {}: call swapStages() alike "
               "on all ranks",
               rank, name, epoch);
    DNDS_CHECK(header.apart == 0 || sendsApart(p), StateError,
               "rank {} sends blocks of '{}' from its device, and those of this rank are on the host: call toDevice() "
               "on all ranks, or set DNDS_FORCE_HOST_STAGING=1",
               rank, name);
    Peer &peer = peers[p];
    peer.apart = header.apart != 0;
    peer.data = link->received(p).data() + dataStartOf(incoming(p));
    peer.accepted = true;
}

/// For "waited for ...": the first peer whose message is missing.
std::string SparseFields::State::awaited() const {
    for (std::size_t p = 0; p < peers.size(); ++p)
        if (!peers[p].arrived)
            return fmt::format("rank {} to send its blocks of '{}'", pattern->peers()[p].rank, name);
    return title;
}

void SparseFields::State::set(Side side) {
    DNDS_CHECK(!push, StateError, "{} is a push: complete it by finishPushGhosts", title);
    if (steps[side] == ExchangeStep::Sent)
        static_cast<void>(receive(side)); // a step that makes no sense before all has come
    step(side, ExchangeCall::Set);
    side == Local ? setLocal(false) : setNonLocal(false);
}

/// Fills the ghosts at `end` with a rim or, if null, with the default: on the device in the next run.
void SparseFields::State::fill(const Member &member, const ChannelEnd &end, const std::byte *rim) {
    if (!onDevice())
        return member.scatter(end).scatter(rim != nullptr ? rim : member.defaults.data(),
                                           member.field->memory(end.block));
    SparseJob job = member.field->jobOf(nullptr, &end);
    job.source = rim;
    device->add(job);
}

/// Fills ghosts within the rank, from block to block: of all allocated blocks or, in a second pass, of the blocks that
/// this exchange has allocated.
/// Jobs of a run are in no order: they read cells and write ghosts, and each ghost has one source, so none conflict.
void SparseFields::State::setLocal(bool freshOnly) {
    forEachBound(freshOnly, [&](const Member &member, std::size_t k, const std::byte *from, std::byte *to) {
        const LocalChannel &channel = pattern->localChannels()[k];
        if (from == nullptr)
            fill(member, channel.to, nullptr);
        else if (onDevice())
            device->add(member.field->jobOf(&channel.from, &channel.to));
        else
            member.copies->copyLocal(k, channel, from, to);
    });
    if (onDevice())
        static_cast<void>(device->run(0));
}

/// The same for ghosts of other ranks' cells. Ghosts without data get the default, then data are scattered. Absent
/// blocks that must be allocated are marked only: that is decided when all messages are here, and `wanted` is a union
/// over messages, the same whatever their order.
void SparseFields::State::setNonLocal(bool freshOnly) {
    if (!freshOnly) { // fresh blocks hold the default, and messages are on the device
        if (onDevice())
            takeToDevice();
        forEachAbsent([&](const Member &member, const ChannelEnd &channel) { fill(member, channel, nullptr); });
    }
    for (std::size_t p = 0; p < peers.size(); ++p)
        forEachReceived(p, [&](std::size_t f, std::size_t k, std::size_t at) {
            Member &member = members[f];
            const ChannelEnd &channel = pattern->peers()[p].received[k];
            if ((freshOnly ? member.fresh : member.field->allocated).test(channel.block))
                fill(member, channel, peers[p].data + at);
            else if (!freshOnly)
                ask(member, channel, peers[p].data + at);
        });
    if (onDevice()) {
        runAsked();
        Device::synchronize(device->stream()); // copies of messages without any job
    }
}

/// Allocates all wanted blocks, or none: memory is reserved for all, of all fields, before the first block is taken, so
/// that an error leaves the fields as they were. Returns whether there were any.
/// A block is wanted if any rim for it has a value above the threshold. That is a property of values, not of ranks, so
/// all distributions of blocks allocate the same ones in the same exchange.
bool SparseFields::State::allocateWanted() {
    struct Reserved {
        Member *member;
        int block;
        BlockPool::Owner memory;
    };
    std::vector<Reserved> reserved;
    for (Member &member : members)
        member.wanted.forEach([&](int block) { reserved.push_back({&member, block, member.field->reserve(block)}); });
    if (onDevice() && !reserved.empty()) {
        for (const Reserved &one : reserved)
            fillOnDevice(*one.member, one.block, one.memory->write(space, name));
        static_cast<void>(device->run(0));
    }
    for (Reserved &one : reserved) { // from here on nothing fails
        one.member->field->take(one.block, std::move(one.memory));
        one.member->fresh.set(one.block);
        ++traffic.allocations;
    }
    return !reserved.empty();
}

/// Frees blocks that were below the threshold in `deallocationCount` consecutive exchanges: hysteresis, without which a
/// block at the edge of a blob would come and go in every step. Counted after ghosts are filled, since ghosts count as
/// well.
/// O(allocated blocks) while witnesses hold. Owners decide alone, without messages: peers learn of an absent block by
/// the missing bit in the next message.
void SparseFields::State::freeEmpty() {
    const std::vector<bool> empty = onDevice() ? emptyOnDevice() : std::vector<bool>();
    std::size_t next = 0;
    for (Member &member : members) {
        SparseFieldState &field = *member.field;
        const int most = field.options.deallocationCount;
        if (most == 0)
            continue;
        if (!onDevice()) // one cache line a block, far apart
            field.allocated.forEach([&](int block) {
                __builtin_prefetch(field.memory(block) + field.blocks[toSize(block)].witness * field.elements->bytes());
            });
        field.allocated.forEach([&](int block) {
            int &below = field.blocks[toSize(block)].below;
            // At most one more than the limit: restarts may set any number.
            below = (onDevice() ? empty[next++] : field.isBelow(block)) ? std::min(below, most) + 1 : 0;
            if (below >= most) {
                field.dropEmpty(block);
                ++traffic.frees;
            }
        });
    }
}

/// Completes the exchange when both sides are set, in this order: fresh blocks need all messages to be allocated, their
/// ghosts need both sides, and freeing looks at the ghosts of all.
void SparseFields::State::complete() {
    if (allocateWanted()) {
        setLocal(true);
        setNonLocal(true);
    }
    freeEmpty();
    endExchange();
}

/// Frees the message buffers for the senders.
/// Buffers are taken last: `Peer::data` points into them until ghosts of fresh blocks are set, too.
void SparseFields::State::endExchange() {
    for (std::size_t p = 0; p < peers.size(); ++p) {
        link->take(p);
        if (peers[p].apart)
            deviceLink->take(p);
        peers[p].accepted = peers[p].apart = peers[p].arrived = false;
    }
    for (const Side side : {Local, NonLocal})
        step(side, ExchangeCall::End);
    for (Member &member : members)
        --member.field->inFlight;
    push.reset();
    ++traffic.exchanges;
}

SparseFields::SparseFields(SparseFieldCore &field) : SparseFields(field.name(), {&field}) {}

SparseFields::SparseFields(std::string name, std::span<SparseFieldCore *const> fields) {
    // A rank whose first field is null still has to take part in the collective calls: any valid field names the
    // communicator.
    const auto some = std::ranges::find_if(
        fields, [](const SparseFieldCore *field) { return field != nullptr && field->state_ != nullptr; });
    DNDS_CHECK(some != fields.end(), ArgumentError, "the exchange '{}' has no fields", name);
    const auto &pattern = (*some)->pattern();
    const auto context = pattern->context();
    const CommunicatorView comm = context->comm();
    const Channel channel = context->nextChannel(); // before anything can fail: ranks stay in step
    const Channel deviceChannel = hasDevices() ? context->nextChannel() : channel;
    std::vector<std::string> texts;
    comm.guarded([&] {
        for (const SparseFieldCore *field : fields) {
            DNDS_CHECK(field != nullptr && field->state_ != nullptr, ArgumentError,
                       "a field of '{}' is null, or was moved from", name);
            DNDS_CHECK(field->pattern() == pattern, ArgumentError,
                       "the fields of '{}' are on different patterns: make them on one", name);
            texts.push_back(field->state_->describe());
            DNDS_CHECK(std::ranges::count(fields, field) == 1, ArgumentError, "'{}' is twice in '{}'", field->name(),
                       name);
        }
        texts.push_back(fmt::format("{} on blocks {:016x}", name, pattern->signature()));
    });
    // Fields, options and pattern are compared as texts, once; messages carry only their hash.
    requireSame(comm, texts, [&](std::size_t k, const std::string *first) {
        throw StateError(
            fmt::format("ranks make different exchanges of sparse fields: rank 0 has '{}' where rank {} has "
                        "'{}'",
                        first == nullptr ? "nothing" : *first, comm.rank(), k < texts.size() ? texts[k] : "nothing"));
    });
    if (hasDevices()) // fields may go there at any time, but only a set-up may try what MPI and devices can do
        prepareTransports(*context, MemorySpace::Device);
    comm.guarded([&] {
        state_ = std::make_unique<State>(std::move(name), fields, channel, deviceChannel);
        ContentHash hash;
        for (const std::string &text : texts)
            hash.addText(text);
        state_->signature = hash.value();
    });
    state_->link->connect();
    if (hasDevices())
        state_->deviceLink->connect();
}

SparseFields::~SparseFields() = default;

void SparseFields::sendBoundBufs(BoundaryType which, Device::StreamHandle producer) {
    state_->running("sendBoundBufs of", [&] {
        state_->begin(producer);
        if (isLocal(which))
            state_->sendLocal();
        if (isNonLocal(which))
            state_->sendNonLocal();
    });
}

bool SparseFields::receiveBoundBufs(BoundaryType which) {
    State &state = *state_;
    return state.running("receiveBoundBufs of", [&] {
        const bool all =
            (!isLocal(which) || state.receive(State::Local)) && (!isNonLocal(which) || state.receive(State::NonLocal));
        if (!all)
            if (const auto seconds = state.polling.due())
                requireAlive(*state.context, state.awaited(), *seconds, state.context->waitTimeout());
        return all;
    });
}

void SparseFields::setBounds(BoundaryType which) {
    State &state = *state_;
    state.running("setBounds of", [&] {
        const bool any = which == BoundaryType::Any; // also completes an exchange of which one side is set
        for (const State::Side side : {State::Local, State::NonLocal})
            if ((side == State::Local ? isLocal : isNonLocal)(which) &&
                !(any && state.steps[side] == ExchangeStep::Set))
                state.set(side);
        if (state.steps == std::array{ExchangeStep::Set, ExchangeStep::Set})
            state.complete();
    });
}

/// Overlaps the ghosts within the rank with messages in flight, if these are late; else everything is set at once.
/// No deadlock: every rank has sent to all peers before it waits here, and a send waits only until the peer has ended
/// the exchange before the last, for which it has this rank's message.
void SparseFields::finishExchangeGhosts() {
    State &state = *state_;
    state.running("finishExchangeGhosts of", [&] {
        if (!state.receive(State::NonLocal) && state.steps[State::Local] == ExchangeStep::Sent)
            state.set(State::Local); // while messages are on their way
        waitUntil(
            *state.context, [&] { return state.receive(State::NonLocal); }, [&] { return state.awaited(); });
        for (const State::Side side : {State::Local, State::NonLocal})
            if (state.steps[side] != ExchangeStep::Set)
                state.set(side);
        state.complete();
    });
}

void SparseFields::startPushGhosts(PushOp op, Device::StreamHandle producer) {
    state_->running("startPushGhosts of", [&] { state_->startPush(op, producer); });
}

void SparseFields::finishPushGhosts() {
    state_->running("finishPushGhosts of", [&] { state_->finishPush(); });
}

void SparseFields::abandon() noexcept { state_->abandon("the program has abandoned it"); }

const std::string &SparseFields::name() const noexcept { return state_->name; }

std::string SparseFields::describe() const { return state_->describe(); }

bool SparseFields::inFlight() const noexcept { return state_->inFlight(); }

std::vector<Array<std::uint8_t, 0> *> SparseFields::rows() const {
    std::vector<Array<std::uint8_t, 0> *> rows;
    for (const State::Member &member : state_->members)
        rows.push_back(&member.field->taskRows);
    return rows;
}

SparseTraffic SparseFields::traffic() const {
    SparseTraffic traffic = state_->traffic;
    traffic.bufferBytes =
        state_->link->bufferBytes() + (state_->deviceLink != nullptr ? state_->deviceLink->bufferBytes() : 0);
    return traffic;
}

} // namespace DNDS
