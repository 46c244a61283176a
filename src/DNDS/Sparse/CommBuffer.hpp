/// @file CommBuffer.hpp
/// @brief One channel from a block to another one, for programs that send block by block.
#pragma once

#include "DNDS/Sparse/CommChannel.hpp"
#include "DNDS/Sparse/ObjectPool.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// Data for one other block, or the note that there are none. The two ranks make one each, from the same arguments;
/// within a rank sender and receiver use copies of one. Used again in each step:
///
///     CommBuffer<real> channel(tag, sender, receiver, comm, 400, pool);
///     channel.allocate();                           // sender
///     fill(channel.buffer());   channel.send();     // or channel.sendNull()
///     if (channel.tryReceive()) {                   // receiver, until true
///         if (channel.state() == ChannelState::Received)
///             use(channel.buffer());
///         channel.stale();
///     }
///
/// What makes no sense throws StateError: sending twice before the channel is stale, changing memory that is on its
/// way, receiving before what has come was discarded. `T` is trivially copyable. Everything is Local.
///
/// For programs that move data of their own block by block, with Parthenon's names; nothing in DNDS uses it.
/// `SparseFields` moves all channels of two ranks in one message (PeerMessages), which is faster wherever it fits.
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

    /// Messages have `tag`, which nothing else between these ranks on `comm` uses; `comm` outlives this. `elements` are
    /// sent at most where receives are posted ahead, and are what `allocate` makes. Throws ArgumentError unless this
    /// rank is one of the two.
    CommBuffer(int tag, int sender, int receiver, CommunicatorView comm, std::size_t elements, MakeBuffer make,
               ReceiveWay way = ReceiveWay::Ahead)
        : state_(std::make_shared<State>(State{
              elements, std::move(make), {}, CommChannel(tag, sender, receiver, comm, way, elements * sizeof(T))})) {
        DNDS_CHECK(elements > 0, ArgumentError, "a channel of no elements");
    }
    /// With buffers from a pool.
    CommBuffer(int tag, int sender, int receiver, CommunicatorView comm, std::size_t elements, Pool &pool,
               ReceiveWay way = ReceiveWay::Ahead)
        : CommBuffer(
              tag, sender, receiver, comm, elements, [pool](std::size_t n) mutable { return pool.get(n * sizeof(T)); },
              way) {}

    /// The state of this rank's end, after MPI was asked for progress; and whether it has memory now.
    ChannelState state() const { return state_->channel.state(); }
    bool isAllocated() const noexcept { return state_->buffer.isValid(); }
    /// The memory. Throws StateError where there is none.
    std::vector<T> &buffer() const { return state_->buffer.get(); }
    /// Makes memory of all elements, unless there is some. Throws StateError where the channel is not at rest; what the
    /// pool throws.
    void allocate() {
        state_->channel.requireAtRest();
        if (!isAllocated())
            (void)state_->room(state_->elements);
    }
    /// Gives it back. Throws StateError as above.
    void free() {
        state_->channel.requireAtRest();
        state_->buffer = {};
    }

    /// Sends all elements of the buffer. Throws StateError unless this rank sends, the channel is stale and there is a
    /// buffer; ArgumentError where receives are posted ahead and there are more than the channel was made for.
    void send() {
        const std::vector<T> &from = buffer();
        state_->channel.send(std::as_bytes(std::span(from)), std::make_shared<Buffer>(state_->buffer));
    }
    /// Tells that there is nothing.
    void sendNull() { state_->channel.sendNull(); }

    /// Begins to receive, if the way to receive allows it now; `tryReceive` does where it was not called. Whether a
    /// receive is under way. Throws as `allocate`; StateError where something that has come is not stale yet.
    bool tryStartReceive() { return state_->channel.tryStartReceive(makeRoom()); }
    /// Whether something has come: the state is then Received, and the buffer has as many elements as were sent, or
    /// ReceivedNull. Does not wait. Throws StateError unless this rank receives; LayoutError, from then on always,
    /// where more came than there was room for ahead.
    bool tryReceive() {
        if (!state_->channel.tryReceive(makeRoom()))
            return false;
        if (state_->channel.state() == ChannelState::Received)
            buffer().resize(state_->channel.receivedBytes() / sizeof(T));
        return true;
    }
    /// Ends the use of what has come. Throws StateError where nothing has.
    void stale() { state_->channel.discard(); }

  private:
    struct State {
        std::size_t elements;
        MakeBuffer make;
        Buffer buffer;
        CommChannel channel; ///< last: MPI lets go of the buffer before it goes

        std::vector<T> &room(std::size_t count) {
            if (!buffer.isValid())
                buffer = make(count);
            buffer->resize(count); // the last message may have been shorter
            return buffer.get();
        }
    };

    CommChannel::MakeRoom makeRoom() {
        return [state = state_.get()](std::size_t bytes) {
            return std::as_writable_bytes(std::span(state->room(bytes / sizeof(T))));
        };
    }

    std::shared_ptr<State> state_; ///< shared by copies
};

} // namespace DNDS
