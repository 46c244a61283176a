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

/// Time and memory of each stage on this rank, in the order in which they first began.
///
/// Memory is resident memory beyond that at the clock's creation; unused pages of the heap are returned to the system
/// at that moment, so that earlier work does not count. Linux only: NotMeasured elsewhere.
class StageClock {
  public:
    StageClock();
    /// Ends the stage before and begins this one; a stage may come back. Local.
    void begin(std::string_view stage);
    void end() { stop(); }
    /// Takes `seconds` of the running stage for another one. Local.
    void moveTo(std::string_view stage, double seconds);

    struct Stage {
        std::string name;
        double seconds;
        double peak; ///< MiB
    };
    const std::vector<Stage> &stages() const { return stages_; }
    /// The largest of all stages, MiB.
    double peak() const;

  private:
    using Clock = std::chrono::steady_clock;
    Stage &find(std::string_view stage);
    void stop();

    std::vector<Stage> stages_;
    std::string running_;
    Clock::time_point start_;
    double resident_; ///< at the start, MiB
};

} // namespace DNDS::Bench
