/// @file Environment.hpp
/// @brief The one place where environment variables are read.
#pragma once

#include <string>

namespace DNDS {

/// What users can choose without changing a program.
struct Environment {
    /// DNDS_TRANSPORT: the transport of exchanges that do not force one: auto, datatype, packed,
    /// node-shared. Empty: not set.
    std::string transport;
    /// DNDS_RANKS_PER_NODE: divides each machine into virtual nodes of so many ranks, to try multi-node paths on one
    /// machine. 0: not set.
    int ranksPerNode = 0;
    /// DNDS_WAIT_TIMEOUT: seconds after which a rank that waits for a peer on its node gives up with an error. 0: waits
    /// as long as the peer's process lives.
    double waitTimeout = 0.0;
};

/// Reads the process's environment. Local. Throws ArgumentError that names the variable for values that are no numbers.
Environment readEnvironment();

} // namespace DNDS
