/// @file ExchangeStep.hpp
/// @brief State machine of an exchange of sparse fields: its steps and transitions, without data or messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace DNDS {

/// Step of an exchange, for the channels within the rank, or for those to and from other ranks.
enum class ExchangeStep : std::uint8_t {
    AtRest,  ///< no exchange has begun, or it has not sent on these channels
    Sent,    ///< data are in flight
    Arrived, ///< everything has arrived
    Set      ///< ghosts are filled
};
inline constexpr std::size_t exchangeSteps = 4;

/// Calls that advance an exchange.
enum class ExchangeCall : std::uint8_t { Send, Receive, Set, End };
inline constexpr std::size_t exchangeCalls = 4;

/// The step after a call; empty if the call is not allowed there. An exchange begins with its first Send, and ends
/// when all of its channels are set. Receive counts once it has found everything.
///
/// |         | AtRest | Sent    | Arrived | Set    |
/// |---------|--------|---------|---------|--------|
/// | Send    | Sent   |         |         |        |
/// | Receive |        | Arrived | Arrived | Set    |
/// | Set     |        |         | Set     |        |
/// | End     |        |         |         | AtRest |
constexpr std::optional<ExchangeStep> stepAfter(ExchangeStep step, ExchangeCall call) noexcept {
    using enum ExchangeStep;
    constexpr std::optional<ExchangeStep> nonsense;
    constexpr std::array<std::array<std::optional<ExchangeStep>, exchangeSteps>, exchangeCalls> table{{
        {Sent, nonsense, nonsense, nonsense},
        {nonsense, Arrived, Arrived, Set},
        {nonsense, nonsense, Set, nonsense},
        {nonsense, nonsense, nonsense, AtRest},
    }};
    return table[static_cast<std::size_t>(call)][static_cast<std::size_t>(step)];
}

/// For messages: "has not sent", "has sent and waits", "has received", "is set".
constexpr std::string_view exchangeStepName(ExchangeStep step) noexcept {
    constexpr std::array<std::string_view, exchangeSteps> names{"has not sent", "has sent and waits", "has received",
                                                                "is set"};
    return names[static_cast<std::size_t>(step)];
}

} // namespace DNDS
