/// @file ClockOffset.hpp
/// @brief Offsets between the clocks of ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

namespace DNDS {

/// The seconds that this rank adds to its clock to read rank 0's; 0 on rank 0. Collective; 16 messages each way between
/// rank 0 and each other rank, one rank after another.
///
/// Exact to half of the fastest round trip (about 1 microsecond over Infiniband, 20 over Ethernet), as in Cristian,
/// "Probabilistic clock synchronization" (1989). Offsets below that accuracy count as 0: exactly right on one
/// machine. Clocks of different machines drift apart afterwards, by a microsecond a second or so.
double clockOffset(CommunicatorView comm, double (*clock)() noexcept = monotonicSeconds);

} // namespace DNDS
