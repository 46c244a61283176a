/// @file NodeSharedTransport.hpp
/// @brief On a node: the owner writes rows straight into the reader's son. No message, no packing, no unpacking.
#pragma once

#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/NodeEdge.hpp"
#include "DNDS/Transport/NodeTransport.hpp"
#include "DNDS/Transport/StoreAutotuner.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace DNDS {

/// Moves rows between ranks that share memory. Destinations lie in the reader's `NodeArena`; those that do not (an
/// array that left the arena), and those in several runs, are written to a landing place there, from which the reader
/// copies them when it waits.
///
/// Each edge has its own flags (`NodeEdge`). `start` tells writers that old ghosts may go and serves the readers that
/// are ready already or become so within about the time that a copy takes; for the others it copies the rows to memory
/// of this rank and offers them. `wait` waits for what this rank reads, and until its own rows are written or taken.
/// So, once both sides have started, each of them can finish without a further call of the other.
///
/// The record of an edge lies in the reader's arena; the reader leaves the note, the writer reads it.
class NodeSharedTransport final : public NodeTransport {
  public:
    /// Local; throws MemoryError.
    NodeSharedTransport(TransportPlan plan, const TransportSetup &setup);
    ~NodeSharedTransport() override;

    static TransportDescriptor describe();
    void replacePlan(TransportPlan plan) override {
        plan_ = std::move(plan);
        endpoints_ = {};
    }
    void bind(const Endpoints &endpoints) override;
    void start() override;
    bool progress() override;
    void wait() override;
    void abandon() noexcept override;

  private:
    /// In the reader's arena, followed by one ArenaLocation a part.
    struct Record {
        NodeEdge edge;
        alignas(128) std::uint64_t version = 0; ///< of the locations; written by the reader before it opens an epoch
        alignas(128) ArenaLocation offered;     ///< in the writer's arena; written by the writer before its first offer

        ArenaLocation *locations() { return reinterpret_cast<ArenaLocation *>(this + 1); }
    };
    struct Reader {               ///< this rank writes to it
        Record *record = nullptr; ///< in the reader's arena
        std::uint64_t version = 0;
        std::vector<std::byte *> destinations; ///< of the parts, as mapped here
        StoreAutotuner stores;
        HostDeviceBuffer offered; ///< rows for a reader that is late, in this rank's arena; made when first needed
        std::byte *offeredRows = nullptr;
        bool pending = false;
        bool offering = false; ///< in this epoch
    };
    struct Writer {                             ///< this rank reads from it
        Record *record = nullptr;               ///< in this rank's arena
        std::vector<HostDeviceBuffer> landing;  ///< of each part; empty where rows go straight to the destination
        const std::byte *offeredRows = nullptr; ///< the writer's, as mapped here
        bool pending = false;
        bool arrived = false; ///< in this epoch, and in `landing` where there is one
    };

    void lookUpRecords() override;
    void refuseEpoch() override;
    bool waitsForReader(std::size_t k) const override { return readers_[k].pending; }
    bool waitsForWriter(std::size_t k) const override { return writers_[k].pending; }

    std::size_t recordBytes() const noexcept { return sizeof(Record) + parts_ * sizeof(ArenaLocation); }
    void placeDestination(std::size_t writer, std::size_t part, const std::byte *destination);
    bool progressReader(std::size_t reader);
    bool progressWriter(std::size_t writer);
    void write(std::size_t reader);
    void serveOrOffer();
    void offer(std::size_t reader);
    bool takeOffer(std::size_t writer);
    /// The reader gets no rows in this epoch; `wait` throws.
    void refuseReader(std::size_t reader, std::string_view why) noexcept;
    void endOffer(std::size_t reader) noexcept;
    void copyLandings();

    std::size_t parts_ = 0;
    std::vector<Reader> readers_; ///< one for each of `plan_.outgoing`
    std::vector<Writer> writers_; ///< one for each of `plan_.incoming`
    Endpoints endpoints_;
};

} // namespace DNDS
