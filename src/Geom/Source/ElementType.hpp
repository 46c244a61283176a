/// @file ElementType.hpp
/// @brief Element types of mesh files, numbered and with nodes ordered as in the CGNS standard; points and vectors in
/// space, and their arithmetic, usable in kernels.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace DNDS::Geom {

using Point = std::array<real, 3>;

/// Vectors in space: differences, sums, multiples, products and length.
DNDS_HOST_DEVICE inline Point operator-(const Point &a, const Point &b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
DNDS_HOST_DEVICE inline Point operator+(const Point &a, const Point &b) {
    return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
DNDS_HOST_DEVICE inline Point operator*(real s, const Point &a) { return {s * a[0], s * a[1], s * a[2]}; }
DNDS_HOST_DEVICE inline real dot(const Point &a, const Point &b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
DNDS_HOST_DEVICE inline real norm(const Point &a) { return std::sqrt(dot(a, a)); }
DNDS_HOST_DEVICE inline Point cross(const Point &a, const Point &b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// Values are those of the CGNS standard (SIDS, ElementType_t); files store them unchanged.
enum class ElementType : std::uint8_t {
    Node = 2,
    Bar2 = 3,
    Bar3 = 4,
    Tri3 = 5,
    Tri6 = 6,
    Quad4 = 7,
    Quad8 = 8,
    Quad9 = 9,
    Tetra4 = 10,
    Tetra10 = 11,
    Pyra5 = 12,
    Pyra14 = 13,
    Penta6 = 14,
    Penta15 = 15,
    Penta18 = 16,
    Hexa8 = 17,
    Hexa20 = 18,
    Hexa27 = 19,
    Mixed = 20, ///< sections of files only: each element is preceded by its own type
    Pyra13 = 21,
    Polygon = 22,   ///< NGON_n: any number of corners in order around the face
    Polyhedron = 23 ///< NFACE_n: any number of polygonal faces
};

/// A face of an element: its corners, numbered within the element, counter-clockwise seen from outside. The faces of a
/// two-dimensional element are its edges, those of a one-dimensional one its ends.
struct ElementFace {
    int corners;
    std::array<std::uint8_t, 4> corner; ///< the first `corners` entries count
};

/// A type of elements in numbers.
struct ElementInfo {
    std::string_view name; ///< as in CGNS files: "TETRA_4"
    int dimension;
    int nodes;                          ///< total; 0 if it varies (MIXED, NGON_n, NFACE_n)
    int corners;                        ///< the first `corners` nodes are the corners
    std::span<const ElementFace> faces; ///< in the order of the standard; empty for polygons and polyhedra
};

/// Properties of a type. Local, O(1). Throws ArgumentError for a value that is no type.
const ElementInfo &elementInfo(ElementType type);

/// Whether a number from a file is a known type. Local, O(1).
bool isElementType(int value) noexcept;

} // namespace DNDS::Geom
