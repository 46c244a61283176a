/// @file CommChannel.hpp
/// @brief What `CommBuffer` does that needs no element type: states and messages.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Sparse/ChannelState.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace DNDS {

/// How the receiver of a channel makes room.
enum class ReceiveWay : unsigned char {
    Ahead,     ///< the receive is posted with room for the data, whether they come or not
    SizesFirst ///< room is made when it is known that data come, and how many
};

/// The state of a channel from one rank to another, or within one, and the bytes that move. Copies share the channel.
/// A channel between ranks has two replicas: that of the sender becomes stale when MPI has read the data, that of the
/// receiver when these were used. Messages come in order, so that neither is ever wrong about the other. One-way
/// channels have no bound on how far the sender gets ahead, but MPI's.
class CommChannel {
  public:
    /// Room for so many bytes that arrive.
    using MakeRoom = std::function<std::span<std::byte>(std::size_t bytes)>;

    /// `tag` is not used by other messages between these ranks on `comm`, which outlives this. `bytes` come at most
    /// where receives are posted ahead. Local. Throws ArgumentError unless this rank is one of the two.
    CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveWay way, std::size_t bytes);

    /// Whether this rank is the sender; the receiver. It is both of a channel within a rank.
    bool sends() const noexcept;
    bool receives() const noexcept;
    /// Local; lets MPI make progress.
    ChannelState state() const;

    /// `kept` is what the bytes lie in, until MPI has read them.
    void send(std::span<const std::byte> bytes, std::shared_ptr<const void> kept);
    /// Says that there is nothing this time.
    void sendNull();
    /// Whether a receive is under way or done. Within a rank there is nothing to be started. Both throw LayoutError,
    /// from then on always, where more came than there was room for ahead.
    bool tryStartReceive(const MakeRoom &makeRoom);
    bool tryReceive(const MakeRoom &makeRoom);
    /// The bytes that have come, where they are data.
    std::size_t receivedBytes() const noexcept;
    void discard();
    /// Throws StateError unless memory may be changed: by the sender where the channel is stale, by the receiver also
    /// where something has come.
    void requireAtRest() const;

  private:
    struct Shared;

    void apply(ChannelEvent event) const;
    void requireSender() const;
    void requireReceiver() const;
    void startSend(std::span<const std::byte> bytes, std::shared_ptr<const void> kept);

    std::shared_ptr<Shared> shared_;
};

} // namespace DNDS
