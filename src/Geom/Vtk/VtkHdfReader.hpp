/// @file VtkHdfReader.hpp
/// @brief Reads the mesh of a VTKHDF file of the type UnstructuredGrid.
#pragma once

#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>

namespace DNDS::Geom {

/// Reads a file, which every rank must be able to open; each rank reads its share, independently. Collective. Memory in
/// proportion to the share.
///
/// Cells of all linear types, those of second order up to the hexahedron of 27 nodes, polygons, polyhedra (version 2.5
/// of the format), voxels and pixels. The format has no names of boundaries: the mesh has no patches. Cells of fewer
/// dimensions than the others are left out with a note. Of a file of several steps, the mesh must be the same at each.
///
/// `fields`, if given, is filled in with PointData and CellData, of several steps with those of the last. A vector
/// becomes three fields "<name>X", ..., others of several components "<name>1", ...; data sets without one row for each
/// point or cell, or without numbers, are left out with a warning.
///
/// Errors, the same on all ranks: DataError, with the file and the data set or the cell, if the file cannot be read, is
/// damaged, of another type, or has several pieces: pieces list the nodes between them once each, so the mesh falls
/// apart. NotBuiltError without HDF5.
///
/// Format: https://docs.vtk.org/en/latest/vtk_file_formats/vtkhdf_file_format/
SourceMesh readVtkHdf(CommunicatorView comm, const std::string &path, MeshFields *fields = nullptr);

} // namespace DNDS::Geom
