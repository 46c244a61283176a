/// @file StoreAutotuner.hpp
/// @brief Learns which of two ways of writing to a reader is faster at present.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace DNDS {

/// Chooses between ordinary and non-temporal stores for one reader by the writer's own timing. Which is faster depends
/// on the processor and on how far the two cores are apart, and virtual machines move. So both are tried again now and
/// then: `trialPulls` writes take turns, and the shortest time of each way counts, since other work on the machine can
/// only add to it. The choice changes when two trials in a row say so; trials become rarer while they agree with it.
///
///     const StoreAutotuner::StoreMode mode = stores.next();
///     ... write ...
///     stores.report(mode, seconds);
///
/// Local. Calls of `next` and `report` alternate.
class StoreAutotuner {
  public:
    enum StoreMode : unsigned char { Ordinary = 0, Streaming = 1 };

    /// Writes in a trial; half of them go each way.
    static constexpr std::uint32_t trialPulls = 8;
    /// Writes between two trials: the least, and the most after many that agreed.
    static constexpr std::uint32_t shortestPause = 32;
    static constexpr std::uint32_t longestPause = 256;
    /// The other way must take at most this part of the time.
    static constexpr double worthwhile = 0.95;

    /// The way to go next.
    StoreMode next() const noexcept { return inTrial() ? static_cast<StoreMode>(count_ % 2) : best_; }

    /// The time taken by the write that `next` announced, in any unit.
    void report(StoreMode mode, double time) noexcept {
        if (inTrial())
            least_[mode] = std::min(least_[mode], time);
        if (++count_ == trialPulls)
            judge();
        else if (count_ >= trialPulls + pause_)
            beginTrial();
    }

    StoreMode best() const noexcept { return best_; }

  private:
    /// Writes 0 .. trialPulls - 1 of a round are the trial, the others go the chosen way.
    bool inTrial() const noexcept { return count_ < trialPulls; }

    void beginTrial() noexcept {
        count_ = 0;
        least_.fill(std::numeric_limits<double>::infinity());
    }

    /// At the end of a trial. A challenger must win by 5 % twice in a row; the pause doubles with each trial that
    /// confirms the choice.
    void judge() noexcept {
        const StoreMode other = static_cast<StoreMode>(1 - best_);
        const bool otherWins = least_[other] < worthwhile * least_[best_];
        if (otherWins && !doubted_ && pause_ > 0) { // perhaps noise: ask once more, at once
            doubted_ = true;
            beginTrial();
            return;
        }
        doubted_ = false;
        if (otherWins)
            best_ = other;
        // `pause_` is 0 in the first trial, whose verdict counts at once: there is nothing to defend.
        pause_ = otherWins || pause_ == 0 ? shortestPause : std::min(2 * pause_, longestPause);
    }

    /// The shortest time of each mode in the present trial.
    std::array<double, 2> least_{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    std::uint32_t count_ = 0; ///< writes since the last trial began
    /// Writes until the next trial; 0 before the first verdict.
    std::uint32_t pause_ = 0;
    bool doubted_ = false; ///< the last trial spoke against the choice
    StoreMode best_ = Ordinary;
};

} // namespace DNDS
