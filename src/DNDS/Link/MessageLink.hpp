/// @file MessageLink.hpp
/// @brief Messages of unknown size to and from some peers.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace DNDS {

/// Two buffers a peer are used in turn, so that two messages to each peer may be on their way. A message that was
/// sent arrives even if the sender destroys its link. Errors are thrown; the user's running call revokes the
/// communicator. Local, except for set-up. For one thread at a time.
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

    /// Room for the next message to peer `k`, at an address divisible by 16. Waits until the message before the last
    /// was taken. Throws MemoryError; RevokedError, PeerError as `waitUntil`.
    std::span<std::byte> prepare(std::size_t k, std::size_t bytes);
    /// Sends the first bytes of what was prepared.
    void send(std::size_t k, std::size_t bytes);
    /// Whether the next message of peer `k` is there. Does not wait. Throws MemoryError where there is no room for it;
    /// StateError where device memory of a peer cannot be opened.
    bool receive(std::size_t k);
    /// The message that is there, until `take`.
    std::span<const std::byte> received(std::size_t k) const;
    void take(std::size_t k);
    /// For destructors: peer `k` sends one more message, which is dropped when it comes. Local, does not wait.
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
