/// @file Transport.hpp
/// @brief How bytes move: the interface that every way of moving them implements.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/RowGather.hpp"
#include "DNDS/Transport/RowScatter.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// What this rank gives one peer: rows of each source part.
struct Outgoing {
    int peer = 0;
    std::vector<RowGather> parts;
    std::size_t bytes = 0;
    std::uint64_t widths = 0; ///< a hash of the rows' own widths, where they have such (CSR): both sides must agree
};

/// The bytes of the rows of a part.
inline std::size_t bytesOf(const RowGather &part) { return part.bytes(); }
inline std::size_t bytesOf(const RowScatter &part) { return part.bytes(); }

/// What this rank gets from one peer: rows of each destination part.
struct Incoming {
    int peer = 0;
    std::vector<RowScatter> parts;
    std::size_t bytes = 0;
    std::uint64_t widths = 0;
};

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

/// Where the parts of an exchange are in memory now.
struct Endpoints {
    std::vector<const std::byte *> sources;
    std::vector<std::byte *> destinations;
};

/// Rows from a peer that writes to destinations, but not to these: they pass through a slot, from which this rank
/// copies them to where they belong.
struct Detour {
    std::size_t bytes = 0; ///< each time the exchange runs
    std::string why;       ///< for people
};

struct TransportDescriptor;

/// Moves the bytes of one exchange to and from some of its peers. Calls alternate: bind, then start, wait, start, wait,
/// ... A source may be changed after `wait`, a destination may be read after it. `refuse` can stand for start and wait.
///
/// Exchanges are started in any order, which may differ between ranks, and a rank may refuse any epoch. Tags and
/// messages without bytes say both where there are such. A transport without tags, whose messages match by their order
/// alone (NCCL is one), needs two things more; test/DNDS/Transport/HostHandshake.hpp is an example:
///
///  * *Refusal.* `start` moves nothing: it tells each peer that this rank takes part, `refuse` that it does not. Rows
///    move in `progress` once all peers have answered, and only to and from those that take part. As both sides know
///    both answers, nobody waits for rows that do not come. Such a transport `needsProgress`.
///  * *Order.* All ranks start the exchanges that use such a transport in the same order; each of them has a serial
///    number in it (`StartOrder`), which goes with the handshake. Epochs move their rows in that order. A rank that
///    started another exchange is found out by its number before a row moves: both sides throw StateError and the epoch
///    is given up as a refused one.
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
    /// What of the rows from `peer` takes a detour now, since the last `bind`. Local.
    virtual Detour detourFrom(int /*peer*/) const { return {}; }
    /// Begins to move. Local: does not wait for peers. Where it throws, nothing has begun, and `refuse` has to follow.
    virtual void start() = 0;
    /// Moves what can be moved now; true when everything is complete. Local, does not wait. What fails on this rank's
    /// device is thrown once, after peers were told that their rows will not come, and the rest goes on.
    virtual bool progress() = 0;
    /// Completes. Throws PeerError, after everything is complete, when a peer refused to send.
    virtual void wait() = 0;
    /// Throws PeerError when a peer that is waited for has ended, or after too many seconds. Local; costs a system
    /// call.
    virtual void checkPeers(double /*secondsWaited*/) {}
    /// Instead of `start` and `wait` on a rank that cannot take part: tells the peers and, until `progress` is true,
    /// takes what they send without storing it, so that none of them is left waiting. Does not wait for that.
    virtual void refuse() = 0;
    /// The exchange is being destroyed in flight: whoever can be told is told; memory in use is kept by the caller.
    /// Local.
    virtual void abandon() noexcept {}

  private:
    friend class TransportTable;
    std::shared_ptr<const TransportDescriptor> descriptor_;
};

} // namespace DNDS
