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
/// way, discarding what has not come. `SparseFields` moves all channels of two ranks in one message: use that where it
/// fits, and this for single channels. `T` is trivially copyable. Everything is Local.
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

    ChannelState state() const { return state_->channel.state(); }
    bool isAllocated() const noexcept { return state_->buffer.isValid(); }
    /// The memory. Throws StateError where there is none.
    std::vector<T> &buffer() const { return state_->buffer.get(); }
    /// Makes memory, unless there is some. Throws StateError where the channel is not at rest; what the pool throws.
    void allocate() {
        state_->channel.requireAtRest();
        if (!isAllocated())
            state_->buffer = state_->make(state_->elements);
    }
    /// Gives it back. Throws StateError as above.
    void free() {
        state_->channel.requireAtRest();
        state_->buffer = {};
    }

    /// Sends all elements of the buffer. Throws StateError unless this rank sends, the channel is stale and there is a
    /// buffer.
    void send() {
        const std::vector<T> &from = buffer();
        state_->channel.send(std::as_bytes(std::span(from)), std::make_shared<Buffer>(state_->buffer));
    }
    /// Tells that there is nothing.
    void sendNull() { state_->channel.sendNull(); }

    /// Begins to receive, if the way to receive allows it now; `tryReceive` does where it was not called. Whether a
    /// receive is under way. Throws as `allocate`.
    bool tryStartReceive() { return state_->channel.tryStartReceive(makeRoom()); }
    /// Whether something has come: the state is then Received or ReceivedNull. Does not wait. Throws StateError unless
    /// this rank receives.
    bool tryReceive() { return state_->channel.tryReceive(makeRoom()); }
    /// Ends the use of what has come. Throws StateError where nothing has.
    void stale() { state_->channel.discard(); }

  private:
    struct State {
        std::size_t elements;
        MakeBuffer make;
        Buffer buffer;
        CommChannel channel; ///< last: MPI lets go of the buffer before it goes
    };

    CommChannel::MakeRoom makeRoom() {
        return [state = state_.get()](std::size_t bytes) {
            if (!state->buffer.isValid() || state->buffer->size() != bytes / sizeof(T))
                state->buffer = state->make(bytes / sizeof(T));
            return std::as_writable_bytes(std::span(state->buffer.get()));
        };
    }

    std::shared_ptr<State> state_; ///< shared by copies
};

} // namespace DNDS
