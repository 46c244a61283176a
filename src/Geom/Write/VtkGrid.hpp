/// @file VtkGrid.hpp
/// @brief The cells of this rank for VTK's objects in memory, as in-situ tools take them.
#pragma once

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Vtk/VtkCells.hpp"

namespace DNDS::Geom {

/// The first `cells` local cells, by local node numbers: `mesh.cells.owned` of them, or `mesh.cells.size()` with
/// ghosts. Points are `mesh.coordinates`. Local. Throws ArgumentError if there are fewer cells.
VtkCells vtkCells(const UnstructuredMesh &mesh, index cells);

} // namespace DNDS::Geom
