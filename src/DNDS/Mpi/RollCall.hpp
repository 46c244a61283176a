/// @file RollCall.hpp
/// @brief Prepares the roll call as soon as MPI runs. Part of MpiSession and of Python's `import dnds`.
#pragma once

namespace DNDS::Detail {

/// `prepareRollCall` (Whereabouts.hpp) by the process's environment, before a communicator is used: SIGUSR1 no longer
/// ends this process. Does nothing where the environment is wrong, which the first communicator says on all ranks.
/// Local.
void prepareRollCall();

} // namespace DNDS::Detail
