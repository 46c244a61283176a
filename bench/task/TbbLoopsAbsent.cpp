// Replaces TbbLoops.cpp in builds without oneTBB.
#include "Benchmarks.hpp"

namespace DNDS::Bench {

std::vector<Contestant> tbbContestants(const PartLoop &, int) { return {}; }
std::vector<Contestant> flowContestants(const SmallTasks &, int) { return {}; }

} // namespace DNDS::Bench
