/// @file NodeTransport.hpp
/// @brief What the transports between ranks of one node have in common: notes, connection, epochs, peers.
#pragma once

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Transport/NodeEdge.hpp"
#include "DNDS/Transport/Transport.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// Ranks meet through records with flags (`EpochFlag`) in the arena. Setting up is in two steps around a collective
/// call: the constructor leaves a note about each record for the peer, `connect` reads the peers' notes.
class NodeTransport : public Transport {
  public:
    void connect() final {
        connected_ = true;
        lookUpRecords();
    }
    std::string awaited() const final;

  protected:
    /// Local. Throws StateError where ranks of this node share no memory.
    NodeTransport(TransportPlan plan, const TransportSetup &setup);

    /// Looks up the record of each peer that has left a note.
    virtual void lookUpRecords() = 0;
    /// Whether number k of `plan_.outgoing` still has to take rows / of `plan_.incoming` still has to send them.
    virtual bool waitsForReader(std::size_t k) const = 0;
    virtual bool waitsForWriter(std::size_t k) const = 0;

    /// The rank on this node of number k of `plan_.outgoing` / `plan_.incoming`.
    int readerRank(std::size_t k) const { return readerRanks_[k]; }
    int writerRank(std::size_t k) const { return writerRanks_[k]; }

    /// A record in this rank's arena. Throws MemoryError.
    void *allocateRecord(std::size_t bytes, std::size_t alignment);
    /// Leaves a note for a rank of the node about a record in this rank's arena.
    void publish(int nodeRank, const void *record) noexcept;
    /// The record about which `peer` left a note. Throws StateError where it left none.
    template <class Record>
    Record *lookUp(int nodeRank, int peer) {
        return reinterpret_cast<Record *>(lookUpBytes(nodeRank, peer));
    }
    /// Calls `function` for each number below `count`; throws the first failure when all have been called: edges to
    /// the other peers must be known, so that they are closed in the end.
    template <class Function>
    static void forEachOf(std::size_t count, Function &&function) {
        std::exception_ptr failure;
        for (std::size_t k = 0; k < count; ++k)
            attempt(failure, [&] { function(k); });
        if (failure)
            std::rethrow_exception(failure);
    }

    TransportPlan plan_;
    std::shared_ptr<NodeArena> arena_;
    bool crowded_;
    bool connected_ = false;
    std::uint32_t epoch_ = EpochFlag::initialEpoch;

  private:
    std::byte *lookUpBytes(int nodeRank, int peer);

    std::vector<int> readerRanks_;
    std::vector<int> writerRanks_;
    std::uint64_t round_;
};

} // namespace DNDS
