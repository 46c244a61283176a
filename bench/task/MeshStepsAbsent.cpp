// Replaces the benchmarks on meshes in builds without DNDS::Geom.
#include "Benchmarks.hpp"

namespace DNDS::Bench {

void benchmarkLatency(const Setting &setting) { say(setting.comm, "built without DNDS::Geom: no steps on meshes\n"); }
void benchmarkMessages(const Setting &) {}
void benchmarkThreads(const Setting &) {}

} // namespace DNDS::Bench
