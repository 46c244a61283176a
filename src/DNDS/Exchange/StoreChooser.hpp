/// @file StoreChooser.hpp
/// @brief Learns which of two ways of writing to a reader is faster at present.
#pragma once

#include <array>
#include <cstdint>

namespace DNDS {

/// Chooses between ordinary and non-temporal stores for one reader by the writer's own timing. Which is faster depends
/// on how far the two cores are apart, and virtual machines move: the slower way is tried again now and then. Local.
class StoreChooser {
  public:
    enum Way : unsigned char { Ordinary = 0, Streaming = 1 };

    /// The way to go next.
    Way next() {
        ++count_;
        if (count_ <= firstTrials)
            return static_cast<Way>(count_ % 2);
        if (count_ % retryEvery < retries)
            return static_cast<Way>(1 - best_);
        return best_;
    }
    /// What `way` took, in any unit of time.
    void report(Way way, double time) {
        double &mean = mean_[way];
        // The first time of a way touches cold memory, and trials are rare: both count less or more than the steady
        // state.
        const double weight = way == best_ ? 0.1 : 0.5;
        mean = mean == 0.0 || count_ <= 2 ? time : mean + weight * (time < 2 * mean ? time - mean : mean);
        if (mean_[Ordinary] > 0.0 && mean_[Streaming] > 0.0) {
            const Way other = static_cast<Way>(1 - best_);
            if (mean_[other] < 0.95 * mean_[best_])
                best_ = other;
        }
    }
    Way best() const { return best_; }

  private:
    static constexpr std::uint32_t firstTrials = 8;
    static constexpr std::uint32_t retryEvery = 128;
    static constexpr std::uint32_t retries = 2;

    std::array<double, 2> mean_{};
    std::uint32_t count_ = 0;
    Way best_ = Ordinary;
};

} // namespace DNDS
