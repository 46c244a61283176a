/// @file GmshReader.hpp
/// @brief Reads meshes of Gmsh: `.msh` of versions 2.0 to 2.2, 4.0 and 4.1, text and binary.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>

namespace DNDS::Geom {

/// Reads a file, which every rank must be able to open. Collective.
///
/// Cells are the elements of the highest dimension, faces those of one dimension less; others are ignored. All linear
/// and second-order types are supported. Physical groups of faces become patches, in the order of their tags; a face of
/// several groups is listed with each. If no face is in a group, each curve or surface of the geometry is a patch
/// "entity_<tag>". Faces on curves or surfaces that $Periodic connects by a rotation and translation are marked as
/// sides of a connection instead; a link whose sides have no elements of their own is left out with a warning. A mesh
/// of the plane z = 0 has two physical dimensions. In files that Gmsh has partitioned, faces belong to the groups of
/// the curve or surface that was divided, or of its parts if it has none; faces between parts are in no patch.
///
/// A file of version 2 lists a cell once for each of its physical groups: the first is kept, a note counts the others.
///
/// Rank 0 scans the file once for the positions of its parts; then every rank reads its share of nodes and elements.
/// Memory in proportion to the share. Node tags may be any numbers; unused nodes are kept.
///
/// Errors, the same on all ranks: DataError with file and line (the byte in binary files) if the file cannot be read,
/// ends early, contradicts itself, is of another version, or has element types of higher order.
///
/// Formats: https://gmsh.info/doc/texinfo/gmsh.html, chapter "Gmsh file formats".
SourceMesh readGmsh(CommunicatorView comm, const std::string &path);

} // namespace DNDS::Geom
