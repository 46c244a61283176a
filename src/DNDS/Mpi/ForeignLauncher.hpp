/// @file ForeignLauncher.hpp
/// @brief Notices that ranks were started by another MPI's launcher, so that each believes to be alone.
#pragma once

#include "DNDS/Base/Environment.hpp"

#include <string>

namespace DNDS {

/// Warning for the case that `launcher` started several processes and MPI counts `ranks` of them; empty where these
/// agree, or another process warns: the launcher's first does. Local.
std::string foreignLauncherWarning(const LauncherInfo &launcher, int ranks, const std::string &mpiVersion);

/// Writes that warning to stderr, if there is one, for this process and its MPI, which runs. Local.
void warnOfForeignLauncher();

} // namespace DNDS
