/// @file Su2Reader.hpp
/// @brief Reads meshes of SU2: `.su2`.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>

namespace DNDS::Geom {

/// Reads a file, which every rank must be able to open. Collective.
///
/// Markers become patches in the order of the file. Numbers at the ends of lines, which some programs write, are passed
/// over: nodes and cells are numbered by position, as SU2 itself does. Sections may come in any order; keywords that
/// say nothing of the mesh (of free-form deformation boxes, say) are passed over.
///
/// Elements have the types and the order of nodes of VTK's manual. All are those of CGNS, but for the prism: seen from
/// outside, its first triangle is counter-clockwise in a file and clockwise in the mesh. Prisms that come inside out
/// that way, as Gmsh writes them, are turned, as SU2 does, with a warning that counts them. Other elements keep their
/// order, whatever their volume is.
///
/// Rank 0 runs through the file once to find where its parts are; then every rank reads its share. Memory in proportion
/// to the share.
///
/// Errors, the same on all ranks: DataError that names file and line where the file is not readable, ends early,
/// contradicts itself, has several zones, or SEND_RECEIVE markers of files that were divided for old versions of SU2.
///
/// Format: https://su2code.github.io/docs_v7/Mesh-File/
SourceMesh readSu2(CommunicatorView comm, const std::string &path);

} // namespace DNDS::Geom
