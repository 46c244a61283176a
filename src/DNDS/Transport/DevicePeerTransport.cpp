#include "DNDS/Transport/DevicePeerTransport.hpp"

#include "DNDS/Transport/Backoff.hpp"

#include <algorithm>
#include <utility>

namespace DNDS {

DevicePeerTransport::DevicePeerTransport(TransportPlan plan, const CommunicatorContext &context, std::uint64_t round,
                                         std::shared_ptr<DeviceLane> lane, double patience)
    : plan_(std::move(plan)), arena_(context.node().arena), devices_(context.devices()), lane_(std::move(lane)),
      writers_(plan_.incoming.size()), round_(round), patience_(patience), crowded_(context.node().crowded),
      outgoing_(plan_.outgoing), incoming_(plan_.incoming) {
    devices_->reap();
    const auto nodeRank = [&](int peer) { return context.node().nodeRank[static_cast<std::size_t>(peer)]; };
    for (const Outgoing &outgoing : plan_.outgoing)
        readers_.push_back(nodeRank(outgoing.peer));
    for (std::size_t k = 0; k < writers_.size(); ++k)
        writers_[k].nodeRank = nodeRank(plan_.incoming[k].peer);
    build();
    if (readers_.empty())
        return;
    source_ = std::make_unique<PackedSource>(arena_, 2 * secondBuffer(), readers_.size());
    const Device::SharedHandle handle = Device::share(source_->memory());
    for (std::size_t k = 0; k < readers_.size(); ++k) {
        PeerRecord *record = source_->records()[k];
        record->buffer = handle;
        record->begin[0] = outgoing_.begin(k);
        record->begin[1] = secondBuffer() + outgoing_.begin(k);
        arena_->publish(readers_[k], round_, *arena_->locate(record));
    }
}

DevicePeerTransport::~DevicePeerTransport() {
    if (inForkedChild()) // the flags are the parent's
        return;
    try {
        lane_->stream.synchronize(); // kernels read what peers packed, and the lists
    } catch (const Error &) {        // the device is lost: nothing runs any more
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
            for (const DestinationRange &part : incoming.parts)
                copies.unpack.addRange(part.bytes);
    }
}

void DevicePeerTransport::connect() {
    connected_ = true;
    // Where one of them cannot be opened, all are told that this rank is gone: so all records that can be known are.
    std::exception_ptr failure;
    const auto attempt = [&](auto &&action) {
        try {
            action();
        } catch (...) {
            failure = failure ? failure : std::current_exception();
        }
    };
    for (std::size_t k = 0; k < writers_.size(); ++k)
        attempt([&] {
            const auto place = arena_->lookUp(writers_[k].nodeRank, round_);
            DNDS_CHECK(place.has_value(), StateError,
                       "rank {} left no note about its rows: ranks set up exchanges in different orders",
                       plan_.incoming[k].peer);
            writers_[k].record = reinterpret_cast<PeerRecord *>(arena_->translate(writers_[k].nodeRank, *place));
        });
    if (!failure)
        for (Writer &writer : writers_)
            attempt([&] { writer.memory = Device::SharedMemory(writer.record->buffer); });
    if (failure)
        std::rethrow_exception(failure);
}

void DevicePeerTransport::adopt(TransportPlan plan) {
    lane_->stream.synchronize();
    plan_ = std::move(plan);
    build();
}

void DevicePeerTransport::bind(const Endpoints &endpoints) {
    for (std::size_t b = 0; b < 2; ++b) {
        std::size_t segment = 0;
        for (std::size_t k = 0; k < readers_.size(); ++k)
            for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p, ++segment)
                copies_[b].pack.point(segment, endpoints.sources[p],
                                      source_->memory() + b * secondBuffer() + outgoing_.part(k, p));
        segment = 0;
        for (std::size_t k = 0; k < writers_.size(); ++k) {
            const std::byte *message = writers_[k].memory.as<const std::byte>() + writers_[k].record->begin[b];
            for (std::size_t p = 0; p < plan_.incoming[k].parts.size(); ++p, ++segment)
                copies_[b].unpack.point(segment, message + (incoming_.part(k, p) - incoming_.begin(k)),
                                        endpoints.destinations[p] + plan_.incoming[k].parts[p].offset);
        }
        copies_[b].pack.prepare(lane_->stream);
        copies_[b].unpack.prepare(lane_->stream);
    }
}

void DevicePeerTransport::giveBack() {
    for (Writer &writer : writers_)
        writer.record->edge.taken(epoch_);
}

void DevicePeerTransport::start() {
    failure_.clear();
    read_.synchronize(); // queued in the epoch before; writers need it for the one after this
    giveBack();
    ++epoch_;
    for (Writer &writer : writers_)
        writer.pending = true;
    reading_ = !writers_.empty();
    packing_ = readers_.empty() ? Packing::Done : Packing::WaitingForReaders;
    try {
        progress();
    } catch (...) { // `refuse` comes to this epoch anew
        --epoch_;
        packing_ = Packing::Done;
        reading_ = false;
        throw;
    }
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
    try {
        if (packing_ == Packing::WaitingForReaders) {
            copies_[epoch_ % 2].pack.launch(lane_->stream);
            packed_.record(lane_->stream);
            packing_ = Packing::Running;
        }
        if (packing_ == Packing::Running && packed_.reached()) {
            for (PeerRecord *record : source_->records())
                record->edge.packed(epoch_);
            packing_ = Packing::Done;
        }
    } catch (...) {
        refuseReaders();
        throw;
    }
}

void DevicePeerTransport::refuseReaders() {
    if (source_)
        for (PeerRecord *record : source_->records())
            record->edge.refuse(epoch_);
    packing_ = Packing::Done;
}

void DevicePeerTransport::progressReading() {
    if (!reading_)
        return;
    bool all = true;
    for (std::size_t k = 0; k < writers_.size(); ++k) {
        Writer &writer = writers_[k];
        if (!writer.pending)
            continue;
        const PeerEdge::State state = writer.record->edge.poll(epoch_);
        if (state == PeerEdge::State::Waiting) {
            all = false;
            continue;
        }
        writer.pending = false;
        writer.arrived = state == PeerEdge::State::Packed;
        if (state == PeerEdge::State::Refused)
            failure_.note(plan_.incoming[k].peer,
                          "could not send its rows: see that rank's own error. The rows from it are not up to date");
        else if (state == PeerEdge::State::Closed)
            failure_.note(plan_.incoming[k].peer,
                          "destroyed its exchange before sending its rows. The rows from it are not up to date");
    }
    if (!all)
        return;
    DeviceRowCopy &unpack = copies_[epoch_ % 2].unpack;
    std::size_t segment = 0;
    for (std::size_t k = 0; k < writers_.size(); ++k)
        for (std::size_t p = 0; p < plan_.incoming[k].parts.size(); ++p, ++segment)
            unpack.enable(segment, writers_[k].arrived);
    reading_ = false;
    unpack.launch(lane_->stream);
    read_.record(lane_->stream);
}

void DevicePeerTransport::wait() {
    Backoff backoff(plan_.channel.comm, crowded_);
    while (!progress()) {
        backoff.pause();
        if (backoff.longWait())
            checkPeers(backoff.seconds());
    }
    failure_.throwIfAny();
}

void DevicePeerTransport::checkPeers(double secondsWaited) {
    const auto check = [&](int peer, int nodeRank, const char *what) {
        checkPeer(arena_->alive(nodeRank), peer, what, secondsWaited, patience_);
    };
    for (std::size_t k = 0; k < readers_.size(); ++k)
        if (packing_ == Packing::WaitingForReaders && !source_->records()[k]->edge.mayPack(epoch_))
            check(plan_.outgoing[k].peer, readers_[k], "take rows");
    for (std::size_t k = 0; k < writers_.size(); ++k)
        if (reading_ && writers_[k].pending)
            check(plan_.incoming[k].peer, writers_[k].nodeRank, "send rows");
}

void DevicePeerTransport::refuse() {
    try {
        read_.synchronize();
    } catch (const Error &) { // the device is lost: nothing reads there any more
    }
    ++epoch_;
    giveBack();
    refuseReaders();
}

void DevicePeerTransport::abandon() noexcept {
    // Whoever waits for this rank learns that nothing comes; what peers packed is not read any more.
    try {
        if (packing_ == Packing::Running) { // this rank's own kernel, which will be through soon
            packed_.synchronize();
            progressPacking();
        }
    } catch (const Error &) { // the device is lost
    }
    if (packing_ != Packing::Done)
        refuseReaders();
    reading_ = false;
}

} // namespace DNDS
