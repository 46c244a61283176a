/// @file Check.hpp
/// @brief Turns the return code of an MPI call into an exception with the call's name and MPI's error text.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <mpi.h>

#include <thread>

namespace DNDS {

/// Throws MpiError unless `code` is MPI_SUCCESS. Local. `call` is the MPI function's name.
/// MPI returns codes (instead of ending the job) on communicators whose error handler is MPI_ERRORS_RETURN, which DNDS
/// sets on every communicator it makes.
void checkMpi(int code, const char *call, SourceLocation where = SourceLocation::current());

/// Throws StateError unless MPI is initialised and not finalized, and in forked children. Local, O(1).
void requireMpiActive(const char *what, SourceLocation where = SourceLocation::current());

/// Whether MPI calls are allowed now: after MPI_Init and before MPI_Finalize, but not in forked children. Local.
bool mpiActive() noexcept;

/// Whether MPI was started with MPI_THREAD_MULTIPLE, so that several threads may call it at a time. Local; between
/// MPI_Init and MPI_Finalize.
bool mpiServesAllThreads() noexcept;

/// Whether this thread may call MPI for an operation started by thread `maker`: it is the same, or MPI serves all
/// threads. Local.
bool mayCallMpi(std::thread::id maker) noexcept;

/// Whether this process was forked from one that used MPI through DNDS. Messages, flags and shared memory belong to the
/// parent: destructors leave them alone. Local, O(1).
bool inForkedChild() noexcept;

} // namespace DNDS
