/// @file PollTimer.hpp
/// @brief Decides when a polling function checks whether its peers still live.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

namespace DNDS {

/// Times a poll that the program repeats as it likes: seconds since its first call without result, reported at most
/// every 50 ms, as checking peers costs system calls. Time between polls counts, too. Local.
class PollTimer {
  public:
    /// The seconds so far if it is time to check peers.
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
    std::optional<std::pair<Clock::time_point, Clock::time_point>> times_; ///< first call, last report
};

} // namespace DNDS
