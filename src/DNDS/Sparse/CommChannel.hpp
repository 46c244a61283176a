/// @file CommChannel.hpp
/// @brief What `CommBuffer` does that needs no element type: states and messages.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Sparse/ChannelState.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// How the receiver of a channel makes room.
enum class ReceiveWay : unsigned char {
    Ahead,     ///< the receive is posted with room for the data, whether they come or not
    SizesFirst ///< room is made when it is known that data come, and how many
};

/// Messages of a channel within a rank that were sent and not received yet; one without bytes says that there is
/// nothing.
using ChannelMail = std::deque<std::vector<std::byte>>;

/// One end of a channel: its state, and the bytes that move. Copies share the end. That of the sender becomes stale
/// when the data were read, that of the receiver when these were used. Messages come in order, so that neither is ever
/// wrong about the other. One-way channels have no bound on how far the sender gets ahead, but MPI's.
class CommChannel {
  public:
    /// Room for so many bytes that arrive.
    using MakeRoom = std::function<std::span<std::byte>(std::size_t bytes)>;

    /// `tag` is not used by other messages between these ranks on `comm`, which outlives this. `bytes` come at most
    /// where receives are posted ahead. `mail` is what both ends of a channel within a rank share, else null. Local.
    /// Throws ArgumentError unless this rank is the one of this end.
    CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveWay way, std::size_t bytes, bool sends,
                std::shared_ptr<ChannelMail> mail);

    /// Local; lets MPI make progress.
    ChannelState state() const;

    /// `kept` is what the bytes lie in, until MPI has read them.
    void send(std::span<const std::byte> bytes, std::shared_ptr<const void> kept);
    /// Says that there is nothing this time.
    void sendNull();
    /// Whether a receive is under way or done. Both throw LayoutError, from then on always, where more came than there
    /// was room for ahead.
    bool tryStartReceive(const MakeRoom &makeRoom);
    /// Throws PeerError, too, where nothing has come and the sender has ended, as far as that is known (see
    /// CommBuffer), or after asking for DNDS_WAIT_TIMEOUT seconds.
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
    bool receiveNow(const MakeRoom &makeRoom);

    std::shared_ptr<Shared> shared_;
};

} // namespace DNDS
