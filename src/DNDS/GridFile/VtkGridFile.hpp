/// @file VtkGridFile.hpp
/// @brief Fields of boxes for ParaView: uniform grids as VTKHDF ImageData, others as VTK's RectilinearGrid.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// A field of the cells. Slabs are boxes of [z][y][x] cells, or [z][y][x][components].
struct VtkGridField {
    std::string name;
    index components = 1;
    ElementKind kind = ElementKind::Float64;
    std::vector<WrittenSlab> slabs;
};

/// The location of values on a uniform grid.
enum class VtkPlacement {
    Cells,  ///< at cells. VTK 9.1 cannot read them; 9.7 can
    Centres ///< at points in cell centres: VTK 9.1 reads them, too, except for grids of one cell in a direction
};

/// Writes a uniform grid of `cells` (x, y, z; 1 where it has no extent) as a VTKHDF ImageData file, complete or not
/// there. Collective; ranks write their own boxes. @throws on all ranks: ArgumentError, LayoutError for fields outside
/// the grid; DataError if the file cannot be written; NotBuiltError without HDF5.
///
/// Format: https://docs.vtk.org/en/latest/vtk_file_formats/vtkhdf_file_format/
void writeVtkImage(CommunicatorView comm, const std::string &path, const std::array<index, 3> &cells,
                   const std::array<real, 3> &origin, const std::array<real, 3> &spacing,
                   std::span<const VtkGridField> fields, VtkPlacement placement = VtkPlacement::Cells);

/// Writes a grid whose points have the coordinates x[i], y[j], z[k] (one more than cells; a single one where it has no
/// extent) as a .vtr file of VTK, with binary data appended: VTKHDF readers of VTK 9.1 know no rectilinear grids.
/// Collective. @throws as above.
void writeVtkRectilinear(CommunicatorView comm, const std::string &path, const std::array<std::vector<real>, 3> &points,
                         std::span<const VtkGridField> fields);

} // namespace DNDS
