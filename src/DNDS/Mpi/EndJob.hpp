/// @file EndJob.hpp
/// @brief Ends all ranks, and reports the reason once. Part of MpiSession and runMain.
#pragma once

#include <exception>
#include <string_view>

namespace DNDS::Detail {

/// Makes the communicator over which failing ranks find each other, and makes uncaught exceptions end the job
/// by `endJob`. Collective over MPI_COMM_WORLD.
void watchForFailures();

/// Undoes `watchForFailures`, before MPI_Finalize. Collective.
void stopWatchingForFailures() noexcept;

/// Writes the failure to stderr and ends all ranks by MPI_Abort with exit code 1. Local: ranks may call it at different
/// times, or alone; from threads that may not call MPI, too.
///
/// Ranks that call it within two seconds of each other for the same reason, `message`, report it once: the lowest of
/// them writes. Ranks that fail alone write after that time. `what` is the whole text.
[[noreturn]] void endJob(std::string_view what, std::string_view message) noexcept;
/// The same for an exception, which may be null.
[[noreturn]] void endJob(const std::exception_ptr &failure) noexcept;

} // namespace DNDS::Detail
