#include "DNDS/Sparse/SparseFields.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/Check.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Mpi/RequireSame.hpp"
#include "DNDS/Sparse/SparseFieldsState.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

bool isLocal(Bounds which) { return which != Bounds::NonLocal; }
bool isNonLocal(Bounds which) { return which != Bounds::Local; }

} // namespace

SparseFields::State::State(std::string label, std::span<SparseFieldCore *const> cores)
    : name(std::move(label)), awaited(fmt::format("send its blocks of '{}'", name)) {
    pattern = cores.front()->pattern();
    try {
        throw MemoryError(
            fmt::format("the exchange of '{}' finds no memory on this rank: make room, then complete it, or go on with "
                        "the next one",
                        name));
    } catch (const MemoryError &) {
        noMemory = std::current_exception();
    }
    std::size_t widest = 0;
    for (SparseFieldCore *core : cores) {
        Member &member = members.emplace_back();
        member.field = core->state_;
        const SparseFieldState &field = *member.field;
        member.copies = &pattern->copies(field.cellBytes);
        member.wanted.resize(field.blocks.size());
        member.fresh.resize(field.blocks.size());
        member.defaults.resize(toSize(pattern->mostCells()) * field.cellBytes);
        field.elements->fill(member.defaults.data(), member.defaults.size() / field.elements->bytes());
        widest = std::max(widest, member.defaults.size());
    }
    scratch.resize(widest);
    for (const PeerChannels &peer : pattern->peers())
        peers.emplace_back().present.resize(Bits::words(peer.given.size() * members.size()));
}

void SparseFields::State::requireUsable() const {
    requireMpiActive("exchange a sparse field");
    (void)pattern->context()->comm(); // throws where the communicator was freed
}

void SparseFields::State::checkPeers(double seconds) {
    try {
        for (std::size_t p = 0; p < peers.size(); ++p)
            if (!peers[p].arrived)
                messages->checkPeer(p, awaited, seconds);
    } catch (...) { // what is missing will not be awaited again
        abandon();
        throw;
    }
}

void SparseFields::State::begin() {
    requireUsable();
    if (inFlight && incomplete) { // the program goes on without what came
        abandon();
        lostLast = true;
    }
    if (inFlight)
        return;
    for (const Member &member : members)
        DNDS_CHECK(member.field->inFlight == 0, StateError,
                   "'{}' cannot begin: '{}' is in another exchange, which is not finished", name, member.field->name);
    for (const Member &member : members)
        DNDS_CHECK(member.field->space == members.front().field->space, StateError,
                   "'{}' cannot begin: '{}' is on the {}, and '{}' is not", name, members.front().field->name,
                   members.front().field->space == MemorySpace::Host ? "host" : "device", member.field->name);
    space = members.front().field->space;
    ContentHash places;
    for (const Member &member : members)
        places.add(static_cast<std::uint64_t>(member.field->places.front()));
    stages = static_cast<std::uint32_t>(places.value());
    if (onDevice() && device == nullptr)
        device = std::make_unique<SparseDevice>();
    if (device != nullptr)
        device->clear();
    polling.reset();
    ++epoch;
    inFlight = true;
    sentLocal = sentNonLocal = localSet = nonLocalSet = incomplete = false;
    failure = nullptr;
    for (Peer &peer : peers)
        peer.arrived = peer.usable = peer.kept = false;
    for (Member &member : members) {
        ++member.field->inFlight;
        member.wanted.clear();
        member.fresh.clear();
    }
    if (std::exchange(gaveUp, false))
        dropOld();
}

/// Takes what has come for exchanges that this rank gave up: peers have room for two messages, and would wait.
void SparseFields::State::dropOld() noexcept {
    try {
        for (std::size_t p = 0; p < peers.size(); ++p)
            while (messages->receive(p)) {
                SparseHeader header;
                const std::span<const std::byte> message = messages->received(p);
                std::memcpy(&header, message.data(), std::min(message.size(), sparseHeaderBytes));
                if (header.epoch >= epoch || header.code == SparseHeader::Closed)
                    break;
                messages->take(p);
            }
    } catch (...) { // no memory, which receiving reports
        return;
    }
}

/// Ends an exchange that cannot be completed. What peers still send for it is left aside by its epoch.
void SparseFields::State::abandon() noexcept {
    if (!inFlight)
        return;
    for (std::size_t p = 0; p < peers.size(); ++p)
        if (peers[p].arrived && !peers[p].kept)
            messages->take(p);
    for (Member &member : members)
        --member.field->inFlight;
    inFlight = false;
    gaveUp = true;
}

void SparseFields::State::build() {
    for (Peer &peer : peers) {
        std::fill(peer.present.begin(), peer.present.end(), 0);
        peer.mostBytes = 0;
    }
    for (std::size_t f = 0; f < members.size(); ++f) {
        const Member &member = members[f];
        member.field->allocated.forEach([&](int block) {
            for (const SparsePattern::Place &place : pattern->givenBy(block)) {
                const PeerChannels &channels = pattern->peers()[toSize(place.peer)];
                Peer &peer = peers[toSize(place.peer)];
                Bits::set(peer.present.data(), f * channels.given.size() + toSize(place.channel));
                peer.mostBytes += member.gather(channels.given[toSize(place.channel)]).bytes();
            }
        });
    }
}

/// Copies a rim to host memory; returns whether it is loud.
bool SparseFields::State::packRim(const Member &member, const ChannelEnd &channel, std::byte *to) {
    const RowGather &copy = member.gather(channel);
    const SparseFieldState &field = *member.field;
    if (onDevice()) {
        const Packed &rim = packed[nextPacked++];
        std::memcpy(to, device->pinnedStaging(0) + rim.offset, copy.bytes());
        return rim.loud;
    }
    copy.gather(field.memory(channel.block), to);
    const std::size_t count = copy.bytes() / field.elements->bytes();
    return field.elements->firstAbove(to, count, field.options.allocationThreshold) < count;
}

void SparseFields::State::sendLocal() {
    if (onDevice())
        sendLocalOnDevice();
    else
        forEachAsking([&](Member &member, const LocalChannel &channel) {
            if (packRim(member, channel.from, scratch.data()))
                member.wanted.set(channel.to.block);
        });
    sentLocal = true;
}

void SparseFields::State::sendNonLocal() {
    const SparseHeader::Code code = std::exchange(lostLast, false) ? SparseHeader::LostLast : SparseHeader::Fine;
    std::size_t sent = 0;
    try {
        build();
        if (onDevice())
            packOnDevice();
        for (; sent < peers.size(); ++sent) {
            if (peers[sent].closed)
                continue;
            const std::size_t bytes = pack(sent, code);
            messages->send(sent, bytes);
            ++traffic.messages;
            traffic.bytes += bytes;
        }
    } catch (...) {
        for (; sent < peers.size(); ++sent)
            refuse(sent);
        abandon();
        try {
            throw;
        } catch (const std::bad_alloc &) {
            failForMemory();
        }
    }
    sentNonLocal = true;
}

std::size_t SparseFields::State::pack(std::size_t p, SparseHeader::Code code) {
    Peer &peer = peers[p];
    const PeerChannels &channels = pattern->peers()[p];
    std::size_t count = 0;
    for (const std::uint64_t word : peer.present)
        count += static_cast<std::size_t>(std::popcount(word));
    const std::size_t loudStart = sparseHeaderBytes + peer.present.size() * sizeof(std::uint64_t);
    const std::size_t dataStart = loudStart + Bits::words(count) * sizeof(std::uint64_t);
    std::byte *const to = messages->prepare(p, dataStart + peer.mostBytes + 8 * members.size()).data();
    auto *const loudBits = reinterpret_cast<std::uint64_t *>(to + loudStart);
    std::memset(loudBits, 0, dataStart - loudStart);
    std::size_t end = dataStart;
    std::size_t number = 0; // of channels with data
    std::size_t lastField = 0;
    Bits::forEach(peer.present.data(), peer.present.size(), [&](std::size_t bit) {
        const std::size_t f = bit / channels.given.size();
        const ChannelEnd &channel = channels.given[bit % channels.given.size()];
        const SparseFieldState &field = *members[f].field;
        const std::size_t at = f == lastField ? end : alignTo8(end);
        const bool loud = packRim(members[f], channel, to + at);
        if (!loud && !field.options.sendQuiet)
            return Bits::unset(peer.present.data(), bit);
        if (loud)
            Bits::set(loudBits, number);
        ++number;
        ++(loud ? traffic.loud : traffic.quiet);
        end = at + members[f].gather(channel).bytes();
        lastField = f;
    });
    const SparseHeader header = headerOf(code, dataStart);
    std::memcpy(to, &header, sparseHeaderBytes);
    std::ranges::copy(peer.present, reinterpret_cast<std::uint64_t *>(to + sparseHeaderBytes));
    return end;
}

/// Tells a peer that nothing comes in this exchange. Where it has not even taken the word before, the next message that
/// it gets shows that this rank is further on.
void SparseFields::State::refuse(std::size_t p) noexcept {
    const SparseHeader header = headerOf(SparseHeader::Refused, sparseHeaderBytes);
    if (!peers[p].closed)
        (void)messages->sendNote(p, std::as_bytes(std::span(&header, 1)));
}

bool SparseFields::State::receive() {
    requireUsable();
    bool all = true;
    for (std::size_t p = 0; p < peers.size(); ++p) {
        while (!peers[p].arrived && receiveFrom(p))
            accept(p);
        all = all && peers[p].arrived;
    }
    return all;
}

/// Whether a message of peer `p` is there.
bool SparseFields::State::receiveFrom(std::size_t p) {
    try {
        const bool there = messages->receive(p);
        incomplete = false; // there is memory again
        return there;
    } catch (const MemoryError &) {
        incomplete = true;
        throw;
    } catch (const std::bad_alloc &) {
        incomplete = true;
        failForMemory();
    }
}

void SparseFields::State::accept(std::size_t p) {
    const std::span<const std::byte> message = messages->received(p);
    const int rank = pattern->peers()[p].rank;
    SparseHeader header;
    std::memcpy(&header, message.data(), std::min(message.size(), sparseHeaderBytes));
    Peer &peer = peers[p];
    if (header.code == SparseHeader::Closed) {
        peer.arrived = peer.kept = peer.closed = true;
        return noteFailure<PeerError>([&] {
            return fmt::format(
                "rank {} has destroyed its exchange '{}', or an exception did: no ghosts come from there any more",
                rank, name);
        });
    }
    if (header.epoch < epoch) // of an exchange that this rank gave up
        return messages->take(p);
    peer.arrived = true;
    peer.kept = header.epoch > epoch;
    if (header.epoch != epoch || header.signature != signature)
        return noteFailure<StateError>([&] {
            return fmt::format(
                "rank {} is in exchange {} of '{}', this rank in exchange {}, or their fields differ: all "
                "ranks have to make the same exchanges",
                rank, header.epoch, name, epoch);
        });
    if (header.code == SparseHeader::Refused)
        return noteFailure<PeerError>([&] {
            return fmt::format(
                "rank {} could not send its blocks of '{}': see that rank's own error. Ghosts from it are "
                "not up to date",
                rank, name);
        });
    if (header.stages != stages)
        return noteFailure<StateError>([&] {
            return fmt::format("rank {} sends another stage of a field of '{}' than this rank in exchange {}: call "
                               "swapStages() alike on all ranks. Ghosts from it are not up to date",
                               rank, name, epoch);
        });
    if (header.code == SparseHeader::LostLast)
        noteFailure<PeerError>([&] {
            return fmt::format(
                "rank {} could not complete exchange {} of '{}', and went on without it: see that rank's "
                "own error",
                rank, epoch - 1, name);
        });
    peer.usable = true;
    wantLoud(p);
}

void SparseFields::State::wantLoud(std::size_t p) {
    forEachReceived(p, [&](std::size_t f, const ChannelEnd &channel, bool loud, const std::byte * /*data*/) {
        if (loud && !members[f].field->allocated.test(channel.block))
            members[f].wanted.set(channel.block);
    });
}

void SparseFields::State::setLocal(bool freshOnly) {
    if (onDevice())
        setLocalOnDevice(freshOnly);
    else
        forEachBound(freshOnly, [&](const Member &member, std::size_t k, bool isThere) {
            const LocalChannel &channel = pattern->localChannels()[k];
            const SparseFieldState &field = *member.field;
            std::byte *const to = field.memory(channel.to.block);
            const std::byte *rim = member.defaults.data();
            if (isThere && field.options.sendQuiet)
                return member.copies->copyLocal(k, channel, field.memory(channel.from.block), to);
            if (isThere && packRim(member, channel.from, scratch.data()))
                rim = scratch.data();
            member.scatter(channel.to).scatter(rim, to);
        });
    localSet = true;
}

void SparseFields::State::setNonLocal(bool freshOnly) {
    if (onDevice()) {
        setNonLocalOnDevice(freshOnly);
    } else {
        if (!freshOnly) // fresh blocks hold the default
            fillAbsent();
        for (std::size_t p = 0; p < peers.size(); ++p)
            if (peers[p].usable)
                unpack(p, freshOnly);
    }
    nonLocalSet = true;
}

void SparseFields::State::unpack(std::size_t p, bool freshOnly) {
    forEachReceived(p, [&](std::size_t f, const ChannelEnd &channel, bool /*loud*/, const std::byte *data) {
        const Member &member = members[f];
        if ((freshOnly ? member.fresh : member.field->allocated).test(channel.block))
            member.scatter(channel).scatter(data, member.field->memory(channel.block));
    });
}

void SparseFields::State::fillAbsent() {
    forEachAbsent([](const Member &member, const ChannelEnd &channel) {
        member.scatter(channel).scatter(member.defaults.data(), member.field->memory(channel.block));
    });
}

void SparseFields::State::allocateWanted() {
    struct Reserved {
        Member *member;
        int block;
        BlockPool::Owner memory;
    };
    std::vector<Reserved> reserved;
    try {
        for (Member &member : members)
            member.wanted.forEach([&](int block) {
                reserved.push_back({&member, block, member.field->reserve(block)});
            });
    } catch (const std::bad_alloc &) {
        failForMemory();
    }
    for (Reserved &one : reserved) { // from here on nothing fails
        one.member->field->take(one.block, std::move(one.memory));
        one.member->fresh.set(one.block);
        ++traffic.allocations;
    }
    if (onDevice() && !reserved.empty())
        try {
            fillFreshOnDevice();
        } catch (...) {
            for (const Reserved &one : reserved)
                one.member->field->drop(one.block);
            for (Member &member : members)
                member.fresh.clear();
            throw;
        }
}

bool SparseFields::State::anyFresh() const noexcept {
    return std::ranges::any_of(members, [](const Member &member) { return member.fresh.any(); });
}

void SparseFields::State::freeEmpty() {
    const std::vector<bool> empty = onDevice() ? emptyOnDevice() : std::vector<bool>();
    std::size_t next = 0;
    for (Member &member : members) {
        SparseFieldState &field = *member.field;
        const int most = field.options.deallocationCount;
        if (most == 0)
            continue;
        field.allocated.forEach([&](int block) {
            int &below = field.blocks[toSize(block)].below;
            below = (onDevice() ? empty[next++] : field.isBelow(block)) ? std::min(below, most) + 1 : 0;
            if (below >= most) {
                field.dropEmpty(block);
                ++traffic.frees;
            }
        });
    }
}

/// When both kinds of channels were set: what depends on all of them.
void SparseFields::State::complete() {
    incomplete = true; // unless what follows succeeds
    allocateWanted();
    incomplete = false;
    if (anyFresh()) {
        setLocal(true);
        setNonLocal(true);
    }
    freeEmpty();
    ++traffic.exchanges;
    abandon();
    gaveUp = false; // all has come
    if (failure)
        std::rethrow_exception(std::exchange(failure, nullptr));
}

SparseFields::SparseFields(SparseFieldCore &field) : SparseFields(field.name(), {&field}) {}

SparseFields::SparseFields(std::string name, std::span<SparseFieldCore *const> fields) {
    const auto some = std::ranges::find_if(
        fields, [](const SparseFieldCore *field) { return field != nullptr && field->state_ != nullptr; });
    DNDS_CHECK(some != fields.end(), ArgumentError, "the exchange '{}' has no fields", name);
    const auto &pattern = (*some)->pattern();
    const auto context = pattern->context();
    const CommunicatorView comm = context->comm();
    const Channel channel = context->nextChannel(); // before anything can fail: ranks stay in step
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
    requireSame(comm, texts, [&](std::size_t k, const std::string *first) {
        throw StateError(
            fmt::format("ranks make different exchanges of sparse fields: rank 0 has '{}' where rank {} has "
                        "'{}'",
                        first == nullptr ? "nothing" : *first, comm.rank(), k < texts.size() ? texts[k] : "nothing"));
    });
    comm.guarded([&] {
        state_ = std::make_unique<State>(std::move(name), fields);
        std::vector<int> ranks;
        for (const PeerChannels &peer : state_->pattern->peers())
            ranks.push_back(peer.rank);
        state_->messages = std::make_unique<PeerMessages>(context, channel, ranks);
        ContentHash hash;
        for (const std::string &text : texts)
            hash.addText(text);
        state_->signature = hash.value();
    });
    const SparseHeader farewell{0, state_->signature, SparseHeader::Closed, 0, sparseHeaderBytes};
    state_->messages->setFarewell(std::as_bytes(std::span(&farewell, 1)));
}

SparseFields::~SparseFields() {
    if (state_ != nullptr)
        state_->abandon();
}

void SparseFields::buildSparseBoundaryBuffers() { state_->requireUsable(); }

void SparseFields::startReceiveBoundBufs(Bounds /*which*/) { state_->requireUsable(); }

void SparseFields::sendBoundBufs(Bounds which) {
    State &state = *state_;
    DNDS_CHECK(!inFlight() || state.incomplete ||
                   !((isLocal(which) && state.sentLocal) || (isNonLocal(which) && state.sentNonLocal)),
               StateError, "exchange {} of '{}' has sent already: receive and set it before the next one", state.epoch,
               state.name);
    state.begin();
    if (isLocal(which))
        state.sendLocal();
    if (isNonLocal(which))
        state.sendNonLocal();
}

bool SparseFields::receiveBoundBufs(Bounds which) {
    State &state = *state_;
    DNDS_CHECK(inFlight(), StateError, "no exchange of '{}' was begun: send first", state.name);
    const bool local = !isLocal(which) || state.sentLocal;
    const bool come = !isNonLocal(which) || state.receive();
    if (!come)
        if (const auto seconds = state.polling.due())
            state.checkPeers(*seconds);
    return come && local;
}

void SparseFields::abandon() noexcept { state_->abandon(); }

void SparseFields::giveUp() noexcept {
    State &state = *state_;
    try {
        if (!state.inFlight)
            state.begin();
    } catch (...) { // nobody can be told
        return;
    }
    for (std::size_t p = 0; p < state.peers.size() && !state.sentNonLocal; ++p)
        state.refuse(p);
    state.abandon();
}

void SparseFields::setBounds(Bounds which) {
    State &state = *state_;
    DNDS_CHECK(inFlight() && (!isLocal(which) || state.sentLocal) && (!isNonLocal(which) || state.sentNonLocal),
               StateError, "the bounds of '{}' cannot be set before its exchange has sent", state.name);
    DNDS_CHECK(!isNonLocal(which) || state.receive(), StateError,
               "the bounds of '{}' cannot be set yet: some have not come. Call receiveBoundBufs until it returns true",
               state.name);
    DNDS_CHECK(state.incomplete || ((which == Bounds::Any || !(isLocal(which) ? state.localSet : state.nonLocalSet))),
               StateError, "the bounds of '{}' were set already in exchange {}", state.name, state.epoch);
    if (isLocal(which) && !state.localSet)
        state.setLocal(false);
    if (isNonLocal(which) && !state.nonLocalSet)
        state.setNonLocal(false);
    if (state.localSet && state.nonLocalSet)
        state.complete();
}

void SparseFields::finishExchangeGhosts() {
    State &state = *state_;
    DNDS_CHECK(inFlight() && state.sentLocal && state.sentNonLocal, StateError,
               "no exchange of the ghosts of '{}' is under way: start one first", state.name);
    if (!state.receive() && !state.localSet)
        setBounds(Bounds::Local); // while messages are on their way
    Backoff backoff(state.messages->channel().comm, state.messages->crowded());
    while (!state.receive()) {
        ProgressEngine::progressAll(); // peers may need rows before they send
        state.pattern->context()->progressParked();
        backoff.pause();
        if (backoff.longWait())
            state.checkPeers(backoff.seconds());
    }
    setBounds(Bounds::Any);
}

const std::string &SparseFields::name() const noexcept { return state_->name; }

bool SparseFields::inFlight() const noexcept { return state_->inFlight; }

std::vector<ArrayBase *> SparseFields::rows() const {
    std::vector<ArrayBase *> rows;
    for (const State::Member &member : state_->members)
        rows.push_back(&member.field->taskRows);
    return rows;
}

SparseTraffic SparseFields::traffic() const {
    SparseTraffic traffic = state_->traffic;
    traffic.bufferBytes = state_->messages->bufferBytes();
    return traffic;
}

} // namespace DNDS
