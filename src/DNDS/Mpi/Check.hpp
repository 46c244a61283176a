/// @file Check.hpp
/// @brief Turns the return code of an MPI call into an exception that carries the call's name and MPI's own text.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <mpi.h>

namespace DNDS {

/// Throws MpiError unless `code` is MPI_SUCCESS. Local. `call` is the MPI function's name.
/// MPI returns codes (instead of ending the job) on communicators whose error handler is MPI_ERRORS_RETURN, which DNDS
/// sets on every communicator it makes.
void checkMpi(int code, const char *call, SourceLocation where = SourceLocation::current());

/// Throws StateError unless MPI is initialised and not finalized. Local, O(1).
void requireMpiActive(const char *what, SourceLocation where = SourceLocation::current());

/// Whether MPI calls are allowed now: after MPI_Init and before MPI_Finalize. Local.
bool mpiActive() noexcept;

} // namespace DNDS
