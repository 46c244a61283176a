// Replaces StarPu.cpp in builds without StarPU.
#include "Benchmarks.hpp"

namespace DNDS::Bench {

bool hasStarPu() { return false; }
std::vector<Contestant> starpuContestants(const SmallTasks &, int) { return {}; }

} // namespace DNDS::Bench
