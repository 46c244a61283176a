/// @file ReadBytes.hpp
/// @brief What fuzzing tests: any bytes are a mesh, or are refused with a typed error.
#pragma once

#include <string>
#include <string_view>

namespace DNDS::Geom::fuzz {

/// What became of a file.
struct Verdict {
    bool read = false;
    std::string error; ///< with which it was refused
};

/// Writes the bytes to a file of this process and reads, checks and builds the mesh, on MPI_COMM_SELF. Local.
///
/// Throws std::logic_error for an exception that is no typed error, or none that a file can be to blame for: running
/// out of memory is not refusing a file.
Verdict readBytes(std::string_view bytes);

} // namespace DNDS::Geom::fuzz
