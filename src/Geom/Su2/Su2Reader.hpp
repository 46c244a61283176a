/// @file Su2Reader.hpp
/// @brief Reads meshes of SU2: `.su2`.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>

namespace DNDS::Geom {

/// Reads a file, which every rank must be able to open. Collective.
///
/// Markers become patches in file order. Numbers at the ends of lines, which some programs write, are ignored: nodes
/// and cells are numbered by position, as in SU2. Sections may be in any order; keywords that do not concern the mesh
/// (such as those of free-form deformation boxes) are ignored.
///
/// Elements have the types and the node order of VTK's manual. All agree with CGNS except the prism: seen from outside,
/// its first triangle is counter-clockwise in a file and clockwise in the mesh. Prisms with the opposite order, as Gmsh
/// writes them, are reordered, as SU2 does, and a warning counts them. Other elements keep their order, whatever their
/// volume.
///
/// Rank 0 scans the file once for the positions of its parts; then every rank reads its share. Memory in proportion to
/// the share.
///
/// Keywords of markers may be spelled without underscores or in small letters; blanks in their names are dropped, as
/// SU2 does.
///
/// Errors, the same on all ranks: DataError with file and line if the file cannot be read, ends early, contradicts
/// itself, or has SEND_RECEIVE markers of files divided for old versions of SU2.
///
/// `zone`: the number that follows IZONE=, from 1. In a file of one zone that is "1" or "". DataError, too, if the zone
/// does not exist or, with "", if there are several.
///
/// Format: https://su2code.github.io/docs_v7/Mesh-File/
SourceMesh readSu2(CommunicatorView comm, const std::string &path, const std::string &zone = "");

} // namespace DNDS::Geom
