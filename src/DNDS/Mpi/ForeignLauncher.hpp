/// @file ForeignLauncher.hpp
/// @brief Detects ranks started by another MPI's launcher, each of which believes to be alone.
#pragma once

#include "DNDS/Base/Environment.hpp"

#include <string>

namespace DNDS {

/// Warning for the case that `launcher` started several processes and MPI counts `ranks` of them; empty where these
/// agree, or another process warns: the launcher's first does. Local.
std::string foreignLauncherWarning(const LauncherInfo &launcher, int ranks, const std::string &mpiVersion);

/// Writes that warning to stderr, if there is one, for this process and its running MPI. Local.
void warnOfForeignLauncher();

} // namespace DNDS
