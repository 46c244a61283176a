/// @file GpuAware.hpp
/// @brief The MPI library's claims about device memory, which only justify a trial.
#pragma once

#include <string>
#include <utility>

namespace DNDS {

/// Whether MPI claims to take device memory, and who says so. Asks, in this order: the memory kinds that MPI lists
/// (MPI 4.1), the library's own query, the environment variables of libraries without one. Queries are known to be
/// wrong in both directions: Open MPI 4 reports its build options, even without a driver; so a claim must be tried, and
/// a library without one is not tried. Local.
std::pair<bool, std::string> claimOfMpi();

} // namespace DNDS
