/// @file SubElements.hpp
/// @brief The faces and edges of an element with all their nodes, second-order ones included.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace DNDS::Geom {

/// A face or an edge of an element: an element itself, of nodes numbered within the other.
struct SubElement {
    ElementType type = ElementType::Node;
    std::array<std::uint8_t, 9> node{};

    /// [nodes of `type`] in the order of the standard.
    std::span<const std::uint8_t> nodes() const {
        return std::span<const std::uint8_t>(node).first(static_cast<std::size_t>(elementLayout(type).nodes));
    }
};

/// Face `face` of `elementInfo(type).faces`: the normal of its own map, the cross product of its tangents, points out
/// of the element; the edge of a surface runs counter-clockwise. A face of HEXA_20 is a QUAD_8, of HEXA_27 a QUAD_9.
/// Local, O(1). Throws ArgumentError for types without shape functions and for numbers that are no face.
SubElement faceOf(ElementType type, int face);

/// Number of edges of a type, and edge `edge`, in the order of the standard. Local, O(1). Throws as `faceOf`.
int edgeCount(ElementType type);
SubElement edgeOf(ElementType type, int edge);

/// The point `at` of a face's or edge's reference shape in reference coordinates of the element, to evaluate fields of
/// the cell at points of its face. Local.
Point inElement(ElementType type, const SubElement &part, const Point &at);

} // namespace DNDS::Geom
