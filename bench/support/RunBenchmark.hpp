/// @file RunBenchmark.hpp
/// @brief Common main() of the benchmarks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

namespace DNDS::Bench {

/// Runs a benchmark on MPI_COMM_WORLD and returns the program's exit code. An exception of any rank is printed after
/// the program's `name` and ends the job, so that no rank is left waiting. `beforeMpi` is called before MPI starts.
int runBenchmark(const char *name, int argc, char **argv, int (*run)(int argc, char **argv, CommunicatorView comm),
                 void (*beforeMpi)() = nullptr);

} // namespace DNDS::Bench
