/// @file ChannelState.hpp
/// @brief The five states of a channel between two blocks, and what leads from one to the next: no data, no messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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
    Discard   ///< by the receiver: what has come was used
};
inline constexpr std::size_t channelEvents = 4;

std::string_view channelStateName(ChannelState state) noexcept;

/// The state after an event; nothing where the event makes no sense there.
///
/// |          | Stale       | Sending  | SendingNull  | Received | ReceivedNull |
/// |----------|-------------|----------|--------------|----------|--------------|
/// | Send     | Sending     |          |              |          |              |
/// | SendNull | SendingNull |          |              |          |              |
/// | Receive  | Stale       | Received | ReceivedNull | Received | ReceivedNull |
/// | Discard  |             |          |              | Stale    | Stale        |
constexpr std::optional<ChannelState> stateAfter(ChannelState state, ChannelEvent event) noexcept {
    using enum ChannelState;
    constexpr std::optional<ChannelState> nonsense;
    constexpr std::array<std::array<std::optional<ChannelState>, channelStates>, channelEvents> table{{
        {Sending, nonsense, nonsense, nonsense, nonsense},
        {SendingNull, nonsense, nonsense, nonsense, nonsense},
        {Stale, Received, ReceivedNull, Received, ReceivedNull},
        {nonsense, nonsense, nonsense, Stale, Stale},
    }};
    return table[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
}

/// Whether data, or the note that there are none, are on their way; or have come.
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
