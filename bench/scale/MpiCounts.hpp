/// @file MpiCounts.hpp
/// @brief Counts what a rank asks of MPI: this program puts itself before the MPI library by the profiling interface.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace DNDS::Bench {

/// What this rank has asked for. Messages to itself count as others do; inside collectives, only what the call takes
/// and returns is known.
struct MpiCounts {
    std::uint64_t messages = 0;
    std::uint64_t messageBytes = 0;
    std::uint64_t collectives = 0;
    std::uint64_t collectiveBytes = 0; ///< in and out on this rank
    std::uint64_t communicators = 0;   ///< made: each is a collective of its own kind
};

/// Sets them to zero, and forgets whom messages went to. Local.
void resetMpiCounts();
/// What was counted since. Local.
MpiCounts mpiCounts();
/// To how many ranks messages went since. Local.
std::uint64_t ranksSentTo();

} // namespace DNDS::Bench
