#include "DNDS/Geom/Vtk/VtkElements.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom {

namespace {

// Both number corners alike, also those of the wedge: its shape functions are those of CGNS in all versions. Up to VTK
// 9.5 its faces point inward, though, as its manual says, so vtkCellSizeFilter finds negative volumes there.
// VTK lists the edges of both triangles before the vertical ones; CGNS has these in between.
constexpr std::uint8_t wedge18[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 9, 10, 11, 15, 16, 17};
// VTK lists the vertical edges last, and faces in the order x-, x+, y-, y+, z-, z+.
constexpr std::uint8_t hexahedron27[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 16, 17,
                                         18, 19, 12, 13, 14, 15, 24, 22, 21, 23, 20, 25, 26};
// PYRA_14 without the node in the base.
constexpr std::uint8_t pyramid13[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

} // namespace

/// The numbers are those of vtkCellType.h.
VtkElement vtkElement(ElementType type) {
    switch (type) {
    case ElementType::Node:
        return {1, {}};
    case ElementType::Bar2:
        return {3, {}};
    case ElementType::Bar3:
        return {21, {}};
    case ElementType::Tri3:
        return {5, {}};
    case ElementType::Tri6:
        return {22, {}};
    case ElementType::Quad4:
        return {9, {}};
    case ElementType::Quad8:
        return {23, {}};
    case ElementType::Quad9:
        return {28, {}};
    case ElementType::Tetra4:
        return {10, {}};
    case ElementType::Tetra10:
        return {24, {}};
    case ElementType::Pyra5:
        return {14, {}};
    case ElementType::Pyra13:
        return {27, {}};
    case ElementType::Pyra14:
        return {27, pyramid13};
    case ElementType::Penta6:
        return {13, {}};
    case ElementType::Penta15:
        return {26, std::span(wedge18).first(15)};
    case ElementType::Penta18:
        return {32, wedge18};
    case ElementType::Hexa8:
        return {12, {}};
    case ElementType::Hexa20:
        return {25, std::span(hexahedron27).first(20)};
    case ElementType::Hexa27:
        return {29, hexahedron27};
    case ElementType::Polygon:
        return {7, {}};
    case ElementType::Polyhedron:
        return {42, {}};
    case ElementType::Mixed:
        break;
    }
    throw ArgumentError(fmt::format("VTK has no cell type for {}", elementInfo(type).name));
}

} // namespace DNDS::Geom
