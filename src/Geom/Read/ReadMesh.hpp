/// @file ReadMesh.hpp
/// @brief Reads a mesh file of any known format.
#pragma once

#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace DNDS::Geom {

enum class MeshFormat : std::uint8_t { Unknown, CgnsHdf5, CgnsAdf, Gmsh, Su2, OpenFoam, Ugrid, VtkHdf, Vtu };

/// Recognizes a format by the first bytes of a file. Local. UGRID: text only.
MeshFormat meshFormatOf(std::string_view firstBytes);

/// The format of a file, or of a folder of OpenFOAM. Names are ignored, except `.ugrid`, `.ugrid64`, `.foam` and
/// `.OpenFOAM`. Collective: rank 0 reads.
/// Throws DataError on all ranks if the file cannot be read.
MeshFormat meshFormat(CommunicatorView comm, const std::string &path);

/// Reads a mesh file, or the case of OpenFOAM in a folder, each rank its share. Collective. `cgns` selects what to read
/// of CGNS files: see there; its `base` is also the number of the zone to read of an SU2 file with several, or the
/// region of a case of OpenFOAM; its `fields` takes those of VTKHDF and VTU files, too. Other formats refuse a base and
/// leave `fields` as it is.
///
/// Errors, the same on all ranks: DataError as the format's reader, or for an unknown format; NotBuiltError if this
/// build lacks the reader.
SourceMesh readMesh(CommunicatorView comm, const std::string &path, const CgnsOptions &cgns = {});

} // namespace DNDS::Geom
