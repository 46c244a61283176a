/// @file NodeSharedTransport.hpp
/// @brief On a node: the owner writes rows straight into the reader's son. No message, no packing, no unpacking.
#pragma once

#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/BoxToBox.hpp"
#include "DNDS/Transport/NodeEdge.hpp"
#include "DNDS/Transport/NodeTransport.hpp"
#include "DNDS/Transport/StoreAutotuner.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace DNDS {

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

    static TransportDescriptor describe();
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

} // namespace DNDS
