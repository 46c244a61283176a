#include "Stages.hpp"

#include "Statistics.hpp"

#include <cmath>
#include <fstream>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace DNDS::Bench {

namespace {

/// A line of /proc/self/status in MiB, or NotMeasured.
double status(std::string_view name) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name))
            return std::stod(line.substr(name.size() + 1)) / 1024.0;
    return NotMeasured;
}

void resetPeak() { std::ofstream("/proc/self/clear_refs") << "5\n"; }

} // namespace

StageClock::StageClock() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    resetPeak();
    resident_ = status("VmRSS:");
}

void StageClock::begin(std::string_view stage) {
    stop();
    running_ = stage;
    start_ = Clock::now();
}

void StageClock::stop() {
    if (running_.empty())
        return;
    Stage &stage = find(running_);
    stage.seconds += std::chrono::duration<double>(Clock::now() - start_).count();
    stage.peak = std::fmax(stage.peak, status("VmHWM:") - resident_);
    resetPeak();
    running_.clear();
}

void StageClock::moveTo(std::string_view stage, double seconds) {
    find(running_).seconds -= seconds;
    find(stage).seconds += seconds;
}

double StageClock::peak() const {
    double most = NotMeasured;
    for (const Stage &stage : stages_)
        most = std::fmax(most, stage.peak);
    return most;
}

StageClock::Stage &StageClock::find(std::string_view stage) {
    for (Stage &known : stages_)
        if (known.name == stage)
            return known;
    return stages_.emplace_back(Stage{std::string(stage), 0.0, NotMeasured});
}

} // namespace DNDS::Bench
