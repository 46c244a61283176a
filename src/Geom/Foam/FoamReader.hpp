/// @file FoamReader.hpp
/// @brief Reads meshes of OpenFOAM: `constant/polyMesh`.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>

namespace DNDS::Geom {

/// Reads the mesh of a case, of one of its regions if `region` names one. Collective; every rank must be able to open
/// the files.
///
/// `path` is the case, one of the folders down to polyMesh, a file in one of these, or the file (.foam) beside them by
/// which other programs open a case. The files points, faces, owner, neighbour and boundary are read as text or binary,
/// with integers of 32 or 64 bits and numbers of single or double precision in either byte order, each perhaps
/// compressed (gzip).
///
/// Cells with the faces of a tetrahedron, pyramid, prism or hexahedron become these, others polyhedra. In messages, and
/// as `fileIds`, cells and faces are numbered from 1. Patches keep their names; their family is OpenFOAM's type, and
/// walls and symmetry planes have the kinds BCWall and BCSymmetryPlane. Cyclic patches become periodic connections: see
/// Cyclics.hpp. Zones are left out.
///
/// Rank 0 scans the files once for the positions of their parts; then every rank reads its share. Memory in proportion
/// to the share. Each rank decompresses compressed files from the begin to the end of its share.
///
/// Errors, the same on all ranks: DataError with file and line, or byte, if a file is missing, ends early or
/// contradicts another; if the mesh is one of the parts of a decomposed case. NotBuiltError for compressed files in
/// builds without zlib.
///
/// Format: https://www.openfoam.com/documentation/user-guide/4-mesh-generation-and-conversion/4.1-mesh-description
SourceMesh readFoam(CommunicatorView comm, const std::string &path, const std::string &region = {});

} // namespace DNDS::Geom
