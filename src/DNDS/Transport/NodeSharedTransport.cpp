#include "DNDS/Transport/NodeSharedTransport.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

namespace DNDS {

namespace {

/// Messages below this size always go by ordinary stores: they stay in the caches, and timing them would cost more than
/// it gains.
constexpr std::size_t smallMessage = 4096;

/// How long `start` waits for readers before it copies their rows: about as long as the copy takes, which makes it at
/// worst twice as slow as knowing in advance (ski rental).
constexpr double shortestPatience = 1e-6;
constexpr double secondsPerByte = 0.25e-9;

/// On a crowded node: how often `start` lets others have the processor before it copies.
constexpr int turnsOffered = 3;

/// Bytes that one part takes in an offer buffer, where each part begins at a cache line.
constexpr std::size_t offeredBytes(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

} // namespace

NodeSharedTransport::NodeSharedTransport(TransportPlan plan, const TransportSetup &setup)
    : NodeTransport(std::move(plan), setup), readers_(plan_.outgoing.size()), writers_(plan_.incoming.size()) {
    for (std::size_t k = 0; k < readers_.size(); ++k) {
        parts_ = plan_.outgoing[k].parts.size();
        readers_[k].destinations.resize(parts_);
    }
    for (std::size_t k = 0; k < writers_.size(); ++k) {
        parts_ = plan_.incoming[k].parts.size();
        writers_[k].landing.resize(parts_);
    }
    arena_->reap();
    for (std::size_t k = 0; k < writers_.size(); ++k)
        try {
            writers_[k].record = new (allocateRecord(recordBytes(), alignof(Record))) Record{};
            publish(writerRank(k), writers_[k].record);
        } catch (const MemoryError &) {
            for (std::size_t made = 0; made < k; ++made)
                arena_->deallocate(writers_[made].record, recordBytes(), alignof(Record));
            throw;
        }
}

NodeSharedTransport::~NodeSharedTransport() {
    if (inForkedChild()) // the flags are the parent's
        return;
    for (Reader &reader : readers_)
        if (reader.record != nullptr)
            reader.record->edge.closeWriter();
    for (Writer &writer : writers_) {
        if (writer.record == nullptr)
            continue;
        writer.record->edge.closeReader();
        // The writer may still look at the flags; before it was connected it cannot.
        arena_->retire(writer.record, recordBytes(), connected_ ? &writer.record->edge.writerClosed() : nullptr);
    }
}

void NodeSharedTransport::lookUpRecords() {
    forEachOf(readers_.size(),
              [&](std::size_t k) { readers_[k].record = lookUp<Record>(readerRank(k), plan_.outgoing[k].peer); });
}

void NodeSharedTransport::bind(const Endpoints &endpoints) {
    // Solvers swap old and new fathers each step: writers need not hear of that.
    const bool sameDestinations = endpoints.destinations == endpoints_.destinations;
    if (!sameDestinations)
        endpoints_.destinations.clear(); // until all are placed: where that fails, the next call places them anew
    endpoints_.sources = endpoints.sources;
    if (sameDestinations)
        return;
    std::vector<std::byte *> destinations = endpoints.destinations;
    for (std::size_t k = 0; k < writers_.size(); ++k) {
        for (std::size_t p = 0; p < parts_; ++p)
            placeDestination(k, p, destinations[p]);
        ++writers_[k].record->version;
    }
    endpoints_.destinations = std::move(destinations);
}

void NodeSharedTransport::placeDestination(std::size_t writer, std::size_t part, const std::byte *destination) {
    const RowScatter &to = plan_.incoming[writer].parts[part];
    if (to.bytes() == 0)
        return;
    std::vector<HostDeviceBuffer> &landing = writers_[writer].landing;
    auto place = to.contiguous() ? arena_->locate(destination) : std::nullopt;
    if (place) {
        place->offset += to.offset();
        landing[part] = HostDeviceBuffer();
    } else {
        if (landing[part].bytes() != to.bytes())
            landing[part] = HostDeviceBuffer(to.bytes(), arena_);
        place = arena_->locate(landing[part].read(MemorySpace::Host, "landing place of ghosts"));
    }
    writers_[writer].record->locations()[part] = *place;
}

void NodeSharedTransport::start() {
    failure_.clear();
    // The epoch is counted and told here, so nothing below may throw: what fails for one peer is told to it in this
    // very epoch, and thrown by `wait`. Otherwise `refuse` would count once more, and ranks would take one step's rows
    // for another's.
    ++epoch_;
    for (Writer &writer : writers_) {
        writer.record->edge.open(epoch_);
        writer.pending = true;
        writer.arrived = false;
    }
    for (Reader &reader : readers_)
        reader.pending = true;
    if (!progress())
        serveOrOffer();
}

void NodeSharedTransport::serveOrOffer() {
    std::size_t bytes = 0;
    for (std::size_t k = 0; k < readers_.size(); ++k)
        if (readers_[k].pending)
            bytes += plan_.outgoing[k].bytes;
    if (bytes == 0)
        return;
    const auto served = [&] {
        bool all = true;
        for (std::size_t k = 0; k < readers_.size(); ++k)
            all = progressReader(k) && all;
        return all;
    };
    if (crowded_) { // a reader without a processor cannot come: spinning would only keep it away
        for (int turn = 0; turn < turnsOffered; ++turn) {
            std::this_thread::yield();
            if (served())
                return;
        }
    } else {
        const std::chrono::duration<double> patience(shortestPatience + static_cast<double>(bytes) * secondsPerByte);
        const auto begin = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - begin < patience)
            if (served())
                return;
    }
    for (std::size_t k = 0; k < readers_.size(); ++k) {
        if (!readers_[k].pending)
            continue;
        try {
            offer(k);
        } catch (const std::exception &error) {
            refuseReader(k, reasonOf(error));
        }
    }
}

bool NodeSharedTransport::progress() {
    bool complete = true;
    for (std::size_t k = 0; k < readers_.size(); ++k)
        complete = progressReader(k) && complete;
    for (std::size_t k = 0; k < writers_.size(); ++k)
        complete = progressWriter(k) && complete;
    return complete;
}

bool NodeSharedTransport::progressReader(std::size_t k) {
    Reader &reader = readers_[k];
    if (!reader.pending)
        return true;
    NodeEdge &edge = reader.record->edge;
    switch (reader.offering ? edge.pollOffer(epoch_) : edge.pollOpening(epoch_)) {
    case EdgeState::Waiting:
    case EdgeState::Offered:
        return false;
    case EdgeState::Open:
        if (!reader.offering || edge.withdraw(epoch_))
            write(k);
        else if (!edge.wasTaken(epoch_))
            return false;
        break;
    case EdgeState::Refused: // its own error tells why; nothing is missing here
        edge.withdraw(epoch_);
        break;
    case EdgeState::Closed:
        failure_.note(plan_.outgoing[k].peer, "destroyed its exchange before taking this rank's rows");
        break;
    }
    reader.pending = false;
    reader.offering = false;
    return true;
}

bool NodeSharedTransport::progressWriter(std::size_t k) {
    Writer &writer = writers_[k];
    if (!writer.pending)
        return true;
    switch (writer.record->edge.pollArrival(epoch_)) {
    case EdgeState::Waiting:
        return false;
    case EdgeState::Open:
        writer.arrived = true;
        break;
    case EdgeState::Offered:
        if (!takeOffer(k))
            return false;
        break;
    case EdgeState::Refused:
        failure_.noteRefused(plan_.incoming[k].peer);
        break;
    case EdgeState::Closed:
        failure_.noteClosed(plan_.incoming[k].peer);
        break;
    }
    writer.pending = false;
    return true;
}

void NodeSharedTransport::offer(std::size_t k) {
    Reader &reader = readers_[k];
    const Outgoing &outgoing = plan_.outgoing[k];
    if (reader.offeredRows == nullptr) {
        std::size_t bytes = 0;
        for (const RowGather &part : outgoing.parts)
            bytes += offeredBytes(part.bytes());
        reader.offered = HostDeviceBuffer(bytes, arena_);
        reader.offeredRows = reader.offered.write(MemorySpace::Host, "rows for a late reader");
        reader.record->offered = *arena_->locate(reader.offeredRows);
    }
    std::byte *to = reader.offeredRows;
    for (std::size_t p = 0; p < parts_; ++p) {
        outgoing.parts[p].gather(endpoints_.sources[p], to);
        to += offeredBytes(outgoing.parts[p].bytes());
    }
    reader.record->edge.offer(epoch_);
    reader.offering = true;
}

void NodeSharedTransport::refuseReader(std::size_t k, std::string_view why) noexcept {
    readers_[k].record->edge.refuseToWrite(epoch_);
    readers_[k].pending = false;
    failure_.note(plan_.outgoing[k].peer, "did not get this rank's rows", why);
}

bool NodeSharedTransport::takeOffer(std::size_t k) {
    Writer &writer = writers_[k];
    if (!writer.record->edge.take(epoch_))
        return false; // the writer found this rank ready and is writing
    try {
        if (writer.offeredRows == nullptr)
            writer.offeredRows = arena_->translate(writerRank(k), writer.record->offered);
    } catch (const std::exception &error) { // the writer need not wait for that; the next offer tries again
        writer.record->edge.taken(epoch_);
        failure_.note(plan_.incoming[k].peer,
                      "offered rows that this rank cannot reach. The rows from it are not up to date", reasonOf(error));
        return true;
    }
    const std::byte *from = writer.offeredRows;
    for (std::size_t p = 0; p < parts_; ++p) {
        const RowScatter &to = plan_.incoming[k].parts[p];
        to.scatter(from, endpoints_.destinations[p]);
        from += offeredBytes(to.bytes());
    }
    writer.record->edge.taken(epoch_);
    return true;
}

void NodeSharedTransport::write(std::size_t k) {
    Reader &reader = readers_[k];
    const Outgoing &outgoing = plan_.outgoing[k];
    if (reader.version != reader.record->version) [[unlikely]] {
        const auto version = reader.record->version;
        try {
            for (std::size_t p = 0; p < parts_; ++p)
                if (outgoing.parts[p].bytes() > 0)
                    reader.destinations[p] = arena_->translate(readerRank(k), reader.record->locations()[p]);
        } catch (const std::exception &error) { // the next start tries again
            return refuseReader(k, reasonOf(error));
        }
        reader.version = version;
    }

    const bool timed = outgoing.bytes >= smallMessage;
    const StoreAutotuner::Way way = timed ? reader.stores.next() : StoreAutotuner::Ordinary;
    const auto begin = timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    for (std::size_t p = 0; p < parts_; ++p) {
        const RowGather &part = outgoing.parts[p];
        if (part.bytes() == 0)
            continue;
        if (way == StoreAutotuner::Streaming) {
            StreamWriter out(reader.destinations[p]);
            part.gather(endpoints_.sources[p], out);
            out.finish();
        } else {
            part.gather(endpoints_.sources[p], reader.destinations[p]);
        }
    }
    reader.record->edge.arrive(epoch_);
    if (timed)
        reader.stores.report(way, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

void NodeSharedTransport::wait() {
    waitUntilComplete(*this, Backoff(plan_.channel.comm, crowded_));
    copyLandings();
    failure_.throwIfAny();
}

void NodeSharedTransport::refuseEpoch() {
    for (Writer &writer : writers_)
        writer.record->edge.refuseToRead(epoch_);
    for (Reader &reader : readers_)
        reader.record->edge.refuseToWrite(epoch_);
}

void NodeSharedTransport::abandon() noexcept {
    // Whoever waits for this rank learns that nothing comes; what it writes to this rank goes to memory that is kept.
    for (std::size_t k = 0; k < readers_.size(); ++k)
        if (Reader &reader = readers_[k]; reader.pending && reader.record != nullptr) {
            if (reader.offering)
                endOffer(k);
            reader.record->edge.refuseToWrite(epoch_);
            reader.pending = false;
        }
    for (Reader &reader : readers_)
        if (reader.record != nullptr)
            std::exchange(reader.record, nullptr)
                ->edge.closeWriter(); // from then on the reader may use the memory otherwise
    for (Writer &writer : writers_)
        writer.record->edge.closeReader();
}

void NodeSharedTransport::endOffer(std::size_t k) noexcept {
    Reader &reader = readers_[k];
    reader.offering = false;
    if (reader.record->edge.withdraw(epoch_))
        return;
    while (!reader.record->edge.wasTaken(epoch_) && arena_->alive(readerRank(k))) // it is copying
        std::this_thread::yield();
}

void NodeSharedTransport::copyLandings() {
    for (std::size_t k = 0; k < writers_.size(); ++k)
        for (std::size_t p = 0; p < parts_ && writers_[k].arrived; ++p)
            if (HostDeviceBuffer &landing = writers_[k].landing[p]; landing.bytes() > 0)
                plan_.incoming[k].parts[p].scatter(landing.read(MemorySpace::Host, "landing place of ghosts"),
                                                   endpoints_.destinations[p]);
}

TransportDescriptor NodeSharedTransport::describe() {
    TransportDescriptor transport;
    transport.kind = TransportKind::NodeShared;
    transport.name = "node-shared";
    transport.servesHost = transport.needsProgress = transport.destinationsInArena = true;
    transport.order = 2;
    transport.preference = 20;
    transport.reach = [](const CommunicatorContext &context, int peer) {
        const NodeTopology &node = context.node();
        if (!node.sameNode(peer))
            return Reach::notMeantFor("on another node");
        return node.arena ? Reach::yes("on this node") : Reach::no("on this node, but " + node.whyNoArena);
    };
    transport.make = [](TransportPlan plan, const TransportSetup &setup) {
        return std::make_unique<NodeSharedTransport>(std::move(plan), setup);
    };
    return transport;
}

} // namespace DNDS
