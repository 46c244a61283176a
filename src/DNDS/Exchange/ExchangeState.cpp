#include "DNDS/Exchange/ExchangeState.hpp"

#include "DNDS/Base/ContentHash.hpp"

#include <algorithm>
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

const char *directionName(Direction direction) { return direction == Direction::Pull ? "pull" : "push"; }

void locateRows(const ExchangePattern &pattern, Direction direction, MemorySpace space, const ExchangeMember &member,
                RowLayout &father, RowLayout &son) {
    DNDS_CHECK(!member.pattern || pattern.moves(member.pattern()), StateError,
               "the ghost mapping of '{}' was replaced since its {} was set up: call createMPITypes, and set up the "
               "exchange again (in a new group, where it is in one)",
               member.name, directionName(direction));
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
        tellFailed(moves);
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

void Exchange::State::giveUp(Direction direction) noexcept {
    engine.end();
    if (stage == Stage::InFlight)
        stage = Stage::Idle;
    tellFailed(direction);
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
    try {
        if (stream)
            stream->stream.synchronize();
    } catch (...) { // the device is lost: nothing runs there
        return;
    }
}

void Exchange::State::tellPulled(Direction direction, const ExchangePattern &pattern, bool arrived) const {
    if (direction != Direction::Pull)
        return;
    for (const ExchangeMember &member : members)
        // Ghosts of another mapping than the one that was pulled by know nothing of it.
        if (member.pulled && (!arrived || !member.pattern || pattern.moves(member.pattern())))
            member.pulled(arrived, !pattern.isRestriction());
}

void Exchange::State::tellFailed(Direction direction) const noexcept {
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

} // namespace DNDS
