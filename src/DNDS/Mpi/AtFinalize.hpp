/// @file AtFinalize.hpp
/// @brief Actions that run before MPI ends.
#pragma once

namespace DNDS {

/// Calls `action(argument)` at the start of MPI_Finalize, while all ranks still run: a launcher may kill the others as
/// soon as one process has exited with an error code. `action` must not throw. Local.
void atFinalize(void (*action)(void *argument) noexcept, void *argument);

} // namespace DNDS
