/// @file Findings.hpp
/// @brief From facts to what is wrong, and its cure.
#pragma once

#include "Machine.hpp"

#include <string>
#include <vector>

namespace DNDS::Doctor {

enum class Level : int { Fine = 0, Warning = 1, Error = 2 }; ///< the numbers are exit codes

struct Finding {
    Level level = Level::Fine;
    std::string what;
    std::string cure; ///< empty where all is fine
};

/// Judges a report as dnds-doctor writes it: `mpi`, `ranks` (what `lookAtMachine` says of each, and `map`, why it
/// cannot share memory with its node's ranks, or null), `pairs`, `pulls`, `files`. Local.
std::vector<Finding> findingsOf(const Json &report);

} // namespace DNDS::Doctor
