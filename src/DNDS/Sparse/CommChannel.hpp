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

/// One end of a channel: its state, and the bytes that move. Copies share the end. That of the sender becomes stale
/// when the data were read, that of the receiver when these were used. Messages come in order, so that neither is ever
/// wrong about the other. One-way channels have no bound on how far the sender gets ahead, but MPI's. What throws in
/// `send`, `sendNull`, `tryStartReceive`, `tryReceive`, `discard` revokes the communicator: see `recover`, after which
/// both ends are stale.
class CommChannel {
  public:
    /// Memory for so many bytes that arrive, and what it lies in.
    struct Room {
        std::span<std::byte> bytes;
        std::shared_ptr<const void> kept;
    };
    using MakeRoom = std::function<Room(std::size_t bytes)>;

    /// `tag` is not used by other channels between these ranks on `comm`. `bytes` come at most where receives are
    /// posted ahead. Local. Throws ArgumentError unless this rank is the one of this end; StateError on several ranks
    /// where DNDS has no context for `comm`: call CommunicatorContext::of(comm) on all ranks before.
    CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveWay way, std::size_t bytes,
                bool sends);

    /// Local; lets MPI make progress. Throws as `tryReceive` while data are on their way.
    ChannelState state() const;

    /// `kept` is what the bytes lie in, until MPI has read them.
    void send(std::span<const std::byte> bytes, std::shared_ptr<const void> kept);
    /// Says that there is nothing this time.
    void sendNull();
    /// Whether a receive is under way or done. Both throw LayoutError where more came than there was room for ahead.
    bool tryStartReceive(const MakeRoom &makeRoom);
    /// Throws RevokedError; PeerError where the process of a rank of this node has ended, or after asking for
    /// DNDS_WAIT_TIMEOUT seconds.
    bool tryReceive(const MakeRoom &makeRoom);
    /// The bytes that have come, where they are data.
    std::size_t receivedBytes() const noexcept;
    /// Ends the use of the data, or of the note.
    void discard();
    /// Throws StateError unless memory may be changed: by the sender where the channel is stale, by the receiver also
    /// where something has come.
    void requireAtRest() const;

  private:
    struct End;

    std::shared_ptr<End> end_;
};

} // namespace DNDS
