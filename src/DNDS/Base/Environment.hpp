/// @file Environment.hpp
/// @brief The one place where environment variables are read.
#pragma once

#include <string>

namespace DNDS {

/// What users can choose without changing a program.
struct Environment {
    /// DNDS_TRANSPORT: the transport of exchanges that do not force one: auto, datatype, packed. Empty: not set.
    std::string transport;
};

/// Reads the process's environment. Local.
Environment readEnvironment();

} // namespace DNDS
