// Replaces TbbLoops.cpp in builds without oneTBB.
#include "Benchmarks.hpp"

namespace DNDS::Bench {

std::vector<Contestant> tbbContestants(const PartLoop &, int) { return {}; }

} // namespace DNDS::Bench
