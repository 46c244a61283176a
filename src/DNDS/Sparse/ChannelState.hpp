/// @file ChannelState.hpp
/// @brief The five states of a channel between two blocks, and what leads from one to the next: no data, no messages.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace DNDS {

/// What a channel holds.
enum class ChannelState : std::uint8_t {
    Stale,       ///< nothing that is of use: the sender may write
    Sending,     ///< data on their way
    SendingNull, ///< a note on its way that there are no data
    Received,    ///< data, for the receiver to read
    ReceivedNull ///< the note, for the receiver to see
};
inline constexpr std::size_t channelStates = 5;

/// What happens to it.
enum class ChannelEvent : std::uint8_t {
    Send,     ///< by the sender: data are written
    SendNull, ///< by the sender: there are none
    Receive,  ///< by the receiver: look whether something has come
    Discard,  ///< by the receiver: what has come was used
    Release   ///< at the sender's end of a channel between ranks: the message has left the sender's memory
};
inline constexpr std::size_t channelEvents = 5;

std::string_view channelStateName(ChannelState state) noexcept;

/// The state after an event; nothing where the event makes no sense there. Exchanges of sparse fields keep a byte a
/// channel, one for both ends within a rank and one an end between ranks, and change it by this table.
///
/// |          | Stale       | Sending  | SendingNull  | Received | ReceivedNull |
/// |----------|-------------|----------|--------------|----------|--------------|
/// | Send     | Sending     |          |              |          |              |
/// | SendNull | SendingNull |          |              |          |              |
/// | Receive  | Stale       | Received | ReceivedNull | Received | ReceivedNull |
/// | Discard  |             |          |              | Stale    | Stale        |
/// | Release  |             | Stale    | Stale        |          |              |
constexpr std::optional<ChannelState> stateAfter(ChannelState state, ChannelEvent event) noexcept {
    using enum ChannelState;
    constexpr std::optional<ChannelState> nonsense;
    constexpr std::array<std::array<std::optional<ChannelState>, channelStates>, channelEvents> table{{
        {Sending, nonsense, nonsense, nonsense, nonsense},
        {SendingNull, nonsense, nonsense, nonsense, nonsense},
        {Stale, Received, ReceivedNull, Received, ReceivedNull},
        {nonsense, nonsense, nonsense, Stale, Stale},
        {nonsense, Stale, Stale, nonsense, nonsense},
    }};
    return table[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
}

/// Throws StateError that names the event and the state: not where `stateAfter` has a state.
[[noreturn]] inline void throwInvalidEvent(ChannelState state, ChannelEvent event, std::string_view channel) {
    constexpr std::array<std::string_view, channelEvents> names{"send", "sendNull", "tryReceive", "stale", "release"};
    throw StateError(
        fmt::format("{} on {}, which is {}", names[static_cast<std::size_t>(event)], channel, channelStateName(state)));
}

/// Moves a channel on. Throws StateError where the event makes no sense; `channel` is its name.
inline void advance(ChannelState &state, ChannelEvent event, std::string_view channel) {
    const auto next = stateAfter(state, event);
    if (!next) [[unlikely]]
        throwInvalidEvent(state, event, channel);
    state = *next;
}

/// A byte a channel, for many that go through an exchange together. Most are between blocks without memory: these stay
/// stale and cost nothing, as nobody looks at them.
class ChannelStates {
  public:
    /// All of them stale.
    void resize(std::size_t channels) { states_.assign(channels, ChannelState::Stale); }
    ChannelState operator[](std::size_t k) const noexcept { return states_[k]; }
    /// Send or SendNull on channel `k`. Throws as `advance`.
    void send(std::size_t k, ChannelEvent event, std::string_view name) {
        moving_.push_back(static_cast<std::uint32_t>(k));
        advance(states_[k], event, name);
    }
    /// Whether data have come on channel `k`. Where nothing was sent, because its block is absent, the note that there
    /// are none is sent, received and discarded here: the channel is stale before and after.
    bool hasData(std::size_t k) const noexcept {
        using enum ChannelState;
        static_assert(stateAfter(Stale, ChannelEvent::SendNull) == SendingNull &&
                      stateAfter(SendingNull, ChannelEvent::Receive) == ReceivedNull &&
                      stateAfter(ReceivedNull, ChannelEvent::Discard) == Stale);
        return states_[k] == Received;
    }
    /// What happens to all channels that are not stale. Throws as `advance`.
    void advanceAll(ChannelEvent event, std::string_view name) {
        for (const std::uint32_t k : moving_)
            advance(states_[k], event, name);
    }
    /// The event that makes all of them stale.
    void end(ChannelEvent event, std::string_view name) {
        advanceAll(event, name);
        moving_.clear();
    }
    /// Makes all of them stale, in whichever state they are: after an error.
    void reset() noexcept {
        for (const std::uint32_t k : moving_)
            states_[k] = ChannelState::Stale;
        moving_.clear();
    }

  private:
    std::vector<ChannelState> states_;
    std::vector<std::uint32_t> moving_; ///< channels that are not stale
};

/// Whether data, or a message without data, are on their way; or have come.
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

} // namespace DNDS
