/// @file World.hpp
/// @brief The communicator of all ranks, for tests whose sources are compiled as one.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

namespace DNDS::test {

inline CommunicatorView world() { return {MPI_COMM_WORLD}; }

} // namespace DNDS::test
