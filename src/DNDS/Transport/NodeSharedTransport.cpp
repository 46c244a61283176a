#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/BoxToBox.hpp"
#include "DNDS/Transport/NodeEdge.hpp"
#include "DNDS/Transport/NodeTransport.hpp"
#include "DNDS/Transport/StoreAutotuner.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

/// Moves rows between ranks that share memory. Destinations lie in the reader's `NodeArena`. Where they are boxes, the
/// reader tells the writer which, and long runs are written there as well. What is in short runs, in lists of several
/// runs, or in an array that left the arena is written to a slot there, which the reader unpacks when it waits.
///
/// Each edge has its own flags (`NodeEdge`). `start` tells writers that old ghosts may go and serves the readers that
/// are ready already or become so within about the time that a copy takes; for the others it copies the rows to memory
/// of this rank and offers them. `progress` is true when it has what this rank reads, and until its own rows are
/// written or taken. So, once both sides have started, each of them can finish without a further call of the other.
///
/// The record of an edge lies in the reader's arena; the reader tells the writer where.
class NodeSharedTransport final : public NodeTransport {
  public:
    /// Local; throws MemoryError.
    NodeSharedTransport(TransportPlan plan, const TransportSetup &setup);
    ~NodeSharedTransport() override;

    void replacePlan(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override;
    StagedTraffic stagedFrom(int peer) const override;
    void start() override;
    bool progress() override;
    void finish() override { unpackSlots(); }
    bool settle() noexcept override;
    bool exposed() const noexcept override;
    void renew(const CommunicatorContext &context) override;

  private:
    /// The destination of the rows of a part, in the reader's arena.
    struct Place {
        ArenaLocation memory;     ///< the first row; where there are boxes, the array
        ArenaLocation slot;       ///< for boxes that do not go to the array
        std::uint64_t slotBytes;  ///< their number; 0: no boxes
        ArenaLocation boxes;      ///< `boxCount` times PlacedBox
        std::uint64_t boxCount;   ///< 0: rows are packed
        std::uint64_t boxVersion; ///< changes with the boxes; never 0 where there are any
    };
    /// In the reader's arena, followed by one Place a part. Only `edge` is atomic: its flags order the others. The
    /// reader writes version and places before it opens an epoch (release), after which the writer reads them; the
    /// writer writes `offered` before it offers (release), after which the reader reads it.
    struct Record {
        NodeEdge edge;
        alignas(128) std::uint64_t version =
            0;                              ///< version of the places; written by the reader before it opens an epoch
        alignas(128) ArenaLocation offered; ///< in the writer's arena; written by the writer before its first offer

        Place *places() { return reinterpret_cast<Place *>(this + 1); }
    };
    struct Destination { ///< the destination of a part, as mapped here
        std::byte *memory = nullptr;
        std::byte *slot = nullptr;
        BoxToBox boxes; ///< empty: rows go to `memory`, packed
        std::uint64_t boxVersion = 0;
    };
    struct Landing {            ///< for a part whose rows are not contiguous in the son
        HostDeviceBuffer slot;  ///< empty where all is written in place
        HostDeviceBuffer boxes; ///< PlacedBox, for the writer; empty: all rows are in the slot
        BoxCopy slotted;        ///< with boxes: those in the slot
        std::uint64_t boxVersion = 0;
    };
    struct OutgoingPeer {         ///< this rank writes to it
        Record *record = nullptr; ///< in the reader's arena
        std::uint64_t version = 0;
        std::vector<Destination> destinations; ///< one for each part
        std::size_t streamable = 0;            ///< bytes of parts without boxes
        StoreAutotuner stores;
        HostDeviceBuffer offered; ///< rows for a reader that is late, in this rank's arena; made when first needed
        std::byte *offeredRows = nullptr;
        bool pending = false;
        bool offering = false; ///< in this epoch
    };
    struct IncomingPeer {                       ///< this rank reads from it
        Record *record = nullptr;               ///< in this rank's arena
        std::vector<Landing> landing;           ///< one for each part; empty where rows go straight to the destination
        const std::byte *offeredRows = nullptr; ///< the writer's, as mapped here
        bool pending = false;
        bool arrived = false; ///< in this epoch, and in slots where there are such
    };

    void lookUpRecords() override;
    bool waitsForReader(std::size_t k) const override { return outgoingPeers_[k].pending; }
    bool waitsForWriter(std::size_t k) const override { return incomingPeers_[k].pending; }

    /// A record with its places.
    std::size_t recordBytes() const noexcept { return sizeof(Record) + parts_ * sizeof(Place); }
    /// As a reader: decides where the writer puts the rows of a part, and writes its Place. In the array itself if
    /// it lies in the arena and the rows are one run; long runs of boxes there, too; everything else in a slot.
    void placeDestination(std::size_t writer, std::size_t part, const std::byte *destination);
    /// For boxes in the arena: false if none of their runs is long enough to be written in place.
    bool placeBoxes(const RowScatter &to, Landing &landing, Place &place);
    /// As the writer: maps the reader's places, after their version has changed.
    void lookUpPlaces(std::size_t reader);
    /// Serves a reader that is ready or has taken the offer; true when its rows of this epoch are done. No wait.
    bool progressReader(std::size_t reader);
    /// Looks for a writer's rows, and takes them where they are offered; true when they are here. No wait.
    bool progressWriter(std::size_t writer);
    /// Copies all parts to the reader's memory, timed for the choice of stores, and tells it.
    void write(std::size_t reader);
    /// Serves readers that come within about the time of a copy; offers the rows to the others. Bounded time.
    void serveOrOffer();
    /// Packs the rows for a late reader into this rank's arena; then either side moves them on.
    void offer(std::size_t reader);
    /// Copies the offered rows to the destinations; false where the writer has withdrawn them to write itself.
    bool takeOffer(std::size_t writer);
    /// From slots to destinations, for rows that writers put there in this epoch.
    void unpackSlots();

    /// Parts of each message: those of all arrays of the exchange.
    std::size_t parts_ = 0;
    std::vector<OutgoingPeer> outgoingPeers_; ///< one for each of `plan_.outgoing`
    std::vector<IncomingPeer> incomingPeers_; ///< one for each of `plan_.incoming`
    /// As bound last; destinations are empty until all of them have places.
    Endpoints endpoints_;
    std::uint64_t boxVersions_ = 0; ///< given out
};

/// Messages below this size always go by ordinary stores: they stay in the caches, and timing them would cost more than
/// it gains.
constexpr std::size_t smallMessage = 4096;

/// The time that `start` waits for readers before it copies their rows: about as long as the copy takes, which makes it
/// at worst twice as slow as knowing in advance (ski rental).
constexpr double shortestSpin = 1e-6;
constexpr double secondsPerByte = 0.25e-9;

/// On a crowded node: how often `start` lets others have the processor before it copies.
constexpr int turnsOffered = 3;

constexpr const char *slotName = "slot for ghosts";

/// Bytes that one part takes in an offer buffer, where each part begins at a cache line.
constexpr std::size_t offeredBytes(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

NodeSharedTransport::NodeSharedTransport(TransportPlan plan, const TransportSetup &setup)
    : NodeTransport(std::move(plan), setup), outgoingPeers_(plan_.outgoing.size()),
      incomingPeers_(plan_.incoming.size()) {
    for (std::size_t k = 0; k < outgoingPeers_.size(); ++k) {
        parts_ = plan_.outgoing[k].parts.size();
        outgoingPeers_[k].destinations.resize(parts_);
    }
    for (std::size_t k = 0; k < incomingPeers_.size(); ++k) {
        parts_ = plan_.incoming[k].parts.size();
        incomingPeers_[k].landing.resize(parts_);
    }
    // One record for each rank that this one reads from, in this rank's arena. `connect` tells each writer its
    // record: the writer writes to the reader's memory, never the other way round.
    arena_->reap();
    const OnFailure undo([&] {
        for (const IncomingPeer &writer : incomingPeers_)
            if (writer.record != nullptr)
                arena_->deallocate(writer.record, recordBytes(), alignof(Record));
    });
    for (std::size_t k = 0; k < incomingPeers_.size(); ++k) {
        Record *&record = incomingPeers_[k].record;
        record = new (allocateData(*arena_, recordBytes(), alignof(Record), "flags of an exchange")) Record{};
        notes_.tell(plan_.incoming[k].peer, *arena_->locate(record));
    }
    for (const Outgoing &outgoing : plan_.outgoing)
        notes_.expect(outgoing.peer);
}

NodeSharedTransport::~NodeSharedTransport() {
    if (inForkedChild()) // the flags are the parent's
        return;
    for (OutgoingPeer &reader : outgoingPeers_)
        if (reader.record != nullptr)
            reader.record->edge.closeWriter();
    for (IncomingPeer &writer : incomingPeers_) {
        if (writer.record == nullptr)
            continue;
        // The writer may still look at the flags; before it was connected it cannot.
        arena_->retire(writer.record, recordBytes(), connected_ ? &writer.record->edge.writerClosed() : nullptr);
    }
}

void NodeSharedTransport::lookUpRecords() {
    forEachOf(outgoingPeers_.size(),
              [&](std::size_t k) { outgoingPeers_[k].record = lookUp<Record>(plan_.outgoing[k].peer, k); });
}

void NodeSharedTransport::replacePlan(TransportPlan plan) {
    // Version 0 makes this rank look up its readers' places before it writes again; its own writers learn of new
    // places by the version that `bind` raises.
    plan_ = std::move(plan);
    endpoints_ = {};
    for (IncomingPeer &writer : incomingPeers_)
        writer.landing.assign(parts_, {});
    for (OutgoingPeer &reader : outgoingPeers_) {
        reader.version = 0; // readers begin at 1
        reader.destinations.assign(parts_, {});
    }
}

// O(parts of all peers) when a destination has moved, else O(destinations). Writers learn of new places by `version`,
// after the next `open`.
void NodeSharedTransport::bind(const Endpoints &endpoints) {
    // Solvers swap old and new fathers each step: writers need not know.
    const bool sameDestinations = endpoints.destinations == endpoints_.destinations;
    if (!sameDestinations)
        endpoints_.destinations.clear(); // until all are placed: where that fails, the next call places all again
    endpoints_.sources = endpoints.sources;
    if (sameDestinations)
        return;
    std::vector<std::byte *> destinations = endpoints.destinations;
    for (std::size_t k = 0; k < incomingPeers_.size(); ++k) {
        for (std::size_t p = 0; p < parts_; ++p)
            placeDestination(k, p, destinations[p]);
        ++incomingPeers_[k].record->version;
    }
    endpoints_.destinations = std::move(destinations);
}

void NodeSharedTransport::placeDestination(std::size_t writer, std::size_t part, const std::byte *destination) {
    const RowScatter &to = plan_.incoming[writer].parts[part];
    if (to.bytes() == 0)
        return;
    // The writer reaches only memory of the arena, and writes runs: in place if the array allows it, else to a
    // slot, which is kept while it fits.
    Landing &landing = incomingPeers_[writer].landing[part];
    Place place{};
    if (const auto array = arena_->locate(destination); array && to.contiguous()) {
        place.memory = {array->segment, array->offset + to.offset()};
        landing = {};
    } else if (array && placeBoxes(to, landing, place)) {
        place.memory = *array;
    } else {
        if (landing.boxes.bytes() > 0 || landing.slot.bytes() != to.bytes()) {
            landing = {};
            landing.slot = HostDeviceBuffer(to.bytes(), arena_);
        }
        place.memory = *arena_->locate(landing.slot.read(MemorySpace::Host, slotName));
    }
    incomingPeers_[writer].record->places()[part] = place;
}

// O(boxes) after a change of the plan, else O(1).
bool NodeSharedTransport::placeBoxes(const RowScatter &to, Landing &landing, Place &place) {
    const auto isLong = [](const ByteBox &box) { return box.bytes >= shortestRunInPlace; };
    if (std::ranges::none_of(to.boxes().boxes(), isLong))
        return false;
    if (landing.boxes.bytes() == 0) { // they stay while the plan does, wherever the array goes in the arena
        PlacedRows placed = placeByRunLength(to.boxes());
        const std::span boxes(placed.boxes);
        Landing made;
        made.boxes = HostDeviceBuffer(boxes.size_bytes(), arena_);
        std::memcpy(made.boxes.write(MemorySpace::Host, slotName), boxes.data(), boxes.size_bytes());
        if (placed.slot.bytes() > 0)
            made.slot = HostDeviceBuffer(placed.slot.bytes(), arena_);
        made.slotted = std::move(placed.slot);
        made.boxVersion = ++boxVersions_;
        landing = std::move(made);
    }
    place.boxes = *arena_->locate(landing.boxes.read(MemorySpace::Host, slotName));
    place.boxCount = landing.boxes.bytes() / sizeof(PlacedBox);
    place.boxVersion = landing.boxVersion;
    place.slotBytes = landing.slot.bytes();
    if (place.slotBytes > 0)
        place.slot = *arena_->locate(landing.slot.read(MemorySpace::Host, slotName));
    return true;
}

void NodeSharedTransport::start() {
    // As a reader first: writers may begin while this rank serves its own readers. Rows for readers that do not
    // come in time are offered, so that this rank need not call again for them.
    ++epoch_;
    for (IncomingPeer &writer : incomingPeers_) {
        writer.record->edge.open(epoch_);
        writer.pending = true;
        writer.arrived = false;
    }
    for (OutgoingPeer &reader : outgoingPeers_)
        reader.pending = true;
    if (!progress())
        serveOrOffer();
}

// The spin lasts as long as the copies that it may save, so the worst case is twice the cost of the best one.
// Afterwards readers need no further call of this rank.
void NodeSharedTransport::serveOrOffer() {
    std::size_t bytes = 0;
    for (std::size_t k = 0; k < outgoingPeers_.size(); ++k)
        if (outgoingPeers_[k].pending)
            bytes += plan_.outgoing[k].bytes;
    if (bytes == 0)
        return;
    const auto served = [&] {
        bool all = true;
        for (std::size_t k = 0; k < outgoingPeers_.size(); ++k)
            all = progressReader(k) && all;
        return all;
    };
    if (context_->node().crowded) { // a reader without a processor cannot come: spinning would only keep it away
        for (int turn = 0; turn < turnsOffered; ++turn) {
            std::this_thread::yield();
            if (served())
                return;
        }
    } else {
        const std::chrono::duration<double> spinTime(shortestSpin + static_cast<double>(bytes) * secondsPerByte);
        const auto begin = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - begin < spinTime)
            if (served())
                return;
    }
    for (std::size_t k = 0; k < outgoingPeers_.size(); ++k) {
        if (outgoingPeers_[k].pending)
            offer(k);
    }
}

bool NodeSharedTransport::progress() {
    bool complete = true;
    for (std::size_t k = 0; k < outgoingPeers_.size(); ++k)
        complete = progressReader(k) && complete;
    for (std::size_t k = 0; k < incomingPeers_.size(); ++k)
        complete = progressWriter(k) && complete;
    return complete;
}

bool NodeSharedTransport::progressReader(std::size_t k) {
    // Pending until the rows of this epoch are with the reader: written by this rank once the reader has opened the
    // epoch, or taken by the reader from an offer. An offer is withdrawn as soon as the reader is ready, since
    // writing in place saves it a copy; the compare-and-swap in `withdraw` decides if both act at once.
    OutgoingPeer &reader = outgoingPeers_[k];
    if (!reader.pending)
        return true;
    NodeEdge &edge = reader.record->edge;
    if ((reader.offering ? edge.pollOffer(epoch_) : edge.pollOpening(epoch_)) != EdgeState::Open)
        return false;
    if (!reader.offering || edge.withdraw(epoch_)) {
        reader.offering = false; // first: where `write` throws, `settle` must not wait for the reader
        write(k);
    } else if (!edge.wasTaken(epoch_)) {
        return false;
    }
    reader.pending = false;
    reader.offering = false;
    return true;
}

bool NodeSharedTransport::progressWriter(std::size_t k) {
    // The converse: rows are here when the writer says so, or when this rank has taken its offer.
    IncomingPeer &writer = incomingPeers_[k];
    if (!writer.pending)
        return true;
    const EdgeState state = writer.record->edge.pollArrival(epoch_);
    if (state == EdgeState::Waiting || (state == EdgeState::Offered && !takeOffer(k)))
        return false;
    writer.arrived = state == EdgeState::Open;
    writer.pending = false;
    return true;
}

// O(bytes): the one extra copy of this transport, for readers that are late. Packed, each part at a cache line.
void NodeSharedTransport::offer(std::size_t k) {
    OutgoingPeer &reader = outgoingPeers_[k];
    const Outgoing &outgoing = plan_.outgoing[k];
    // The buffer is made for the first late reader, and kept: its place is told once.
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

// The compare-and-swap in `take` gives the rows to one side: this rank copies the offer, or the writer writes in
// place.
bool NodeSharedTransport::takeOffer(std::size_t k) {
    IncomingPeer &writer = incomingPeers_[k];
    if (writer.offeredRows == nullptr)
        writer.offeredRows = arena_->translate(nodeRank(plan_.incoming[k].peer), writer.record->offered);
    if (!writer.record->edge.take(epoch_))
        return false; // the writer found this rank ready and is writing
    const std::byte *from = writer.offeredRows;
    for (std::size_t p = 0; p < parts_; ++p) {
        const RowScatter &to = plan_.incoming[k].parts[p];
        to.scatter(from, endpoints_.destinations[p]);
        from += offeredBytes(to.bytes());
    }
    writer.record->edge.taken(epoch_);
    return true;
}

// O(parts) translations of locations, and new loops between boxes where these have changed.
void NodeSharedTransport::lookUpPlaces(std::size_t k) {
    OutgoingPeer &reader = outgoingPeers_[k];
    // Once after each change of the reader's places. `boxVersion` spares making the loops between boxes again when
    // only addresses have changed.
    const std::uint64_t version = reader.record->version;
    const int owner = nodeRank(plan_.outgoing[k].peer);
    const auto here = [&](const ArenaLocation &location) { return arena_->translate(owner, location); };
    reader.streamable = 0;
    for (std::size_t p = 0; p < parts_; ++p) {
        const RowGather &part = plan_.outgoing[k].parts[p];
        if (part.bytes() == 0)
            continue;
        const Place &place = reader.record->places()[p];
        Destination &to = reader.destinations[p];
        if (to.boxVersion != place.boxVersion) {
            to.boxes = {};
            if (place.boxCount > 0) {
                const auto *boxes = reinterpret_cast<const PlacedBox *>(here(place.boxes));
                to.boxes = BoxToBox(part.byteBoxes(), {boxes, static_cast<std::size_t>(place.boxCount)});
            }
            to.boxVersion = place.boxVersion;
        }
        to.memory = here(place.memory);
        to.slot = place.slotBytes > 0 ? here(place.slot) : nullptr;
        reader.streamable += to.boxes.empty() ? part.bytes() : 0;
    }
    reader.version = version;
}

// O(bytes). The measured time chooses between ordinary and non-temporal stores, reader by reader (`StoreAutotuner`).
void NodeSharedTransport::write(std::size_t k) {
    OutgoingPeer &reader = outgoingPeers_[k];
    const Outgoing &outgoing = plan_.outgoing[k];
    // Reading the places is safe: the reader wrote them before it opened this epoch, which this rank has seen.
    if (reader.version != reader.record->version) [[unlikely]]
        lookUpPlaces(k);

    const bool timed = reader.streamable >= smallMessage;
    const StoreAutotuner::StoreMode mode = timed ? reader.stores.next() : StoreAutotuner::Ordinary;
    const auto begin = timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    for (std::size_t p = 0; p < parts_; ++p) {
        const RowGather &part = outgoing.parts[p];
        if (part.bytes() == 0)
            continue;
        const Destination &to = reader.destinations[p];
        if (!to.boxes.empty()) {
            to.boxes.copy(endpoints_.sources[p], to.memory, to.slot);
        } else if (mode == StoreAutotuner::Streaming) {
            StreamWriter out(to.memory);
            part.gather(endpoints_.sources[p], out);
            out.finish();
        } else {
            part.gather(endpoints_.sources[p], to.memory);
        }
    }
    // Release: the rows above are in memory before the flag; `finish` and `endStreaming` have fenced non-temporal
    // stores.
    reader.record->edge.arrive(epoch_);
    if (timed)
        reader.stores.report(mode, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

// After it this rank writes to no reader. Offers are withdrawn; while a reader copies one it returns false, unless
// that process has ended.
bool NodeSharedTransport::settle() noexcept {
    bool settled = true;
    for (std::size_t k = 0; k < outgoingPeers_.size(); ++k) {
        OutgoingPeer &reader = outgoingPeers_[k];
        if (!reader.pending)
            continue;
        // A reader that has begun to take what was offered is copying it.
        const bool taking = reader.offering && !reader.record->edge.withdraw(epoch_) &&
                            !reader.record->edge.wasTaken(epoch_) && arena_->alive(nodeRank(plan_.outgoing[k].peer));
        reader.pending = reader.offering = taking;
        settled = settled && !taking;
    }
    return settled;
}

bool NodeSharedTransport::exposed() const noexcept {
    return std::ranges::any_of(incomingPeers_, &IncomingPeer::pending);
}

void NodeSharedTransport::renew(const CommunicatorContext & /*context*/) {
    epoch_ = EpochFlag::initialEpoch;
    for (OutgoingPeer &reader : outgoingPeers_)
        reader.pending = reader.offering = false;
    for (IncomingPeer &writer : incomingPeers_) {
        writer.record->edge.renew();
        writer.pending = writer.arrived = false;
    }
}

// A slot holds packed rows in the order of the writer's parts. O(bytes in slots), and nothing for rows written in
// place.
void NodeSharedTransport::unpackSlots() {
    for (std::size_t k = 0; k < incomingPeers_.size(); ++k)
        for (std::size_t p = 0; p < parts_ && incomingPeers_[k].arrived; ++p) {
            const Landing &landing = incomingPeers_[k].landing[p];
            if (landing.slot.bytes() == 0)
                continue;
            const std::byte *from = landing.slot.read(MemorySpace::Host, slotName);
            if (landing.boxes.bytes() > 0)
                landing.slotted.scatter(from, endpoints_.destinations[p]);
            else
                plan_.incoming[k].parts[p].scatter(from, endpoints_.destinations[p]);
        }
}

StagedTraffic NodeSharedTransport::stagedFrom(int peer) const {
    StagedTraffic staged;
    for (std::size_t k = 0; k < incomingPeers_.size(); ++k)
        for (std::size_t p = 0; p < parts_ && plan_.incoming[k].peer == peer; ++p) {
            const std::size_t bytes = incomingPeers_[k].landing[p].slot.bytes();
            staged.bytes += bytes;
            if (bytes > 0 && p < endpoints_.destinations.size() && !arena_->locate(endpoints_.destinations[p]))
                staged.why = "the array is not in the memory that the node shares";
            else if (bytes > 0 && staged.why.empty())
                staged.why = fmt::format("in runs of less than {} bytes, or in a list", shortestRunInPlace);
        }
    return staged;
}

} // namespace

TransportDescriptor describeNodeSharedTransport() {
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
