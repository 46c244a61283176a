/// @file VtuReader.hpp
/// @brief Reads the mesh of a VTU file: VTK XML of the type UnstructuredGrid.
#pragma once

#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>
#include <string_view>

namespace DNDS::Geom {

/// Whether a file with these first bytes is VTK XML of the type UnstructuredGrid: its first element, after a
/// declaration and comments, is a VTKFile of this type. Local.
bool isVtu(std::string_view firstBytes);

/// Reads a file of one piece: rank 0 alone, which gives each rank a block of the points and cells. Collective. Memory
/// of rank 0: the file, and three times its largest array in numbers of 64 bits; of other ranks: in proportion to the
/// block. VTKHDF is read in parallel: better for large meshes.
///
/// Arrays may be ascii, binary or appended (raw, base64), in both byte orders, with headers of 32 or 64 bits,
/// uncompressed or by vtkZLibDataCompressor. Cells, fields and what is left out: as `readVtkHdf`. Polyhedra may be
/// listed in `faces` and `faceoffsets`, or as VTK 9.4 and later do, in `polyhedron_to_faces` and the like.
///
/// Errors, the same on all ranks: DataError, with the file and the array, the byte or the cell, if the file cannot be
/// read, is damaged or not complete, has several pieces, several time steps, or another compressor. NotBuiltError for
/// compressed arrays without zlib.
///
/// Format: https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html
SourceMesh readVtu(CommunicatorView comm, const std::string &path, MeshFields *fields = nullptr);

} // namespace DNDS::Geom
