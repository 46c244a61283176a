/// @file ShapeFunctions.hpp
/// @brief Shape functions of all element types and their gradients at a reference point; usable in kernels.
#pragma once

#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include <array>

namespace DNDS::Geom {

/// Values and gradients of an element's shape functions at one point. 872 bytes: tabulate what many elements share.
struct ShapeFunctions {
    int nodes = 0;
    int dimension = 0;
    std::array<real, maxElementNodes> values;     ///< [nodes], in the order of the CGNS standard
    std::array<Point, maxElementNodes> gradients; ///< [nodes] with respect to reference coordinates; unused ones are 0

    /// Sets function `node`. In kernels, too.
    DNDS_HOST_DEVICE void set(int node, real value, const Point &gradient) {
        values[static_cast<std::size_t>(node)] = value;
        gradients[static_cast<std::size_t>(node)] = gradient;
    }
    /// Adds `factor` times function `from` to function `to`. In kernels, too.
    DNDS_HOST_DEVICE void add(int to, real factor, int from) {
        const auto i = static_cast<std::size_t>(to);
        const auto j = static_cast<std::size_t>(from);
        values[i] += factor * values[j];
        gradients[i] = gradients[i] + factor * gradients[j];
    }
};

/// The parts that shape functions are made of.
namespace Shapes {

/// A function of one variable.
struct Line {
    real value;
    real slope;
};

/// The Lagrange polynomial on [-1, 1] that is 1 at `node` (-1, 1, of order 2 also 0). In kernels, too.
DNDS_HOST_DEVICE inline Line line(int order, real node, real x) {
    if (order == 1)
        return {0.5 * (1.0 + node * x), 0.5 * node};
    if (node == 0.0)
        return {1.0 - x * x, -2.0 * x};
    return {0.5 * x * (x + node), x + 0.5 * node};
}

/// Products of lines: segments, quadrilaterals, hexahedra. In kernels, too.
DNDS_HOST_DEVICE inline void setProducts(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    for (int k = 0; k < layout.complete; k++) {
        const Point node = referenceNode(layout.shape, k);
        Line lines[3] = {{1.0, 0.0}, {1.0, 0.0}, {1.0, 0.0}};
        for (std::size_t d = 0; d < static_cast<std::size_t>(result.dimension); d++)
            lines[d] = line(layout.order, node[d], at[d]);
        const auto [x, y, z] = lines;
        result.set(k, x.value * y.value * z.value,
                   {x.slope * y.value * z.value, x.value * y.slope * z.value, x.value * y.value * z.slope});
    }
}

/// Polynomials of barycentric coordinates: triangles and tetrahedra. In kernels, too.
DNDS_HOST_DEVICE inline void setSimplex(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    const ReferenceTable &table = referenceTable(layout.shape);
    const auto weight = [&](int corner) {
        return corner == 0 ? 1.0 - at[0] - at[1] - at[2] : at[static_cast<std::size_t>(corner - 1)];
    };
    const auto slope = [&](int corner) {
        if (corner == 0)
            return result.dimension == 2 ? Point{-1.0, -1.0, 0.0} : Point{-1.0, -1.0, -1.0};
        return Point{corner == 1 ? 1.0 : 0.0, corner == 2 ? 1.0 : 0.0, corner == 3 ? 1.0 : 0.0};
    };
    for (int k = 0; k < table.corners; k++) {
        const real l = weight(k);
        if (layout.order == 1)
            result.set(k, l, slope(k));
        else
            result.set(k, l * (2.0 * l - 1.0), (4.0 * l - 1.0) * slope(k));
    }
    for (int e = 0; e < layout.complete - table.corners; e++) {
        const int a = table.edge[e][0];
        const int b = table.edge[e][1];
        result.set(table.corners + e, 4.0 * weight(a) * weight(b),
                   (4.0 * weight(b)) * slope(a) + (4.0 * weight(a)) * slope(b));
    }
}

/// Functions of a triangle times lines. In kernels, too.
DNDS_HOST_DEVICE inline void setPrism(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    static constexpr std::uint8_t inTriangle[] = {0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 3, 4, 5};
    ShapeFunctions triangle;
    triangle.dimension = 2;
    const int nodes = layout.order == 1 ? 3 : 6;
    setSimplex(triangle, {ReferenceShape::Triangle, layout.order, nodes, nodes}, {at[0], at[1], 0.0});
    for (int k = 0; k < layout.complete; k++) {
        const std::size_t i = inTriangle[k];
        const Line up = line(layout.order, referenceNode(layout.shape, k)[2], at[2]);
        const Point &slope = triangle.gradients[i];
        result.set(k, triangle.values[i] * up.value,
                   {slope[0] * up.value, slope[1] * up.value, triangle.values[i] * up.slope});
    }
}

/// Pyramids: rational functions, which are polynomials in the position a = x / w, b = y / w within the horizontal
/// section of half-width w = 1 - z. Those of order r span the space of Bergot, Cohen and Durufle (Higher-order finite
/// elements for hybrid meshes using new nodal pyramidal elements, J. Sci. Comput. 42, 2010): all polynomials of degree
/// r, and on each face those of the neighbour's element. At the apex, where gradients depend on the direction, they
/// are those along the axis. In kernels, too.
DNDS_HOST_DEVICE inline void setPyramid(ShapeFunctions &result, const ElementLayout &layout, const Point &at) {
    const real z = at[2];
    const real w = 1.0 - z;
    const real a = w != 0.0 ? at[0] / w : 0.0;
    const real b = w != 0.0 ? at[1] / w : 0.0;
    // w times a function g of a, b and z, whose derivatives are given.
    const auto set = [&](int node, real g, real ga, real gb, real gz) {
        result.set(node, w * g, {ga, gb, w * gz - g + a * ga + b * gb});
    };
    const bool linear = layout.order == 1;
    for (int k = 0; k < 4; k++) {
        const Point corner = referenceNode(layout.shape, k);
        const Line x = line(1, corner[0], a);
        const Line y = line(1, corner[1], b);
        const real g = x.value * y.value;
        const real ga = x.slope * y.value;
        const real gb = x.value * y.slope;
        if (linear) {
            set(k, g, ga, gb, 0.0);
            continue;
        }
        set(9 + k, 4.0 * z * g, 4.0 * z * ga, 4.0 * z * gb, 4.0 * g);
        const Line x2 = line(2, corner[0], a);
        const Line y2 = line(2, corner[1], b);
        const real h = x2.value * y2.value;
        set(k, w * h - z * g, w * x2.slope * y2.value - z * ga, w * x2.value * y2.slope - z * gb, -h - g);
    }
    if (linear) {
        result.set(4, z, {0.0, 0.0, 1.0});
        return;
    }
    result.set(4, z * (2.0 * z - 1.0), {0.0, 0.0, 4.0 * z - 1.0});
    for (const int k : {5, 6, 7, 8, 13}) {
        const Point node = referenceNode(layout.shape, k);
        const Line x = line(2, node[0], a);
        const Line y = line(2, node[1], b);
        set(k, w * x.value * y.value, w * x.slope * y.value, w * x.value * y.slope, -x.value * y.value);
    }
}

/// Makes functions of a serendipity element of those of the complete one: a node that it lacks has the value that the
/// others interpolate, so that the terms of highest degree of the quadrilateral, or the hexahedron, vanish. In kernels,
/// too.
DNDS_HOST_DEVICE inline void leaveOutCentres(ShapeFunctions &result, const ElementLayout &layout) {
    const ReferenceTable &table = referenceTable(layout.shape);
    for (int q = 0; q < table.quads; q++)
        for (int k = 0; k < 4; k++) {
            result.add(table.quad[q][k], -0.25, layout.nodes + q);
            result.add(table.corners + table.quad[q][4 + k], 0.5, layout.nodes + q);
        }
    if (layout.shape != ReferenceShape::Hexahedron)
        return;
    for (int k = 0; k < layout.nodes; k++)
        result.add(k, k < table.corners ? -0.25 : 0.25, layout.complete - 1);
}

} // namespace Shapes

/// The shape functions of a type at the reference point `at`: Lagrange polynomials of order 1 or 2 for complete
/// elements, serendipity for QUAD_8, PYRA_13, PENTA_15 and HEXA_20 (Zienkiewicz and Taylor, The Finite Element Method).
/// `nodes` is 0 for types without: polygons, polyhedra, MIXED. Local, O(nodes); in kernels, too.
DNDS_HOST_DEVICE inline ShapeFunctions shapeFunctions(ElementType type, const Point &at) {
    const ElementLayout layout = elementLayout(type);
    ShapeFunctions result;
    result.nodes = layout.nodes;
    result.dimension = referenceTable(layout.shape).dimension;
    switch (layout.shape) {
    case ReferenceShape::Vertex:
        result.set(0, 1.0, {});
        break;
    case ReferenceShape::Segment:
    case ReferenceShape::Quadrilateral:
    case ReferenceShape::Hexahedron:
        Shapes::setProducts(result, layout, at);
        break;
    case ReferenceShape::Triangle:
    case ReferenceShape::Tetrahedron:
        Shapes::setSimplex(result, layout, at);
        break;
    case ReferenceShape::Prism:
        Shapes::setPrism(result, layout, at);
        break;
    case ReferenceShape::Pyramid:
        Shapes::setPyramid(result, layout, at);
        break;
    }
    if (layout.complete > layout.nodes)
        Shapes::leaveOutCentres(result, layout);
    return result;
}

} // namespace DNDS::Geom
