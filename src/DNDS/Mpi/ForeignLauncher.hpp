/// @file ForeignLauncher.hpp
/// @brief Notices that ranks were started by another MPI's launcher, so that each believes to be alone.
#pragma once

#include "DNDS/Base/Environment.hpp"

#include <string>

namespace DNDS {

/// What to tell the user where `launcher` started several processes and MPI counts `ranks` of them; empty where this
/// fits, or another process tells it: the launcher's first does. Local.
std::string foreignLauncherWarning(const LauncherInfo &launcher, int ranks, const std::string &mpiVersion);

/// Writes that warning to stderr, if there is one, for this process and its MPI, which runs. Local.
void warnOfForeignLauncher();

} // namespace DNDS
