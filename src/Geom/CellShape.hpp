/// @file CellShape.hpp
/// @brief The shapes of cells and the nodes of their faces, numbered as in the CGNS standard (SIDS, linear elements).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace DNDS::Geom {

enum class CellShape : std::uint8_t { Triangle, Quadrilateral, Tetrahedron, Pyramid, Prism, Hexahedron };

/// One face of a shape: its corners, numbered within the cell; looking from outside, counter-clockwise. In two
/// dimensions a face is an edge.
struct CellFace {
    int nodes;
    std::array<std::uint8_t, 4> node; ///< the first `nodes` entries count
};

/// What is known about a shape.
struct CellShapeInfo {
    std::string_view name;
    int dimension;
    int nodes;                       ///< corners of the cell
    int largestFace;                 ///< corners of the face that has most
    std::span<const CellFace> faces; ///< in the order of the standard
};

/// Local, O(1). Throws ArgumentError for a value outside the enumeration.
const CellShapeInfo &cellShapeInfo(CellShape shape);

} // namespace DNDS::Geom
