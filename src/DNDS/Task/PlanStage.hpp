/// @file PlanStage.hpp
/// @brief Stages of a plan, and the calls allowed in each.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace DNDS::Task {

enum class PlanStage : unsigned char {
    Idle,
    Running, ///< in `start`
    Queued,  ///< `start` has returned, and the device is working
    Failed   ///< on several ranks the communicator is revoked
};

enum class PlanEvent : unsigned char {
    Start,
    Queue,    ///< `start` returns, and the device is working
    Complete, ///< all work is done
    Fail,     ///< an exception was thrown
    Renew     ///< the communicator recovers
};

/// The stage after `event`; empty if the event is not allowed.
/// The table is the whole state machine; tests enumerate it. Start is allowed in Queued, as device runs are queued
/// one after another, and in Failed, where the communicator decides: on one rank the next run needs no recovery.
/// Complete leaves Failed as it is, for a wait that ends after the failure.
constexpr std::optional<PlanStage> stageAfter(PlanStage stage, PlanEvent event) noexcept {
    using enum PlanStage;
    using Row = std::array<std::optional<PlanStage>, 5>;
    constexpr std::array<Row, 4> table{//   Start        Queue         Complete  Fail    Renew
                                       Row{Running, std::nullopt, Idle, Failed, Idle},        // Idle
                                       Row{std::nullopt, Queued, Idle, Failed, std::nullopt}, // Running
                                       Row{Running, std::nullopt, Idle, Failed, Idle},        // Queued
                                       Row{Running, std::nullopt, Failed, Failed, Idle}};     // Failed
    return table[static_cast<std::size_t>(stage)][static_cast<std::size_t>(event)];
}

} // namespace DNDS::Task
