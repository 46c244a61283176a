/// @file MessageLink.hpp
/// @brief Messages of unknown size to and from some peers.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace DNDS {

/// Ordered messages between pairs of ranks, of sizes that only the sender knows: no receive is posted ahead, and no
/// sizes are exchanged. Between nodes a message is a send, found by MPI_Improbe and received by MPI_Imrecv (MPI-4.1,
/// 3.8.2); within a node it is written into a `NodeMailbox` and read there, without a copy. Peers are mutual; a rank
/// knows its own peers only.
///
/// Two buffers for each peer are used in turn, so that two messages to it may be in flight. A message that was sent
/// arrives even if the sender destroys its link. Errors are thrown; the user's running call revokes the communicator.
/// Local, except for set-up. For one thread at a time.
class MessageLink {
  public:
    /// `channel` is its own. Local: then all ranks call `connect`. Throws std::bad_alloc.
    /// `onDevice`: the transport of each peer, for messages in device memory, which kernels fill and read: `Peer`,
    /// straight from this device to the peer's; `Direct`, by MPI; others: none are sent. Empty: messages in host
    /// memory. Kernels that fill a message have run when it is sent, kernels that read it when it is taken.
    MessageLink(std::shared_ptr<CommunicatorContext> context, const Channel &channel, std::span<const int> peers,
                std::span<const TransportKind> onDevice = {});
    MessageLink(const MessageLink &) = delete;
    MessageLink &operator=(const MessageLink &) = delete;
    /// Does not wait.
    ~MessageLink();
    /// Peers of a node find each other's memory. Collective over the communicator. Throws MemoryError on all ranks.
    void connect();

    /// Room for the next message to peer `k`, at an address divisible by 16, until `send` or the next `prepare` for it.
    /// Waits until the buffer of the message before the last is free: taken by its reader within a node, sent by MPI
    /// elsewhere. Throws MemoryError; RevokedError, PeerError as `waitUntil`.
    std::span<std::byte> prepare(std::size_t k, std::size_t bytes);
    /// Sends the first `bytes` bytes of the room that `prepare` returned. Does not wait.
    void send(std::size_t k, std::size_t bytes);
    /// Whether the next message of peer `k` has arrived; true again until `take`. Does not wait. Throws MemoryError if
    /// there is no room for it; StateError if device memory of a peer cannot be opened.
    bool receive(std::size_t k);
    /// The message that `receive` has found, in this link's buffer or, within a node, in the sender's. Valid until
    /// `take`.
    std::span<const std::byte> received(std::size_t k) const;
    /// Ends the use of that message; within a node its buffer is the sender's again.
    void take(std::size_t k);
    /// For destructors: peer `k` will send one more message, which is received and dropped. Local, does not wait.
    void dropNext(std::size_t k) noexcept;

    /// For Recoverable: see there.
    bool settle() noexcept;
    void renew();

    /// Memory of all buffers.
    std::size_t bufferBytes() const noexcept;

  private:
    /// Buffers, requests and mailboxes of all peers: see the source.
    struct State;

    std::shared_ptr<CommunicatorContext> context_;
    std::shared_ptr<State> state_; ///< parked with the context when this is destroyed in flight
};

} // namespace DNDS
