/// @file Transport.hpp
/// @brief The interface of all ways to move bytes.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/RowGather.hpp"
#include "DNDS/Transport/RowScatter.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace DNDS {

/// A message to or from one peer: rows of each part, which are gathered from sources or scattered to destinations.
template <class Rows>
struct PeerMessage {
    int peer = 0;
    std::vector<Rows> parts;
    std::size_t bytes = 0;
    std::uint64_t widths = 0; ///< a hash of the rows' own widths, where they have such (CSR): both sides must agree
};
using Outgoing = PeerMessage<RowGather>;
using Incoming = PeerMessage<RowScatter>;

/// The traffic of one exchange with some peers. A message holds the rows of all parts, part after part. Peers ascend. A
/// peer that gives or gets no bytes is left out.
///
/// A pull gathers rows of fathers into rows of sons; a push gathers rows of sons into ranges of a staging buffer. To a
/// transport both are the same: scattered source, scattered destination. One run on a side costs nothing more than a
/// range; ghosts that are sorted by owner are one.
struct TransportPlan {
    Channel channel;
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
};

/// The current memory of the parts of an exchange.
struct Endpoints {
    /// Bases of the parts, by their number in messages.
    std::vector<const std::byte *> sources;
    std::vector<std::byte *> destinations;
};

/// Rows from a peer that writes to destinations, but not to these: they pass through a slot, from which this rank
/// copies them to where they belong.
struct StagedTraffic {
    std::size_t bytes = 0; ///< each time the exchange runs
    std::string why;       ///< readable text
};

struct TransportDescriptor;
struct TransportSetup;

/// Moves the bytes of one exchange to and from some of its peers. Calls alternate: bind, then start, progress until it
/// is true, finish, start, ... A source may be changed after `finish`, a destination may be read after it.
///
/// Exchanges are started in any order, which may differ between ranks: tags say what belongs together. A transport
/// without tags, whose messages match by their order alone (NCCL is one), would have to find an order first.
///
/// An exception of a call revokes the communicator (docs/reference/errors.md), so a transport neither tells peers of
/// failures nor survives them: `settle` and `renew` are all that it does about them.
class Transport {
  public:
    Transport() = default;
    Transport(const Transport &) = delete;
    Transport &operator=(const Transport &) = delete;
    virtual ~Transport() = default;

    /// The line of the table that this transport was made from.
    const TransportDescriptor &descriptor() const noexcept { return *descriptor_; }

    /// Completes a set-up that takes part on both sides; called once, before `bind`, after all ranks have made their
    /// transport and passed a collective call. Local.
    virtual void connect() {}
    /// Replaces the plan by one with the same peers and bytes, whose rows lie elsewhere; `bind` follows. Local.
    virtual void replacePlan(TransportPlan plan) = 0;
    /// Takes over new addresses; never called in flight. Local.
    virtual void bind(const Endpoints &endpoints) = 0;
    /// The rows from `peer` that are staged since the last `bind`. Local.
    virtual StagedTraffic stagedFrom(int /*peer*/) const { return {}; }
    /// Begins to move. Local: does not wait for peers.
    virtual void start() = 0;
    /// Moves what can be moved now; true when everything is complete. Local, does not wait.
    virtual bool progress() = 0;
    /// When `progress` was true: what is left to do on this rank, as unpacking. Local.
    virtual void finish() {}
    /// The peer that `progress` waits for, as the end of "waited for": "rank 3 to send rows". Local.
    virtual std::string awaited() const { return {}; }

    /// Cancels transfers in progress. See Recoverable::settle.
    virtual bool settle() noexcept { return true; }
    /// Whether peers may write to destinations in spite of `settle`, until the communicator has recovered. Local.
    virtual bool exposed() const noexcept { return false; }
    /// Starts again, on the renewed channel; `bind` follows. See Recoverable::renew.
    virtual void renew(const CommunicatorContext & /*context*/) {}

  private:
    friend std::vector<std::unique_ptr<Transport>> makeTransports(std::map<TransportKind, TransportPlan> plans,
                                                                  const TransportSetup &setup);
    const TransportDescriptor *descriptor_ = nullptr; ///< set by makeTransports
};

} // namespace DNDS
