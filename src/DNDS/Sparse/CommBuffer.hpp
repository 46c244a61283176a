/// @file CommBuffer.hpp
/// @brief One channel from a block to another one, for programs that send block by block: its five states (no data, no
/// messages), what leads from one to the next, and the buffer with its messages.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Sparse/ObjectPool.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// The contents of a channel, as one of its ends sees it: the states of Parthenon's communication buffers.
enum class ChannelState : std::uint8_t {
    Stale,       ///< no data in use: the sender may write
    Sending,     ///< data are in flight
    SendingNull, ///< an empty message is in flight: the sender's block is absent
    Received,    ///< data have arrived: the receiver may read them
    ReceivedNull ///< the empty message has arrived
};
inline constexpr std::size_t channelStates = 5;

/// The events of a channel.
enum class ChannelEvent : std::uint8_t {
    Send,     ///< sender: data are written
    SendNull, ///< sender: there are no data
    Receive,  ///< receiver: takes what has arrived, if anything
    Discard,  ///< receiver: the arrived data were used
    Release   ///< at the sender's end of a channel between ranks: the message has left the sender's memory
};
inline constexpr std::size_t channelEvents = 5;

std::string_view channelStateName(ChannelState state) noexcept;

namespace Detail {

inline constexpr std::uint8_t noChannelState = 255;
/// [events][states]: see `stateAfter`.
inline constexpr std::array<std::array<std::uint8_t, channelStates>, channelEvents> channelTable = [] {
    using enum ChannelState;
    constexpr auto of = [](ChannelState state) { return static_cast<std::uint8_t>(state); };
    constexpr std::uint8_t no = noChannelState;
    return std::array<std::array<std::uint8_t, channelStates>, channelEvents>{{
        {of(Sending), no, no, no, no},
        {of(SendingNull), no, no, no, no},
        {of(Stale), of(Received), of(ReceivedNull), of(Received), of(ReceivedNull)},
        {no, no, no, of(Stale), of(Stale)},
        {no, of(Stale), of(Stale), no, no},
    }};
}();

} // namespace Detail

/// The state after an event; nothing where the event makes no sense there.
///
/// |          | Stale       | Sending  | SendingNull  | Received | ReceivedNull |
/// |----------|-------------|----------|--------------|----------|--------------|
/// | Send     | Sending     |          |              |          |              |
/// | SendNull | SendingNull |          |              |          |              |
/// | Receive  | Stale       | Received | ReceivedNull | Received | ReceivedNull |
/// | Discard  |             |          |              | Stale    | Stale        |
/// | Release  |             | Stale    | Stale        |          |              |
constexpr std::optional<ChannelState> stateAfter(ChannelState state, ChannelEvent event) noexcept {
    const std::uint8_t next = Detail::channelTable[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
    if (next == Detail::noChannelState)
        return {};
    return static_cast<ChannelState>(next);
}

/// Throws StateError that names the event and the state: not where `stateAfter` has a state.
[[noreturn]] inline void throwInvalidEvent(ChannelState state, ChannelEvent event, std::string_view channel) {
    constexpr std::array<std::string_view, channelEvents> names{"send", "sendNull", "tryReceive", "stale", "release"};
    throw StateError(
        fmt::format("{} on {}, which is {}", names[static_cast<std::size_t>(event)], channel, channelStateName(state)));
}

/// Moves a channel to its next state, one load of the table. Throws StateError if the event is not allowed; `channel`
/// is its name.
inline void advance(ChannelState &state, ChannelEvent event, std::string_view channel) {
    const std::uint8_t next = Detail::channelTable[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
    if (next == Detail::noChannelState) [[unlikely]]
        throwInvalidEvent(state, event, channel);
    state = static_cast<ChannelState>(next);
}

/// Whether a message, with or without data, is in flight; or has arrived.
constexpr bool isSending(ChannelState state) noexcept {
    return state == ChannelState::Sending || state == ChannelState::SendingNull;
}
constexpr bool isReceived(ChannelState state) noexcept {
    return state == ChannelState::Received || state == ChannelState::ReceivedNull;
}

/// The name for messages: "stale", "sending", "sendingNull", "received", "receivedNull".
inline std::string_view channelStateName(ChannelState state) noexcept {
    constexpr std::array<std::string_view, channelStates> names{"stale", "sending", "sendingNull", "received",
                                                                "receivedNull"};
    return names[static_cast<std::size_t>(state)];
}

/// Method by which the receiver of a channel makes room.
enum class ReceiveMode : unsigned char {
    Preposted, ///< the receive is posted with room for the data, whether or not they come
    SizesFirst ///< room is made when the number of elements is known
};

namespace Detail {

/// One end of a channel, without its element type: its state, and its messages. Each end has a state of its own, moved
/// by the table of ChannelState: the sender's becomes stale when MPI has read the data, the receiver's when the program
/// has used them. No acknowledgement is sent: messages of a channel arrive in order, which is all that the ends need.
/// On one-way channels only MPI limits how far the sender gets ahead. Functions throw as the functions of CommBuffer
/// that call them. Local.
class CommChannel final : public Recoverable {
  public:
    /// Memory for received bytes, and its owner.
    struct Room {
        std::span<std::byte> bytes;
        std::shared_ptr<const void> kept;
    };
    using MakeRoom = std::function<Room(std::size_t bytes)>;

    CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveMode mode, std::size_t bytes,
                bool sends);
    ~CommChannel() override;

    /// The state of this end, after progress of MPI.
    ChannelState state();
    /// Throws StateError unless memory may be changed: by the sender while the channel is stale, by the receiver also
    /// after a message has arrived.
    void requireAtRest();
    /// Sends data, or a note that the block has none. `kept` owns the bytes until MPI has read them.
    void send(ChannelEvent event, std::span<const std::byte> bytes = {}, std::shared_ptr<const void> kept = nullptr);
    /// Begins to receive where the mode allows it now; true if a receive is in progress.
    bool tryStartReceive(const MakeRoom &makeRoom);
    /// Whether a message has arrived; begins to receive if need be.
    bool tryReceive(const MakeRoom &makeRoom);
    /// The number of received bytes, if the message has data.
    std::size_t receivedBytes() const noexcept { return received_; }
    /// Ends the use of a received message.
    void discard();

    bool settle() noexcept override;
    void renew() override;

  private:
    struct Transfer;

    /// Throws StateError unless this end sends, or receives, as `asSender` says.
    void require(bool asSender) const;
    /// The state; first makes the sender's end stale if MPI has read the data.
    ChannelState now();
    bool complete();
    void poll(std::string_view what);
    bool startReceive(const MakeRoom &makeRoom);

    std::shared_ptr<CommunicatorContext> context_;
    std::string title_;
    int sender_;
    int receiver_;
    ReceiveMode mode_;
    std::size_t maxBytes_;   ///< room of a posted receive
    bool sends_;             ///< this is the sender's end
    bool receiving_ = false; ///< a receive was started and has not ended
    ChannelState state_ = ChannelState::Stale;
    std::size_t received_ = 0;           ///< bytes of the last message
    std::shared_ptr<Transfer> transfer_; ///< outlives this until MPI has finished with it
};

} // namespace Detail

/// Sends data to one other block, or a note that the sender has none. The two ranks make one each, from the same
/// arguments; within a rank sender and receiver use copies of one, which behave as if on two ranks. Used again in each
/// step:
///
///     CommBuffer<real> channel(tag, sender, receiver, comm, 400, pool);
///     channel.allocate();                           // sender, where it has something
///     fill(channel.buffer());   channel.send();     // without memory: channel.sendNull()
///     if (channel.tryReceive()) {                   // receiver, until true
///         if (channel.state() == ChannelState::Received)
///             use(channel.buffer());
///         channel.stale();
///     }
///
/// Wrong calls throw StateError: sending twice before the channel is stale, changing memory in flight,
/// receiving before earlier data were discarded. Any error while data move revokes the communicator; after
/// `recover` both ends are stale. `T` is trivially copyable. Everything is Local.
///
/// Within a rank each end has a buffer and a state of its own. `state` and `buffer` of a copy refer to the sender's end
/// until the copy first receives, then to the receiver's; if one copy does both, to the receiver's from `tryReceive` to
/// `stale`.
///
/// For programs that move their own data block by block, with Parthenon's names; DNDS itself does not use it.
/// `SparseFields` moves all channels of two ranks in one message (MessageLink), which is faster wherever it fits.
template <class T>
class CommBuffer {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);

  public:
    using Pool = ObjectPool<std::vector<T>>;
    using Buffer = typename Pool::Owner;
    /// Makes a buffer of `elements` elements.
    using MakeBuffer = std::function<Buffer(std::size_t elements)>;

    /// A pool that serves any number of channels.
    static Pool makePool() {
        return Pool("buffers of channels", [](std::size_t bytes) { return std::vector<T>(bytes / sizeof(T)); });
    }

    /// `tag` tells channels between these ranks on `comm` apart. `elements` is the size of buffers from `allocate`, and
    /// the most that can be sent if receives are posted ahead. Throws ArgumentError unless this rank is one of the two;
    /// StateError on several ranks if `comm` has no context: call CommunicatorContext::of(comm) on all ranks before.
    CommBuffer(int tag, int sender, int receiver, CommunicatorView comm, std::size_t elements, MakeBuffer make,
               ReceiveMode mode = ReceiveMode::Preposted)
        : receives_(comm.rank() != sender) {
        DNDS_CHECK(elements > 0, ArgumentError, "a channel of no elements");
        const auto end = [&](bool sends) {
            return std::make_shared<End>(elements, mode, make, tag, sender, receiver, comm, sends);
        };
        sender_ = receives_ ? end(false) : end(true);
        receiver_ = sender == receiver ? end(false) : sender_;
    }
    /// With buffers from a pool.
    CommBuffer(int tag, int sender, int receiver, CommunicatorView comm, std::size_t elements, Pool &pool,
               ReceiveMode mode = ReceiveMode::Preposted)
        : CommBuffer(
              tag, sender, receiver, comm, elements, [pool](std::size_t n) mutable { return pool.get(n * sizeof(T)); },
              mode) {}

    /// The state of this rank's end, after progress of MPI; and whether it has memory now.
    ChannelState state() const { return here().channel.state(); }
    bool isAllocated() const noexcept { return here().buffer.isValid(); }
    /// The memory. Throws StateError where none is allocated.
    std::vector<T> &buffer() const { return here().buffer.get(); }
    /// Allocates memory for all elements, unless there is some. Throws StateError if the channel is not at rest; as the
    /// pool does.
    void allocate() {
        here().channel.requireAtRest();
        if (!isAllocated())
            (void)here().room(here().elements);
    }
    /// Returns it to the pool. Throws StateError as above.
    void free() {
        here().channel.requireAtRest();
        here().buffer = {};
    }

    /// Sends all elements of the buffer; without memory, `sendNull`. Throws StateError unless this rank sends and the
    /// channel is stale; ArgumentError if receives are posted ahead and there are more elements than the channel was
    /// made for.
    void send() {
        End &from = senderEnd();
        if (!from.buffer.isValid())
            return from.channel.send(ChannelEvent::SendNull);
        from.channel.send(ChannelEvent::Send, std::as_bytes(std::span(from.buffer.get())),
                          std::make_shared<Buffer>(from.buffer));
    }
    /// Sends an empty message.
    void sendNull() { senderEnd().channel.send(ChannelEvent::SendNull); }

    /// Begins to receive, if the receive mode allows it now; else `tryReceive` begins. True if a
    /// receive is in flight. Throws as `allocate`; StateError where received data are not stale yet.
    bool tryStartReceive() {
        End &to = receiverEnd();
        return to.channel.tryStartReceive(makeRoom(to));
    }
    /// Whether a message has arrived: the state is then Received, and the buffer has the sent number of elements, or
    /// ReceivedNull; then a buffer made for sizes first has been returned. Does not wait. Throws StateError unless
    /// this rank receives; LayoutError, from then on always, if more arrived than there was room for; PeerError
    /// if nothing arrives and the sender's process has ended, which is known for ranks of this node once a
    /// pattern, say, or `CommunicatorContext::of(comm)` was made, or after polling for DNDS_WAIT_TIMEOUT seconds.
    bool tryReceive() {
        End &to = receiverEnd();
        if (!to.channel.tryReceive(makeRoom(to)))
            return false;
        if (to.channel.state() == ChannelState::Received)
            to.buffer->resize(to.channel.receivedBytes() / sizeof(T));
        else if (to.mode == ReceiveMode::SizesFirst)
            to.buffer = {};
        return true;
    }
    /// Ends the use of a received message. Throws StateError without one.
    void stale() {
        receiverEnd().channel.discard();
        receives_ = !hasSent_ && receives_;
    }

  private:
    /// An end with its memory, shared by copies of the CommBuffer.
    struct End {
        std::size_t elements;
        ReceiveMode mode;
        MakeBuffer make;
        Buffer buffer;
        Detail::CommChannel channel;

        End(std::size_t most, ReceiveMode receiveMode, MakeBuffer makeBuffer, int tag, int sender, int receiver,
            CommunicatorView comm, bool sends)
            : elements(most), mode(receiveMode), make(std::move(makeBuffer)),
              channel(tag, sender, receiver, comm, mode, most * sizeof(T), sends) {}

        /// The buffer, resized to `count` elements; made if there is no buffer.
        std::vector<T> &room(std::size_t count) {
            if (!buffer.isValid())
                buffer = make(count);
            buffer->resize(count); // the last message may have been shorter
            return buffer.get();
        }
    };

    /// Room for the channel in the buffer of `to`, which the transfer co-owns: it may outlive the CommBuffer.
    static Detail::CommChannel::MakeRoom makeRoom(End &to) {
        return [&to](std::size_t bytes) {
            const auto room = std::as_writable_bytes(std::span(to.room(bytes / sizeof(T))));
            return Detail::CommChannel::Room{room, std::make_shared<Buffer>(to.buffer)};
        };
    }
    /// The end that `state` and `buffer` of this copy refer to.
    End &here() const noexcept { return receives_ ? *receiver_ : *sender_; }
    End &senderEnd() {
        receives_ = false;
        hasSent_ = true;
        return *sender_;
    }
    End &receiverEnd() {
        receives_ = true;
        return *receiver_;
    }

    std::shared_ptr<End> sender_;   ///< shared by copies; of two ranks, this one's end
    std::shared_ptr<End> receiver_; ///< the same one unless within a rank
    bool receives_;                 ///< true: this copy refers to the receiver's end
    bool hasSent_ = false;
};

} // namespace DNDS
