/// @file ElementTypes.hpp
/// @brief Common to tests of elements.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace DNDS::test {

/// All types that have shape functions, but Node.
inline constexpr std::array shapedTypes{
    Geom::ElementType::Bar2,    Geom::ElementType::Bar3,    Geom::ElementType::Tri3,    Geom::ElementType::Tri6,
    Geom::ElementType::Quad4,   Geom::ElementType::Quad8,   Geom::ElementType::Quad9,   Geom::ElementType::Tetra4,
    Geom::ElementType::Tetra10, Geom::ElementType::Pyra5,   Geom::ElementType::Pyra13,  Geom::ElementType::Pyra14,
    Geom::ElementType::Penta6,  Geom::ElementType::Penta15, Geom::ElementType::Penta18, Geom::ElementType::Hexa8,
    Geom::ElementType::Hexa20,  Geom::ElementType::Hexa27};

inline constexpr std::array referenceShapes{Geom::ReferenceShape::Segment,       Geom::ReferenceShape::Triangle,
                                            Geom::ReferenceShape::Quadrilateral, Geom::ReferenceShape::Tetrahedron,
                                            Geom::ReferenceShape::Pyramid,       Geom::ReferenceShape::Prism,
                                            Geom::ReferenceShape::Hexahedron};

/// Points inside of a shape, at least `margin` from its boundary.
inline std::vector<Geom::Point> pointsInside(Geom::ReferenceShape shape, int count, real margin = 0.02) {
    std::mt19937 random(7);
    std::uniform_real_distribution<real> range(-1.0, 1.0);
    const int dimension = Geom::referenceTable(shape).dimension;
    std::vector<Geom::Point> points;
    while (static_cast<int>(points.size()) < count) {
        Geom::Point at{};
        for (int d = 0; d < dimension; d++)
            at[static_cast<std::size_t>(d)] = range(random);
        if (Geom::outside(shape, at) < -margin)
            points.push_back(at);
    }
    return points;
}

/// The nodes of a type in its reference shape.
inline std::vector<Geom::Point> referenceNodes(Geom::ElementType type) {
    const Geom::ElementLayout layout = Geom::elementLayout(type);
    std::vector<Geom::Point> nodes;
    for (int k = 0; k < layout.nodes; k++)
        nodes.push_back(Geom::referenceNode(layout.shape, k));
    return nodes;
}

} // namespace DNDS::test
