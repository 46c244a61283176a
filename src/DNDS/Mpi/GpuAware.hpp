/// @file GpuAware.hpp
/// @brief The MPI library's claims about device memory, which only justify a trial.
#pragma once

#include <string>

namespace DNDS {

/// A claim and its source.
struct GpuAwareClaim {
    bool claimed = false;
    std::string source;
};

/// Asks, in this order: the memory kinds that MPI lists (MPI 4.1), the library's own query, the environment variables
/// of libraries without one. Queries are known to be wrong in both directions: Open MPI 4 reports its build options,
/// even without a driver; so a claim must be tried, and a library without one is not tried. Local.
GpuAwareClaim claimOfMpi();

} // namespace DNDS
