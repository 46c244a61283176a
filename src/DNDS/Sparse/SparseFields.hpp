/// @file SparseFields.hpp
/// @brief The exchange of sparse fields on one pattern: one message a peer, and blocks that come and go.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Storage/Array.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

class SparseFieldCore;

/// The channels of a step: within this rank, to and from other ranks, or all.
enum class BoundaryType : unsigned char { Any, Local, NonLocal };

/// Counts of an exchange on this rank since it was made.
struct SparseTraffic {
    std::uint64_t exchanges = 0; ///< pushes included
    std::uint64_t messages = 0;  ///< sent
    std::uint64_t bytes = 0;     ///< sent, with headers
    std::uint64_t rims = 0;      ///< sent to other ranks
    std::uint64_t withheld = 0;  ///< rims of allocated blocks that were not sent: below the threshold, or no deposits
    std::uint64_t allocations = 0;
    std::uint64_t frees = 0;
    std::size_t bufferBytes = 0; ///< memory of messages, now
};

/// Exchanges the ghosts of some sparse fields on one pattern: one message a peer and exchange, in which a channel whose
/// block is absent takes one bit.
///
///     SparseFields species("species", {&dust, &ice});
///     species.exchangeGhosts();
///
/// Its steps, in this order: rims of allocated blocks are sent; all messages are received; absent blocks that get a
/// value above the allocation threshold are allocated, all or none;
/// ghosts are filled with the received values, or else the default; blocks that were empty often enough are freed.
/// Ghosts that stand for no cell belong to the program and are left alone. All decisions depend on values only: results
/// have the same bits on any number of ranks.
///
/// The steps can be called one by one, with other work in between, or from task lists: each for all channels, for those
/// within the rank, or for those between ranks. The `setBounds` that completes both sides allocates and frees:
///
///     species.sendBoundBufs();
///     species.setBounds(BoundaryType::Local);                   // while messages are on their way
///     while (!species.receiveBoundBufs()) doSomethingElse();
///     species.setBounds(BoundaryType::NonLocal);
///
/// From the first send until the exchange is over, cells may be read, not written, and blocks neither allocated nor
/// freed by the program.
///
/// In the opposite direction, `pushGhosts` adds what blocks have deposited in ghosts to the cells that these stand for.
///
/// All fields of an exchange are in one memory space, on all ranks. Between devices rims use the transports of arrays,
/// chosen by the same rules (docs/reference/gpu-transports.md); headers and bits are sent by the host, which decides.
///
/// An error on one rank (no memory within the pool's limit or the machine's, steps out of order, different exchanges on
/// different ranks) is thrown there, ends the exchange and revokes the communicator; after `recover` exchanges
/// continue. Cells keep their values; ghosts are stale. Destroying the object in flight revokes as well; between
/// exchanges ranks may destroy theirs in any order. One object is used by one thread at a time.
class SparseFields {
  public:
    /// Collective; all ranks give the same fields in the same order. The first one on a communicator tries what devices
    /// can do, where DNDS is built for one. Throws on all ranks ArgumentError for one that is
    /// named twice, or fields on different patterns (for no field at all on this rank only); StateError naming what
    /// differs between ranks.
    SparseFields(std::string name, std::initializer_list<SparseFieldCore *> fields)
        : SparseFields(std::move(name), std::span(fields.begin(), fields.size())) {}
    SparseFields(std::string name, std::span<SparseFieldCore *const> fields);
    /// The exchange of one field, with its name.
    explicit SparseFields(SparseFieldCore &field);
    SparseFields(const SparseFields &) = delete;
    SparseFields &operator=(const SparseFields &) = delete;
    /// Local, and does not wait.
    ~SparseFields();

    /// Begins and completes. On the device it follows the work that `producer` holds, and is complete on return. Local,
    /// but waits for peers. Throws MemoryError; StateError where the exchange before is
    /// not over, a peer is in another one, or it has swapped stages otherwise; RevokedError, PeerError as `waitUntil`.
    void exchangeGhosts(Device::StreamHandle producer = nullptr) {
        startExchangeGhosts(producer);
        finishExchangeGhosts();
    }
    void startExchangeGhosts(Device::StreamHandle producer = nullptr) { sendBoundBufs(BoundaryType::Any, producer); }
    void finishExchangeGhosts();

    /// Adds what the blocks have deposited into their ghosts to the cells that these stand for: mass of particles near
    /// a face, fluxes into neighbours. The default is the identity of `op`, as it is what absent blocks add: 0 for
    /// PushOp::Sum; for Min (Max) infinity (-infinity), or the largest (lowest) integer.
    ///
    ///     SparseField<real> mass("mass", pattern, {.allocationThreshold = 1e-8});
    ///     for (const Particle &p : particles) {
    ///         mass.allocate(p.block);                         // a block that deposits has memory
    ///         deposit(p, mass.view(p.block));                 // into cells and ghosts
    ///     }
    ///     mass.pushGhosts();
    ///
    /// - An absent block is allocated if one of the blocks beside it deposits a value above its allocation threshold;
    ///   its cells, ghosts and stages begin with the default. Otherwise all that was deposited for it is dropped, and
    ///   counted exactly by `DroppedSums`. Allocated ones get all of it, whatever `sendBelowThreshold` is.
    /// - Deposits for a cell are added in the order of the numbers of their blocks: results have the same bits on any
    ///   number of ranks, of real numbers, too.
    /// - Afterwards ghosts are the default, ready for deposits. Ghosts that stand for no cell are left alone.
    /// - Pushes free no blocks, and do not count for `deallocationCount`.
    ///
    /// In flight neither cells nor ghosts may be written; `receiveBoundBufs` says whether all has come. Local, but
    /// waits for peers. After an error cells and ghosts of this rank are as before, unless its device ran out of
    /// memory, and those of others may have been changed. Throws ArgumentError for another default, or PushOp::Replace;
    /// StateError for ranks that make different exchanges; MemoryError; RevokedError, PeerError as `waitUntil`.
    void pushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr) {
        startPushGhosts(op, producer);
        finishPushGhosts();
    }
    void startPushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr);
    void finishPushGhosts();

    /// Exchanges in steps, with Parthenon's names. Each throws StateError out of order: sent twice, received before it
    /// was sent, set before it was received. Buffers need no call: sending makes room, and no receive is posted.
    ///
    /// The first one begins the exchange, after the work of `producer`.
    void sendBoundBufs(BoundaryType which = BoundaryType::Any, Device::StreamHandle producer = nullptr);
    /// Whether everything has arrived. Does not wait. Throws PeerError where a process has ended, or after asking for
    /// DNDS_WAIT_TIMEOUT seconds.
    bool receiveBoundBufs(BoundaryType which = BoundaryType::Any);
    /// Fills ghosts; the call that sets the last side completes the exchange.
    void setBounds(BoundaryType which = BoundaryType::Any);

    /// For errors of the program between the steps: abandons an exchange that has begun, and revokes the communicator.
    /// Local, does not wait.
    void abandon() noexcept;

    /// The name for messages, and whether an exchange has started that was not finished. Local.
    const std::string &name() const noexcept;
    bool inFlight() const noexcept;
    /// The transport for each peer, and why, as text: as `describePull` of arrays. Local.
    std::string describe() const;
    /// For task graphs: `SparseFieldCore::rows` of all fields.
    std::vector<Array<std::uint8_t, 0> *> rows() const;
    /// The counts so far on this rank. Local.
    SparseTraffic traffic() const;

  private:
    /// Links, channels and steps: see SparseFieldsState.hpp.
    struct State;

    std::unique_ptr<State> state_;
};

} // namespace DNDS
