/// @file PeerMessages.hpp
/// @brief Messages of unknown size: one to and one from each peer in each round.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

/// Sends one message a round to each of some mutual peers and takes theirs, whose sizes only they know: memory follows
/// what was sent last, not what could be. Messages of one peer come in order; what they mean is up to the user. On a
/// node, where ranks map each other's memory, peers read messages where they were written (`NodeOutbox`), unless
/// DNDS_TRANSPORT asks for another transport.
///
///     auto room = messages.prepare(k, mostBytes);   // written in place
///     messages.send(k, bytes);
///     while (!messages.receive(k)) ...
///     use(messages.received(k));                     // until `take`, after which the next one is looked for
///     messages.take(k);
///
/// Two buffers a peer are used in turn, so that no rank waits for one that is still busy with the round before.
/// Destroying it in flight keeps what MPI reads until it was read. Local, but for construction.
class PeerMessages {
  public:
    static constexpr std::size_t mostNoteBytes = 64;

    /// `channel` is its own. Local; the peers make theirs, too.
    PeerMessages(std::shared_ptr<CommunicatorContext> context, const Channel &channel, std::span<const int> peers);
    PeerMessages(const PeerMessages &) = delete;
    PeerMessages &operator=(const PeerMessages &) = delete;
    ~PeerMessages();

    /// From now on peers get this as the last message, when this rank destroys the object; what they send until then is
    /// taken and left aside. At most 64 bytes, which no other message consists of; the same on all ranks, which set it
    /// all, or none. Local.
    void setFarewell(std::span<const std::byte> bytes) noexcept;

    /// Room for the next message to peer `k`, at an address divisible by 16. Waits until the message before the last
    /// was read, which it was where the peer has answered it. Throws MemoryError, but for up to 64 bytes; PeerError as
    /// a wait for a peer.
    std::span<std::byte> prepare(std::size_t k, std::size_t bytes);
    /// Sends the first bytes of what was prepared.
    void send(std::size_t k, std::size_t bytes);
    /// Sends up to 64 bytes at once, in order with other messages, from memory of its own: needs none, and waits for
    /// nothing. False where the note before has not left yet.
    bool sendNote(std::size_t k, std::span<const std::byte> bytes) noexcept;
    /// Whether the next message of peer `k` is there. Does not wait. Throws MemoryError where there is no room for it;
    /// then it may be called again.
    bool receive(std::size_t k);
    std::span<const std::byte> received(std::size_t k) const;
    void take(std::size_t k);

    /// Whether messages to peer `k` stay in the node's memory.
    bool staysOnNode(std::size_t k) const noexcept;
    /// For those who wait long: throws PeerError where peer `k` has ended or too much time has passed.
    void checkPeer(std::size_t k, std::string_view what, double secondsWaited) const;
    bool crowded() const noexcept { return crowded_; }
    const Channel &channel() const noexcept { return channel_; }
    /// Memory of all buffers.
    std::size_t bufferBytes() const noexcept;

  private:
    struct Buffers;

    std::shared_ptr<CommunicatorContext> context_;
    Channel channel_;
    std::shared_ptr<Buffers> buffers_; ///< parked with the context when this is destroyed in flight
    bool crowded_ = false;
    double patience_ = 0;
};

} // namespace DNDS
