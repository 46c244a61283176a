/// @file NodeTransport.hpp
/// @brief Common to the transports between ranks of one node: notes, connection, epochs, peers.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/ArenaNotes.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Transport/NodeEdge.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

namespace DNDS {

/// Ranks meet through records with flags (`EpochFlag`) in the arena. The constructor makes them, `connect` sends their
/// locations to peers.
class NodeTransport : public Transport {
  public:
    void connect() final {
        connected_ = true;
        notes_.exchange(plan_.channel);
        lookUpRecords();
    }
    std::string awaited() const final;

  protected:
    /// Local. Throws StateError if ranks of this node share no memory.
    NodeTransport(TransportPlan plan, const TransportSetup &setup);

    /// Looks up the record of each peer in `notes_`.
    virtual void lookUpRecords() = 0;
    /// Whether number k of `plan_.outgoing` still has to take rows / of `plan_.incoming` still has to send them.
    virtual bool waitsForReader(std::size_t k) const = 0;
    virtual bool waitsForWriter(std::size_t k) const = 0;

    int nodeRank(int peer) const { return context_->node().nodeRank(peer); }
    /// The record in note `k`, from `peer`. Throws MemoryError if it cannot be mapped.
    template <class Record>
    Record *lookUp(int peer, std::size_t k) {
        return reinterpret_cast<Record *>(arena_->translate(nodeRank(peer), notes_.heard(k)));
    }
    /// Calls `function` for each number below `count`; throws the first failure after all calls: edges to
    /// the other peers must be known, so that they are closed in the end.
    template <class Function>
    static void forEachOf(std::size_t count, Function &&function) {
        std::exception_ptr failure;
        for (std::size_t k = 0; k < count; ++k)
            attempt(failure, [&] { function(k); });
        if (failure)
            std::rethrow_exception(failure);
    }

    /// Peers of this transport, all on this node.
    TransportPlan plan_;
    std::shared_ptr<CommunicatorContext> context_;
    std::shared_ptr<NodeArena> arena_;
    /// Filled in by constructors of derived classes: each edge's record is told by the side that made it.
    ArenaNotes notes_;
    /// Peers may know the records: from then on their memory is not freed before they have closed them.
    bool connected_ = false;
    /// Number of the present or latest start. Ranks start an exchange equally often, so both sides of an edge count
    /// alike.
    std::uint32_t epoch_ = EpochFlag::initialEpoch;
};

} // namespace DNDS
