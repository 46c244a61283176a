/// @file UgridReader.hpp
/// @brief Reads meshes of AFLR3, FUN3D and NASA's workshops: UGRID, with boundary names from `.mapbc`.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>

namespace DNDS::Geom {

/// Reads a file, which every rank must be able to open. Collective.
///
/// Text (`.ugrid`); binary of reals of 8 or 4 bytes, big-endian (`.b8.ugrid`, `.b4.ugrid`) or little-endian
/// (`.lb8.ugrid`, `.lb4.ugrid`); the same in Fortran's unformatted records (`.r8.ugrid`, `.lr8.ugrid`, ...), long ones
/// in subrecords as gfortran and Intel's compilers write them. Integers of a binary file may have 8 bytes
/// (`.lb8l.ugrid`, `.lb8.ugrid64`). The content decides the form where the counts explain the size of the file exactly,
/// the name otherwise: data after the mesh, which UG_IO allows, is ignored.
///
/// Nodes of tetrahedra, prisms and hexahedra are in the order of CGNS. The base of a pyramid is 1, 4, 5, 2, its apex 3.
///
/// Each tag of boundary faces becomes a patch, in ascending order. The file `wing.mapbc` beside `wing.b8.ugrid`, if
/// there is one, gives names: the rest of a row, blanks included. Tags of one name and boundary condition are one
/// patch; of one name and several conditions, the patches after the first have their first tag at the end: "wall_2". A
/// patch's `family` is the number of the condition (FUN3D's: "4000"), `kind` the CGNS type for the common ones
/// (BCWallViscous). Other patches are called by their tag; a note says so where the file is missing.
///
/// Binary files: every rank reads its share. Text: rank 0 scans the file once, then every rank reads its share. Memory
/// in proportion to the share.
///
/// Errors, the same on all ranks: DataError, with the file and the line or byte, if a file cannot be read, ends early,
/// contradicts itself, or has no volume cells (surfaces and two-dimensional meshes).
///
/// Format: https://www.simcenter.msstate.edu/software/documentation/ug_io/3d_grid_file_type_ugrid.html
SourceMesh readUgrid(CommunicatorView comm, const std::string &path);

} // namespace DNDS::Geom
