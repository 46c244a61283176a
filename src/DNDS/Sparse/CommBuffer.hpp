/// @file CommBuffer.hpp
/// @brief One channel from a block to another one, for programs that send block by block.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Sparse/ChannelState.hpp"
#include "DNDS/Sparse/ObjectPool.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// Method by which the receiver of a channel makes room.
enum class ReceiveMode : unsigned char {
    Preposted, ///< the receive is posted with room for the data, whether they come or not
    SizesFirst ///< room is made when it is known that data come, and how many
};

namespace Detail {

/// One end of a channel, whatever its elements are: its state, and the bytes that move. That of the sender becomes
/// stale when the data were read, that of the receiver when these were used. Messages come in order, so that neither is
/// ever wrong about the other. One-way channels have no bound on how far the sender gets ahead, but MPI's. Functions
/// throw as those of CommBuffer that call them. Local.
class CommChannel final : public Recoverable {
  public:
    /// Memory for bytes that arrive, and what it lies in.
    struct Room {
        std::span<std::byte> bytes;
        std::shared_ptr<const void> kept;
    };
    using MakeRoom = std::function<Room(std::size_t bytes)>;

    CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveMode mode, std::size_t bytes,
                bool sends);
    ~CommChannel() override;

    /// Lets MPI make progress.
    ChannelState state();
    /// Throws StateError unless memory may be changed: by the sender where the channel is stale, by the receiver also
    /// where something has come.
    void requireAtRest();
    /// Sends data, or a note that the block has none. `kept` owns the bytes until MPI has read them.
    void send(ChannelEvent event, std::span<const std::byte> bytes = {}, std::shared_ptr<const void> kept = nullptr);
    /// Whether a receive is in progress or done.
    bool tryStartReceive(const MakeRoom &makeRoom);
    bool tryReceive(const MakeRoom &makeRoom);
    /// The bytes that have come, where they are data.
    std::size_t receivedBytes() const noexcept { return received_; }
    void discard();

    bool settle() noexcept override;
    void renew() override;

  private:
    struct Transfer;

    void require(bool asSender) const;
    ChannelState now();
    bool complete();
    void poll(std::string_view what);
    bool startReceive(const MakeRoom &makeRoom);

    std::shared_ptr<CommunicatorContext> context_;
    std::string title_;
    int sender_;
    int receiver_;
    ReceiveMode mode_;
    std::size_t maxBytes_;
    bool sends_;
    bool receiving_ = false; ///< a receive was started and has not ended
    ChannelState state_ = ChannelState::Stale;
    std::size_t received_ = 0;
    std::shared_ptr<Transfer> transfer_; ///< outlives this until MPI is done with it
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
/// Within a rank each end has a buffer and a state of its own. A copy is about the sender's until it first receives,
/// and from then on about the receiver's; one copy that does both is about the receiver's from `tryReceive` to `stale`.
///
/// For programs that move data of their own block by block, with Parthenon's names; nothing in DNDS uses it.
/// `SparseFields` moves all channels of two ranks in one message (MessageLink), which is faster wherever it fits.
template <class T>
class CommBuffer {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);

  public:
    using Pool = ObjectPool<std::vector<T>>;
    using Buffer = typename Pool::Owner;
    /// Makes a buffer of so many elements.
    using MakeBuffer = std::function<Buffer(std::size_t elements)>;

    /// A pool that serves any number of channels.
    static Pool makePool() {
        return Pool("buffers of channels", [](std::size_t bytes) { return std::vector<T>(bytes / sizeof(T)); });
    }

    /// `tag` tells channels between these ranks on `comm` apart. `elements` are sent at most where receives are posted
    /// ahead, and are what `allocate` makes. Throws ArgumentError unless this rank is one of the two; StateError on
    /// several ranks where DNDS has no context for `comm`: call CommunicatorContext::of(comm) on all ranks before.
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

    /// The state of this rank's end, after MPI was asked for progress; and whether it has memory now.
    ChannelState state() const { return here().channel.state(); }
    bool isAllocated() const noexcept { return here().buffer.isValid(); }
    /// The memory. Throws StateError where none is allocated.
    std::vector<T> &buffer() const { return here().buffer.get(); }
    /// Makes memory of all elements, unless there is some. Throws StateError where the channel is not at rest; what the
    /// pool throws.
    void allocate() {
        here().channel.requireAtRest();
        if (!isAllocated())
            (void)here().room(here().elements);
    }
    /// Gives it back. Throws StateError as above.
    void free() {
        here().channel.requireAtRest();
        here().buffer = {};
    }

    /// Sends all elements of the buffer; without memory, `sendNull`. Throws StateError unless this rank sends and the
    /// channel is stale; ArgumentError where receives are posted ahead and there are more than the channel was made
    /// for.
    void send() {
        End &from = senderEnd();
        if (!from.buffer.isValid())
            return from.channel.send(ChannelEvent::SendNull);
        from.channel.send(ChannelEvent::Send, std::as_bytes(std::span(from.buffer.get())),
                          std::make_shared<Buffer>(from.buffer));
    }
    /// Sends the note that there are no data.
    void sendNull() { senderEnd().channel.send(ChannelEvent::SendNull); }

    /// Begins to receive, if the receive mode allows it now; else `tryReceive` begins. True if a
    /// receive is in flight. Throws as `allocate`; StateError where received data are not stale yet.
    bool tryStartReceive() {
        End &to = receiverEnd();
        return to.channel.tryStartReceive(makeRoom(to));
    }
    /// Whether something has come: the state is then Received, and the buffer has as many elements as were sent, or
    /// ReceivedNull; then a buffer that was made for sizes first has gone back. Does not wait. Throws StateError unless
    /// this rank receives; LayoutError, from then on always, where more came than there was room for ahead; PeerError
    /// where nothing comes and the process of the sender has ended, which is known of ranks of this node once a
    /// pattern, say, or `CommunicatorContext::of(comm)` was made, or after asking for DNDS_WAIT_TIMEOUT seconds.
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
    /// Ends the use of what has come. Throws StateError where nothing has.
    void stale() {
        receiverEnd().channel.discard();
        receives_ = !hasSent_ && receives_;
    }

  private:
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

        std::vector<T> &room(std::size_t count) {
            if (!buffer.isValid())
                buffer = make(count);
            buffer->resize(count); // the last message may have been shorter
            return buffer.get();
        }
    };

    static Detail::CommChannel::MakeRoom makeRoom(End &to) {
        return [&to](std::size_t bytes) {
            const auto room = std::as_writable_bytes(std::span(to.room(bytes / sizeof(T))));
            return Detail::CommChannel::Room{room, std::make_shared<Buffer>(to.buffer)};
        };
    }
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
    bool receives_;                 ///< true: this copy is about the receiver's end
    bool hasSent_ = false;
};

} // namespace DNDS
