/// @file Stages.hpp
/// @brief Time and memory of work that comes in stages.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Bench {

/// How long each stage took on this rank, in the order in which they first began.
class StageClock {
  public:
    /// Ends the stage before and begins this one; a stage may come back. Local.
    void begin(std::string_view stage);
    void end() { stop(); }
    /// Takes `seconds` of the running stage for another one. Local.
    void moveTo(std::string_view stage, double seconds);

    struct Stage {
        std::string name;
        double seconds;
    };
    const std::vector<Stage> &stages() const { return stages_; }

  private:
    using Clock = std::chrono::steady_clock;
    Stage &find(std::string_view stage);
    void stop();

    std::vector<Stage> stages_;
    std::string running_;
    Clock::time_point start_;
};

/// The largest resident memory of this process in between. Linux only: NotMeasured elsewhere. Local.
///
/// Unused pages of the heap are given back first, so that what ran before does not count.
class PeakMemory {
  public:
    PeakMemory();
    /// MiB beyond what was resident at the start.
    double mebibytes() const;

  private:
    double start_;
};

} // namespace DNDS::Bench
