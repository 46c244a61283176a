#include "Geom/Vtk/VtkElements.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom {

namespace {

// VTK's wedge has its first triangle counter-clockwise seen from outside, the standard's from inside.
constexpr std::uint8_t wedge18[] = {0, 2, 1, 3, 5, 4, 8, 7, 6, 14, 13, 12, 9, 11, 10, 17, 16, 15};
constexpr std::uint8_t hexahedron27[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 16, 17,
                                         18, 19, 12, 13, 14, 15, 24, 22, 21, 23, 20, 25, 26};
constexpr std::uint8_t pyramid13[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

} // namespace

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
        return {13, std::span(wedge18).first(6)};
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
    throw ArgumentError(fmt::format("{} is no element that VTK could show", elementInfo(type).name));
}

} // namespace DNDS::Geom
