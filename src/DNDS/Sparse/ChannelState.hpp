/// @file ChannelState.hpp
/// @brief The five states of a channel between two blocks, and what leads from one to the next: no data, no messages.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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

} // namespace DNDS
