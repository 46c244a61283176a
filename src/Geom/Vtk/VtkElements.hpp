/// @file VtkElements.hpp
/// @brief VTK's cell types and its order of nodes. Part of VtkHdfWriter.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"

#include <cstdint>
#include <span>

namespace DNDS::Geom {

struct VtkElement {
    std::uint8_t type; ///< VTK's number
    /// VTK's node `k` is node `order[k]` of the CGNS standard; empty if both agree.
    std::span<const std::uint8_t> order;
};

/// The VTK cell of an element. VTK lacks PYRA_14, which becomes the pyramid of 13 nodes. Local, O(1). Throws
/// ArgumentError for MIXED, which is no element.
VtkElement vtkElement(ElementType type);

} // namespace DNDS::Geom
