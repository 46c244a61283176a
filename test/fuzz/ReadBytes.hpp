/// @file ReadBytes.hpp
/// @brief The property under fuzzing: any bytes are a mesh or a checkpoint, or are refused with a typed error.
#pragma once

#include <string>
#include <string_view>

namespace DNDS::Geom::fuzz {

/// Result of reading a file.
struct Verdict {
    bool read = false;
    std::string error; ///< with which it was refused
};

/// Writes the bytes to a file of this process and reads, checks and builds the mesh, or reads the checkpoint that they
/// begin like, on MPI_COMM_SELF. Local.
///
/// Throws std::logic_error for an exception that is no typed error, or none that a file can be to blame for: running
/// out of memory is not refusing a file.
Verdict readBytes(std::string_view bytes);

/// Signature at the start of checkpoints.
constexpr std::string_view checkpointBegin = "DNDS checkpoint";
/// Reads all that a checkpoint holds. A file that says that it is longer is made so, up to a limit: sizes that do not
/// fit are to be found by what the description says. Local. Throws as the library does.
void readCheckpoint(const std::string &path);

} // namespace DNDS::Geom::fuzz
