#include "DNDS/Transport/DevicePeerTransport.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

DevicePeerTransport::DevicePeerTransport(TransportPlan plan, const TransportSetup &setup)
    : NodeTransport(std::move(plan), setup), devices_(DeviceTopology::madeFor(setup.context)), stream_(setup.stream),
      writers_(plan_.incoming.size()), outgoing_(plan_.outgoing), incoming_(plan_.incoming) {
    devices_->reap();
    build();
    if (plan_.outgoing.empty())
        return;
    source_ = std::make_unique<PackedSource>(arena_, 2 * secondBuffer(), plan_.outgoing.size());
    const Device::SharedHandle handle = Device::share(source_->memory());
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k) {
        PeerRecord *record = source_->records()[k];
        record->buffer = handle;
        record->begin[0] = outgoing_.begin(k);
        record->begin[1] = secondBuffer() + outgoing_.begin(k);
        publish(readerRank(k), record);
    }
}

DevicePeerTransport::~DevicePeerTransport() {
    if (inForkedChild()) // the flags are the parent's
        return;
    try {
        stream_->stream.synchronize(); // kernels read what peers packed, and the lists
    } catch (const Error &) {          // the device is lost: nothing runs any more
    }
    for (Writer &writer : writers_) {
        writer.memory = {};
        if (writer.record != nullptr)
            writer.record->edge.closeReader();
    }
    if (!source_)
        return;
    for (PeerRecord *record : source_->records()) {
        record->edge.closeWriter();
        if (!connected_) // nobody has looked it up
            record->edge.closeReader();
    }
    devices_->retire(std::move(source_));
}

void DevicePeerTransport::build() {
    for (Copies &copies : copies_) {
        copies.pack = {};
        copies.unpack = {};
        for (const Outgoing &outgoing : plan_.outgoing)
            for (const RowGather &part : outgoing.parts)
                copies.pack.addGather(part);
        for (const Incoming &incoming : plan_.incoming)
            for (const RowScatter &part : incoming.parts)
                copies.unpack.addScatter(part);
    }
}

void DevicePeerTransport::lookUpRecords() {
    // Where the memory of one cannot be opened, all are told that this rank is gone.
    forEachOf(writers_.size(),
              [&](std::size_t k) { writers_[k].record = lookUp<PeerRecord>(writerRank(k), plan_.incoming[k].peer); });
    forEachOf(writers_.size(),
              [&](std::size_t k) { writers_[k].memory = Device::SharedMemory(writers_[k].record->buffer); });
}

void DevicePeerTransport::replacePlan(TransportPlan plan) {
    stream_->stream.synchronize();
    plan_ = std::move(plan);
    build();
}

void DevicePeerTransport::bind(const Endpoints &endpoints) {
    for (std::size_t b = 0; b < 2; ++b) {
        std::size_t segment = 0;
        for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
            for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p, ++segment)
                copies_[b].pack.point(segment, endpoints.sources[p],
                                      source_->memory() + b * secondBuffer() + outgoing_.part(k, p));
        segment = 0;
        for (std::size_t k = 0; k < writers_.size(); ++k) {
            const std::byte *message = writers_[k].memory.as<const std::byte>() + writers_[k].record->begin[b];
            for (std::size_t p = 0; p < plan_.incoming[k].parts.size(); ++p, ++segment)
                copies_[b].unpack.point(segment, message + (incoming_.part(k, p) - incoming_.begin(k)),
                                        endpoints.destinations[p] + plan_.incoming[k].parts[p].offset());
        }
        copies_[b].pack.prepare(stream_->stream);
        copies_[b].unpack.prepare(stream_->stream);
    }
}

void DevicePeerTransport::giveBack() {
    for (Writer &writer : writers_)
        writer.record->edge.taken(epoch_);
}

void DevicePeerTransport::start() {
    read_.synchronize(); // queued in the epoch before; writers need it for the one after this
    giveBack();
    ++epoch_;
    for (Writer &writer : writers_)
        writer.pending = true;
    reading_ = !writers_.empty();
    packing_ = plan_.outgoing.empty() ? Packing::Done : Packing::WaitingForReaders;
    progress();
}

bool DevicePeerTransport::progress() {
    progressPacking();
    progressReading();
    return packing_ == Packing::Done && !reading_;
}

void DevicePeerTransport::progressPacking() {
    if (packing_ == Packing::WaitingForReaders) {
        for (const PeerRecord *record : source_->records())
            if (!record->edge.mayPack(epoch_))
                return;
    }
    if (packing_ == Packing::WaitingForReaders) {
        copies_[epoch_ % 2].pack.launch(stream_->stream);
        packed_.record(stream_->stream);
        packing_ = Packing::Running;
    }
    if (packing_ == Packing::Running && packed_.reached()) {
        for (PeerRecord *record : source_->records())
            record->edge.packed(epoch_);
        packing_ = Packing::Done;
    }
}

void DevicePeerTransport::progressReading() {
    if (!reading_)
        return;
    bool all = true;
    for (std::size_t k = 0; k < writers_.size(); ++k) {
        Writer &writer = writers_[k];
        if (!writer.pending)
            continue;
        const EdgeState state = writer.record->edge.poll(epoch_);
        DNDS_CHECK(state != EdgeState::Closed, PeerError, "rank {} destroyed its exchange before sending its rows",
                   plan_.incoming[k].peer);
        writer.pending = state == EdgeState::Waiting;
        all = all && !writer.pending;
    }
    if (!all)
        return;
    reading_ = false;
    copies_[epoch_ % 2].unpack.launch(stream_->stream);
    read_.record(stream_->stream);
}

bool DevicePeerTransport::settle() noexcept {
    packing_ = Packing::Done;
    reading_ = false;
    try {
        stream_->stream.synchronize(); // kernels that this rank has launched, which wait for nothing
    } catch (const Error &) {          // the device is lost: nothing runs there any more
    }
    return true;
}

void DevicePeerTransport::renew(const CommunicatorContext & /*context*/) {
    epoch_ = EpochFlag::initialEpoch;
    if (source_)
        for (PeerRecord *record : source_->records())
            record->edge.renew();
    for (Writer &writer : writers_)
        writer.pending = false;
}

TransportDescriptor DevicePeerTransport::describe() {
    TransportDescriptor transport;
    transport.kind = TransportKind::Peer;
    transport.name = "peer";
    transport.servesDevice = transport.needsProgress = true;
    transport.order = 6;
    transport.preference = 30;
    transport.prepare = [](CommunicatorContext &context) { DeviceTopology::of(context); };
    transport.reach = [](const CommunicatorContext &context, int peer) {
        if (readEnvironment().forceHostStaging)
            return Reach::notMeantFor(forcedStaging);
        if (!context.node().sameNode(peer))
            return Reach::notMeantFor("on another node");
        const auto devices = DeviceTopology::madeFor(context);
        return devices->reaches(peer) ? Reach::yes("on this node, where devices read each other's memory")
                                      : Reach::no("on this node, but " + devices->whyNot(peer));
    };
    transport.make = [](TransportPlan plan, const TransportSetup &setup) {
        return std::make_unique<DevicePeerTransport>(std::move(plan), setup);
    };
    return transport;
}

} // namespace DNDS
