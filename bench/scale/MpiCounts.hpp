/// @file MpiCounts.hpp
/// @brief Counts what a rank asks of MPI: this program puts itself before the MPI library by the profiling interface.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace DNDS::Bench {

/// This rank's use of MPI. Messages to itself count as others do; inside collectives, only the arguments and results of
/// the call are known.
struct MpiCounts {
    std::uint64_t messages = 0;
    std::uint64_t messageBytes = 0;
    std::uint64_t collectives = 0;
    std::uint64_t collectiveBytes = 0; ///< in and out on this rank
    std::uint64_t communicators = 0;   ///< made: each is a collective of its own kind
};

/// Sets them to zero, and forgets whom messages went to. Local.
void resetMpiCounts();
/// The counts so far. Local.
MpiCounts mpiCounts();
/// To how many ranks messages went since. Local.
std::uint64_t ranksSentTo();

} // namespace DNDS::Bench
