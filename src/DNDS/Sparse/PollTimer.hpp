/// @file PollTimer.hpp
/// @brief When a function that is called again and again looks after the peers it waits for.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

namespace DNDS {

/// Seconds since the first fruitless call, told every 50 ms: looking after peers costs system calls. Local.
class PollTimer {
  public:
    /// The seconds so far where it is time to look after peers.
    std::optional<double> due() {
        const auto now = Clock::now();
        if (!times_)
            times_.emplace(now, now);
        constexpr std::chrono::milliseconds pause(50);
        if (now - times_->second < pause)
            return {};
        times_->second = now;
        return std::chrono::duration<double>(now - times_->first).count();
    }
    /// Call it when the awaited event has happened.
    void reset() noexcept { times_.reset(); }

  private:
    using Clock = std::chrono::steady_clock;
    std::optional<std::pair<Clock::time_point, Clock::time_point>> times_; ///< first call, latest look
};

} // namespace DNDS
