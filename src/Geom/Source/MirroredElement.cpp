#include "DNDS/Geom/Source/MirroredElement.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace DNDS::Geom {

namespace {

using Order = std::span<const std::uint8_t>;

// Entry k is the node that becomes node k: corners first, then the mid-nodes of edges, faces and the cell, numbered as
// in the standard. The reflection exchanges corners 1 and 3 of quadrilaterals (1 and 2 of triangles); a mid-node goes
// to the edge or face between the exchanged corners. Smaller types use the head of the list of their largest relative.
constexpr std::uint8_t triangle[] = {0, 2, 1, 5, 4, 3};
constexpr std::uint8_t quadrilateral[] = {0, 3, 2, 1, 7, 6, 5, 4, 8};
constexpr std::uint8_t tetrahedron[] = {0, 2, 1, 3, 6, 5, 4, 7, 9, 8};
constexpr std::uint8_t pyramid[] = {0, 3, 2, 1, 4, 8, 7, 6, 5, 9, 12, 11, 10, 13};
constexpr std::uint8_t prism[] = {0, 2, 1, 3, 5, 4, 8, 7, 6, 9, 11, 10, 14, 13, 12, 17, 16, 15};
constexpr std::uint8_t hexahedron[] = {0,  3,  2,  1,  4,  7,  6,  5,  11, 10, 9,  8,  12, 15,
                                       14, 13, 19, 18, 17, 16, 20, 24, 23, 22, 21, 25, 26};

// Empty for types that have no mirror image of fixed size.
Order mirrorOrder(ElementType type) {
    switch (type) {
    case ElementType::Tri3:
    case ElementType::Tri6:
        return triangle;
    case ElementType::Quad4:
    case ElementType::Quad8:
    case ElementType::Quad9:
        return quadrilateral;
    case ElementType::Tetra4:
    case ElementType::Tetra10:
        return tetrahedron;
    case ElementType::Pyra5:
    case ElementType::Pyra13:
    case ElementType::Pyra14:
        return pyramid;
    case ElementType::Penta6:
    case ElementType::Penta15:
    case ElementType::Penta18:
        return prism;
    case ElementType::Hexa8:
    case ElementType::Hexa20:
    case ElementType::Hexa27:
        return hexahedron;
    default:
        return {};
    }
}

} // namespace

/// An involution: applied twice, it restores the element. Node 0 stays, so that the first face keeps its corner.
void mirrorElement(ElementType type, std::span<index> nodes) {
    if (type == ElementType::Polygon) {
        std::reverse(nodes.begin() + 1, nodes.end());
        return;
    }
    if (type == ElementType::Polyhedron) {
        for (std::size_t at = 0; at < nodes.size(); at += static_cast<std::size_t>(nodes[at]) + 1) {
            const auto face = nodes.subspan(at + 1, static_cast<std::size_t>(nodes[at]));
            std::reverse(face.begin() + 1, face.end());
        }
        return;
    }
    const Order order = mirrorOrder(type);
    DNDS_CHECK(!nodes.empty() && nodes.size() <= order.size(), ArgumentError, "cannot mirror a {1} of {0} nodes",
               nodes.size(), elementInfo(type).name);
    std::array<index, std::size(hexahedron)> old;
    std::copy(nodes.begin(), nodes.end(), old.begin());
    for (std::size_t k = 0; k < nodes.size(); k++)
        nodes[k] = old[order[k]];
}

} // namespace DNDS::Geom
