/// @file ReadMesh.hpp
/// @brief Reads a mesh file of any known format.
#pragma once

#include "DNDS/Geom/Cgns/CgnsReader.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace DNDS::Geom {

enum class MeshFormat : std::uint8_t { Unknown, CgnsHdf5, CgnsAdf, Gmsh, Su2 };

/// Recognizes a format by the first bytes of a file; names say nothing. Local.
MeshFormat meshFormatOf(std::string_view firstBytes);

/// The format of a file. Collective: rank 0 looks. Throws DataError on all ranks where the file cannot be read.
MeshFormat meshFormat(CommunicatorView comm, const std::string &path);

/// Reads a mesh file, each rank its share. Collective. `cgns` says what to read of CGNS files: see there.
///
/// Errors, the same on all ranks: DataError as those of the format's reader, or for a file of no known format;
/// NotBuiltError where this build lacks the reader.
SourceMesh readMesh(CommunicatorView comm, const std::string &path, const CgnsOptions &cgns = {});

} // namespace DNDS::Geom
