#include "DNDS/Blocks/BlockFieldCore.hpp"

#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <utility>

namespace DNDS {

ExchangeMember BlockFieldCore::member() const {
    requireMade();
    // Cells and ghosts are rows of one array, which serves as father and as son.
    const auto layout = [array = data_](MemorySpace space, Access access, RowLayout &into) {
        array->rowLayout(space, access, into);
    };
    return {.name = std::string(data_->label()),
            .father = layout,
            .son = layout,
            .onDevice = [array = data_] { return array->valid(MemorySpace::Device); },
            .pattern = nullptr};
}

void BlockFieldCore::bind(std::shared_ptr<const BlockPattern> pattern, std::shared_ptr<ArrayBase> data,
                          rowsize components) {
    pattern_ = std::move(pattern);
    data_ = std::move(data);
    components_ = components;
}

HostMemoryResource BlockFieldCore::memoryFor(const BlockPattern &pattern) {
    const NodeTopology &node = pattern.exchange()->context().node();
    return node.members.size() > 1 ? HostMemoryResource(node.arena) : nullptr;
}

const BlockMemory &BlockFieldCore::memoryOf(int local) const {
    requireMade();
    const auto blocks = pattern_->blocks();
    DNDS_CHECK(local >= 0 && toSize(local) < blocks.size(), IndexError, "'{}' has {} blocks on this rank, none {}",
               data_->label(), blocks.size(), local);
    return blocks[toSize(local)];
}

void BlockFieldCore::requireMade(SourceLocation where) const {
    if (!made()) [[unlikely]]
        throw StateError("this field on blocks was declared only, or moved from: make it with a grid first", where);
}

const std::shared_ptr<Exchange> &BlockFieldCore::ready() {
    requireMade();
    if (!exchange().made())
        initExchangeGhosts();
    return exchange().get(data_->label());
}

void BlockFieldCore::initExchangeGhosts(const ExchangeOptions &options) {
    requireMade();
    ExchangeOptions here = options;
    here.space = side_ == MemorySpace::Device ? ExchangeSpace::Device : ExchangeSpace::Host;
    const auto describe = [this] { return ExchangeRequest{pattern_->exchange(), {member()}}; };
    exchange().init(pattern_->exchange()->context(), data_->label(), describe, here);
}

void BlockFieldCore::finishExchangeGhosts() { inFlight().wait(); }

void BlockFieldCore::finishExchangeGhosts(Device::StreamHandle consumer) { inFlight().wait(consumer); }

Exchange &BlockFieldCore::inFlight() {
    requireMade();
    PersistentExchange &started = onDevice_.inFlight() ? onDevice_ : onHost_; // the side it is on now
    DNDS_CHECK(started.inFlight(), StateError, "no exchange of the ghosts of '{}' is under way: start one first",
               data_->label());
    return *started.get(data_->label());
}

const Exchange &BlockFieldCore::bound() const {
    requireMade();
    DNDS_CHECK(exchange().made(), StateError,
               "the ghosts of '{}' were never exchanged on the {}: call initExchangeGhosts or exchangeGhosts first",
               data_->label(), side_ == MemorySpace::Device ? "device" : "host");
    return *exchange().get(data_->label());
}

std::string BlockFieldCore::describeExchange() const { return bound().describe(); }

std::vector<PeerPath> BlockFieldCore::ghostPaths() const { return bound().paths(); }

void BlockFieldCore::toDevice() {
    requireMade();
    data_->toDevice();
    side_ = MemorySpace::Device;
}

void BlockFieldCore::toDevice(Device::StreamHandle stream) {
    requireMade();
    data_->toDevice(stream);
    side_ = MemorySpace::Device;
}

void BlockFieldCore::toHost() {
    requireMade();
    data_->toHost();
    side_ = MemorySpace::Host;
}

void BlockFieldCore::toHost(Device::StreamHandle stream) {
    requireMade();
    data_->toHost(stream);
    side_ = MemorySpace::Host;
}

} // namespace DNDS
