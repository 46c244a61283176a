/// @file VtkCells.hpp
/// @brief Cells as VTK lists them.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// Cells as a vtkUnstructuredGrid has them; offsets are the ends of cells and of faces. Plain data, not collective.
struct VtkCells {
    std::vector<std::uint8_t> types; ///< [cells] VTK's numbers
    std::vector<index> connectivity;
    std::vector<index> offsets;           ///< [cells]
    std::vector<index> faceConnectivity;  ///< faces of polyhedra only; normals point outwards
    std::vector<index> faceOffsets;       ///< [faces of polyhedra]
    std::vector<index> polyhedronToFaces; ///< 0, 1, ...: faces are not shared
    std::vector<index> polyhedronOffsets; ///< [cells]

    /// Adds a cell with its nodes in the order of the CGNS standard; a polyhedron as the number of corners and the
    /// corners of each of its faces. Local. Throws ArgumentError for an invalid polyhedron.
    void add(ElementType type, std::span<const index> nodes);
};

} // namespace DNDS::Geom
