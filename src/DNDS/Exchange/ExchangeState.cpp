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

void Exchange::State::checkPeers(double secondsWaited) noexcept {
    try {
        for (const auto &transport : transports)
            transport->checkPeers(secondsWaited);
    } catch (...) {
        noteFailure(std::current_exception());
        lost = true;
    }
}

void Exchange::State::drain() const noexcept {
    try {
        if (stream)
            stream->stream.synchronize();
    } catch (...) { // the device is lost: nothing runs there
        return;
    }
}

void Exchange::State::abandon() noexcept {
    for (const auto &transport : transports)
        transport->abandon();
}

void Exchange::State::moveSonsAway(const HostMemoryResource &arena) const noexcept {
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
