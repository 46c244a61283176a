#include "Stages.hpp"

#include "Statistics.hpp"

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

} // namespace

void StageClock::begin(std::string_view stage) {
    stop();
    running_ = stage;
    start_ = Clock::now();
}

void StageClock::stop() {
    if (!running_.empty())
        find(running_).seconds += std::chrono::duration<double>(Clock::now() - start_).count();
    running_.clear();
}

void StageClock::moveTo(std::string_view stage, double seconds) {
    find(running_).seconds -= seconds;
    find(stage).seconds += seconds;
}

StageClock::Stage &StageClock::find(std::string_view stage) {
    for (Stage &known : stages_)
        if (known.name == stage)
            return known;
    return stages_.emplace_back(Stage{std::string(stage), 0.0});
}

PeakMemory::PeakMemory() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    std::ofstream("/proc/self/clear_refs") << "5\n"; // the mark of the highest resident memory
    start_ = status("VmRSS:");
}

double PeakMemory::mebibytes() const { return status("VmHWM:") - start_; }

} // namespace DNDS::Bench
